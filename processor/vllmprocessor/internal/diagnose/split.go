package diagnose

import (
	"math"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/learn"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

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
	if !signal.Known(growth) {
		return 0
	}
	return max(growth-max(quiet, spread), 0)
}

func newGrowths(r *reading, b *learn.Baseline) growths {
	g := growths{
		arrivals: beyond(b.Growth(&r.Window, signal.ArrivalRate), b.Spread(signal.ArrivalRate)),
		prompt:   beyond(b.Growth(&r.Window, signal.PromptTokens), b.Spread(signal.PromptTokens)),
		computed: beyond(b.Growth(&r.Window, signal.ComputedTokens), b.Spread(signal.ComputedTokens)),
		output:   beyond(b.Growth(&r.Window, signal.OutputTokens), b.Spread(signal.OutputTokens)),
		wasted:   beyond(-b.Growth(&r.Window, signal.AcceptanceLength), b.Spread(signal.AcceptanceLength)),
		blocks:   min(beyond(b.Growth(&r.Window, signal.KVPerToken), max(b.Spread(signal.KVPerToken), 0.2)), beyond(b.Growth(&r.Window, signal.KVPerComputed), max(b.Spread(signal.KVPerComputed), 0.2))),
		kvFull:   r.Signals[signal.KVUtilization] > full || r.Signals[signal.Preemptions] > preempting,
	}
	if own := r.Signals[signal.ComputedTokens] * r.Signals[signal.FirstTokenRate]; own > 0 {
		g.again = math.Log(max(r.Computed/own, 1))
	}
	g.slow = beyond(math.Log(r.Signals[signal.StepFactor]), b.Step.Doubt(r.Signals[signal.StepTime]/r.Signals[signal.StepFactor]))
	g.prefillSlow = beyond(math.Log(r.Signals[signal.PrefillFactor]), b.Prefill.Doubt(r.Signals[signal.PrefillTime]/r.Signals[signal.PrefillFactor]))
	if g.blocks > fewerBlocks {
		// A cache that holds less forgets sooner what could be found again.
		g.forgotten = max(g.computed-g.prompt, 0)
		g.computed -= g.forgotten
		g.kvFull = g.kvFull || r.Signals[signal.Waiting] > 0
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
	return s.Scale(1 / max(total, enough))
}

// split says how much of the harm each cause explains: first the excess is divided
// into the front end, the queue, prefill and decode, then each part by what has
// grown that it depends on. What is left to 1 nothing explains that holds now: what
// has queued before is still worked off.
//
// The weight is how much harm by latency there is, see weight.
func split(r *reading, b *learn.Baseline, felt *symptoms) (shares Shares, all float64) {
	if !b.Ready() {
		return withoutBaseline(r, felt), 1
	}
	g := newGrowths(r, b)
	var total Shares
	if felt.firstToken {
		excess := max(r.Signals[signal.TimeToFirstToken], signal.OrZero(r.Signals[signal.QueueWait])) - b.Usual(signal.TimeToFirstToken)
		w := weight(excess, harm(b, signal.TimeToFirstToken, harmFirstToken, false))
		total, all = total.Plus(firstTokenShares(r, b, &g).Scale(w)), all+w
	}
	if felt.tokenGap {
		excess := r.Signals[signal.InterTokenLatency] - b.Usual(signal.InterTokenLatency)
		w := weight(excess, harm(b, signal.InterTokenLatency, harmTokenGap, false))
		total, all = total.Plus(decodeShares(r, b, &g).Scale(w)), all+w
	}
	if all == 0 {
		return total, 0
	}
	return total.Scale(1 / all), all
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
func firstTokenShares(r *reading, b *learn.Baseline, g *growths) Shares {
	part := func(s signal.Signal) float64 {
		excess := r.Signals[s] - b.Usual(s)
		if !(excess > 0) {
			return 0
		}
		return excess
	}
	var total Shares
	total[FrontendBound] = part(signal.FrontEnd)
	queue, prefill := max(part(signal.QueueWait), part(signal.QueueTime)), part(signal.PrefillTime)
	total = total.Plus(queueShares(r, b, g).Scale(queue))
	deferred := max(signal.OrZero(r.Signals[signal.Deferred]/r.Signals[signal.FirstTokenRate])-signal.OrZero(b.Usual(signal.Deferred)/b.Usual(signal.FirstTokenRate)), 0)
	total[AdmissionDeferred] += deferred
	total = total.Plus(prefillShares(r, b, g).Scale(prefill))
	all := total[FrontendBound] + queue + deferred + prefill
	if all <= 0 {
		return Shares{}
	}
	return failedTransfers(r, total).Scale(1 / all)
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
func decodeShares(r *reading, b *learn.Baseline, g *growths) Shares {
	var total Shares
	total[SpeculationWasteful] = g.wasted
	total[SlowSteps] = g.slow
	sequences, tokens, prompt := r.StepLoad()
	expected := b.Step.Expect(sequences, tokens, prompt)
	load := math.Log(expected) - math.Log(b.Step.Mean())
	if load > quiet {
		var because Shares
		g.workload(&because, b.Step.More(0, sequences), g.arrivals, 0, g.output)
		g.workload(&because, b.Step.More(1, tokens), g.arrivals, promptPart(r)*g.prompt, g.output)
		g.prefills(&because, b.Step.More(2, prompt))
		total = total.Plus(because.whole().Scale(load))
	}
	return failedTransfers(r, total).whole()
}

// promptPart is the share of the prompt in what a request holds of the KV cache.
func promptPart(r *reading) float64 {
	prompt, output := r.Signals[signal.PromptTokens], signal.OrZero(r.Signals[signal.OutputTokens])
	return signal.OrZero(prompt / (prompt + output/2))
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
	*s = s.Plus(g.filled().Scale(by * g.again / total))
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
func prefillShares(r *reading, b *learn.Baseline, g *growths) Shares {
	var total Shares
	total[SlowSteps] = g.prefillSlow
	own, others := r.PrefillLoad()
	expected := b.Prefill.Expect(own, others)
	load := math.Log(expected) - math.Log(b.Prefill.Mean())
	if load > quiet {
		var because Shares
		by := b.Prefill.More(0, own) / (g.computed + g.forgotten)
		if signal.Known(by) {
			because[PrefillHeavy], because[KVPressure] = by*g.computed, by*g.forgotten
		}
		g.prefills(&because, b.Prefill.More(1, others))
		total = total.Plus(because.whole().Scale(load))
	}
	return total.whole()
}

// queueShares says why requests queue.
func queueShares(r *reading, b *learn.Baseline, g *growths) Shares {
	if g.kvFull {
		return g.filled()
	}
	var s Shares
	// What a step is made of says what counts: prompts or sequences.
	prefill := b.PromptShare(&r.Window)
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
	queue := max(signal.OrZero(r.Signals[signal.QueueWait]), signal.OrZero(r.Signals[signal.QueueTime]))
	deferred := signal.OrZero(r.Signals[signal.Deferred] / r.Signals[signal.FirstTokenRate])
	front := signal.OrZero(r.Signals[signal.FrontEnd])
	whole := max(signal.OrZero(r.Signals[signal.TimeToFirstToken]), queue+deferred+front)
	if whole <= 0 {
		return s
	}
	s[DemandExceedsCapacity] = queue / whole
	s[AdmissionDeferred] = deferred / whole
	s[FrontendBound] = front / whole
	return s
}
