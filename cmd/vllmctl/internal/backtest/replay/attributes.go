package replay

import (
	"net"
	"strings"

	"github.com/prometheus/prometheus/model/labels"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/history"
)

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
			out[history.ResourceName(l.Name)] = l.Value
		}
	})
	return out
}

// endpointOf returns an address for a target. Instances that are not an address get one, and keep
// their name in the attribute.
func endpointOf(instance string, attributes map[string]any) string {
	if host, port, err := net.SplitHostPort(instance); err == nil && host != "" && port != "" && !strings.ContainsAny(instance, " /?#@%\"<>\\") {
		return "http://" + instance
	}
	attributes["service.instance.id"] = instance
	return "http://target"
}
