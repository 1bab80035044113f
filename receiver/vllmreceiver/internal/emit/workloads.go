package emit

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

// WorkloadResource returns the resource of a workload, from that of its exporter and the
// attributes of the workload.
type WorkloadResource func(exporter pcommon.Resource, workload []exposition.Label) pcommon.Resource

// workloads are the containers that use the GPUs of a target. Each has a resource, and so
// a memory, of its own. There are at most as many as the plan has.
type workloads map[string]*Target

// emitWorkloads appends the points of the workloads of a scrape, and ends those that are
// gone. One that comes back begins anew: what was counted meanwhile is not its own.
func (t *Target) emitWorkloads(s Scrape, out pmetric.Metrics, report *Report) {
	if len(s.Plan.Workloads) == 0 && len(t.workloads) == 0 {
		return
	}
	room := t.settings.MaxSeries - s.Plan.Points
	kept := make(workloads, len(s.Plan.Workloads))
	for i := range s.Plan.Workloads {
		w := &s.Plan.Workloads[i]
		if t.settings.MaxSeries > 0 && w.Plan.Points > room {
			report.Dropped[normalize.ReasonSeriesLimit] += w.Plan.Points
			continue
		}
		room -= w.Plan.Points
		of := t.workloads[w.Key]
		if of == nil {
			of = New(Settings{
				ScopeName: t.settings.ScopeName, ScopeVersion: t.settings.ScopeVersion, SchemaURL: t.settings.SchemaURL,
			})
			of.resource = t.settings.Workload(t.resource, w.Resource)
		}
		kept[w.Key] = of
		delete(t.workloads, w.Key)
		scrape := s
		scrape.Plan = w.Plan
		part := of.Emit(scrape, Own{}, out)
		report.Points += part.Points
		report.Ended += part.Ended
		for reason := range part.Dropped {
			report.Dropped[reason] += part.Dropped[reason]
		}
	}
	t.endWorkloads(s.Time, out, report)
	t.workloads = kept
}

// endWorkloads appends the ends of the series of all workloads.
func (t *Target) endWorkloads(at time.Time, out pmetric.Metrics, report *Report) {
	for _, w := range t.workloads {
		report.Ended += w.end(at, out)
	}
}
