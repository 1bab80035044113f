package traffic

import (
	"math"
	"math/rand/v2"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// assistant is the fit of conversations with a coding assistant. Conversations differ: the
// values of one are correlated by the shares alike.
type assistant struct {
	// rate is the number of requests per second of all conversations together, if their
	// recorded times were laid side by side for a day.
	rate float64
	// shared is the length of the instructions that begin all prompts, first that of the rest
	// of the first prompt, turns the number of turns.
	shared, first, turns law
	// extra is what a prompt has more than the one before and its answer, opening the same in
	// the first turns, which read most files.
	opening, extra, output, think       law
	extraAlike, outputAlike, thinkAlike float64
	// turnsWithExtra is the correlation of the number of turns with how much they add.
	turnsWithExtra float64
	// A share of turns finds only a part of the blocks of the one before: kept, of 1.
	edited float64
	kept   law

	blockTokens, most int
}

// openingTurns is how many turns add what the opening has.
const openingTurns = 4

func (s *assistant) generate(seed uint64, rate, seconds float64) *engine.Traffic {
	rng := newRandom(seed, "assistant")
	t := &engine.Traffic{BlockTokens: s.blockTokens}
	// All users have the same version of the assistant.
	shared := length(s.shared.at(0.1+0.8*rng.Float64()), s.most)
	for requests := 0; requests < int(rate*seconds+0.5) || requests == 0; {
		c := s.conversation(rng, shared)
		t.Conversations = append(t.Conversations, c)
		requests += len(c.Turns)
	}
	return t
}

// conversation makes one whose prompts fit. The trace has only such, so the number of turns
// stays and the rest is drawn again.
func (s *assistant) conversation(rng *rand.Rand, shared int32) engine.Conversation {
	const attempts = 3
	zTurns := rng.NormFloat64()
	turns := int(s.turns.drawLike(rng, zTurns, 1) + 0.5)
	for attempt := 1; ; attempt++ {
		// Many turns fit only where each adds little.
		zExtra := s.turnsWithExtra*zTurns + math.Sqrt(1-s.turnsWithExtra*s.turnsWithExtra)*rng.NormFloat64()
		all := s.conversationOf(rng, shared, turns, zExtra)
		if len(all) == turns || attempt == attempts {
			return engine.Conversation{Shared: shared, Turns: all}
		}
	}
}

// conversationOf returns so many turns, or fewer if the prompts get too long.
func (s *assistant) conversationOf(rng *rand.Rand, shared int32, turns int, zExtra float64) []engine.Turn {
	zOutput, zThink := rng.NormFloat64(), rng.NormFloat64()
	all := make([]engine.Turn, 0, turns)
	prompt := min(s.most, int(shared)+int(s.first.draw(rng)))
	var runs []engine.BlockRun
	next := int32(0)
	for len(all) < turns && prompt <= s.most {
		turn := engine.Turn{Prompt: int32(prompt), Output: length(s.output.drawLike(rng, zOutput, s.outputAlike), maxTokens)}
		keep := 0
		if n := len(all); n > 0 {
			turn.Think = float64(int(s.think.drawLike(rng, zThink, s.thinkAlike) + 0.5))
			keep = int(all[n-1].Prompt) / s.blockTokens
			if rng.Float64() < s.edited {
				keep = int(s.kept.draw(rng) * float64(keep))
			}
		}
		runs, next = assistantBlocks(runs, keep, prompt/s.blockTokens, next)
		turn.Prefix = runs
		all = append(all, turn)
		// Prompts nearly never shrink within a conversation.
		extra := s.extra
		if len(all) <= openingTurns {
			extra = s.opening
		}
		prompt += max(1, int(turn.Output)+int(extra.drawLike(rng, zExtra, s.extraAlike)))
	}
	return all
}

// assistantBlocks returns the first blocks of a prompt and new ones up to its number of blocks,
// and the next new number.
func assistantBlocks(runs []engine.BlockRun, keep, blocks int, next int32) ([]engine.BlockRun, int32) {
	var result []engine.BlockRun
	have := 0
	for _, r := range runs {
		n := min(keep-have, blocks-have, int(r.Last-r.First)+1)
		if n <= 0 {
			break
		}
		result = append(result, engine.BlockRun{First: r.First, Last: r.First + int32(n) - 1})
		have += n
	}
	if missing := int32(blocks - have); missing > 0 {
		result = appendNew(result, next, missing)
		next += missing
	}
	return result, next
}
