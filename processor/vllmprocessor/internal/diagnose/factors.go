package diagnose

import (
	"math"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// factor is something that requests become slower by: the work that an engine gets, and what
// the same work costs.
type factor uint8

const (
	moreArrivals factor = iota
	longerPrompts
	moreComputed
	longerOutputs
	fewerAccepted
	fewerBlocks
	slowerSteps
	slowerPrefills
	slowerFrontEnd
	moreDeferred
	laterFirstTokens

	numFactors
)

// changedAt is the score of its change at which a factor has changed.
func (f factor) changedAt() float64 {
	if f <= longerOutputs || f == laterFirstTokens {
		return workChangedAt
	}
	return changedAt
}

func (f factor) hasUsual(b *signal.Baseline) bool {
	switch f {
	case slowerSteps:
		return b.Step.Ready()
	case slowerPrefills:
		return b.Prefill.Ready()
	default:
		return signal.Known(b.Usual(wanders[f].of))
	}
}

// growths are the increases against what is usual, as logarithms; positive is slower for requests.
// They are NaN where they are not known.
type growths [numFactors]float64

// wander is how much a growth varies without a change.
type wander struct {
	// of is the signal that the factor is seen by.
	of signal.Signal
	// prior is the standard deviation that is assumed while little is known; 0 where the model of
	// the load in the baseline has its own.
	prior float64
}

// priorWindows is how many windows a prior counts for.
const priorWindows = 5

var wanders = [numFactors]wander{
	moreArrivals: {signal.ArrivalRate, 0.3}, longerPrompts: {signal.PromptTokens, 0.3}, moreComputed: {signal.ComputedTokens, 0.3},
	longerOutputs: {signal.OutputTokens, 0.3}, fewerAccepted: {signal.AcceptanceLength, 0.1}, fewerBlocks: {signal.KVPerToken, 0.2},
	slowerSteps: {of: signal.StepFactor}, slowerPrefills: {of: signal.PrefillFactor},
	slowerFrontEnd: {signal.FrontEnd, 0.2}, moreDeferred: {signal.Deferred, 0.3},
	laterFirstTokens: {signal.TimeToFirstToken, 0.3},
}

// newGrowths returns the growths of a reading, and each in standard deviations. swing is as from
// swings.
func newGrowths(r *reading, b *signal.Baseline, swing float64) (grown, deviations growths) {
	for f := range numFactors {
		w := wanders[f]
		switch f {
		case slowerSteps:
			grown[f], deviations[f] = slowerNow(r, b, swing)
			continue
		case slowerPrefills:
			grown[f], deviations[f] = slower(math.Log(r.Signals[signal.PrefillFactor]), signal.OrZero(b.Prefill.Uncertainty(r.PrefillLoad())), math.Hypot(2*b.Prefill.Deviation(), uneven*swing))
			continue
		case moreArrivals:
			grown[f] = b.Growth(&r.Window, w.of) - again(r, b)
		case slowerFrontEnd:
			// A longer prompt takes longer to be made tokens of.
			grown[f] = b.Growth(&r.Window, w.of) - max(signal.OrZero(b.Growth(&r.Window, signal.PromptTokens)), 0)
		case fewerAccepted:
			grown[f] = -b.Growth(&r.Window, w.of)
		case fewerBlocks:
			grown[f] = min(b.Growth(&r.Window, signal.KVPerToken), b.Growth(&r.Window, signal.KVPerComputed))
			if r.Signals[signal.KVUtilization] < 0.5 {
				grown[f] = min(grown[f], 0)
			}
		case laterFirstTokens:
			// Where a server shows where the time passes, what makes it longer is seen in its parts, which vary less.
			grown[f] = math.NaN()
			if !signal.Known(r.Signals[signal.QueueTime]) || !signal.Known(r.Signals[signal.PrefillTime]) {
				grown[f] = b.Growth(&r.Window, w.of)
			}
		default:
			grown[f] = b.Growth(&r.Window, w.of)
		}
		deviations[f] = grown[f] / b.Wander(w.of, w.prior, priorWindows)
	}
	for f, by := range fromTheStart(r) {
		if by > 0 && !signal.Known(grown[f]) {
			grown[f], deviations[f] = by, mostDeviations
		}
	}
	return grown, deviations
}

// slowerNow is the growth of the time of a step at equal load, against the last hours or, from ratioOfDays on, against
// the last days, whichever is the clearer.
func slowerNow(r *reading, b *signal.Baseline, swing float64) (grown, deviations float64) {
	grown, deviations = slower(math.Log(r.Signals[signal.StepFactor]), signal.OrZero(b.Step.Uncertainty(r.StepLoad())), math.Hypot(b.Step.Deviation(), uneven*swing))
	if !b.Slow.Ready() {
		return grown, deviations
	}
	beyond := math.Log(r.Signals[signal.StepTime] / b.Slow.Expect(r.StepLoad()))
	slow, clearer := slower(beyond, signal.OrZero(b.Slow.Uncertainty(r.StepLoad())), math.Hypot(max(b.Slow.Deviation(), b.Step.Deviation()), uneven*swing))
	if clearer > deviations && slow > math.Log(ratioOfDays) {
		return slow, clearer
	}
	return grown, deviations
}

func (g *growths) total() (total float64) {
	for _, one := range g {
		total += one
	}
	return total
}

// only leaves out all but one.
func (g *growths) only(f factor) (out growths) {
	for i := range out {
		out[i] = math.NaN()
	}
	out[f] = g[f]
	return out
}

// ratioOfDays is by how much a step takes longer than over days at least where that alone shows it: the load of other
// days may have been another.
const ratioOfDays = 1.1

// uneven is the error of an expectation from the means of a window in which the number of sequences
// changes by a factor of e.
const uneven = 0.1

type swings []waited

// observe adds the number at a time, and returns the logarithm of the largest by the smallest in the
// window. Three are added to both, so that a change of a few sequences is small.
func (s *swings) observe(at int64, running float64, window int64) float64 {
	if len(*s) == mostSamples {
		*s = (*s)[1:]
	}
	*s = append(*s, waited{at, running})
	for len(*s) > 2 && at-(*s)[1].at >= window {
		*s = (*s)[1:]
	}
	least, most := math.Inf(1), 0.0
	for _, one := range *s {
		least, most = min(least, one.waiting), max(most, one.waiting)
	}
	return signal.OrZero(math.Log((most + 3) / (least + 3)))
}

// slower is a growth of a time beyond what its load explains, less what the expectation may be
// wrong by, and the whole growth in standard deviations.
func slower(growth, uncertainty, deviation float64) (grown, deviations float64) {
	return max(growth-uncertainty, min(growth, 0)), growth / math.Hypot(deviation, uncertainty)
}

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
