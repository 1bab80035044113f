package traffic

import (
	"math"
	"math/rand/v2"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// sessions is the fit of chats of several turns, whose prompts begin with the turns before.
type sessions struct {
	rate  float64
	drift drift
	// keep has the chance that a chat goes on after its first turn, its second, and so on; the
	// last one is for all others.
	keep []float64
	// once and begun are the first prompts of chats of one turn and of longer ones.
	once, begun law
	// gap is the distance between the arrivals of two turns, in seconds, growth how many tokens
	// a prompt is longer than the one before. A share of turns changes the history, so that
	// only a part of it is found: kept, of 1.
	gap, growth, kept law
	edited            float64
	output            law
	// blockTokens is the size of blocks, most the longest prompt. The first block is common to
	// all chats.
	blockTokens, most int
}

// warmUp is how long before the traffic begins chats have begun, in seconds.
const warmUp = 3 * 3600

func (s *sessions) generate(seed uint64, rate, seconds float64) *engine.Traffic {
	starts, chats := newRandom(seed, "starts"), newRandom(seed, "chats")
	factors := s.drift.factors(newRandom(seed, "drift"), seconds)
	all := make([]engine.Arrival, 0, int(rate*seconds*1.1)+10)
	c := chat{fit: s, rng: chats, next: 1}
	begin := rate / s.turns()
	for at := -float64(warmUp); ; {
		factor := factors[0]
		if at > 0 {
			factor = factors[min(len(factors)-1, int(at/driftStep))]
		}
		if at += starts.ExpFloat64() / (begin * factor); at >= seconds {
			break
		}
		all = c.generate(all, at, seconds)
	}
	t := finishArrivals(all, seconds)
	t.BlockTokens = s.blockTokens
	return t
}

// turns is the mean number of turns.
func (s *sessions) turns() float64 {
	sum, alive := 1.0, 1.0
	last := len(s.keep) - 1
	for _, p := range s.keep[:last] {
		alive *= p
		sum += alive
	}
	return sum + alive*s.keep[last]/(1-s.keep[last])
}

// chat generates one chat after the other.
type chat struct {
	fit *sessions
	rng *rand.Rand
	// next is the number of the next new block.
	next int32
}

// generate adds the turns of a chat that fall between 0 and seconds.
func (c *chat) generate(all []engine.Arrival, at, seconds float64) []engine.Arrival {
	s := c.fit
	client := c.next
	goesOn := c.rng.Float64() < s.keep[0]
	first := s.once
	if goesOn {
		first = s.begun
	}
	prompt := length(first.draw(c.rng), s.most)
	runs := c.extend([]engine.BlockRun{{First: 0, Last: 0}}, 1, prompt)
	for turn := 1; ; turn++ {
		output := length(s.output.draw(c.rng), maxTokens)
		if at >= 0 {
			all = append(all, engine.Arrival{At: at, Prompt: prompt, Output: output, Client: client, Prefix: runs})
		}
		at += s.gap.draw(c.rng)
		if !goesOn || at >= seconds {
			return all
		}
		// A block that was partly filled is another one when it is full.
		whole := int(prompt) / s.blockTokens
		prompt = length(max(float64(s.blockTokens), float64(prompt)+s.growth.draw(c.rng)), s.most)
		if c.rng.Float64() < s.edited {
			whole = int(float64(whole) * s.kept.draw(c.rng))
		}
		runs = c.extend(runs, max(1, min(whole, int(prompt)/s.blockTokens)), prompt)
		goesOn = c.rng.Float64() < s.keep[min(turn, len(s.keep)-1)]
	}
}

// extend returns the first blocks of a prompt and new ones for the rest of it.
func (c *chat) extend(runs []engine.BlockRun, keep int, prompt int32) []engine.BlockRun {
	result := make([]engine.BlockRun, 0, len(runs)+1)
	for _, r := range runs {
		n := min(keep, int(r.Last-r.First)+1)
		if n == 0 {
			break
		}
		result = append(result, engine.BlockRun{First: r.First, Last: r.First + int32(n) - 1})
		keep -= n
	}
	have := 0
	for _, r := range result {
		have += int(r.Last-r.First) + 1
	}
	missing := int32(math.Ceil(float64(prompt)/float64(c.fit.blockTokens))) - int32(have)
	if missing > 0 {
		result = appendNew(result, c.next, missing)
		c.next += missing
	}
	return result
}

// appendNew adds so many blocks that begin with next.
func appendNew(runs []engine.BlockRun, next, missing int32) []engine.BlockRun {
	if n := len(runs); n > 0 && runs[n-1].Last == next-1 {
		runs[n-1].Last += missing
		return runs
	}
	return append(runs, engine.BlockRun{First: next, Last: next + missing - 1})
}
