package accuracy

import (
	"cmp"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/engine"
)

// Story is one run.
type Story struct {
	Name string
	// Group is the kind of the story, for tables.
	Group string
	// Config has no changes; the injections have them.
	Config     engine.Config
	Injections []Injection
	// Faults are faults between the server and the collector, in the order of their
	// times.
	Faults []Fault
	// Length is in seconds.
	Length float64
	// Objectives are in the processor's configuration and decide about harm.
	Objectives []Objective
	// BreakEven is the processor's setting speculation_break_even; 0 means none.
	BreakEven float64
}

// Objective requires that the share Target of the observations is at most Threshold
// seconds. The observations are times to first token, or gaps between tokens; for
// gaps the threshold must be one of engine.GapBounds.
type Objective struct {
	InterToken bool
	Threshold  float64
	Target     float64
}

// Metric is the histogram of the objective.
func (o Objective) Metric() string {
	if o.InterToken {
		return "vllm.inter_token_latency"
	}
	return "vllm.time_to_first_token"
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

// changes returns the changes of all injections for which keep is true, in the order
// of their times.
func (s *Story) changes(keep func(*Injection) bool) []engine.Change {
	var out []engine.Change
	for i := range s.Injections {
		if keep(&s.Injections[i]) {
			out = append(out, s.Injections[i].Changes...)
		}
	}
	slices.SortStableFunc(out, func(a, b engine.Change) int { return cmp.Compare(a.At, b.At) })
	return out
}

func everything(*Injection) bool { return true }
func nothing(*Injection) bool    { return false }

// workload keeps the changes of the workload.
func workload(i *Injection) bool { return i.Parameter.Workload() }

// without keeps everything but a cause.
func without(cause string) func(*Injection) bool {
	return func(i *Injection) bool { return i.Cause() != cause }
}

// Causes returns the injected causes, each once, in the order of their first onset.
func (s *Story) Causes() []string {
	ordered := slices.Clone(s.Injections)
	slices.SortStableFunc(ordered, func(a, b Injection) int { return cmp.Compare(a.Onset(), b.Onset()) })
	var out []string
	for i := range ordered {
		if c := ordered[i].Cause(); !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}

// Lasts reports whether an injection of the cause is present at a time.
func (s *Story) Lasts(cause string, at float64) bool {
	return slices.ContainsFunc(s.Injections, func(i Injection) bool {
		return i.Cause() == cause && at >= i.Onset() && at < i.End()
	})
}

// onset is the first onset, in seconds; the end of the story if there is none.
func (s *Story) onset() float64 {
	at := s.Length
	for i := range s.Injections {
		at = min(at, s.Injections[i].Onset())
	}
	return at
}

const (
	// window is the processor's default, and the length of a bin, in seconds.
	window = 60.0
	// interval is the time between two scrapes in seconds.
	interval = 10.0
)
