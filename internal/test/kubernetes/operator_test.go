package kubernetes

import (
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
			Port     string `json:"port"`
			Interval string `json:"interval"`
		} `json:"podMetricsEndpoints"`
	} `json:"spec"`
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

// DeepCopyObject is what a runtime.Object must have; nothing here changes a copy.
func (p *podMonitor) DeepCopyObject() runtime.Object { c := *p; return &c }

// DeepCopyObject is what a runtime.Object must have; nothing here changes a copy.
func (p *prometheusRule) DeepCopyObject() runtime.Object { c := *p; return &c }

func addOperator(scheme *runtime.Scheme) error {
	version := schema.GroupVersion{Group: "monitoring.coreos.com", Version: "v1"}
	scheme.AddKnownTypeWithName(version.WithKind("PodMonitor"), &podMonitor{})
	scheme.AddKnownTypeWithName(version.WithKind("PrometheusRule"), &prometheusRule{})
	return nil
}
