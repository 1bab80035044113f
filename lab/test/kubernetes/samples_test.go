package kubernetes

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	project "github.com/otelcol-vllm/otelcol-vllm/lab/test/release"
)

// What is not part of this project, and is checked where it is: the folder of the chart
// opentelemetry-collector, and that of the CRDs of the OpenTelemetry operator
// (config/crd/bases).
const (
	upstreamChart = "OTELCOL_VLLM_UPSTREAM_CHART"
	operatorCRDs  = "OTELCOL_VLLM_OPERATOR_CRDS"
)

func elsewhere(t *testing.T, variable string) string {
	t.Helper()
	folder := os.Getenv(variable)
	if folder == "" {
		t.Skip(variable, "names no folder")
	}
	return folder
}

// secret is the one that the samples want to be there.
const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: otelcol-vllm-backend, namespace: otelcol-vllm}\ndata: {OTLP_AUTHORIZATION: QmVhcmVyIGE=}\n---\n"

// upstream is the part of the values for the upstream chart that a container has.
type upstream struct {
	Config       map[string]any               `json:"alternateConfig"`
	Env          []corev1.EnvVar              `json:"extraEnvs"`
	EnvFrom      []corev1.EnvFromSource       `json:"extraEnvsFrom"`
	VolumeMounts []corev1.VolumeMount         `json:"extraVolumeMounts"`
	Resources    corev1.ResourceRequirements  `json:"resources"`
	Security     *corev1.SecurityContext      `json:"securityContext"`
	PodSecurity  *corev1.PodSecurityContext   `json:"podSecurityContext"`
	Startup      *corev1.Probe                `json:"startupProbe"`
	Liveness     *corev1.Probe                `json:"livenessProbe"`
	Readiness    *corev1.Probe                `json:"readinessProbe"`
	Command      struct{ ExtraArgs []string } `json:"command"`
	StatefulSet  struct {
		Claims []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates"`
	} `json:"statefulset"`
}

// pretend is a pod as one of the two would make it, with the objects that it refers to.
func pretend(t *testing.T, config map[string]any, container corev1.Container, security *corev1.PodSecurityContext, claims []corev1.PersistentVolumeClaim) (map[string]runtime.Object, workload, corev1.Container) {
	t.Helper()
	text, err := yaml.Marshal(config)
	require.NoError(t, err)
	index := mustDecode(t, []byte(secret)).index()
	index[key("ConfigMap", "otelcol-vllm", "relay")] = &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "relay", Namespace: "otelcol-vllm"}, Data: map[string]string{"relay.yaml": string(text)},
	}
	container.Name, container.Image = "collector", "otelcol-vllm"
	container.Args = append([]string{"--config=/conf/relay.yaml"}, container.Args...)
	container.Ports = []corev1.ContainerPort{{Name: "metrics", ContainerPort: 8888}}
	container.VolumeMounts = append(slices.Clone(container.VolumeMounts), corev1.VolumeMount{Name: "relay", MountPath: "/conf"})
	w := workload{name: "sample", namespace: "otelcol-vllm", claims: claims}
	w.template.Spec = corev1.PodSpec{
		SecurityContext: security, Containers: []corev1.Container{container},
		Volumes: []corev1.Volume{{Name: "relay", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "relay"},
		}}}},
	}
	return index, w, container
}

// upstreamPod is the pod that the upstream chart makes of the values: a stand-in for the chart.
func upstreamPod(t *testing.T) (map[string]runtime.Object, workload, corev1.Container) {
	t.Helper()
	content, err := os.ReadFile(charts + "/upstream-values.yaml")
	require.NoError(t, err)
	var v upstream
	require.NoError(t, yaml.Unmarshal(content, &v))
	// The chart computes it from the limit: 80 %.
	env := append(slices.Clone(v.Env), corev1.EnvVar{Name: "GOMEMLIMIT", Value: "819MiB"})
	return pretend(t, v.Config, corev1.Container{
		Args: v.Command.ExtraArgs, Env: env, EnvFrom: v.EnvFrom, VolumeMounts: v.VolumeMounts, Resources: v.Resources,
		SecurityContext: v.Security, StartupProbe: v.Startup, LivenessProbe: v.Liveness, ReadinessProbe: v.Readiness,
	}, v.PodSecurity, v.StatefulSet.Claims)
}

// operatorPod is the pod that the operator makes of the sample: a stand-in for the operator. It
// takes the port of all probes from health_check.
func operatorPod(t *testing.T) (map[string]runtime.Object, workload, corev1.Container) {
	t.Helper()
	spec := sample(t).Spec
	probe := func(p *operatorProbe) *corev1.Probe {
		if p == nil {
			return nil
		}
		return &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(13133)}},
			PeriodSeconds: p.PeriodSeconds, TimeoutSeconds: p.TimeoutSeconds, FailureThreshold: p.FailureThreshold,
		}
	}
	var args []string
	for _, name := range slices.Sorted(maps.Keys(spec.Args)) {
		args = append(args, "--"+name+"="+spec.Args[name])
	}
	return pretend(t, spec.Config, corev1.Container{
		Args: args, Env: spec.Env, EnvFrom: spec.EnvFrom, VolumeMounts: spec.VolumeMounts, Resources: spec.Resources,
		SecurityContext: spec.SecurityContext, StartupProbe: probe(spec.StartupProbe), LivenessProbe: probe(spec.LivenessProbe),
	}, spec.PodSecurityContext, spec.VolumeClaimTemplates)
}

func operatorSample(t *testing.T) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "examples", "operator", "collector.yaml"))
	require.NoError(t, err)
	return content
}

// sample is the collector of the sample for the operator.
func sample(t *testing.T) *otelCollector {
	t.Helper()
	collector, ok := mustDecode(t, operatorSample(t)).index()[key("OpenTelemetryCollector", "otelcol-vllm", "otelcol-vllm")].(*otelCollector)
	require.True(t, ok)
	return collector
}

// samples are both, each with a pod.
var samples = map[string]func(*testing.T) (map[string]runtime.Object, workload, corev1.Container){
	"upstream chart": upstreamPod, "operator": operatorPod,
}

func TestTheSamplesAreConfinedAndFitTheirPods(t *testing.T) {
	for name, pod := range samples {
		t.Run(name, func(t *testing.T) {
			index, w, container := pod(t)
			var found complaints
			say := func(condition bool, format string, args ...any) { found.add(condition, format, args...) }
			confined(w.template.Spec, container, say)
			configured(index, w, container, say)
			assert.Empty(t, found)
			// The check can fail.
			container.SecurityContext.ReadOnlyRootFilesystem = nil
			container.Env = slices.DeleteFunc(container.Env, func(e corev1.EnvVar) bool { return e.Name == "VLLM_PORT" })
			confined(w.template.Spec, container, say)
			configured(index, w, container, say)
			assert.Contains(t, found, "may write to its image")
			assert.Contains(t, found, "the configuration reads VLLM_PORT, which nothing sets")
		})
	}
}

// The rest of the sample for the operator: what belongs to the collector, and least access.
func TestTheOperatorsSampleIsComplete(t *testing.T) {
	collector := sample(t)
	index := mustDecode(t, operatorSample(t)).index()
	assert.NotNil(t, index[key("ServiceAccount", collector.Namespace, collector.Spec.ServiceAccount)])
	all := mustDecode(t, []byte(secret+"apiVersion: v1\nkind: Namespace\nmetadata: {name: otelcol-vllm}\n---\n"+string(operatorSample(t))))
	var found []string
	for _, complaint := range all.ruleComplaints() {
		found = append(found, complaint[strings.LastIndex(complaint, ": ")+2:])
	}
	// The pods are the operator's, and the collector reads the token of its account in them.
	assert.ElementsMatch(t, []string{"selects no pod", "gives its token to any pod"}, found)
	for _, object := range all {
		if selector := at(asMap(t, object), "spec", "podSelector", "matchLabels"); selector != nil {
			assert.Equal(t, map[string]any{"app.kubernetes.io/instance": collector.Namespace + "." + collector.Name}, selector, "the operator's label")
		}
	}
	assert.Equal(t, int32(1), *collector.Spec.Replicas)
	assert.Equal(t, 1, collector.Spec.PodDisruptionBudget.MaxUnavailable)
}

func asMap(t *testing.T, object runtime.Object) map[string]any {
	t.Helper()
	text, err := json.Marshal(object)
	require.NoError(t, err)
	var m map[string]any
	require.NoError(t, json.Unmarshal(text, &m))
	return m
}

// The upstream chart, where it is: its own schema of values, and what it makes of ours.
func TestTheUpstreamChartTakesTheValues(t *testing.T) {
	c := load(t, elsewhere(t, upstreamChart))
	assert.Equal(t, "0.158.0", c.Metadata.AppVersion)
	rendered, _, err := helm(c, values(t, charts+"/upstream-values.yaml"), "otelcol-vllm")
	require.NoError(t, err)
	all := mustDecode(t, append([]byte(secret), namespaced(rendered)...))
	var found []string
	for _, complaint := range all.complaints() {
		_, says, _ := strings.Cut(complaint, ": ")
		found = append(found, says)
	}
	assert.ElementsMatch(t, upstreamDiffers, found)
	require.Len(t, all.workloads(), 1)
	container := all.workloads()[0].ours()[0]
	assert.Equal(t, []string{"/otelcol-vllm"}, container.Command)
	version, err := project.Version(root)
	require.NoError(t, err)
	assert.Equal(t, "ghcr.io/otelcol-vllm/otelcol-vllm:"+version, container.Image)
}

// upstreamDiffers is what our checks say about the upstream chart. No value changes it.
var upstreamDiffers = []string{
	// It sets these for configurations that use them.
	"nothing reads MY_POD_IP", "nothing reads OTEL_K8S_NAMESPACE", "nothing reads OTEL_K8S_NODE_IP",
	"nothing reads OTEL_K8S_NODE_NAME", "nothing reads OTEL_K8S_POD_IP", "nothing reads OTEL_K8S_POD_NAME",
	// It has no minReadySeconds.
	"a rollout goes on before a collector can be seen to fail",
	// It leaves out policyTypes, which Kubernetes sets by what the policy has: here both.
	"does not hold for both directions",
	// The account, not the pod, decides about the token.
	"gives its token to any pod",
}

// strict turns the schema of a CRD into a JSON schema that refuses fields that the API server
// would drop. Rules in CEL are not evaluated.
func strict(schema map[string]any) map[string]any {
	_, open := schema["x-kubernetes-preserve-unknown-fields"]
	properties, fields := schema["properties"].(map[string]any)
	if _, free := schema["additionalProperties"]; fields && !free && !open {
		schema["additionalProperties"] = false
	}
	for _, property := range properties {
		strict(property.(map[string]any))
	}
	for _, inside := range []string{"items", "additionalProperties"} {
		if next, ok := schema[inside].(map[string]any); ok {
			strict(next)
		}
	}
	delete(schema, "format")
	return schema
}

func TestTheOperatorsSampleFitsItsCRD(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(elsewhere(t, operatorCRDs), "opentelemetry.io_opentelemetrycollectors.yaml"))
	require.NoError(t, err)
	var crd struct {
		Spec struct {
			Versions []struct {
				Name   string
				Served bool
				Schema struct {
					OpenAPI map[string]any `json:"openAPIV3Schema"`
				}
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(content, &crd))
	compiler := jsonschema.NewCompiler()
	for _, version := range crd.Spec.Versions {
		if version.Name == "v1beta1" {
			assert.True(t, version.Served)
			require.NoError(t, compiler.AddResource("crd.json", strict(version.Schema.OpenAPI)))
		}
	}
	schema, err := compiler.Compile("crd.json")
	require.NoError(t, err)
	check := func(old, replacement string) error {
		for document := range strings.SplitSeq(string(operatorSample(t)), "\n---\n") {
			if strings.Contains(document, "kind: OpenTelemetryCollector") {
				require.Contains(t, document, old)
				var object any
				require.NoError(t, yaml.Unmarshal([]byte(strings.Replace(document, old, replacement, 1)), &object))
				return schema.Validate(object)
			}
		}
		return fmt.Errorf("no collector in the sample")
	}
	require.NoError(t, check("mode: statefulset", "mode: statefulset"))
	assert.ErrorContains(t, check("mode: statefulset", "mode: replicaset"), "/spec/mode")
	assert.ErrorContains(t, check("serviceAccount:", "serviceAccountName:"), "additional properties 'serviceAccountName' not allowed")
	assert.ErrorContains(t, check("replicas: 1", "replicas: one"), "/spec/replicas")
}
