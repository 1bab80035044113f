package diagnose

import "math"

// Signal is a number that conditions and causes are judged by.
type Signal uint8

// The signals. Names, units and meanings are in the catalogue; String is the name.
// A new one goes to the end: baselines are stored by number.
const (
	Running Signal = iota
	Waiting
	Deferred
	KVUtilization
	TimeToFirstToken
	InterTokenLatency
	QueueWait
	QueueTime
	PrefillTime
	FrontEnd
	ArrivalRate
	FirstTokenRate
	PromptTokens
	ComputedTokens
	OutputTokens
	StepTime
	StepFactor
	PrefillFactor
	KVPerToken
	KVPerComputed
	Preemptions
	ErrorRatio
	CorruptedRatio
	FailedTransfers
	AcceptanceLength
	KVBlockReuses
	MissedRatio
	DroppedRatio
	GenerationRate
	Standstill

	// NumSignals is the number of signals, for arrays over them.
	NumSignals
)

var signalNames = [NumSignals]string{
	Running:           "running",
	Waiting:           "waiting",
	Deferred:          "deferred",
	KVUtilization:     "kv_cache_utilization",
	TimeToFirstToken:  "time_to_first_token_mean",
	InterTokenLatency: "inter_token_latency_mean",
	QueueWait:         "queue_wait_estimate",
	QueueTime:         "queue_time_mean",
	PrefillTime:       "prefill_time_mean",
	FrontEnd:          "frontend_overhead_mean",
	ArrivalRate:       "arrival_rate",
	FirstTokenRate:    "first_token_rate",
	PromptTokens:      "prompt_tokens_per_request",
	ComputedTokens:    "computed_tokens_per_request",
	OutputTokens:      "output_tokens_per_request",
	StepTime:          "step_time_mean",
	StepFactor:        "step_time_factor",
	PrefillFactor:     "prefill_time_factor",
	KVPerToken:        "kv_per_sequence_token",
	KVPerComputed:     "kv_per_computed_token",
	Preemptions:       "preemptions_per_first_token",
	ErrorRatio:        "error_ratio",
	CorruptedRatio:    "corrupted_ratio",
	FailedTransfers:   "kv_transfer_failures",
	AcceptanceLength:  "acceptance_length",
	KVBlockReuses:     "kv_block_reuses_per_eviction",
	MissedRatio:       "objective_missed_ratio",
	DroppedRatio:      "dropped_ratio",
	GenerationRate:    "generation_throughput",
	Standstill:        "standstill",
}

// String is the signal's name in the catalogue.
func (s Signal) String() string { return signalNames[s] }

// Signals are the values of all signals; NaN where one is not known, so that
// whatever is computed from it is not known either and no comparison holds.
type Signals [NumSignals]float64

// unknown returns signals of which none is known.
func unknown() (s Signals) {
	for i := range s {
		s[i] = math.NaN()
	}
	return s
}

// known tells whether a number is one.
func known(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// or returns the first of two numbers that is known.
func or(a, b float64) float64 {
	if known(a) {
		return a
	}
	return b
}

// orZero returns a number, or 0 where it is not known.
func orZero(a float64) float64 { return or(a, 0) }
