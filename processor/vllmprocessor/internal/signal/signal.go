// Package signal has the numbers that the diagnosis is made from, and keeps what is usual for one
// engine: the level of each signal and how much it varies (Baseline), and how the times of a step and
// of a prefill depend on the load (fit): those of late, and of a step those of the last days as well.
// From that it says what some work takes (Work), also for other engines of a pool (Model), and what
// the next ones begin with (Reference). What harm shows is left out by package diagnose. It is pure:
// time comes with the windows.
package signal

import (
	"math"
	"slices"
)

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
	CancelledRatio
	// GatewayDelay belongs to pools.
	GatewayDelay

	// Count is the number of signals, for arrays over them.
	Count
)

var names = [Count]string{
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
	CancelledRatio:    "cancelled_ratio",
	GatewayDelay:      "gateway_delay",
}

// String is the signal's name in the catalogue.
func (s Signal) String() string { return names[s] }

// Named returns the signal with a name of the catalogue.
func Named(name string) (Signal, bool) {
	i := slices.Index(names[:], name)
	return Signal(max(i, 0)), i >= 0
}

// Set is a set of signals.
type Set [Count]bool

// Values are those of all signals. One that is not known is NaN, so that whatever is
// computed from it is not known either and no comparison with it holds.
type Values [Count]float64

// Unknown returns values of which none is known.
func Unknown() (v Values) {
	for i := range v {
		v[i] = math.NaN()
	}
	return v
}

// Known reports whether a number is neither NaN nor infinite.
func Known(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// Or returns a where it is known, else b.
func Or(a, b float64) float64 {
	if Known(a) {
		return a
	}
	return b
}

// OrZero returns a number, or 0 where it is not known.
func OrZero(a float64) float64 { return Or(a, 0) }
