package history

import (
	"slices"
	"strings"
)

// resourceNames are the attributes that labels mean: those that Prometheus's discovery and
// the operator of Kubernetes add, and the names that backends make of attributes.
var resourceNames = map[string]string{
	"namespace": "k8s.namespace.name", "kubernetes_namespace": "k8s.namespace.name", "pod": "k8s.pod.name",
	"kubernetes_pod_name": "k8s.pod.name", "node": "k8s.node.name", "container": "k8s.container.name",
	"cluster": "k8s.cluster.name",
}

// ResourceName returns the attribute of a resource that a label means.
func ResourceName(label string) string {
	if name, known := resourceNames[label]; known {
		return name
	}
	switch {
	case strings.HasPrefix(label, "k8s_"):
		// k8s_pod_name, k8s_statefulset_name, k8s_pod_uid
		return strings.ReplaceAll(label, "_", ".")
	case strings.HasPrefix(label, "service_"), strings.HasPrefix(label, "server_"), strings.HasPrefix(label, "host_"),
		strings.HasPrefix(label, "cloud_"), strings.HasPrefix(label, "deployment_"):
		return strings.ReplaceAll(label, "_", ".")
	case label == "vllm_server_kind":
		return "vllm.server.kind"
	}
	return label
}

// place is where a server of the history runs, by the attributes of its resource. The page of a collector has what is said of
// the server in labels that begin with exported_ and k8s_; its other labels are the collector's own.
func (t *Target) place() map[string]string {
	out := map[string]string{}
	for name, value := range t.Labels.Map() {
		own := strings.TrimPrefix(name, "exported_")
		switch {
		case own == "job", own == "instance", slices.Contains(replicaLabels, name):
		case t.Labels.Has("exported_instance") && own == name && name != "cluster" && !strings.HasPrefix(name, "k8s_"):
		default:
			out[ResourceName(own)] = value
		}
	}
	return out
}

// isAlso reports whether two targets can be one server: the instance is the same, and nothing says that they run elsewhere.
func (t *Target) isAlso(other *Target) bool {
	if t.Form == other.Form || t.Instance() == "" || t.Instance() != other.Instance() {
		return false
	}
	there := other.place()
	for name, value := range t.place() {
		if has, known := there[name]; known && has != value {
			return false
		}
	}
	return true
}

// besides marks the targets of servers that the history has under both namings, of each the one that is there on fewer days;
// with as many days vLLM's own names are judged, which say more. Where it is not certain which two are one, both are.
func besides(all []*Target) (marked int) {
	of := map[string][]*Target{}
	for _, t := range all {
		of[t.Instance()] = append(of[t.Instance()], t)
	}
	others := func(t *Target) (out []*Target) {
		for _, other := range of[t.Instance()] {
			if t.isAlso(other) {
				out = append(out, other)
			}
		}
		return out
	}
	for _, t := range all {
		if t.Form != Ours {
			continue
		}
		if raw := others(t); len(raw) == 1 && len(others(raw[0])) == 1 {
			t.beside, raw[0].beside = t.days <= raw[0].days, t.days > raw[0].days
			marked++
		}
	}
	return marked
}
