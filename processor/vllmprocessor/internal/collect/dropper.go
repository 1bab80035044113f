package collect

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// Dropper removes metrics of servers, gateways and GPUs that were read and do not leave the processor.
type Dropper struct {
	// drops has each spelling of the catalogue's metrics: whether it is removed.
	drops map[string]bool
	// unknown is true where also metrics go that the catalogue does not have, but whose prefix it has.
	unknown bool
}

// NewDropper returns a Dropper of the metrics that drop reports.
func NewDropper(drop func(*catalog.Metric) bool, unknown bool) *Dropper {
	d := &Dropper{drops: map[string]bool{}, unknown: unknown}
	for i := range catalog.All() {
		m := &catalog.All()[i]
		removed := drop(m)
		eachName(m.Name, func(name string) {
			// A spelling of two metrics stays if one of them stays.
			before, known := d.drops[name]
			d.drops[name] = removed && (before || !known)
		})
	}
	return d
}

// ownPrefixes are how names begin that nothing but a server, a gateway or the receiver of GPUs has.
var ownPrefixes = func() []string {
	out := append(slices.Clone(catalog.Prefixes), "vllm.", "lmcache", "inference_gateway", "dynamo.", "dynamo_", "llm_d_")
	for _, gateway := range catalog.Gateway.Prefixes {
		out = append(out, gateway.Wire)
	}
	return out
}()

// Remove removes the metrics, and what is empty without them. Resources without a metric of a server, a gateway
// or a GPU stay as they are, because other programs have names like http_requests, too.
func (d *Dropper) Remove(metrics pmetric.Metrics) {
	metrics.ResourceMetrics().RemoveIf(func(rm pmetric.ResourceMetrics) bool {
		if !isOurs(rm) {
			return false
		}
		rm.ScopeMetrics().RemoveIf(func(sm pmetric.ScopeMetrics) bool {
			sm.Metrics().RemoveIf(func(m pmetric.Metric) bool { return d.removes(m.Name()) })
			return sm.Metrics().Len() == 0
		})
		return rm.ScopeMetrics().Len() == 0
	})
}

func (d *Dropper) removes(name string) bool {
	if of, is := strings.CutSuffix(name, "_created"); is {
		// To the receiver of Prometheus the start of a series is a gauge.
		if drops, known := d.drops[of]; known {
			return drops || d.unknown
		}
	}
	drops, known := d.drops[name]
	return drops || !known && d.unknown && (hasPrefix(name, ownPrefixes) || hasPrefix(name, catalog.DisabledPrefixes))
}

func isOurs(rm pmetric.ResourceMetrics) bool {
	if isAccelerator(rm.Resource().Attributes()) {
		return true
	}
	for _, sm := range rm.ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			if hasPrefix(m.Name(), ownPrefixes) {
				return true
			}
		}
	}
	return false
}

func hasPrefix(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
