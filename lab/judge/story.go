package judge

import (
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/scenario"
)

// Story is one run of one or more servers.
type Story struct {
	Name string
	// Servers have no changes; Injections have them.
	Servers []engine.Config
	// Injections are the causes of harm, and legitimate changes of the workload.
	Injections []Injection
	// Faults are faults between the servers and the collector, in the order of their times,
	// of all servers.
	Faults []Fault
	// Length and Interval are the length of the story and the time between two scrapes.
	Length, Interval time.Duration
	// Uncounted leaves out the counter of requests with corrupted logits, which servers have
	// only where it was switched on.
	Uncounted bool
	// Processor has the processor's settings, as in a collector's configuration. The
	// objectives among them decide about harm.
	Processor map[string]any
}

// Injection changes one parameter for some time.
type Injection = scenario.Injection

// FaultKind is a fault of the exposition, not of the engine.
type FaultKind string

// The kinds of faults.
const (
	// Unreachable makes scrapes fail, while the engine keeps working.
	Unreachable FaultKind = "unreachable"
	// Restart ends the process and starts a new one at the end of the fault; scrapes
	// fail in between.
	Restart FaultKind = "restart"
	// Frozen freezes the gauge of the KV cache, while all other metrics change.
	Frozen FaultKind = "frozen_gauges"
	// Missed has no scrapes at all: the collector was away.
	Missed FaultKind = "missed"
)

// Fault lasts from At up to Until, in seconds.
type Fault struct {
	Kind      FaultKind
	At, Until float64
}

// Played is the result of a story.
type Played struct {
	// Lines are in the order of their minutes, and within a minute of the servers.
	Lines []Line
	// Alarms are the changes of the reported severity, of each server.
	Alarms []Alarm
	// Felt is when the users of each server were harmed, by the limits of FeltHarm, and Said what
	// was reported of it.
	Felt [][]Felt
	Said [][]Said
	// Sought has, for each injection with an effect, what was found.
	Sought []Sought
	// Window is that of the processor.
	Window time.Duration
	// Notes are sentences for the user, such as that an effect could not be reached.
	Notes []string
}

// Alarm is a change of the reported severity upwards, to 2 (warning) or 3 (page).
type Alarm struct {
	Server int
	// At is in seconds since the beginning.
	At               float64
	Severity         int
	Condition, Cause string
}

// Sought is the result of the search for the value of a parameter with a wanted effect.
type Sought struct {
	// Parameter is the name of the parameter in scenario files.
	Parameter string `json:"parameter"`
	// Wanted and Got are the effect that was asked for and that of Value, as multiples of
	// the bar of harm. Where no value has the wanted effect, Value is the nearest one.
	Wanted float64 `json:"wanted"`
	Got    float64 `json:"got"`
	// Value is in the unit of the parameter.
	Value float64 `json:"value"`
}
