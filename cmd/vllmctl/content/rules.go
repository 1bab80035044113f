package content

import (
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// The sets of rules and dashboards.
const (
	Stable = "stable"
	Wire   = "wire"
)

// RunbookURL is the address of the alert's runbook.
func (a *Alert) RunbookURL() string { return catalog.RunbookURL(a.Name) }

// Groups returns all rules with the default parameters.
func Groups() []Group {
	defaults := map[string]float64{}
	for _, p := range Parameters() {
		defaults[p.Name] = p.Value
	}
	return GroupsWith(defaults)
}

// GroupsWith returns all rules with parameters of the caller, who gives a value for each of
// Parameters.
func GroupsWith(values map[string]float64) []Group {
	p := parameters(values)
	groups := []Group{
		diagnosisGroup(p), gpuGroup(), sloGroup(p), sloLongGroup(p), gatewayGroup(p), collectorGroup(p), wireGroup(p),
	}
	for i := range groups {
		for j := range groups[i].Alerts {
			a := &groups[i].Alerts[j]
			a.Set = groups[i].Set
			a.Summary += where(a)
			if s := subjectOf(a); s != nil {
				a.Description = message(a, s)
			}
		}
	}
	return groups
}

// where ends a summary with the pod, the namespace and the cluster, where these labels are known.
func where(a *Alert) string {
	const (
		pod       = "{{ with $labels.k8s_pod_name }}, pod {{ . }}{{ end }}"
		namespace = "{{ with $labels.k8s_namespace_name }}, namespace {{ . }}{{ end }}"
		cluster   = "{{ with $labels.k8s_cluster_name }}, cluster {{ . }}{{ end }}"
	)
	switch {
	case a.Name == "VLLMCollectorSilent", a.Name == "VLLMGPUExporterSilent":
		return cluster
	case a.Name == "VLLMTooFewServers", a.Set == Wire, strings.Contains(a.Expr, "otelcol_exporter_"):
		return "" // without these labels
	case strings.Contains(a.Summary, "{{ $labels.instance }}"):
		return pod + namespace + cluster
	}
	return namespace + cluster
}

// model is the model in a summary. A server that was never read has none.
func model(otherwise string) string {
	return "{{ with $labels.model_name }}{{ . }}{{ else }}" + otherwise + "{{ end }}"
}

// Parameter is a number in the rules that users may change.
type Parameter struct {
	Name, Meaning string
	Value         float64
}

// Parameters lists the numbers that users may change, with their defaults.
func Parameters() []Parameter {
	return []Parameter{
		{"serversExpected", "The number of servers below which VLLMTooFewServers fires.", 1},
		{"replicaShare", "The share of a pool's users at a replica that pages.", 0.05},
		{"burnFast", "The burn rate over 1h and 5m that pages.", 14.4},
		{"burnMedium", "The burn rate over 6h and 30m that pages.", 6},
		{"burnSlow", "The burn rate over 1d and 2h that opens a ticket.", 3},
		{"burnLeak", "The burn rate over 3d and 6h that opens a ticket.", 1},
		{"errorRatioAlways", "The share of missed events that is always enough for an alert on burn rates.", 0.9},
		{"eventsFast", "The fewest events and requests in 5m for `burnFast`.", 10},
		{"eventsMedium", "The same in 30m for `burnMedium`.", 30},
		{"eventsSlow", "The same in 2h for `burnSlow`.", 60},
		{"eventsLeak", "The same in 6h for `burnLeak`.", 100},
		{"coverage", "The recorded share from which on a window of days counts.", 0.25},
		{"gatewayErrorRatio", "The share of errors at the gateway that pages.", 0.05},
		{"gatewayRequests", "The fewest requests in 5m for the alerts of the gateway.", 20},
		{"gatewayLatencySeconds", "The p99 at the gateway that opens a ticket, in seconds.", 10},
		{"queueShare", "The share of an exporter's queue that may be full.", 0.5},
		{"rawFirstTokenTarget", "The share of first tokens within 2.5 s, for vLLM's own names.", 0.95},
		{"rawQueueSeconds", "The p95 of the time in the queue, in seconds, for vLLM's own names.", 5},
	}
}

type parameters map[string]float64

// number writes a parameter as PromQL does.
func (p parameters) number(name string) string {
	value, ok := p[name]
	if !ok {
		panic("no value of the parameter " + name)
	}
	return strconv.FormatFloat(value, 'f', -1, 64)
}

// The labels that identify what an alert is about. Labels of the resource are
// empty where the backend does not promote them.
const (
	jobLabels         = "k8s_cluster_name, k8s_namespace_name, job"
	serverLabels      = "k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance"
	serverModelLabels = serverLabels + ", model_name"
	poolLabels        = "k8s_cluster_name, k8s_namespace_name, model_name"
	objectiveLabels   = "k8s_cluster_name, k8s_namespace_name, job, model_name, objective"
	modelLabels       = "k8s_cluster_name, k8s_namespace_name, job, model_name"
	gatewayLabels     = modelLabels
)

const (
	minute = time.Minute
	hour   = time.Hour
)
