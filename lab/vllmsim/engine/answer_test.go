package engine

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// text is what stands in a prompt or an answer, token by token. Tokens below ownTokens are
// equal in all conversations.
type text []uint32

const ownTokens = 1 << 20

// said is a conversation with its words.
type said struct{ prompts, answers []text }

// speak makes a conversation of random length and content. Its prompts begin with the common
// tokens. Most turns begin with the prompt and the answer before them. In others the prompt
// was changed at the beginning of a block of the traffic, or has no answers in it.
func speak(rng *rand.Rand, common, block int) said {
	next := uint32(ownTokens)
	words := func(n int) (out text) {
		for range n {
			out = append(out, next)
			next++
		}
		return out
	}
	var s said
	prompt := text{}
	for i := range uint32(common) {
		prompt = append(prompt, i)
	}
	prompt = append(prompt, words(2*block+rng.IntN(300))...)
	for range 3 + rng.IntN(5) {
		answer := words(1 + rng.IntN(150))
		s.prompts, s.answers = append(s.prompts, prompt), append(s.answers, answer)
		switch u := rng.Float64(); {
		case u < 0.15:
			places := (len(prompt) - common) / block
			prompt = slices.Concat(prompt[:len(prompt)/block*block-(1+rng.IntN(places-1))*block], words(1+rng.IntN(200)))
		case u < 0.3 && block == 16 && len(answer) > 3:
			prompt = slices.Concat(prompt, words(1+rng.IntN(len(answer)-2)))
		case u < 0.4:
			prompt = slices.Concat(prompt, answer)
		default:
			prompt = slices.Concat(prompt, answer, words(1+rng.IntN(200)))
		}
	}
	return s
}

// numbered is the conversation as traffic has it: full blocks, and sometimes the one that the
// prompt fills partly, have equal numbers where everything up to their end is equal.
func (s said) numbered(rng *rand.Rand, common, block int, partly float64) Conversation {
	out := Conversation{Shared: int32(common)}
	numbers := map[[32]byte]int32{}
	for i, prompt := range s.prompts {
		turn := Turn{Prompt: int32(len(prompt)), Output: int32(len(s.answers[i])), Think: 1}
		sums := beginnings(prompt, block, 0)
		if len(prompt)%block > 0 && rng.Float64() < partly {
			sums = append(sums, sha256.Sum256(binary.LittleEndian.AppendUint32(nil, uint32(i))))
		}
		for _, sum := range sums {
			n, known := numbers[sum]
			if !known {
				n = int32(len(numbers))
				numbers[sum] = n
			}
			if last := len(turn.Prefix) - 1; last >= 0 && turn.Prefix[last].Last == n-1 {
				turn.Prefix[last].Last = n
			} else {
				turn.Prefix = append(turn.Prefix, BlockRun{n, n})
			}
		}
		out.Turns = append(out.Turns, turn)
	}
	return out
}

// beginnings identify a text up to the end of each full block. Tokens of different owners differ.
func beginnings(words text, block int, owner uint64) (out [][32]byte) {
	sum := [32]byte{}
	for len(words) >= block {
		b := sum[:]
		for _, word := range words[:block] {
			b = binary.LittleEndian.AppendUint32(b, word)
			if word >= ownTokens {
				b = binary.LittleEndian.AppendUint64(b, owner)
			}
		}
		sum = sha256.Sum256(b)
		out = append(out, sum)
		words = words[block:]
	}
	return out
}

// A server whose cache forgets nothing finds what a cache of the words themselves finds.
func TestATurnFindsThePromptAndTheAnswerBeforeIt(t *testing.T) {
	for _, c := range []struct {
		block, size, common int
		partly, adapters    float64
	}{{16, 16, 0, 0, 0.2}, {16, 16, 0, 0.5, 0}, {64, 16, 100, 0.5, 0}, {64, 32, 128, 0.5, 0}, {16, 32, 40, 0, 0.2}, {16, 64, 16, 0.5, 0}} {
		rng := rand.New(rand.NewPCG(uint64(c.block), uint64(c.size)))
		tr := &Traffic{Name: "talks", BlockTokens: c.block}
		var all []said
		for range 12 {
			all = append(all, speak(rng, c.common, c.block))
			tr.Conversations = append(tr.Conversations, all[len(all)-1].numbered(rng, c.common, c.block, c.partly))
		}
		w := Workload{Traffic: tr, Clients: 1, AdapterShare: c.adapters, Adapters: 1}
		s := start(t, bare(w, func(cfg *Config) { cfg.BlockSize, cfg.MaxLoRAs = c.size, 1 }))
		s.AdvanceTo(500)
		check(t, s)
		outcomes := s.Outcomes()
		require.Greater(t, len(outcomes), 100)
		require.Zero(t, outcomes[len(outcomes)-1].Preemptions)
		slices.SortFunc(outcomes, func(a, b Outcome) int { return cmp.Compare(a.Arrived, b.Arrived) })
		seen := map[[33]byte]bool{}
		answers := 0
		for _, o := range outcomes {
			k, turn := turnOf(o)
			which := slices.IndexFunc(tr.Conversations, func(talk Conversation) bool {
				return &talk.Turns[0] == &s.loop.of(&client{conversation: k}).Turns[0]
			})
			prompt, answer := all[which].prompts[turn], all[which].answers[turn]
			adapter := byte(0)
			if s.arrivals.draw(o.ID).u[4] < w.AdapterShare {
				adapter = 1
			}
			// Of what is in no block of the traffic nothing is known.
			prompt = prompt[:min(len(prompt), c.block*blockCount(tr.Conversations[which].Turns[turn].Prefix))]
			found, prompts := 0, beginnings(prompt, c.size, uint64(k))
			for _, sum := range prompts {
				if !seen[[33]byte(append(sum[:], adapter))] || (found+1)*c.size >= o.Prompt {
					break
				}
				found++
			}
			require.Equal(t, found*c.size, o.Cached, "blocks of %d and %d: conversation %d, turn %d", c.block, c.size, k, turn)
			// The last token of an answer is never computed.
			whole := slices.Concat(all[which].prompts[turn], answer[:len(answer)-1])
			for _, sum := range beginnings(whole, c.size, uint64(k)) {
				seen[[33]byte(append(sum[:], adapter))] = true
			}
			if turn > 0 && found > len(all[which].prompts[turn-1])/c.size {
				answers++
			}
		}
		assert.Greater(t, answers, 20)
	}
}

// What the client did not get as recorded is not in the recorded prompt of the next turn.
func TestAnAnswerThatIsNotTheRecordedOneIsNotFound(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"shorter answers":    func(c *Config) { c.Changes = []Change{{At: 0, Parameter: ParamOutputLength, Value: 0.9}} },
		"longer answers":     func(c *Config) { c.Changes = []Change{{At: 0, Parameter: ParamOutputLength, Value: 1.2}} },
		"longer prompts":     func(c *Config) { c.Changes = []Change{{At: 0, Parameter: ParamPromptLength, Value: 1.01}} },
		"a limit of tokens":  func(c *Config) { c.Workload.MaxTokens = []int{37} },
		"errors":             func(c *Config) { c.Changes = []Change{{At: 0, Parameter: ParamErrorRate, Value: 1}} },
		"clients that leave": func(c *Config) { c.Workload.LeaveLate = 1 },
		"sessions":           func(c *Config) { c.Workload.SessionShare, c.Workload.Chunks = 1, 2 },
		"choices":            func(c *Config) { c.Workload.ChoicesShare, c.Workload.Choices = 1, 2 },
		"a short model":      func(c *Config) { c.MaxModelLen = 500 },
		"no caching":         func(c *Config) { c.NoPrefixCaching = true },
		"prompts of others":  func(c *Config) { c.Changes = []Change{{At: 0, Parameter: ParamPrefixPool, Value: 1e6}} },
		"next prompt too short": func(c *Config) {
			for i := range c.Workload.Traffic.Conversations {
				for j := range c.Workload.Traffic.Conversations[i].Turns {
					c.Workload.Traffic.Conversations[i].Turns[j].Output = 66 // Of 64 that the next prompt has more.
				}
			}
		},
		"other blocks": func(c *Config) {
			for i := range c.Workload.Traffic.Conversations {
				for j := range c.Workload.Traffic.Conversations[i].Turns {
					turn := &c.Workload.Traffic.Conversations[i].Turns[j]
					last := turn.Prefix[0].Last
					turn.Prefix = []BlockRun{{1, last - 2}, {last + int32(j+1)*100, last + int32(j+1)*100 + 1}}
				}
			}
		},
		"blocks not known": func(c *Config) {
			for i := range c.Workload.Traffic.Conversations {
				for j := range c.Workload.Traffic.Conversations[i].Turns {
					c.Workload.Traffic.Conversations[i].Turns[j].Prefix[0].Last -= 2
				}
			}
		},
		"no blocks": func(c *Config) {
			c.Workload.Traffic.BlockTokens = 0
			for i := range c.Workload.Traffic.Conversations {
				for j := range c.Workload.Traffic.Conversations[i].Turns {
					c.Workload.Traffic.Conversations[i].Turns[j].Prefix = nil
				}
			}
		},
	} {
		tr := talks(9)
		for i := range tr.Conversations {
			for j := range tr.Conversations[i].Turns {
				tr.Conversations[i].Turns[j].Output = 40
			}
		}
		s := start(t, bare(Workload{Traffic: tr, Clients: 2, ThinkMost: 1}, change))
		s.AdvanceTo(100)
		checkBlocks(t, s.engines[0])
		last := map[[2]int]Outcome{}
		outcomes := s.Outcomes()
		slices.SortFunc(outcomes, func(a, b Outcome) int { return cmp.Compare(a.Arrived, b.Arrived) })
		continued := 0
		for _, o := range outcomes {
			k, _ := turnOf(o)
			conversation := [2]int{o.ID >> clientShift & (maxClients - 1), k}
			before, there := last[conversation]
			if there && (name != "clients that leave" || before.End == EndLeft) {
				continued++
				// The traffic has no other prompt that is longer.
				require.LessOrEqual(t, o.Cached, before.Prompt, name)
			}
			last[conversation] = o
		}
		assert.Greater(t, continued, 20, name)
	}
}

// A request that lost its blocks while it generated leaves its answer like any other.
func TestTheAnswerOfAPreemptedTurnIsFound(t *testing.T) {
	tr := &Traffic{Name: "one talk", BlockTokens: 64, Conversations: []Conversation{{Turns: []Turn{
		{Prompt: 520, Output: 200, Prefix: []BlockRun{{1, 8}}},
		{Prompt: 800, Output: 10, Prefix: []BlockRun{{1, 12}}, Think: 1},
	}}}}
	s := start(t, bare(Workload{Traffic: tr, Clients: 1}, func(c *Config) { c.Blocks, c.MaxModelLen = 66, 1000 }))
	s.Send(Request{Prompt: 160, Output: 400})
	s.AdvanceTo(30)
	check(t, s)
	outcomes := s.Outcomes()
	slices.SortFunc(outcomes, func(a, b Outcome) int { return cmp.Compare(a.Arrived, b.Arrived) })
	preempted := slices.IndexFunc(outcomes, func(o Outcome) bool { return o.Preemptions > 0 })
	require.NotEqual(t, -1, preempted)
	o, next := outcomes[preempted], outcomes[preempted+1]
	require.Equal(t, [2]int{520, 800}, [2]int{o.Prompt, next.Prompt})
	assert.Equal(t, (520+200-1)/16*16, next.Cached)
}
