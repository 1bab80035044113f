package stories

import (
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// fault is what a story of one cause needs.
type fault struct {
	parameter engine.Parameter
	// prepare gives the server what the fault is about.
	prepare func(c *engine.Config)
	// fits is whether a background can have it; nil is always.
	fits func(b *background) bool
	// value is for faults without a size: they are there or not. lasts is then their time.
	value, lasts float64
	// breakEven is the processor's setting speculation_break_even.
	breakEven float64
}

// faults are all causes.
var faults = []fault{
	{parameter: engine.ParamClock},
	{parameter: engine.ParamBandwidth},
	{parameter: engine.ParamHostDelay},
	{parameter: engine.ParamBlocks},
	{parameter: engine.ParamArrivalRate, fits: func(b *background) bool { return !b.closed() }},
	{parameter: engine.ParamPromptLength},
	{parameter: engine.ParamPrefixPool, fits: func(b *background) bool { return b.kind().Blocks }},
	{parameter: engine.ParamOutputLength},
	{parameter: engine.ParamFrontEnd},
	{
		parameter: engine.ParamAcceptance, breakEven: 1.5,
		prepare: func(c *engine.Config) {
			c.Speculation = engine.Speculation{Acceptance: []float64{0.75, 0.6, 0.5}, Seconds: 1e-3}
		},
	},
	{parameter: engine.ParamAdapterPool, prepare: func(c *engine.Config) {
		c.MaxLoRAs, c.Workload.AdapterShare, c.Workload.Adapters = 2, 0.8, 2
	}},
	{
		parameter: engine.ParamTransferFailure,
		prepare: func(c *engine.Config) {
			c.Transfer = engine.Transfer{Share: 0.7, Latency: 0.02, BytesPerSecond: 10e9}
		},
		fits: func(b *background) bool { return !b.closed() },
	},
	{parameter: engine.ParamCorruption},
	{parameter: engine.ParamErrorRate},
	{parameter: engine.ParamStall, value: 1, lasts: 8 * 60},
	{parameter: engine.ParamSleep, value: 1, lasts: 8 * 60},
}

// pairable are the faults that can be combined on any server.
var pairable = []engine.Parameter{
	engine.ParamClock, engine.ParamBandwidth, engine.ParamHostDelay, engine.ParamBlocks, engine.ParamArrivalRate,
	engine.ParamPromptLength, engine.ParamOutputLength, engine.ParamFrontEnd, engine.ParamCorruption, engine.ParamErrorRate,
}

// onCurve are the faults of the detection curve: those that must be inferred, on a plain
// server.
var onCurve = []engine.Parameter{
	engine.ParamBandwidth, engine.ParamPromptLength, engine.ParamHostDelay, engine.ParamBlocks, engine.ParamFrontEnd,
	engine.ParamClock, engine.ParamOutputLength, engine.ParamArrivalRate,
}

// drifting are the faults that grow over hours, lasting those that are there from the
// start.
var (
	drifting = []engine.Parameter{
		engine.ParamBandwidth, engine.ParamHostDelay, engine.ParamClock, engine.ParamPromptLength, engine.ParamOutputLength,
		engine.ParamFrontEnd, engine.ParamArrivalRate,
	}
	lasting = []engine.Parameter{
		engine.ParamBandwidth, engine.ParamHostDelay, engine.ParamClock, engine.ParamFrontEnd, engine.ParamBlocks,
	}
)

// weight is how many stories of a fault there are, for one. A cause that must be inferred
// needs more of them than one that is read off, and one of several faults with the same cause
// needs fewer for the same interval.
func (f *fault) weight() float64 {
	cause, same := judge.CauseOf(f.parameter), 0
	if !slices.Contains(Inferred, cause) {
		return 1
	}
	for i := range faults {
		if judge.CauseOf(faults[i].parameter) == cause {
			same++
		}
	}
	return map[int]float64{1: 1.25, 2: 0.8, 3: 0.65}[same]
}

func faultOf(p engine.Parameter) *fault {
	return &faults[slices.IndexFunc(faults, func(f fault) bool { return f.parameter == p })]
}

// inject plans a fault with an effect, or one without a size.
func (f *fault) inject(at, over, until, effect float64) Injected {
	in := Injected{Parameter: f.parameter.String(), Cause: judge.CauseOf(f.parameter), At: at, Over: over, Until: until, Wanted: effect}
	if f.value != 0 {
		in.Over, in.Wanted = 0, 0
	}
	return in
}
