package window

import (
	"iter"
	"math"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// Affected reports whether the server can have a defect.
func (v *View) Affected(id catalog.DefectID) bool { return v.resource.Affected(id) }

// AffectedV0 reports whether the server can have a defect of the V0 engine: its version is
// older than the other engine, or it exposes a family that only this engine has. Almost
// every other server of unknown version is none.
func (v *View) AffectedV0(id catalog.DefectID) bool {
	version := v.resource.Version()
	older := version.Exact && version.Least.Compare(catalog.Release{0, 7}) < 0
	return (older || v.resource.evidence.Signs.Has(input.V0)) && v.resource.Affected(id)
}

// Known reports whether the version of the server is known.
func (v *View) Known() bool { return v.resource.Version().Exact }

// Before reports whether the server can be older than a release.
func (v *View) Before(release catalog.Release) bool {
	return v.resource.Version().Least.Compare(release) < 0
}

// Shows reports whether the data show that the server has a setup.
func (v *View) Shows(setup string) bool { return v.resource.Shows(setup) }

// Server iterates over all engines and models of the server, over the same window: those
// in the newest batch or the one before.
func (v *View) Server() iter.Seq[*View] {
	return func(yield func(*View) bool) {
		for _, g := range v.resource.groups {
			if !g.ended && g.seq >= v.resource.seq-1 && !yield(&View{v.resource, g, v.from, v.Elapsed}) {
				return
			}
		}
	}
}

// RestartedWithin reports whether the engine has restarted within the window.
func (v *View) RestartedWithin() bool {
	at, ever := v.Restarted()
	return ever && at > *v.resource.times.at(v.from)
}

// Received returns the value of a counter or gauge as the server sent it, summed over its labels:
// without what was counted before a restart that was seen. It is the same for every reader of the
// server. It is not a number where the newest batch lacks a part of it, or it sends deltas.
func (v *View) Received(in input.Metric) float64 {
	value, status := v.sumPresent(in, func(s *series) (float64, Status) {
		if s.delta {
			return 0, Missing
		}
		var b buffer
		return s.received(b[:])[0], v.status(s)
	})
	if status != Present {
		return math.NaN()
	}
	return value
}

// Began returns the latest known start of a counter, in Unix nanoseconds; 0 where none is known. A
// start equal to the time of its point is not known.
func (v *View) Began(in input.Metric) (start int64) {
	for _, s := range v.group.inputs.of(in) {
		if v.status(s) == Present && !s.delta && s.start < s.time {
			start = max(start, s.start)
		}
	}
	return start
}

// ProcessStart is when the process of the server began, in Unix seconds of its own clock; 0 where
// it does not say.
func (r *Resource) ProcessStart() float64 { return r.evidence.ProcessStart }
