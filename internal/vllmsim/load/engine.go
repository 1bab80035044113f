package load

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/observed"
)

// Config says what the engine can do and what is asked of it.
type Config struct {
	// Seed makes the run; equal seeds give equal runs.
	Seed uint64
	// Rate is the mean arrival rate in requests per second, Period the length
	// of one wave of load in seconds.
	Rate, Period float64
	// PromptMedian and OutputMedian are medians of lognormal lengths in tokens,
	// the prompt without a shared prefix.
	PromptMedian, OutputMedian float64
	// KVTokens is the capacity of the KV cache in tokens, in blocks of BlockSize.
	KVTokens, BlockSize int
	// MaxSeqs and MaxBatchedTokens limit what one step works on.
	MaxSeqs, MaxBatchedTokens int
	// MaxModelLen bounds prompt and output together.
	MaxModelLen int
	// PrefixCaching, LoRA, SpecDecode and FlopsCounters switch features on.
	PrefixCaching, LoRA, SpecDecode, FlopsCounters bool
	// MaxLoRAs is the number of adapters that can run at once.
	MaxLoRAs int
}

const (
	// maxWaiting bounds the queue; the front end refuses what exceeds it.
	maxWaiting = 2000
	// overhead is the time the front end adds to each request, in seconds.
	overhead = 0.0015
)

// fate is what happens to a request apart from being served.
type fate uint8

const (
	fateServed  fate = iota
	fateRefused      // Answered with 400 by the front end; the engine never sees it.
	fateAborted      // The client goes away; the engine then observes nothing (vLLM's own behaviour).
)

type request struct {
	arrived, admitted, firstToken, lastToken float64
	prompt, output, maxTokens                int
	prefix, adapter                          int
	path                                     string
	reason                                   observed.Reason
	fate                                     fate

	cached, computed, generated int
	// prefilled is how much of the prompt was computed and not found in the
	// cache when the first token came.
	prefilled int
	// toCompute is how many tokens must be computed before the next one comes
	// out: the prompt, after a preemption also what was generated.
	toCompute   int
	chunk       int // Tokens planned in the step under way, 0 while decoding.
	blocks      int
	preemptions int
}

// Engine is one engine with its own queue and KV cache. It is not safe for
// concurrent use.
type Engine struct {
	cfg      Config
	stats    *observed.Stats
	workload *workload
	draws    *rand.Rand // Speculative decoding; apart from the workload, which must not depend on it.

	waiting, running []*request
	free, blocks     int
	warm             [len(prefixLengths)]bool

	clock, stepEnd  float64
	stepping        bool
	deferred        int
	ratesAt         float64
	promptAt, genAt float64
	// The adapter combination of the last step and its place in Stats.Adapters.
	adaptersRunning, adaptersWaiting uint
	adaptersAt                       int
}

// New returns an engine at time 0, or an error that names the setting that
// cannot work.
func New(cfg Config) (*Engine, error) {
	switch {
	case cfg.Rate <= 0 || cfg.Period <= 0:
		return nil, fmt.Errorf("rate %v and period %v s must be above 0", cfg.Rate, cfg.Period)
	case cfg.BlockSize <= 0 || cfg.MaxSeqs <= 0 || cfg.MaxModelLen < 16:
		return nil, fmt.Errorf("block size %d and sequences %d must be above 0, the model length %d at least 16",
			cfg.BlockSize, cfg.MaxSeqs, cfg.MaxModelLen)
	case cfg.MaxBatchedTokens <= cfg.MaxSeqs:
		return nil, fmt.Errorf("batched tokens %d must exceed sequences %d", cfg.MaxBatchedTokens, cfg.MaxSeqs)
	case cfg.KVTokens < cfg.MaxModelLen+2*cfg.BlockSize:
		return nil, fmt.Errorf("a KV cache of %d tokens cannot hold one request of %d tokens", cfg.KVTokens, cfg.MaxModelLen)
	}
	blocks := cfg.KVTokens / cfg.BlockSize
	return &Engine{
		cfg: cfg, stats: observed.NewStats(draftPositions), workload: newWorkload(cfg),
		draws: rand.New(rand.NewPCG(cfg.Seed, 0xd1b54a32d192ed03)),
		free:  blocks, blocks: blocks,
	}, nil
}

// Stats returns the engine's numbers. They change with the next AdvanceTo.
func (e *Engine) Stats() *observed.Stats { return e.stats }

// AdvanceTo works until t seconds after the start. A step that would end after
// t stays under way and ends in a later call.
func (e *Engine) AdvanceTo(t float64) {
	for {
		if !e.stepping && !e.plan() {
			// Nothing to do until the next arrival.
			arrival := e.workload.next.arrived
			if arrival > t {
				break
			}
			e.clock = arrival
			continue
		}
		if e.stepEnd > t {
			break
		}
		e.rollRates(e.stepEnd)
		e.finishStep()
	}
	e.rollRates(t)
}

// plan takes in what has arrived, admits what fits and starts a step. It
// returns false when there is nothing to work on.
func (e *Engine) plan() bool {
	e.arrivals()
	preempted := e.growDecodes()
	budget := e.cfg.MaxBatchedTokens
	for _, r := range e.running {
		r.chunk = 0
		if r.computed < r.toCompute {
			r.chunk = min(r.toCompute-r.computed, budget)
			budget -= r.chunk
		} else {
			budget--
		}
	}
	e.deferred = 0
	if !preempted {
		e.admit(budget)
	}
	if len(e.running) == 0 {
		return false
	}
	e.stepEnd = e.clock + e.stepTime()
	e.stepping = true
	return true
}

func (e *Engine) arrivals() {
	for r := e.workload.take(e.clock); r != nil; r = e.workload.take(e.clock) {
		switch {
		case r.fate == fateRefused:
			e.stats.Answered(r.arrived, r.path, "4xx", 0.002, r.prompt*4+300, 160)
		case len(e.waiting) >= maxWaiting:
			e.stats.Answered(r.arrived, r.path, "5xx", 0.001, r.prompt*4+300, 90)
		default:
			r.toCompute = r.prompt
			e.waiting = append(e.waiting, r)
		}
	}
}

// growDecodes gives every decoding request the block its next tokens need. When
// none is free, the newest request loses its own and goes back to the front of
// the queue, as in vLLM.
func (e *Engine) growDecodes() bool {
	preempted := false
	for i := 0; i < len(e.running); i++ {
		r := e.running[i]
		if r.computed < r.toCompute {
			continue // A prefill got its blocks on admission.
		}
		tokens := r.prompt + r.generated + 1 - r.cached
		if e.cfg.SpecDecode {
			tokens += draftPositions
		}
		need := e.blocksFor(tokens) - r.blocks
		for need > e.free && i < len(e.running) {
			e.preempt()
			preempted = true
		}
		if i < len(e.running) && need > 0 {
			r.blocks += need
			e.free -= need
		}
	}
	return preempted
}

func (e *Engine) preempt() {
	last := len(e.running) - 1
	r := e.running[last]
	e.running = e.running[:last]
	e.free += r.blocks
	r.blocks, r.computed, r.chunk = 0, 0, 0
	r.cached = 0
	r.toCompute = r.prompt + r.generated
	r.preemptions++
	e.stats.Preemptions++
	e.waiting = slices.Insert(e.waiting, 0, r)
}

// admit moves waiting requests into the batch, first come first served; one
// that waits for an adapter slot lets others pass.
func (e *Engine) admit(budget int) {
	active := e.activeAdapters()
	kept := e.waiting[:0]
	full := false
	for i, r := range e.waiting {
		if full || budget <= 0 || len(e.running) >= e.cfg.MaxSeqs {
			kept = append(kept, e.waiting[i:]...)
			break
		}
		if e.cfg.LoRA && r.adapter > 0 && active&(1<<r.adapter) == 0 && bits(active) >= e.cfg.MaxLoRAs {
			e.deferred++
			kept = append(kept, r)
			continue
		}
		hit := e.lookup(r)
		need := e.blocksFor(r.toCompute + 1 - hit)
		if need > e.free {
			full = true
			kept = append(kept, r)
			continue
		}
		e.start(r, hit, need)
		active |= 1 << r.adapter
		r.chunk = min(r.toCompute-hit, budget)
		budget -= r.chunk
	}
	clear(e.waiting[len(kept):])
	e.waiting = kept
}

func (e *Engine) start(r *request, hit, need int) {
	r.blocks = need
	e.free -= need
	r.computed = hit
	r.cached = hit
	if r.preemptions == 0 {
		// Lookups after a preemption are not part of the public counters.
		r.admitted = e.clock
		if e.cfg.PrefixCaching {
			e.stats.PrefixQueries += float64(r.prompt)
			e.stats.PrefixHits += float64(hit)
			e.stats.PrefixQueryBlocks += float64(r.prompt / e.cfg.BlockSize)
			e.stats.PrefixHitBlocks += float64(hit / e.cfg.BlockSize)
		}
	}
	e.running = append(e.running, r)
}

// lookup returns how many tokens of the prompt are already in the cache: full
// blocks of a shared prefix that some request has computed before, and never
// the whole prompt, since its last token must be computed to get a result.
func (e *Engine) lookup(r *request) int {
	if !e.cfg.PrefixCaching || r.prefix < 0 || !e.warm[r.prefix] {
		return 0
	}
	shared := min(prefixLengths[r.prefix], r.prompt-1)
	return shared / e.cfg.BlockSize * e.cfg.BlockSize
}

func (e *Engine) blocksFor(tokens int) int {
	return (tokens + e.cfg.BlockSize - 1) / e.cfg.BlockSize
}

// activeAdapters is the set of adapters that run, one bit each; bit 0 is the
// base model.
func (e *Engine) activeAdapters() uint {
	var active uint
	for _, r := range e.running {
		active |= 1 << r.adapter
	}
	return active
}

// bits counts adapters, without the base model.
func bits(set uint) int {
	n := 0
	for set >>= 1; set > 0; set >>= 1 {
		n += int(set & 1)
	}
	return n
}

func adapterList(set uint) string {
	var names []string
	for i, name := range adapterNames {
		if set&(2<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// rollRates closes the ten-second windows that end at or before t.
func (e *Engine) rollRates(t float64) {
	const window = 10.0
	if t-e.ratesAt < window {
		return
	}
	e.stats.PromptRate = (e.stats.PromptTokens - e.promptAt) / window
	e.stats.GenerationRate = (e.stats.GenerationTokens - e.genAt) / window
	e.promptAt, e.genAt = e.stats.PromptTokens, e.stats.GenerationTokens
	e.ratesAt += window
	if t-e.ratesAt >= window {
		// Whole windows without a step.
		e.stats.PromptRate, e.stats.GenerationRate = 0, 0
		e.ratesAt += window * math.Floor((t-e.ratesAt)/window)
	}
}
