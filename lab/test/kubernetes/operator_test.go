package kubernetes

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The resources of the Prometheus operator (monitoring.coreos.com/v1), with the fields that
// the manifests use. Its own module is not at hand, so a field that is not here is an error,
// and has to be looked up in the definition of the resource.

type podMonitor struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector            metav1.LabelSelector `json:"selector"`
		PodMetricsEndpoints []struct {
			Port              string       `json:"port"`
			Interval          string       `json:"interval"`
			HonorLabels       bool         `json:"honorLabels"`
			Relabelings       []relabeling `json:"relabelings"`
			MetricRelabelings []relabeling `json:"metricRelabelings"`
		} `json:"podMetricsEndpoints"`
	} `json:"spec"`
}

type relabeling struct {
	Action       string   `json:"action,omitempty"`
	Regex        string   `json:"regex,omitempty"`
	SourceLabels []string `json:"sourceLabels,omitempty"`
	TargetLabel  string   `json:"targetLabel,omitempty"`
	Replacement  string   `json:"replacement,omitempty"`
}

type prometheusRule struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Groups []ruleGroup `json:"groups"`
	} `json:"spec"`
}

type ruleGroup struct {
	Name     string `json:"name"`
	Interval string `json:"interval"`
	Rules    []struct {
		Alert         string            `json:"alert"`
		Record        string            `json:"record"`
		Expr          string            `json:"expr"`
		For           string            `json:"for"`
		KeepFiringFor string            `json:"keep_firing_for"`
		Labels        map[string]string `json:"labels"`
		Annotations   map[string]string `json:"annotations"`
	} `json:"rules"`
}

// otelCollector is the resource of the OpenTelemetry operator (opentelemetry.io/v1beta1), with
// the fields that the sample uses. Its module is not at hand either.
type otelCollector struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Mode                string                      `json:"mode"`
		Replicas            *int32                      `json:"replicas"`
		Image               string                      `json:"image"`
		UpgradeStrategy     string                      `json:"upgradeStrategy"`
		ManagementState     string                      `json:"managementState"`
		ServiceAccount      string                      `json:"serviceAccount"`
		Args                map[string]string           `json:"args"`
		Env                 []corev1.EnvVar             `json:"env"`
		EnvFrom             []corev1.EnvFromSource      `json:"envFrom"`
		PodSecurityContext  *corev1.PodSecurityContext  `json:"podSecurityContext"`
		SecurityContext     *corev1.SecurityContext     `json:"securityContext"`
		NodeSelector        map[string]string           `json:"nodeSelector"`
		Resources           corev1.ResourceRequirements `json:"resources"`
		StartupProbe        *operatorProbe              `json:"startupProbe"`
		LivenessProbe       *operatorProbe              `json:"livenessProbe"`
		PodDisruptionBudget struct {
			MaxUnavailable int `json:"maxUnavailable"`
		} `json:"podDisruptionBudget"`
		PodManagementPolicy  appsv1.PodManagementPolicyType                          `json:"podManagementPolicy"`
		VolumeClaimTemplates []corev1.PersistentVolumeClaim                          `json:"volumeClaimTemplates"`
		Retention            *appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy `json:"persistentVolumeClaimRetentionPolicy"`
		VolumeMounts         []corev1.VolumeMount                                    `json:"volumeMounts"`
		Config               map[string]any                                          `json:"config"`
	} `json:"spec"`
}

// operatorProbe is what the operator lets a probe change. It makes the rest.
type operatorProbe struct {
	PeriodSeconds    int32 `json:"periodSeconds"`
	TimeoutSeconds   int32 `json:"timeoutSeconds"`
	FailureThreshold int32 `json:"failureThreshold"`
}

// DeepCopyObject is what a runtime.Object must have; nothing here changes a copy.
func (o *otelCollector) DeepCopyObject() runtime.Object { c := *o; return &c }

// DeepCopyObject is what a runtime.Object must have; nothing here changes a copy.
func (p *podMonitor) DeepCopyObject() runtime.Object { c := *p; return &c }

// DeepCopyObject is what a runtime.Object must have; nothing here changes a copy.
func (p *prometheusRule) DeepCopyObject() runtime.Object { c := *p; return &c }

func addOperator(scheme *runtime.Scheme) error {
	version := schema.GroupVersion{Group: "monitoring.coreos.com", Version: "v1"}
	scheme.AddKnownTypeWithName(version.WithKind("PodMonitor"), &podMonitor{})
	scheme.AddKnownTypeWithName(version.WithKind("PrometheusRule"), &prometheusRule{})
	scheme.AddKnownTypeWithName(schema.GroupVersion{Group: "opentelemetry.io", Version: "v1beta1"}.WithKind("OpenTelemetryCollector"), &otelCollector{})
	return nil
}
