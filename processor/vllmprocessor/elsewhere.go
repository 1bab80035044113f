package vllmprocessor

import (
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/identity"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadata"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/stages"
)

// derivedElsewhere finds what another vllm processor has derived before this one, in the
// same pipeline or in another collector, by the name of its scope: for each resource
// which stages. A component cannot ask the service what else is in its pipeline, so this
// is known with the first metrics only.
func (p *vllmProcessor) derivedElsewhere(metrics pmetric.Metrics) map[string][]bool {
	var all map[string][]bool
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, scope := range rm.ScopeMetrics().All() {
			if scope.Scope().Name() != metadata.ScopeName || identity.Size(rm.Resource().Attributes()) == identity.Unlimited {
				continue
			}
			if all == nil {
				all = map[string][]bool{}
			}
			key := identity.Of(rm.Resource().Attributes())
			if all[key] == nil {
				all[key] = make([]bool, len(p.stages))
			}
			for _, metric := range scope.Metrics().All() {
				if i := slices.IndexFunc(p.stages, func(s stages.Stage) bool { return s.Derives(metric.Name()) }); i >= 0 {
					all[key][i] = true
				}
			}
		}
	}
	return all
}

// deriveElsewhere records what another processor derives of a resource. That processor
// continues the same series, so they neither end nor are written twice.
func (p *vllmProcessor) deriveElsewhere(r *resource, stages []bool, now time.Time) {
	for i, derived := range stages {
		if !derived {
			continue
		}
		r.parts[i].derived = now
		r.parts[i].series.Forget()
		p.warnOnce(aboutDerived, pcommon.Map{}, "another vllm processor has derived metrics of the same servers before this one, in this pipeline or in the collector that sends; "+
			"what it derives is not derived again here, and the settings here for it have no effect; remove one of the two processors")
	}
}

// elsewhere reports whether another processor derives what a stage derives.
func (of *part) elsewhere(now time.Time, staleness time.Duration) bool {
	return !of.derived.IsZero() && now.Sub(of.derived) <= staleness
}
