package accuracy

import "github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/engine"

// The truths that are conditions and have no cause.
const (
	stalled = "stalled"
	asleep  = "asleep"
)

// causes has the name in the diagnosis for the injection of each parameter.
var causes = map[engine.Parameter]string{
	engine.ParamClock:           "slow_steps",
	engine.ParamBandwidth:       "slow_steps",
	engine.ParamHostDelay:       "slow_steps",
	engine.ParamBlocks:          "kv_pressure",
	engine.ParamArrivalRate:     "demand_exceeds_capacity",
	engine.ParamPromptLength:    "prefill_heavy",
	engine.ParamPrefixPool:      "prefill_heavy",
	engine.ParamOutputLength:    "decode_load",
	engine.ParamFrontEnd:        "frontend_bound",
	engine.ParamAcceptance:      "speculation_wasteful",
	engine.ParamAdapterPool:     "admission_deferred",
	engine.ParamTransferFailure: "kv_transfer_failing",
	engine.ParamCorruption:      "corrupted_output",
	engine.ParamErrorRate:       "erroring",
	engine.ParamStall:           stalled,
	engine.ParamSleep:           asleep,
}

// Injection is one cause: changes of one parameter.
type Injection struct {
	Parameter engine.Parameter
	Changes   []engine.Change
}

// Cause is its name in the diagnosis.
func (i *Injection) Cause() string { return causes[i.Parameter] }

// Onset is when it begins, in seconds.
func (i *Injection) Onset() float64 { return i.Changes[0].At }

// End is when its last change is, in seconds: the return to the nominal value,
// unless it is permanent.
func (i *Injection) End() float64 { return i.Changes[len(i.Changes)-1].At }

// inject sets a parameter for a time and then returns it to its nominal value.
func inject(p engine.Parameter, value, from, to float64) Injection {
	nominal := 1.0
	switch p {
	case engine.ParamHostDelay, engine.ParamStall, engine.ParamSleep, engine.ParamErrorRate,
		engine.ParamTransferFailure, engine.ParamCorruption:
		nominal = 0
	default:
	}
	return Injection{p, []engine.Change{{At: from, Parameter: p, Value: value}, {At: to, Parameter: p, Value: nominal}}}
}
