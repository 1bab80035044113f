package replay

import (
	"net"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
)

// resourceNames are the attributes that labels mean: those that Prometheus's discovery and
// the operator of Kubernetes add, and the names that backends make of attributes.
var resourceNames = map[string]string{
	"namespace": "k8s.namespace.name", "kubernetes_namespace": "k8s.namespace.name", "pod": "k8s.pod.name",
	"kubernetes_pod_name": "k8s.pod.name", "node": "k8s.node.name", "container": "k8s.container.name",
	"cluster": "k8s.cluster.name",
}

// resourceName returns the attribute of a resource that a label means.
func resourceName(label string) string {
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

// attributesOf returns the attributes of the resource of a target: what Prometheus or
// relabelling added to its series. shared is true where another target has the same
// instance; the job distinguishes them then.
func attributesOf(target labels.Labels, shared bool) map[string]any {
	out := map[string]any{}
	target.Range(func(l labels.Label) {
		switch l.Name {
		case "instance", "__name__":
		case "job":
			if shared {
				out["service.namespace"] = l.Value
			}
		default:
			out[resourceName(l.Name)] = l.Value
		}
	})
	return out
}

// endpointOf returns an address for a target. Instances that are no address get one, and keep
// their name in the attribute.
func endpointOf(instance string, attributes map[string]any) string {
	if host, port, err := net.SplitHostPort(instance); err == nil && host != "" && port != "" && !strings.ContainsAny(instance, " /?#@%\"<>\\") {
		return "http://" + instance
	}
	attributes["service.instance.id"] = instance
	return "http://target"
}
