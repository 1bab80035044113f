package emit

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

// workloads are the containers that use the GPUs of a target. Each has a resource, and so
// a memory, of its own. There are at most as many as the plan has.
type workloads map[string]*Target

// emitWorkloads appends the points of the workloads of a scrape, and ends those that are
// gone. One that comes back begins again: what was counted in that time is not its own.
func (t *Target) emitWorkloads(s Scrape, out pmetric.Metrics, report *Report) {
	if len(s.Plan.Workloads) == 0 && len(t.workloads) == 0 {
		return
	}
	room := t.settings.MaxSeries - s.Plan.Points
	kept := make(workloads, len(s.Plan.Workloads))
	emit := func(w *normalize.Workload, of *Target) {
		if t.settings.MaxSeries > 0 && w.Plan.Points > room {
			report.Dropped[normalize.ReasonSeriesLimit] += w.Plan.Points
			return
		}
		room -= w.Plan.Points
		if of == nil {
			of = New(Settings{ScopeName: t.settings.ScopeName, SchemaURL: t.settings.SchemaURL})
			of.resource = t.settings.Workload(t.resource, w.Resource)
		}
		kept[w.Key] = of
		scrape := s
		scrape.Plan = w.Plan
		part := of.Emit(scrape, Own{}, out)
		report.Points += part.Points
		for reason := range part.Dropped {
			report.Dropped[reason] += part.Dropped[reason]
		}
	}
	// Those that were there stay; new ones fill what is left of the limit.
	for _, known := range []bool{true, false} {
		for i := range s.Plan.Workloads {
			w := &s.Plan.Workloads[i]
			if of := t.workloads[w.Key]; (of != nil) == known {
				emit(w, of)
			}
		}
	}
	for key := range kept {
		delete(t.workloads, key)
	}
	t.endWorkloads(s.Time, out)
	t.workloads = kept
}

// endGone appends the ends of the workloads that a plan does not have. They come before the
// points of the others: to a backend without resource attributes, the series of a device is the
// same whoever has it, and has the value that comes last.
func (t *Target) endGone(s Scrape, out pmetric.Metrics) {
	if s.Plan == t.plan || len(t.workloads) == 0 {
		return
	}
	has := make(map[string]bool, len(s.Plan.Workloads))
	for i := range s.Plan.Workloads {
		has[s.Plan.Workloads[i].Key] = true
	}
	for key, w := range t.workloads {
		if !has[key] {
			w.End(s.Time, out)
			delete(t.workloads, key)
		}
	}
}

// endWorkloads appends the ends of the series of all workloads.
func (t *Target) endWorkloads(at time.Time, out pmetric.Metrics) {
	for _, w := range t.workloads {
		w.End(at, out)
	}
}
