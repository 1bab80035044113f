package diagnose

import (
	"math"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// What is broken from the start has no baseline to be compared with. These limits hold for any
// engine, so they are wide.
const (
	// A step of a sound engine takes at most about stepFloor, and stepPerUnit for each sequence
	// and for each prompt token that is computed in it. Recordings of engines on five kinds of
	// GPU stay below 2.2 times that (95th percentile); on GPUs that another process uses as
	// well they are at 4.4 to 114 times (median). brokenSteps lies between them.
	stepFloor   = 0.020
	stepPerUnit = 0.0001
	brokenSteps = 3.0
	// leastPart is the least share of a late first token that names where it passes.
	leastPart = 0.3
)

// lateGap is the time between tokens as a multiple of the documented limit; 0 where it is not
// known, or is that of several steps.
func lateGap(r *reading) float64 {
	if r.severalSteps {
		return 0
	}
	return signal.OrZero(r.Signals[signal.InterTokenLatency] / defaultTokenGap)
}

// beyondDefaults adds what is beyond the documented limits where nothing is usual yet, and returns what
// the latencies are compared with.
func (x *losses) beyondDefaults(b *signal.Baseline, r *reading) Reference {
	reference := Learned
	if !b.Ready() || !signal.Known(b.Usual(signal.TimeToFirstToken)) {
		reference = Defaults
		if late := max(signal.OrZero(r.Signals[signal.TimeToFirstToken]), r.leastWait) / defaultFirstToken; late > 1 {
			x.first = max(x.first, late)
			x.mayFirst = x.first
		}
	}
	if !b.Ready() || !signal.Known(b.Usual(signal.InterTokenLatency)) {
		reference = Defaults
		if late := lateGap(r); late > 1 {
			x.gap = max(x.gap, late)
			x.mayGap = x.gap
		}
	}
	return reference
}

// broken is by what factor steps take longer than brokenSteps times the limit for any engine;
// NaN where that is not known.
func broken(r *reading) float64 {
	s := &r.Signals
	units := signal.OrZero(s[signal.Running]) + signal.OrZero(r.Computed*s[signal.StepTime])
	return s[signal.StepTime] / (brokenSteps * (stepFloor + stepPerUnit*units))
}

// promptPart is the part of the time of a step that prompts take at most, by the limits for any
// engine.
func promptPart(r *reading) float64 {
	prompt := max(signal.OrZero(r.Computed*r.Signals[signal.StepTime]), 0)
	sequences := max(signal.OrZero(r.Signals[signal.Running]), 0)
	return signal.OrZero(stepPerUnit * prompt / (stepFloor + stepPerUnit*(sequences+prompt)))
}

// fromTheStart are the growths of what is late beyond the documented limits; 0 where nothing is.
// They count only where there is no usual value.
func fromTheStart(r *reading) (grown growths) {
	if r.without.Floor {
		return grown
	}
	s := &r.Signals
	first := s[signal.TimeToFirstToken]
	part := func(seconds float64) float64 {
		if first > defaultFirstToken && seconds > leastPart*first {
			return math.Log(seconds / (leastPart * defaultFirstToken))
		}
		return 0
	}
	grown[slowerFrontEnd] = part(s[signal.FrontEnd])
	grown[moreDeferred] = part(s[signal.Deferred] / s[signal.FirstTokenRate])
	if by := broken(r); by > 1 && lateGap(r) > 1 {
		grown[slowerSteps] = math.Log(brokenSteps * by)
	}
	return grown
}

// withoutUsual adds to growths that are not known what is broken from the start.
func withoutUsual(r *reading, grown, deviations *growths) {
	for f, by := range fromTheStart(r) {
		if by > 0 && !signal.Known(grown[f]) {
			grown[f], deviations[f] = by, mostDeviations
		}
	}
}

// unusual are the signals of what was broken within a window that ends at a time, as long as they
// have no usual value: they never get one by it. Times are in nanoseconds.
func (e *engine) unusual(at, window int64) (out signal.Set) {
	broken := func(f factor) bool {
		return e.BrokenAt[f] > 0 && at-e.BrokenAt[f] < window && !f.hasUsual(e.baseline)
	}
	for _, f := range []factor{slowerFrontEnd, moreDeferred, slowerSteps} {
		out[wanders[f].of] = broken(f)
	}
	out[signal.PrefillFactor] = out[signal.StepFactor] // It is the same engine.
	return out
}
