package diagnose

import "math"

const (
	// full is the utilization of the KV cache from which on it is what limits an
	// engine, preempting the preemptions per first token that say the same.
	full       = 0.85
	preempting = 0.005
	// quiet is how much a logarithm may be off without a meaning.
	quiet = 0.08
	// failingTransfers is the number of failed transfers per first token that
	// matters.
	failingTransfers = 0.02
)

// growths are by how much what the engine is given, and what it is, has changed
// against the baseline: logarithms, 0 where it is not more than usual.
type growths struct {
	arrivals, prompt, computed, output float64
	// slow is how much longer steps take than the load explains, prefillSlow the
	// same of prefills; wasted is what speculative decoding gives less, and blocks how
	// much more of the KV cache the same tokens take.
	slow, prefillSlow, wasted, blocks float64
	// again is what is computed twice, forgotten what is computed because a smaller
	// cache has lost it.
	again, forgotten float64
	kvFull           bool
}

// beyond is the part of a growth that is more than varies from window to window.
func beyond(growth, spread float64) float64 {
	if !known(growth) {
		return 0
	}
	return max(growth-max(quiet, spread), 0)
}

func (b *baseline) growths(r *reading) growths {
	g := growths{
		arrivals: beyond(b.growth(r, ArrivalRate), b.spread(ArrivalRate)),
		prompt:   beyond(b.growth(r, PromptTokens), b.spread(PromptTokens)),
		computed: beyond(b.growth(r, ComputedTokens), b.spread(ComputedTokens)),
		output:   beyond(b.growth(r, OutputTokens), b.spread(OutputTokens)),
		wasted:   beyond(-b.growth(r, AcceptanceLength), b.spread(AcceptanceLength)),
		blocks:   min(beyond(b.growth(r, KVPerToken), max(b.spread(KVPerToken), 0.2)), beyond(b.growth(r, KVPerComputed), max(b.spread(KVPerComputed), 0.2))),
		kvFull:   r.Signals[KVUtilization] > full || r.Signals[Preemptions] > preempting,
	}
	if own := r.Signals[ComputedTokens] * r.Signals[FirstTokenRate]; own > 0 {
		g.again = math.Log(max(r.computed/own, 1))
	}
	g.slow = beyond(math.Log(r.Signals[StepFactor]), b.Step.doubt(r.Signals[StepTime]/r.Signals[StepFactor]))
	g.prefillSlow = beyond(math.Log(r.Signals[PrefillFactor]), b.Prefill.doubt(r.Signals[PrefillTime]/r.Signals[PrefillFactor]))
	if g.blocks > fewerBlocks {
		// A cache that holds less forgets sooner what could be found again.
		g.forgotten = max(g.computed-g.prompt, 0)
		g.computed -= g.forgotten
		g.kvFull = g.kvFull || r.Signals[Waiting] > 0
	}
	return g
}

// enough is the growth from which on it explains a queue by itself: a server that
// is a little slower does not have a long one.
const enough = 0.3

// fewerBlocks is the growth of the KV cache per token that says for certain that
// it holds less.
const fewerBlocks = 0.4

// explained makes shares of growths. Small ones leave something unexplained.
func explained(s Shares) Shares {
	total := 0.0
	for _, growth := range s {
		total += growth
	}
	return s.scale(1 / max(total, enough))
}

// split says how much of the harm each cause explains: first the excess is divided
// into the front end, the queue, prefill and decode, then each part by what has
// grown that it depends on. What is left to 1 nothing explains that holds now: what
// has queued before is still worked off.
//
// The weight is how much harm by latency there is, see weight.
func split(r *reading, b *baseline, felt *symptoms) (shares Shares, all float64) {
	if !b.ready() {
		return withoutBaseline(r, felt), 1
	}
	g := b.growths(r)
	var total Shares
	if felt.firstToken {
		excess := max(r.Signals[TimeToFirstToken], orZero(r.Signals[QueueWait])) - b.usual(TimeToFirstToken)
		w := weight(excess, b.harm(TimeToFirstToken, harmFirstToken, false))
		total, all = total.plus(firstTokenShares(r, b, &g).scale(w)), all+w
	}
	if felt.tokenGap {
		excess := r.Signals[InterTokenLatency] - b.usual(InterTokenLatency)
		w := weight(excess, b.harm(InterTokenLatency, harmTokenGap, false))
		total, all = total.plus(decodeShares(r, b, &g).scale(w)), all+w
	}
	if all == 0 {
		return total, 0
	}
	return total.scale(1 / all), all
}

// weight is how much an excess counts beside another kind of harm: it grows with
// how many times it is of what just harms, more slowly the larger it is.
func weight(excess, harm float64) float64 {
	if !(excess > 0) {
		return 1e-3
	}
	return math.Log1p(excess / harm)
}

// firstTokenShares splits what the time to the first token has in excess.
func firstTokenShares(r *reading, b *baseline, g *growths) Shares {
	part := func(s Signal) float64 {
		excess := r.Signals[s] - b.usual(s)
		if !(excess > 0) {
			return 0
		}
		return excess
	}
	var total Shares
	total[FrontendBound] = part(FrontEnd)
	queue, prefill := max(part(QueueWait), part(QueueTime)), part(PrefillTime)
	total = total.plus(queueShares(r, b, g).scale(queue))
	deferred := max(orZero(r.Signals[Deferred]/r.Signals[FirstTokenRate])-orZero(b.usual(Deferred)/b.usual(FirstTokenRate)), 0)
	total[AdmissionDeferred] += deferred
	total = total.plus(prefillShares(r, b, g).scale(prefill))
	all := total[FrontendBound] + queue + deferred + prefill
	if all <= 0 {
		return Shares{}
	}
	return failedTransfers(r, total).scale(1 / all)
}

// failedTransfers gives to failed transfers what they explain: prompts that are
// computed here because they did not come, and the wait for them.
func failedTransfers(r *reading, s Shares) Shares {
	if !r.transfersFail() {
		return s
	}
	s[KVTransferFailing] += s[AdmissionDeferred] + s[PrefillHeavy]
	s[AdmissionDeferred], s[PrefillHeavy] = 0, 0
	return s
}

// workload gives a part that depends on the rate of tokens to what made it grow.
func (g *growths) workload(s *Shares, by, arrivals, computed, output float64) {
	total := arrivals + computed + output
	if total <= 0 {
		return
	}
	s[DecodeLoad] += by * output / total
	s[PrefillHeavy] += by * computed / total
	s[DemandExceedsCapacity] += by * arrivals / total
}

// decodeShares splits what the time between tokens has in excess. In logarithms
// it is what speculative decoding gives less, what steps take longer at the same
// load, and what the load explains.
func decodeShares(r *reading, b *baseline, g *growths) Shares {
	var total Shares
	total[SpeculationWasteful] = g.wasted
	total[SlowSteps] = g.slow
	sequences, tokens, prompt := stepLoad(r)
	expected := b.Step.expect(sequences, tokens, prompt)
	load := math.Log(expected) - math.Log(b.Step.mean())
	if load > quiet {
		var because Shares
		g.workload(&because, b.Step.more(0, sequences), g.arrivals, 0, g.output)
		g.workload(&because, b.Step.more(1, tokens), g.arrivals, promptPart(r)*g.prompt, g.output)
		g.prefills(&because, b.Step.more(2, prompt))
		total = total.plus(because.whole().scale(load))
	}
	return failedTransfers(r, total).whole()
}

// promptPart is the share of the prompt in what a request holds of the KV cache.
func promptPart(r *reading) float64 {
	prompt, output := r.Signals[PromptTokens], orZero(r.Signals[OutputTokens])
	return orZero(prompt / (prompt + output/2))
}

// prefills gives a part that depends on the prompt tokens computed per second.
// What is computed again belongs to what fills the KV cache.
func (g *growths) prefills(s *Shares, by float64) {
	total := g.arrivals + g.computed + g.again + g.forgotten
	if total <= 0 {
		return
	}
	s[DemandExceedsCapacity] += by * g.arrivals / total
	s[PrefillHeavy] += by * g.computed / total
	s[KVPressure] += by * g.forgotten / total
	*s = s.plus(g.filled().scale(by * g.again / total))
}

// filled says what fills the KV cache: more requests, longer ones, ones that stay
// longer since steps are slow, or a cache that holds less.
func (g *growths) filled() Shares {
	var s Shares
	s[DemandExceedsCapacity] = g.arrivals
	s[DecodeLoad] = 2 * g.output
	s[PrefillHeavy] = max(g.prompt, g.computed)
	s[SlowSteps] = g.slow
	s[SpeculationWasteful] = g.wasted
	s[KVPressure] = g.blocks
	return explained(s)
}

// prefillShares splits what prefills have in excess.
func prefillShares(r *reading, b *baseline, g *growths) Shares {
	var total Shares
	total[SlowSteps] = g.prefillSlow
	own, others := prefillLoad(r)
	expected := b.Prefill.expect(own, others)
	load := math.Log(expected) - math.Log(b.Prefill.mean())
	if load > quiet {
		var because Shares
		by := b.Prefill.more(0, own) / (g.computed + g.forgotten)
		if known(by) {
			because[PrefillHeavy], because[KVPressure] = by*g.computed, by*g.forgotten
		}
		g.prefills(&because, b.Prefill.more(1, others))
		total = total.plus(because.whole().scale(load))
	}
	return total.whole()
}

// queueShares says why requests queue.
func queueShares(r *reading, b *baseline, g *growths) Shares {
	if g.kvFull {
		return g.filled()
	}
	var s Shares
	// What a step is made of says what counts: prompts or sequences.
	prefill := b.promptShare(r)
	s[DemandExceedsCapacity] = g.arrivals
	s[PrefillHeavy] = g.computed * prefill
	s[DecodeLoad] = g.output * (1 - prefill)
	s[SlowSteps] = max(g.slow, g.prefillSlow)
	s[SpeculationWasteful] = g.wasted
	return explained(s)
}

// withoutBaseline tells what can be told without anything to compare with: where
// the time to the first token passes.
func withoutBaseline(r *reading, felt *symptoms) Shares {
	var s Shares
	if !felt.firstToken {
		return s
	}
	queue := max(orZero(r.Signals[QueueWait]), orZero(r.Signals[QueueTime]))
	deferred := orZero(r.Signals[Deferred] / r.Signals[FirstTokenRate])
	front := orZero(r.Signals[FrontEnd])
	whole := max(orZero(r.Signals[TimeToFirstToken]), queue+deferred+front)
	if whole <= 0 {
		return s
	}
	s[DemandExceedsCapacity] = queue / whole
	s[AdmissionDeferred] = deferred / whole
	s[FrontendBound] = front / whole
	return s
}
