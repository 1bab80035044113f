package stages

import (
	"context"
	"math"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
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

// NewGPUs returns the stage.
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

// gpuState is what is kept of one server.
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
func (s *gpuState) Append(_ context.Context, out *emit.Output) {
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
	if up == nil || slices.ContainsFunc(s.engines, func(i int) bool { return s.views[i].Group().Rollup() != up }) {
		return at, false
	}
	return derive.Value{Group: up.Number, Rollup: true, Attributes: up.Attributes}, true
}

// End forgets where the server runs.
func (s *gpuState) End() { s.store.Remove(s.server.Key) }

// values appends what the GPUs of a server did. GPUs that others may use as well say nothing of
// it, and neither do those of a pod with several servers.
func (s *gpuState) values(j *gpu.Joined, at derive.Value, values []derive.Value) []derive.Value {
	if j.Ambiguous || j.Servers != 1 {
		return values
	}
	now := s.server.Window.Time()
	var current []*gpu.Device
	for _, d := range j.Devices {
		if now-d.NewestReading() <= j.Apart {
			current = append(current, d)
		}
	}
	add := func(row *derive.Row, number float64, extra derive.Extra) {
		if s.enabled[row] && !math.IsNaN(number) {
			at.Row, at.Number, at.Extra = row, number, extra
			values = append(values, at)
		}
	}
	mean := func(f gpu.Field) (float64, gpu.Span) {
		return s.over(current, f, j, func(d *gpu.Device, span gpu.Span) float64 { return d.MeanOf(f, span, j.Apart) })
	}
	utilization, _ := mean(gpu.Utilization)
	add(gpuUtilization, utilization/float64(len(current)), derive.Extra{})
	add(gpuMemory, sum(current, func(d *gpu.Device) float64 { return d.NewestOf(gpu.MemoryUsage, now-j.Apart) }), derive.Extra{})
	power, powered := mean(gpu.Power)
	add(gpuPower, power, derive.Extra{})
	energy, metered := s.over(current, gpu.Energy, j, func(d *gpu.Device, span gpu.Span) float64 { return d.EnergyOf(span, j.Apart) })
	if perToken := energy / s.generated.in(metered); !math.IsNaN(perToken) && !math.IsInf(perToken, 0) {
		add(energyPerToken, perToken, derive.Extra{"counter"})
	} else if perToken := power * float64(s.window) / 1e9 / s.generated.in(powered); !math.IsInf(perToken, 0) {
		// Without a counter of energy it is the mean of the power, times the time.
		add(energyPerToken, perToken, derive.Extra{"power"})
	}
	return values
}

// sum adds up a number of all GPUs; NaN where it is not known of one of them, or without any.
func sum(devices []*gpu.Device, of func(*gpu.Device) float64) (total float64) {
	for _, d := range devices {
		total += of(d)
	}
	if len(devices) == 0 {
		return math.NaN()
	}
	return total
}

// over adds up a number over the window that ends with the newest readings that all GPUs have, and so a
// little before the batch. It is NaN where they are too old.
func (s *gpuState) over(devices []*gpu.Device, f gpu.Field, j *gpu.Joined, of func(*gpu.Device, gpu.Span) float64) (total float64, span gpu.Span) {
	now := s.server.Window.Time()
	end := now
	for _, d := range devices {
		end = min(end, d.Newest(f))
	}
	span = gpu.Span{From: end - s.window, To: end}
	if now-end > j.Apart {
		return math.NaN(), span
	}
	return sum(devices, func(d *gpu.Device) float64 { return of(d, span) }), span
}

// tokens are totals of generated tokens at some times.
type tokens struct {
	times  []int64
	totals []float64
}

const (
	// tokenSlots is how many totals are kept of a window, and tokenWindows for how many windows.
	tokenSlots   = 8
	tokenWindows = 4
)

// add adds a total. One that is smaller begins again: an engine has gone.
func (t *tokens) add(at int64, total float64, window int64) {
	n := len(t.times)
	slot := max(window/tokenSlots, 1)
	switch {
	case n > 0 && total < t.totals[n-1]:
		t.times, t.totals = append(t.times[:0], at), append(t.totals[:0], total)
		return
	case n > 1 && at/slot == t.times[n-1]/slot, n > 0 && at == t.times[n-1]:
		t.times[n-1], t.totals[n-1] = at, total
		return
	case n > 0 && at < t.times[n-1]:
		return
	case n == tokenSlots*tokenWindows:
		t.times, t.totals = slices.Delete(t.times, 0, 1), slices.Delete(t.totals, 0, 1)
	}
	t.times, t.totals = append(t.times, at), append(t.totals, total)
}

// in is how many tokens were generated in a span; NaN where it is not known.
func (t *tokens) in(span gpu.Span) float64 { return t.at(span.To) - t.at(span.From) }

// at is the total at a time, on the line between the ones around it.
func (t *tokens) at(at int64) float64 {
	i, exact := slices.BinarySearch(t.times, at)
	switch {
	case exact:
		return t.totals[i]
	case i == 0 || i == len(t.times):
		return math.NaN()
	}
	part := float64(at-t.times[i-1]) / float64(t.times[i]-t.times[i-1])
	return t.totals[i-1] + part*(t.totals[i]-t.totals[i-1])
}
