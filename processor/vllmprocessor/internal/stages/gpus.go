package stages

import (
	"context"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/delivery"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/gpu"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// GPUsConfig has the choices for the metrics of GPUs.
type GPUsConfig struct {
	// Unmatched is what becomes of the metrics of GPUs that belong to no server of this
	// processor: keep or drop.
	Unmatched Unmatched `mapstructure:"unmatched"`

	_ struct{}
}

// Unmatched is what becomes of metrics.
type Unmatched string

const (
	// Keep passes them on: the default.
	Keep Unmatched = "keep"
	// Drop removes them, where several collectors read the same exporters.
	Drop Unmatched = "drop"
)

// DefaultGPUsConfig returns the default configuration.
func DefaultGPUsConfig() GPUsConfig { return GPUsConfig{Unmatched: Keep} }

// Check reports all invalid values.
func (c *GPUsConfig) Check(invalid Invalid) {
	if c.Unmatched != Keep && c.Unmatched != Drop {
		invalid("accelerators::unmatched", "%q is not known; write keep, or drop where several collectors read the same exporters of GPUs", c.Unmatched)
	}
}

// The metrics.
var (
	gpuUtilization = &derive.Row{Metric: "vllm.gpu.utilization"}
	gpuMemory      = &derive.Row{Metric: "vllm.gpu.memory_usage"}
	gpuPower       = &derive.Row{Metric: "vllm.gpu.power"}
	energyPerToken = &derive.Row{Metric: "vllm.energy_per_generated_token", Extra: []string{"energy_source"}}

	gpuRows = []*derive.Row{gpuUtilization, gpuMemory, gpuPower, energyPerToken}
)

// GPUs reports what the GPUs of servers do.
type GPUs struct {
	nothingToStart
	store   *gpu.Store
	window  int64
	enabled map[*derive.Row]bool
}

// New returns the stage.
func NewGPUs(p *Processor) *GPUs {
	s := &GPUs{store: p.Accelerators, window: int64(p.Window), enabled: map[*derive.Row]bool{}}
	for _, row := range gpuRows {
		s.enabled[row] = p.Enabled(row.Metric)
	}
	return s
}

// Derives reports whether a metric is one of the stage.
func (*GPUs) Derives(metric string) bool {
	return slices.ContainsFunc(gpuRows, func(row *derive.Row) bool { return row.Metric == metric })
}

// Begin returns the state of a new server.
func (s *GPUs) Begin(server *Server, series *emit.Memory) State {
	return &gpuState{GPUs: s, server: server, series: series}
}

// state is what is kept of one server.
type gpuState struct {
	nothingToKeep
	*GPUs
	server *Server
	series *emit.Memory
	views  []window.View
	// engines are the places in views of the engines, generated the newest totals of the
	// tokens of all of them.
	engines   []int
	generated tokens
}

// Observe says where a server with engines runs, and counts its tokens.
func (s *gpuState) Observe(context.Context, *Batch) {
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
func (s *gpuState) Append(_ context.Context, out *delivery.Output) {
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
func (s *gpuState) place() (at derive.Value, certain bool) {
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

// End forgets where the server runs.
func (s *gpuState) End() { s.store.Remove(s.server.Key) }
