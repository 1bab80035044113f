package diagnose

import (
	"math"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

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
