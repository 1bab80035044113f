package diagnose

import (
	"math"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// effects are what the factors that have changed cost: how much sooner requests would get
// their tokens if each were as usual, with everything else as it is now.
type effects struct {
	// first and gap are in seconds: of the first token, and of each further one. The usual
	// ones, with the changed factors as usual, are what is left of the measured latencies.
	first, gap           float64
	usualFirst, usualGap float64
	// firstShares and gapShares are by cause, and add up to 1 or are 0.
	firstShares, gapShares Shares
}

// effect is a loss as a multiple of the bar of harm: harmRatio, and at least so many seconds.
func effect(lost, usual, least float64) float64 {
	return lost / max((harmRatio-1)*usual, least)
}

// changed are the growths of factors that have changed; the others are 0. Of work only what is
// beyond two deviations counts: so much it varies.
func (e *engine) changed(g, deviations *growths) (out growths) {
	for f := range numFactors {
		if !e.Changes[f].On || !(g[f] > 0) {
			continue
		}
		if e.mixes(f) {
			continue
		}
		out[f] = g[f]
		if f <= longerOutputs {
			out[f] *= 1 - 2/max(deviations[f], 2)
		}
	}
	return out
}

// mixes reports whether a factor may be no more than the prompts that come together, which varies: a slower engine is
// slower in all steps.
func (e *engine) mixes(f factor) bool {
	return f == slowerPrefills && e.Changes[slowerSteps].Score < suspicious
}

// undo returns the work with one growth undone.
func undo(w signal.Work, r *reading, f factor, by float64) signal.Work {
	s := &r.Signals
	ratio := math.Exp(-by)
	lengths := s[signal.PromptTokens] + signal.OrZero(s[signal.OutputTokens])/2
	switch f {
	case moreArrivals:
		w.Generation *= ratio
		w.Computed *= ratio
	case longerOutputs:
		w.Generation *= ratio
		w.Held *= 1 - signal.OrZero(s[signal.OutputTokens])/2/lengths*(1-ratio)
	case longerPrompts:
		w.Held *= 1 - s[signal.PromptTokens]/lengths*(1-ratio)
	case moreComputed:
		w.Computed *= ratio
		w.Own *= ratio
	case fewerAccepted:
		w.Accepted /= ratio
	}
	return w
}

var workload = []factor{moreArrivals, longerPrompts, moreComputed, longerOutputs, fewerAccepted}

// causeOf is the cause of each factor. The last one, later first tokens, has none of its own.
var causeOf = [laterFirstTokens]Cause{
	moreArrivals: DemandExceedsCapacity, longerPrompts: PrefillHeavy, moreComputed: PrefillHeavy, longerOutputs: DecodeLoad,
	fewerAccepted: SpeculationWasteful, fewerBlocks: KVPressure, slowerSteps: SlowSteps, slowerPrefills: SlowSteps,
	slowerFrontEnd: FrontendBound, moreDeferred: AdmissionDeferred,
}

// attribute adds the parts by which factors make a time longer to the shares of their causes.
func (c *growths) attribute(s *Shares, r *reading, by growths) {
	// A smaller cache loses prefixes sooner that could be found again.
	smaller := c[fewerBlocks] > 0 && cacheFull(r)
	for f, cause := range causeOf {
		if cause == PrefillHeavy && smaller {
			cause = KVPressure
		}
		s[cause] += by[f]
	}
}

// newEffects returns what the changed factors cost. over is whether arrivals exceed what the
// engine serves.
func newEffects(r *reading, b *signal.Baseline, c *growths, over bool, queues growths) (out effects) {
	out.decode(r, b, c)
	out.firstToken(r, b, c, over, queues)
	return out
}

func (x *effects) decode(r *reading, b *signal.Baseline, c *growths) {
	measured := r.Signals[signal.InterTokenLatency]
	if !(measured > 0) {
		return
	}
	by := c.costs(r, b.StepAt, slowerSteps, r.Signals[signal.StepTime])
	// More steps for the same tokens, in addition to the load that this causes, which makes each step longer.
	by[fewerAccepted] += c[fewerAccepted]
	x.usualGap = measured * math.Exp(-by.total())
	x.gap = measured - x.usualGap
	c.attribute(&x.gapShares, r, by)
	x.gapShares = failedTransfers(r, x.gapShares).whole()
}

// costs are the logarithms by which the changed factors make a measured time longer: the engine
// that is slower, and the work. at returns the usual time for some work, and how busy the engine is
// with it.
func (c *growths) costs(r *reading, at func(signal.Work) (seconds, busy float64), slower factor, measured float64) (by growths) {
	work := r.Work()
	now, busy := at(work)
	if c[slower] > 0 {
		// The loop of a slower engine and the load that it causes is a part of it.
		by[slower] = looped(math.Log(measured/now), c[slower], busy)
	}
	for _, f := range workload {
		if c[f] > 0 {
			without, _ := at(undo(work, r, f, c[f]))
			by[f] = max(signal.OrZero(math.Log(now/without)), 0)
		}
	}
	return by
}

// looped is by how much a slower engine makes a time longer, with the load that this causes: what the
// time is beyond the fixed point, which holds for steady work only, and so at least the growth at
// equal load, and at most that growth for each round of the loop.
func looped(beyond, atLoad, busy float64) float64 {
	return max(atLoad, min(signal.OrZero(beyond), atLoad/(1-signal.OrZero(busy))))
}

// firstToken is about the time to the first token, by where it passes: front end, deferral,
// prefill and queue. Where a server does not show that, the whole excess counts once it is a change.
func (x *effects) firstToken(r *reading, b *signal.Baseline, c *growths, over bool, queues growths) {
	s := &r.Signals
	part := func(of signal.Signal) float64 { return max(signal.OrZero(s[of]-signal.OrZero(b.Usual(of))), 0) }
	var total Shares
	if c[slowerFrontEnd] > 0 {
		total[FrontendBound] = part(signal.FrontEnd)
	}
	if c[moreDeferred] > 0 {
		total[AdmissionDeferred] = max(signal.OrZero(s[signal.Deferred]/s[signal.FirstTokenRate])-signal.OrZero(b.Usual(signal.Deferred)/b.Usual(signal.FirstTokenRate)), 0)
	}
	prefill, seconds := x.prefill(r, b, c)
	total = total.Plus(prefill.Scale(seconds))
	queue := max(part(signal.QueueWait), part(signal.QueueTime))
	total = total.Plus(queued(r, c, over, queues).Scale(queue))
	total = failedTransfers(r, total)
	if r.transfersFail() {
		total[KVTransferFailing] = max(total[KVTransferFailing], part(signal.PrefillTime))
	}
	x.first = total.total()
	measured := max(signal.OrZero(s[signal.TimeToFirstToken]), signal.OrZero(s[signal.QueueWait]))
	explained := x.first
	if rest := part(signal.TimeToFirstToken) - x.first; c[laterFirstTokens] > 0 && rest > 0 {
		// The server does not show where the time passes.
		x.first += rest
		switch {
		case c[slowerSteps] > 0:
			total[SlowSteps], explained = total[SlowSteps]+rest, x.first
		case c[moreComputed] > 0, c[longerPrompts] > 0:
			total[PrefillHeavy], explained = total[PrefillHeavy]+rest, x.first
		}
	}
	x.usualFirst = max(measured-x.first, 0)
	x.firstShares = total.whole().Scale(signal.OrZero(explained / x.first))
}

// prefill is why prefills take longer, and by how many seconds.
func (*effects) prefill(r *reading, b *signal.Baseline, c *growths) (Shares, float64) {
	measured := r.Signals[signal.PrefillTime]
	if !(measured > 0) {
		return Shares{}, 0
	}
	by := c.costs(r, b.PrefillAt, slowerPrefills, measured)
	var s Shares
	c.attribute(&s, r, by)
	return s.whole(), measured * (1 - math.Exp(-by.total()))
}

// failedTransfers attributes to failed transfers what they explain: prompts that are
// computed here because their KV did not arrive, and the wait for it.
func failedTransfers(r *reading, s Shares) Shares {
	if !r.transfersFail() {
		return s
	}
	s[KVTransferFailing] += s[AdmissionDeferred] + s[PrefillHeavy]
	s[AdmissionDeferred], s[PrefillHeavy] = 0, 0
	return s
}

const (
	// full is the utilization of the KV cache from which on it is what limits an
	// engine, preempting the preemptions per first token that say the same.
	full       = 0.85
	preempting = 0.005
	// quiet is the change of a logarithm that means nothing.
	quiet = 0.08
	// failingTransfers is the number of failed transfers per first token that
	// matters.
	failingTransfers = 0.02
)

// split returns how much of the harm each cause explains, of the first token and of the
// time between tokens: its part of the cost of what has changed, as from effects. The
// remainder to 1 has no known cause.
//
// all is the weight of the harm by latency, see weight.
func split(r *reading, found *symptoms) (shares Shares, all float64) {
	if !found.firstToken && !found.tokenGap {
		return shares, 0
	}
	x := &found.effects
	if !(x.gap > 0 || x.first > 0) && found.reference == Defaults {
		return withoutBaseline(r, found), 1
	}
	var total Shares
	if found.firstToken {
		w := weight(x.first, max(x.usualFirst*(harmRatio-1), harmFirstToken))
		total, all = total.Plus(x.firstShares.Scale(w)), all+w
	}
	if found.tokenGap {
		w := weight(x.gap, max(x.usualGap*(harmRatio-1), harmTokenGap))
		total, all = total.Plus(x.gapShares.Scale(w)), all+w
	}
	if all == 0 {
		return total, 0
	}
	return total.Scale(1 / all), all
}

// weight is how much an excess counts in comparison with another kind of harm: the
// logarithm of the excess in units of the smallest harmful one.
func weight(excess, harm float64) float64 {
	if !(excess > 0) {
		return 1e-3
	}
	return math.Log1p(excess / harm)
}

// withoutBaseline splits latencies beyond the documented limits by where they pass, which needs
// nothing to compare with.
func withoutBaseline(r *reading, found *symptoms) Shares {
	var s Shares
	all := 0.0
	if gap := r.Signals[signal.InterTokenLatency]; found.tokenGap && gap > defaultTokenGap {
		w := weight(gap-defaultTokenGap, defaultTokenGap)
		all += w
		if broken(r) > 1 {
			s[SlowSteps] += w
		} else {
			s[PrefillHeavy] += w * promptPart(r)
		}
	}
	if first := max(signal.OrZero(r.Signals[signal.TimeToFirstToken]), r.leastWait); found.firstToken && first > defaultFirstToken {
		w := weight(first-defaultFirstToken, defaultFirstToken)
		all += w
		queue := max(signal.OrZero(r.Signals[signal.QueueWait]), signal.OrZero(r.Signals[signal.QueueTime]), r.leastWait)
		deferred := signal.OrZero(r.Signals[signal.Deferred] / r.Signals[signal.FirstTokenRate])
		front := signal.OrZero(r.Signals[signal.FrontEnd])
		whole := max(first, queue+deferred+front)
		s[DemandExceedsCapacity] += w * queue / whole
		s[AdmissionDeferred] += w * deferred / whole
		s[FrontendBound] += w * front / whole
		s[PrefillHeavy] += w * max(whole-queue-deferred-front, 0) / whole * promptPart(r)
	}
	if all == 0 {
		return s
	}
	return s.Scale(1 / all)
}
