// Package gpus is the stage that says where the servers run, for the join with their
// GPUs, and that reports what the GPUs of a server do for it.
package gpus

import (
	"context"

	"go.opentelemetry.io/collector/component"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/gpu"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/stages"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// The metrics.
var (
	utilization = &derive.Row{Metric: "vllm.gpu.utilization"}
	memory      = &derive.Row{Metric: "vllm.gpu.memory_usage"}
	power       = &derive.Row{Metric: "vllm.gpu.power"}
	energy      = &derive.Row{Metric: "vllm.energy_per_generated_token", Extra: []string{"energy_source"}}

	rows = []*derive.Row{utilization, memory, power, energy}
)

// Stage reports what the GPUs of servers do.
type Stage struct {
	store   *gpu.Store
	window  int64
	enabled map[*derive.Row]bool
}

// New returns the stage.
func New(p *stages.Processor) *Stage {
	s := &Stage{store: p.Accelerators, window: int64(p.Window), enabled: map[*derive.Row]bool{}}
	for _, row := range rows {
		s.enabled[row] = p.Enabled(row.Metric)
	}
	return s
}

// Start does nothing.
func (*Stage) Start(context.Context, component.Host) error { return nil }

// Shutdown does nothing.
func (*Stage) Shutdown(context.Context) error { return nil }

// Derives reports whether a metric is one of the stage.
func (*Stage) Derives(metric string) bool {
	for _, row := range rows {
		if row.Metric == metric {
			return true
		}
	}
	return false
}

// Begin returns the state of a new server.
func (s *Stage) Begin(server *stages.Server, series *emit.Memory) stages.State {
	return &state{Stage: s, server: server, series: series}
}

// state is what is kept of one server.
type state struct {
	*Stage
	server *stages.Server
	series *emit.Memory
	views  []window.View
	// engines are the places in views of the engines, generated the newest totals of the
	// tokens of all of them.
	engines   []int
	generated tokens
}

// Observe says where a server with engines runs, and counts its tokens.
func (s *state) Observe(context.Context, *stages.Batch) {
	if !s.store.Seen() {
		return
	}
	before := len(s.engines)
	s.views, s.engines = s.server.Window.Views(s.views, false), s.engines[:0]
	total, counts := 0.0, true
	for i := range s.views {
		if _, status := s.views[i].Total(input.GenerationTokens); status != window.Missing {
			s.engines = append(s.engines, i)
			total += s.views[i].Group().Ever(input.GenerationTokens)
			counts = counts && derive.Tokens(&s.views[i])
		}
	}
	if len(s.engines) != before {
		// The total of an engine that is new here is not that of now: it can have run for days.
		s.generated = tokens{}
	}
	if len(s.engines) == 0 {
		return
	}
	s.store.Place(s.server.Key, collect.OwnerOf(s.server.Attributes))
	for range s.server.Window.PendingGroups() {
		return
	}
	if !counts {
		s.generated = tokens{}
		return
	}
	s.generated.add(s.server.Window.Time(), total, s.window)
}

// Append writes what the GPUs of a server do, where it is certain which they are.
func (s *state) Append(_ context.Context, out *emit.Output) {
	if !s.store.Seen() {
		return
	}
	var values []derive.Value
	for group := range s.server.Window.PendingGroups() {
		values = append(values, derive.Value{Group: group, Pending: true})
	}
	for up, status := range s.server.Window.Rollups() {
		if status == window.Pending {
			values = append(values, derive.Value{Group: up.Number, Rollup: true, Pending: true})
		}
	}
	if at, certain := s.place(); certain {
		s.store.Of(s.server.Key, func(j *gpu.Joined) { values = s.values(j, at, values) })
	}
	out.Append(s.series, values, s.server.Window.Time())
}

// place returns the attributes of the values: those of the only engine, or what the engines of
// one model have in common. Two models have no one value.
func (s *state) place() (at derive.Value, certain bool) {
	if len(s.engines) == 0 {
		return at, false
	}
	first := s.views[s.engines[0]].Group()
	if len(s.engines) == 1 {
		return derive.Value{Group: first.Number, Attributes: first.Attributes}, true
	}
	up := first.Rollup()
	for _, i := range s.engines {
		if s.views[i].Group().Rollup() != up {
			return at, false
		}
	}
	if up == nil {
		return at, false
	}
	return derive.Value{Group: up.Number, Rollup: true, Attributes: up.Attributes}, true
}

// Snapshot does nothing: readings start anew after a restart.
func (*state) Snapshot(func(string, []byte)) {}

// End forgets where the server runs.
func (s *state) End() { s.store.Remove(s.server.Key) }
