package vllmprocessor

import (
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/identity"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadata"
)

// derivedKind is a part of what is derived of a server.
type derivedKind uint8

const (
	ofWindows derivedKind = iota
	ofObjectives
	ofDiagnosis

	numKinds
)

func kindOf(metric string) derivedKind {
	switch {
	case strings.HasPrefix(metric, "vllm.slo."):
		return ofObjectives
	case strings.HasPrefix(metric, "vllm.diagnosis."):
		return ofDiagnosis
	}
	return ofWindows
}

// derivedBefore finds what a vllm processor has derived before this one, in the same
// pipeline or in another collector, by the name of its scope: the kinds, by resource.
// The service does not tell a component what else is in its pipeline, so the first
// metrics are where this can be known.
func derivedBefore(metrics pmetric.Metrics) map[string][numKinds]bool {
	var all map[string][numKinds]bool
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, scope := range rm.ScopeMetrics().All() {
			if scope.Scope().Name() != metadata.ScopeName {
				continue
			}
			if all == nil {
				all = map[string][numKinds]bool{}
			}
			key := identity.Of(rm.Resource().Attributes())
			kinds := all[key]
			for _, metric := range scope.Metrics().All() {
				kinds[kindOf(metric.Name())] = true
			}
			all[key] = kinds
		}
	}
	return all
}

// noteDerived notes what another processor derives of a resource. It goes on with
// the same series, so they neither end nor are written twice.
func (p *vllmProcessor) noteDerived(r *resource, kinds [numKinds]bool, now time.Time) {
	for kind, derived := range kinds {
		if !derived {
			continue
		}
		r.before[kind] = now
		if memory := r.memoryOf(derivedKind(kind)); memory != nil {
			memory.Forget()
		}
		if p.warned.first(aboutDerived) {
			p.logger.Warn("another vllm processor has derived metrics of the same servers before this one, in this pipeline or in the collector that sends; " +
				"what it derives is not derived again here, and the settings here for it have no effect; remove one of the two processors")
		}
	}
}

// derivedBefore reports whether another processor derives a kind.
func (r *resource) derivedBefore(kind derivedKind, now time.Time, staleness time.Duration) bool {
	return !r.before[kind].IsZero() && now.Sub(r.before[kind]) <= staleness
}

// memoryOf is that of what is written of a kind; nil where nothing was.
func (r *resource) memoryOf(kind derivedKind) *emit.Memory {
	switch {
	case kind == ofWindows:
		return &r.memory
	case kind == ofObjectives && r.measured != nil:
		return &r.measured.memory
	case kind == ofDiagnosis && r.diagnosed != nil:
		return &r.diagnosed.memory
	}
	return nil
}
