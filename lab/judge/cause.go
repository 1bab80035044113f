package judge

import (
	"cmp"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// The truths that are conditions and have no cause.
const (
	stalled = "stalled"
	asleep  = "asleep"
)

// demand is the cause of harm that needs no fault: more arrives than the server can serve.
const demand = "demand_exceeds_capacity"

// causes has the name in the diagnosis for the injection of each parameter. Clients that
// leave or send what is wrong, and engines that are added, are no causes of harm.
var causes = map[engine.Parameter]string{
	engine.ParamClock:           "slow_steps",
	engine.ParamBandwidth:       "slow_steps",
	engine.ParamHostDelay:       "slow_steps",
	engine.ParamPowerLimit:      "slow_steps",
	engine.ParamCooling:         "slow_steps",
	engine.ParamClockLimit:      "slow_steps",
	engine.ParamMemoryErrors:    "slow_steps",
	engine.ParamLinkErrors:      "slow_steps",
	engine.ParamBlocks:          "kv_pressure",
	engine.ParamArrivalRate:     demand,
	engine.ParamPromptLength:    "prefill_heavy",
	engine.ParamPrefixPool:      "prefill_heavy",
	engine.ParamOutputLength:    "decode_load",
	engine.ParamFrontEnd:        "frontend_bound",
	engine.ParamAcceptance:      "speculation_wasteful",
	engine.ParamAdapterPool:     "admission_deferred",
	engine.ParamTransferFailure: "kv_transfer_failing",
	engine.ParamCorruption:      "corrupted_output",
	engine.ParamErrorRate:       "erroring",
	engine.ParamUnscheduled:     "erroring",
	engine.ParamStall:           stalled,
	engine.ParamSleep:           asleep,
}

// CauseOf returns the name in the diagnosis of what a parameter does; empty for none.
func CauseOf(p engine.Parameter) string { return causes[p] }

// Causes returns the injected causes, each once, in the order of their first onset.
func (s *Story) Causes() []string {
	ordered := slices.Clone(s.Injections)
	slices.SortStableFunc(ordered, func(a, b Injection) int { return cmp.Compare(a.At, b.At) })
	var out []string
	for i := range ordered {
		if c := CauseOf(ordered[i].Parameter); c != "" && !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}
