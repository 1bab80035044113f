package engine

import "fmt"

// Traffic is recorded or generated traffic: what clients sent and when, never how fast
// it was served. It is read only, so that several runs can share one.
type Traffic struct {
	Name string
	// Arrivals are requests of an open loop, in the order of their times; Span is how long
	// they last, in seconds. After the span the traffic begins again.
	Arrivals []Arrival
	Span     float64
	// Conversations are those of a closed loop instead: a client sends the next turn when
	// it has the answer to the last one.
	Conversations []Conversation
	// BlockTokens is the number of tokens of a block of Prefix; 0 means that the traffic
	// has no blocks.
	BlockTokens int
}

// Arrival is one request of an open loop.
type Arrival struct {
	// At is in seconds since the beginning of the traffic.
	At             float64
	Prompt, Output int32
	Client         int32
	// Prefix are the blocks of the prompt in their order. Equal numbers at equal places
	// mean that everything up to the end of that block is equal.
	Prefix []BlockRun
}

// BlockRun is blocks with consecutive numbers, First and Last included.
type BlockRun struct{ First, Last int32 }

// Conversation is the turns of one client, in their order. Its block numbers are its own,
// except for the first Shared tokens, which are equal in all conversations that have as many.
type Conversation struct {
	Turns  []Turn
	Shared int32
}

// Turn is one request of a conversation.
type Turn struct {
	// Think is the pause between the last answer and this request, in seconds.
	Think          float64
	Prompt, Output int32
	Prefix         []BlockRun
}

// defaultModelLen is max_model_len where it is not given.
const defaultModelLen = 16384

// ModelLen returns the max_model_len with which a cache of so many tokens serves the longest
// request of the traffic, in steps of 1024 tokens and at least the default; or what the cache
// can hold. A nil traffic has no requests.
func (t *Traffic) ModelLen(cacheTokens int) int {
	longest := int64(0)
	if t != nil {
		t.each(func(prompt, output int32) { longest = max(longest, int64(prompt)+int64(output)) })
	}
	return max(defaultModelLen, int(min((longest+1023)/1024*1024, int64(max(0, cacheTokens)))))
}

// Longer returns how many of the requests are longer than a model length, and of how many.
func (t *Traffic) Longer(modelLen int) (longer, of int) {
	t.each(func(prompt, output int32) {
		of++
		if int(prompt)+int(output) > modelLen {
			longer++
		}
	})
	return longer, of
}

func (t *Traffic) each(f func(prompt, output int32)) {
	for i := range t.Arrivals {
		f(t.Arrivals[i].Prompt, t.Arrivals[i].Output)
	}
	for i := range t.Conversations {
		for j := range t.Conversations[i].Turns {
			f(t.Conversations[i].Turns[j].Prompt, t.Conversations[i].Turns[j].Output)
		}
	}
}

// check checks traffic that a workload replays.
func (t *Traffic) check() error {
	if t.BlockTokens < 0 {
		return fmt.Errorf("blocks of %d tokens", t.BlockTokens)
	}
	last := 0.0
	for i := range t.Arrivals {
		a := &t.Arrivals[i]
		if !(a.At >= last) {
			return fmt.Errorf("arrival %d comes at %v s, before the one before it at %v s, or before 0", i, a.At, last)
		}
		last = a.At
		if err := t.checkRequest(a.Prompt, a.Output, a.Prefix); err != nil {
			return fmt.Errorf("arrival %d: %w", i, err)
		}
	}
	if len(t.Arrivals) > 0 && !(t.Span > 0 && t.Span >= last && t.Span <= 1e9) {
		return fmt.Errorf("its span of %v s is not above 0, or shorter than its last arrival at %v s, or longer than a billion", t.Span, last)
	}
	for i := range t.Conversations {
		c := &t.Conversations[i]
		if len(c.Turns) == 0 || len(c.Turns) > maxTurns || c.Shared < 0 {
			return fmt.Errorf("conversation %d: %d turns and %d shared tokens; want 1 to %d turns, and shared tokens not below 0", i, len(c.Turns), c.Shared, maxTurns)
		}
		for j := range c.Turns {
			turn := &c.Turns[j]
			if !(turn.Think >= 0 && turn.Think <= 1e9) {
				return fmt.Errorf("conversation %d, turn %d: pause of %v s", i, j, turn.Think)
			}
			if err := t.checkRequest(turn.Prompt, turn.Output, turn.Prefix); err != nil {
				return fmt.Errorf("conversation %d, turn %d: %w", i, j, err)
			}
		}
	}
	return nil
}

func (t *Traffic) checkRequest(prompt, output int32, prefix []BlockRun) error {
	if prompt < 0 || output < 0 {
		return fmt.Errorf("%d prompt and %d output tokens", prompt, output)
	}
	blocks := 0
	for _, run := range prefix {
		if run.First < 0 || run.Last < run.First {
			return fmt.Errorf("blocks %d to %d are no run", run.First, run.Last)
		}
		blocks += int(run.Last-run.First) + 1
	}
	if blocks > 0 && (t.BlockTokens == 0 || (blocks-1)*t.BlockTokens >= max(1, int(prompt))) {
		return fmt.Errorf("%d blocks of %d tokens are more than a prompt of %d tokens has", blocks, t.BlockTokens, prompt)
	}
	return nil
}

// leadingSeen returns for each arrival how many blocks at its beginning are in prompts
// before it.
func (t *Traffic) leadingSeen() []int32 {
	out := make([]int32, len(t.Arrivals))
	type blocks struct{ number, place int32 }
	seen := map[blocks]struct{}{}
	for i := range t.Arrivals {
		place, leading := int32(0), true
		for _, run := range t.Arrivals[i].Prefix {
			for n := run.First; ; n++ {
				key := blocks{n, place}
				_, there := seen[key]
				leading = leading && there
				if leading {
					out[i]++
				}
				if !there {
					seen[key] = struct{}{}
				}
				place++
				if n == run.Last {
					break
				}
			}
		}
	}
	return out
}

func blockCount(prefix []BlockRun) int {
	n := 0
	for _, run := range prefix {
		n += int(run.Last-run.First) + 1
	}
	return n
}
