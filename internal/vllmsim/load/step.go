package load

import (
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/observed"
)

// Costs of a step for an 8B model on one H100 SXM, from the project's
// specification of its simulated engine (peak rates derated by what is reached
// in practice).
const (
	stepBase       = 1.5e-3         // s per step
	perSequence    = 5e-6           // s per sequence in the batch
	weightBytes    = 15.0e9         // read once per step
	flopsPerToken  = 15.0e9         // per computed token
	kvBytes        = 131072.0       // per token held in the KV cache
	readRate       = 0.80 * 3.35e12 // B/s for weights
	kvReadRate     = 0.75 * 3.35e12 // B/s for the KV cache
	arithmeticRate = 0.55 * 989e12  // FLOP/s
)

// draftPositions is the number of tokens drafted per step with speculative decoding.
const draftPositions = 3

// acceptance is the chance that a drafted token is accepted given that the
// ones before it were.
var acceptance = [draftPositions]float64{0.75, 0.6, 0.5}

// stepTime is how long the planned step takes, in seconds.
func (e *Engine) stepTime() float64 {
	tokens, held := e.batch()
	weights := weightBytes / readRate
	arithmetic := flopsPerToken / arithmeticRate * float64(tokens)
	return stepBase + perSequence*float64(len(e.running)) +
		max(weights, arithmetic) + kvBytes/kvReadRate*float64(held)
}

// batch returns how many tokens the planned step computes and how many tokens
// of KV cache it reads.
func (e *Engine) batch() (tokens, held int) {
	perDecode := 1
	if e.cfg.SpecDecode {
		perDecode += draftPositions
	}
	for _, r := range e.running {
		switch {
		case r.chunk > 0:
			tokens += r.chunk
			held += r.computed
		case r.computed >= r.toCompute:
			tokens += perDecode
			held += r.prompt + r.generated
		}
	}
	return tokens, held
}

// finishStep applies the step under way: tokens come out, requests finish, and
// the gauges take their new values.
func (e *Engine) finishStep() {
	began := e.clock
	e.clock = e.stepEnd
	e.stepping = false
	s := e.stats
	if e.cfg.FlopsCounters {
		tokens, held := e.batch()
		s.Flops += flopsPerToken * float64(tokens)
		s.ReadBytes += weightBytes + kvBytes*float64(held)
		s.WriteBytes += kvBytes * float64(tokens)
	}
	computed, generated, steady := 0, 0, 0
	kept := e.running[:0]
	for _, r := range e.running {
		switch {
		case r.chunk > 0:
			computed += r.chunk
			r.computed += r.chunk
			r.chunk = 0
			if r.computed >= r.toCompute {
				generated++
				e.firstOutput(r)
			}
		case r.computed >= r.toCompute:
			n := e.decoded(r)
			generated += n
			r.generated += n
			if r.lastToken == began {
				steady++
			} else {
				s.InterToken.Observe(e.clock - r.lastToken)
			}
			r.lastToken = e.clock
		}
		if r.generated >= r.output {
			e.finish(r)
			continue
		}
		kept = append(kept, r)
	}
	clear(e.running[len(kept):])
	e.running = kept
	s.InterToken.ObserveN(e.clock-began, steady)
	s.GenerationTokens += float64(generated)
	s.IterationTokens.Observe(float64(computed + generated))
	s.LastStep = e.clock
	s.Running = len(e.running)
	s.WaitingDeferred = e.deferred
	s.WaitingCapacity = len(e.waiting) - e.deferred
	s.KVUsage = 1 - float64(e.free)/float64(e.blocks)
	if e.cfg.LoRA {
		e.noteAdapters()
	}
}

// firstOutput takes the token that ends a prefill: the request's very first
// one, or the next one after a preemption.
func (e *Engine) firstOutput(r *request) {
	s := e.stats
	r.generated++
	if r.generated > 1 {
		s.InterToken.Observe(e.clock - r.lastToken)
		r.lastToken = e.clock
		return
	}
	r.firstToken, r.lastToken = e.clock, e.clock
	s.FirstToken.Observe(e.clock - r.arrived + overhead)
	r.prefilled = r.prompt - r.cached
	s.PromptTokens += float64(r.prompt)
	s.PromptCached += float64(r.cached)
	if r.prefix >= 0 {
		e.warm[r.prefix] = true
	}
}

// decoded returns how many tokens one decode step gives a request.
func (e *Engine) decoded(r *request) int {
	if !e.cfg.SpecDecode {
		return 1
	}
	s := e.stats
	s.Drafts++
	s.DraftTokens += draftPositions
	n := 1
	for pos := range acceptance {
		if e.draws.Float64() >= acceptance[pos] {
			break
		}
		s.AcceptedTokens++
		s.AcceptedPerPosition[pos]++
		n++
	}
	return min(n, r.output-r.generated)
}

func (e *Engine) finish(r *request) {
	e.free += r.blocks
	r.blocks = 0
	s := e.stats
	total := e.clock - r.arrived + overhead
	s.Answered(e.clock, r.path, "2xx", total+overhead, r.prompt*4+300, r.generated*5+350)
	if r.fate == fateAborted {
		return
	}
	s.Finished[r.reason]++
	s.PromptLength.Observe(float64(r.prompt))
	s.GenerationLength.Observe(float64(r.generated))
	s.ParamsN.Observe(1)
	if r.maxTokens > 0 {
		s.ParamsMaxTokens.Observe(float64(r.maxTokens))
	}
	decode := r.lastToken - r.firstToken
	mean := 0.0
	if r.generated > 1 {
		mean = decode / float64(r.generated-1)
	}
	s.TokenMean.Observe(mean)
	s.EndToEnd.Observe(total)
	s.Queue.Observe(r.admitted - r.arrived)
	s.Inference.Observe(r.lastToken - r.admitted)
	s.Prefill.Observe(r.firstToken - r.admitted)
	s.Decode.Observe(decode)
	s.PrefillComputed.Observe(float64(r.prefilled))
	s.RequestPreemptions.Observe(float64(r.preemptions))
}

// noteAdapters stamps the present combination of adapters, as vLLM does on
// every step; combinations of the past keep their last time.
func (e *Engine) noteAdapters() {
	var waiting uint
	for _, r := range e.waiting {
		waiting |= 1 << r.adapter
	}
	running := e.activeAdapters() &^ 1
	waiting &^= 1
	sets := e.stats.Adapters
	if len(sets) == 0 || running != e.adaptersRunning || waiting != e.adaptersWaiting {
		e.adaptersRunning, e.adaptersWaiting = running, waiting
		names, queued := adapterList(running), adapterList(waiting)
		e.adaptersAt = slices.IndexFunc(sets, func(s observed.AdapterSet) bool {
			return s.Running == names && s.Waiting == queued
		})
		if e.adaptersAt < 0 {
			e.adaptersAt = len(sets)
			sets = append(sets, observed.AdapterSet{Running: names, Waiting: queued, First: e.clock})
			e.stats.Adapters = sets
		}
	}
	e.stats.Adapters[e.adaptersAt].Last = e.clock
}
