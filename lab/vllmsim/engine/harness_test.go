package engine

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// fixed is a workload of equal requests without anything unusual.
func fixed(rate float64, prompt, output int) Workload {
	return Workload{Rate: rate, Prompt: Lengths{Median: float64(prompt)}, Output: Lengths{Median: float64(output)}}
}

// bare is an 8B server that keeps its outcomes and whose front end takes no time.
func bare(w Workload, change ...func(*Config)) Config {
	cfg := Config{Seed: 1, Model: Llama8B(), Workload: w, KeepOutcomes: true}
	for _, c := range change {
		c(&cfg)
	}
	return cfg
}

// chunks is a step of nothing but so many whole prompts.
func chunks(n, tokens int) (b Batch) {
	for range n {
		b.AddChunk(tokens, 0)
	}
	return b
}

// rest is a step that computes the last tokens of a prompt.
func rest(tokens, before int) (b Batch) {
	b.AddChunk(tokens, before)
	return b
}

// decodes is a step of so many sequences that generate with a context each.
func decodes(n, context int) (b Batch) {
	for range n {
		b.AddDecode(1, context)
	}
	return b
}

// roofline is a model without measurements: an 8B model on an H100 with guessed efficiencies.
func roofline() Model {
	return Model{
		Name: "formula", WeightBytes: 15.0e9, FlopsPerToken: 15.0e9, KVBytes: 131072, Layers: 32, Width: 4096, GPUs: 1,
		StepSeconds: 1.5e-3, SequenceSeconds: 5e-6, Bandwidth: 3.35e12, Compute: 989e12,
		WeightEfficiency: 0.80, KVEfficiency: 0.75, ComputeEfficiency: 0.55, AttentionEfficiency: 0.40, Blocks: 28500,
	}
}

func start(t *testing.T, cfg Config) *Server {
	t.Helper()
	s, err := New(cfg)
	require.NoError(t, err)
	return s
}

// send lets one request arrive now, whatever the workload draws.
func send(s *Server, prompt, output int, change ...func(*request)) *request {
	r := &request{
		id: callersFirst + s.sentHere, arrived: s.now, prompt: prompt, output: output, stopAt: output, end: EndStop,
		prefix: -1, remote: 1, leaves: math.Inf(1), streams: true,
	}
	s.sentHere++
	for _, c := range change {
		c(r)
	}
	s.submit(r)
	return r
}

// beginning makes the first tokens of a request's prompt common.
func beginning(prefix, shared int) func(*request) {
	return func(r *request) { r.prefix, r.shared = prefix, shared }
}

// checkClients counts anew what each client of a closed loop does: it pauses, waits for an
// answer, waits to send a request again, or takes no part, and never two of these.
func checkClients(t *testing.T, s *Server) {
	t.Helper()
	doing := map[*client]int{}
	for _, r := range s.live {
		doing[r.sender]++
	}
	for _, d := range s.sends {
		if d.before != nil {
			doing[d.before.sender]++
			continue
		}
		doing[d.client]++
	}
	for _, c := range s.loop.clients {
		if c.idle {
			doing[c]++
		}
		if doing[c] != 1 {
			require.Failf(t, "a client is lost or there twice", "client %d does %d things", c.number, doing[c])
		}
	}
}

// check holds everything that must be true of a server at any moment.
func check(t *testing.T, s *Server) {
	t.Helper()
	if s.live != nil {
		checkClients(t, s)
	}
	for _, c := range s.engines {
		checkBlocks(t, c)
	}
	for i, st := range s.Stats() {
		finished := 0.0
		for _, n := range st.Finished {
			finished += n
		}
		for name, n := range map[string]uint64{
			"end to end": st.EndToEnd.Count, "queue": st.Queue.Count, "inference": st.Inference.Count, "prefill": st.Prefill.Count,
			"decode": st.Decode.Count, "prompt": st.PromptLength.Count, "output": st.GenerationLength.Count,
			"token mean": st.TokenMean.Count, "computed": st.PrefillComputed.Count, "preemptions": st.RequestPreemptions.Count,
		} {
			require.InDelta(t, finished, n, 0, "engine %d: one observation of %s per finished request", i, name)
		}
		endedUnseen, unseenPrompts := s.endedWithoutToken(i)
		if s.countedSince == 0 && s.members == 0 {
			require.GreaterOrEqual(t, st.FirstToken.Count+endedUnseen, st.EndToEnd.Count)
			require.GreaterOrEqual(t, st.PromptTokens+unseenPrompts, st.PromptLength.Sum)
			require.GreaterOrEqual(t, st.GenerationTokens, st.GenerationLength.Sum)
		}
		require.GreaterOrEqual(t, st.PromptTokens, st.PromptCached)
		require.GreaterOrEqual(t, st.PromptCached, st.PromptExternal)
		require.GreaterOrEqual(t, st.PrefixQueries, st.PrefixHits)
		require.InDelta(t, st.PrefixHits, st.PrefixHitBlocks*float64(s.cfg.BlockSize), 1e-6)
		require.InEpsilon(t, st.Inference.Sum+1, st.Prefill.Sum+st.Decode.Sum+1, 1e-9)
		unguarded := s.cfg.Semantics.UnguardedDurations && (s.cfg.Semantics.EngineAbortsCounted || s.cfg.Semantics.AbortsCounted)
		require.True(t, unguarded || st.EndToEnd.Sum >= (st.Queue.Sum+st.Inference.Sum)*(1-1e-9))
		require.GreaterOrEqual(t, st.KVUsage, 0.0)
		require.LessOrEqual(t, st.KVUsage, 1.0)
		require.LessOrEqual(t, st.Running, s.cfg.MaxSeqs)
		require.GreaterOrEqual(t, st.Running, 0)
		require.GreaterOrEqual(t, st.WaitingCapacity, 0)
		accepted := 0.0
		for _, n := range st.AcceptedPerPosition {
			accepted += n
		}
		require.InDelta(t, st.AcceptedTokens, accepted, 0)
		require.GreaterOrEqual(t, st.DraftTokens, st.AcceptedTokens)
		if len(s.cfg.Speculation.Acceptance) == 0 && s.head == len(s.reports) && s.countedSince == 0 && s.members == 0 {
			require.InDelta(t, st.GenerationTokens, float64(st.InterToken.Count+st.FirstToken.Count), float64(s.leftUnseen())+float64(endedUnseen),
				"every token but the first has a distance to the one before")
		}
	}
}

// endedWithoutToken is how many requests of an engine ended before their first token, and
// the length of their prompts.
func (s *Server) endedWithoutToken(engine int) (n uint64, prompts float64) {
	for _, o := range s.outcomes {
		if o.Engine == engine && o.FirstToken == 0 && o.End != EndRefused {
			n++
			prompts += float64(o.Prompt)
		}
	}
	return n, prompts
}

// leftUnseen is how many requests left between the engine's first token and
// the front end's work on it.
func (s *Server) leftUnseen() int {
	n := 0
	for _, o := range s.outcomes {
		if (o.End == EndLeft || o.End == EndAborted) && o.FirstToken == 0 && o.Output > 0 {
			n++
		}
	}
	return n
}

// checkLookup looks up a request that was looked up before, without what was found then.
func checkLookup(t *testing.T, c *core, r *request) {
	t.Helper()
	remembered := slices.Clone(c.lookup(r))
	found := r.found
	r.found = nil
	if !slices.Equal(c.lookup(r), remembered) {
		require.Fail(t, "a lookup finds something else than the one before it, and one that remembers nothing")
	}
	r.found = found
}

// checkBlocks counts the users of every block anew.
func checkBlocks(t *testing.T, c *core) {
	t.Helper()
	users := make([]int32, len(c.pool.blocks))
	for _, list := range [][]*request{c.running, c.fetching} {
		for _, r := range list {
			for _, b := range r.table {
				users[b]++
			}
		}
	}
	for _, list := range [][]*request{c.preempted, c.skipped, c.waiting.live(), c.inbox.live()} {
		for _, r := range list {
			if len(r.table) > 0 {
				require.Fail(t, "a request in the queue has blocks")
			}
		}
	}
	free, withheld := 0, 0
	for b := 1; b < len(users); b++ {
		switch refs := c.pool.blocks[b].refs; {
		case refs == -1:
			withheld++
			refs = 0
			fallthrough
		default:
			if refs == 0 && c.pool.blocks[b].refs == 0 {
				free++
			}
			if users[b] != refs {
				require.Failf(t, "a block is lost or held twice", "block %d: %d users, counted as %d", b, users[b], refs)
			}
		}
	}
	require.Zero(t, users[0], "the null block is not used")
	require.Equal(t, free, c.pool.free)
	require.Equal(t, withheld, c.pool.withheld)
	listed := 0
	for b := c.pool.blocks[0].next; b != 0; b = c.pool.blocks[b].next {
		if c.pool.blocks[b].refs != 0 {
			require.Fail(t, "a block in use is in the free list")
		}
		listed++
	}
	require.Equal(t, free, listed, "the free list has all free blocks")
	for b, one := range c.pool.blocks {
		if one.key&sharedKey != 0 && c.pool.find(one.key) != int32(b) {
			require.Fail(t, "a shared block is not found by its key")
		}
	}
	waits := 0
	for _, list := range [][]*request{c.preempted, c.skipped, c.waiting.live()} {
		for _, r := range list {
			if len(r.found) > 0 && !c.cfg.NoPrefixCaching {
				checkLookup(t, c, r)
			}
			if !r.gone {
				waits++
			}
		}
	}
	require.Equal(t, waits, c.queued)
	for _, r := range c.running {
		if r.computed > len(r.table)*c.cfg.BlockSize || r.computed > r.tokens {
			require.Fail(t, "computed tokens without a place or a text")
		}
	}
}
