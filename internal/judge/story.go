package judge

import (
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/engine"
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
	// Processor has the processor's settings, as in a collector's configuration. The
	// objectives among them decide about harm.
	Processor map[string]any
}

// Injection changes one parameter for some time. Times are in seconds since the beginning.
type Injection struct {
	Parameter engine.Parameter
	// At is the onset. Over is how long a ramp takes from the value before to Value; 0 is a
	// step. At Until the value before returns; +Inf means never.
	At, Over, Until float64
	Value           float64
	// Effect asks for a search of Value: the harm it does alone, over all requests from the
	// end of the ramp to Until, is to be so many times the bar of harm. 0 means that Value
	// is given.
	Effect float64
	// Engines and Servers are the numbers of those concerned; none means all.
	Engines, Servers []int
}

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
	// Sought has, for each injection with an effect, what was found.
	Sought []Sought
}

// Alarm is a change of the reported severity upwards, to 2 (warning) or 3 (page).
type Alarm struct {
	Server int
	// At is in seconds since the beginning.
	At               float64
	Severity         int
	Condition, Cause string
}

// Sought is the result of the search for a severity.
type Sought struct {
	Parameter   string
	Wanted, Got float64
	Value       float64
}
