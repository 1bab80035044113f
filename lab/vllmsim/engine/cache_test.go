package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFreeBlocksAreTakenLongestFreeFirstAndTheEndOfATextBeforeItsBeginning(t *testing.T) {
	p := newBlockPool(6) // Blocks 1 to 5.
	a := []int32{p.take(), p.take()}
	b := []int32{p.take(), p.take()}
	require.Equal(t, [][]int32{{1, 2}, {3, 4}}, [][]int32{a, b})
	p.release(b)
	p.release(a)
	var order []int32
	for p.free > 0 {
		order = append(order, p.take())
	}
	assert.Equal(t, []int32{5, 4, 3, 2, 1}, order)
}

func TestAFreeBlockIsFoundUntilItIsTaken(t *testing.T) {
	p := newBlockPool(3)
	b := p.take()
	p.name(b, sharedKey|7)
	p.release([]int32{b})
	require.Equal(t, b, p.find(sharedKey|7))
	p.hold(b)
	assert.Equal(t, 1, p.free, "found blocks are not free any more")
	p.release([]int32{b})
	p.take() // The other one, free for longer.
	assert.Equal(t, b, p.find(sharedKey|7))
	p.take()
	assert.Zero(t, p.find(sharedKey|7))
}

func TestPrefixHitsAreWholeBlocksAndNeverTheWholePrompt(t *testing.T) {
	for _, c := range []struct {
		name               string
		prompt, shared     int
		again, sharedAgain int
		want               float64
	}{
		{"nothing in common", 100, 0, 100, 0, 0},
		{"60 tokens in common are 3 blocks of 16", 100, 60, 100, 60, 48},
		{"64 tokens in common are 4 blocks", 100, 64, 100, 64, 64},
		{"of 64 equal tokens the last is computed, and so its block", 64, 64, 64, 64, 48},
		{"one token more and all blocks are found", 64, 64, 65, 64, 64},
		{"less than a block in common", 100, 15, 100, 15, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := start(t, bare(fixed(0, 1, 1)))
			send(s, c.prompt, 3, beginning(5, c.shared))
			s.AdvanceTo(1)
			send(s, c.again, 3, beginning(5, c.sharedAgain))
			s.AdvanceTo(2)
			st := s.Stats()[0]
			assert.InDelta(t, c.want, st.PrefixHits, 0)
			assert.InDelta(t, c.want, st.PromptCached, 0)
			assert.InDelta(t, c.prompt+c.again, st.PrefixQueries, 0)
			assert.InDelta(t, c.prompt/16+c.again/16, st.PrefixQueryBlocks, 0)
			assert.InDelta(t, c.want/16, st.PrefixHitBlocks, 0)
			assert.InDelta(t, float64(c.prompt+c.again)-c.want, st.PrefillComputed.Sum, 0)
			assert.InDelta(t, c.want, s.Outcomes()[1].Cached, 0)
		})
	}
}

func TestAFoundPrefixSavesTheTimeOfComputingIt(t *testing.T) {
	s := start(t, bare(fixed(0, 1, 1)))
	send(s, 8001, 2, beginning(1, 8000))
	s.AdvanceTo(1)
	send(s, 8001, 2, beginning(1, 8000))
	s.AdvanceTo(2)
	outcomes := s.Outcomes()
	assert.InDelta(t, 0.18, outcomes[0].FirstToken, 0.01)
	assert.InDelta(t, Llama8B().StepTime(rest(1, 8000), Nominal()), outcomes[1].FirstToken, 1e-9)
}

func TestAnotherBeginningAnotherAdapterOrNoCachingFindsNothing(t *testing.T) {
	hits := func(cfg Config, second ...func(*request)) float64 {
		s := start(t, cfg)
		send(s, 200, 2, beginning(1, 128))
		s.AdvanceTo(1)
		send(s, 200, 2, second...)
		s.AdvanceTo(2)
		return s.Stats()[0].PrefixHits
	}
	cfg := bare(fixed(0, 1, 1), func(c *Config) { c.MaxLoRAs = 2 })
	assert.InDelta(t, 128, hits(cfg, beginning(1, 128)), 0)
	assert.Zero(t, hits(cfg, beginning(2, 128)))
	assert.Zero(t, hits(cfg, beginning(1, 128), func(r *request) { r.adapter = 1 }))
	cfg.NoPrefixCaching = true
	assert.Zero(t, hits(cfg, beginning(1, 128)))
}

func TestTheBeginningThatWasNotUsedForLongestIsForgottenFirst(t *testing.T) {
	// 52 blocks; each request takes 20 blocks of beginning and one more.
	s := start(t, bare(fixed(0, 1, 1), func(c *Config) { c.Blocks, c.MaxModelLen = 53, 512 }))
	ask := func(prefix int) float64 {
		before := s.Stats()[0].PrefixHits
		send(s, 321, 2, beginning(prefix, 320))
		s.AdvanceTo(s.now + 1)
		check(t, s)
		return s.Stats()[0].PrefixHits - before
	}
	assert.Zero(t, ask(1))
	assert.Zero(t, ask(2))
	assert.InDelta(t, 320, ask(1), 0, "now 2 is the older one")
	assert.Zero(t, ask(3))
	assert.InDelta(t, 320, ask(1), 0)
	// 3 took the 9 unused blocks, the last block of the first
	// request, and of the second its last 11. Asking for 1 again took one more.
	assert.InDelta(t, 9*16, ask(2), 0)
}

func TestRetriesOfABlockedRequestCountOnlyInOldVersions(t *testing.T) {
	queries := func(recount bool) float64 {
		s := start(t, bare(fixed(0, 1, 1), func(c *Config) {
			c.Blocks, c.MaxModelLen, c.Semantics.RecountBlocked = 33, 512, recount
		}))
		send(s, 300, 50)
		send(s, 300, 5)
		s.AdvanceTo(10)
		require.Len(t, s.Outcomes(), 2)
		return s.Stats()[0].PrefixQueries
	}
	assert.InDelta(t, 600, queries(false), 0)
	// The first runs for 50 steps; while it decodes, the second is looked up before
	// each of 49 steps, and in the first one too.
	assert.InDelta(t, 600+50*300, queries(true), 0)
}

// What a waiting request found is remembered; the cache changes under it.
func TestARememberedLookupIsThatOfTheCacheAsItIs(t *testing.T) {
	var same []Arrival
	for i := range int32(60) {
		// Ten conversations that grow, with prompts of up to 4000 tokens.
		same = append(same, Arrival{Prompt: 64 * (i + 1), Output: 100, Prefix: []BlockRun{{1000 * (i % 10), 1000*(i%10) + i}}})
	}
	tr := traffic(64, same...)
	s := start(t, bare(Workload{Traffic: tr, Speed: 20}, func(c *Config) { c.Blocks, c.MaxModelLen, c.Semantics.RecountBlocked = 1100, 16384, true }))
	remembered := 0
	for at := 0.0; at < 100; at += 0.2 {
		s.AdvanceTo(at)
		c := s.engines[0]
		if !c.waiting.empty() && len(c.waiting.first().found) > 0 {
			remembered++
		}
		check(t, s)
	}
	assert.Greater(t, remembered, 10)
	assert.Positive(t, s.States()[0].Preemptions)
}

func TestUtilizationLeavesOutTheNullBlock(t *testing.T) {
	s := start(t, bare(fixed(0, 1, 1), func(c *Config) { c.Blocks, c.MaxModelLen = 101, 1600 }))
	send(s, 320, 1000)
	s.AdvanceTo(0.05)
	held := len(s.engines[0].running[0].table)
	assert.InDelta(t, 21, held, 0, "20 blocks of prompt and one for the output")
	assert.InDelta(t, 0.21, s.Stats()[0].KVUsage, 1e-12)
}

func TestPreemptionHappensExactlyWhenBlocksRunOut(t *testing.T) {
	// Two requests of 160 + 160 tokens need 20 blocks each at their end.
	run := func(blocks int) (*Server, []Outcome) {
		s := start(t, bare(fixed(0, 1, 1), func(c *Config) { c.Blocks, c.MaxModelLen = blocks, 320 }))
		send(s, 160, 160)
		send(s, 160, 160)
		for at := 0.01; at < 10; at += 0.1 {
			s.AdvanceTo(at)
			check(t, s)
		}
		outcomes := s.Outcomes()
		return s, outcomes
	}
	// The last token is never put into the cache: 319 tokens are 20 blocks.
	s, outcomes := run(41)
	assert.Zero(t, s.Stats()[0].Preemptions)
	require.Len(t, outcomes, 2)
	s, outcomes = run(40)
	assert.InDelta(t, 1, s.Stats()[0].Preemptions, 0)
	require.Len(t, outcomes, 2)
	assert.Equal(t, []int{0, 1}, []int{outcomes[0].Preemptions, outcomes[1].Preemptions}, "the newest is the victim")
	assert.Equal(t, []int{160, 160}, []int{outcomes[0].Output, outcomes[1].Output})
}

func TestAPreemptedRequestComputesAgainWhatItCannotFind(t *testing.T) {
	run := func(caching bool) (*request, *Server) {
		s := start(t, bare(fixed(0, 1, 1), func(c *Config) {
			c.Blocks, c.MaxModelLen, c.NoPrefixCaching, c.FlopsCounters = 40, 320, !caching, true
		}))
		send(s, 160, 160)
		r := send(s, 160, 160)
		s.AdvanceTo(20)
		require.Equal(t, 1, r.preemptions)
		return r, s
	}
	// Every token is computed once, but the last of each: 2 x 319. The victim is
	// preempted when the first one wants its 20th block, with 305 tokens: the 304
	// computed ones are 19 blocks.
	_, without := run(false)
	// 320 of twice 160 prompt tokens and decode steps, then 305 tokens anew.
	nominal := Llama8B()
	flops := func(s *Server) float64 { return s.Stats()[0].Flops }
	again := 304.0*nominal.FlopsPerToken + 4*32*4096*305*305/2
	plain := start(t, bare(fixed(0, 1, 1), func(c *Config) { c.Blocks, c.MaxModelLen, c.FlopsCounters = 41, 320, true }))
	send(plain, 160, 160)
	send(plain, 160, 160)
	plain.AdvanceTo(20)
	assert.InEpsilon(t, flops(plain)+again, flops(without), 1e-3)
	_, with := run(true)
	assert.Less(t, flops(with), flops(without), "some of its freed blocks were still there")
	assert.Greater(t, flops(with), flops(plain))
}

func TestThePreemptionCounterMovesWithTheVictimsNextToken(t *testing.T) {
	s := start(t, bare(fixed(0, 1, 1), func(c *Config) { c.Blocks, c.MaxModelLen = 40, 320 }))
	send(s, 160, 160)
	r := send(s, 160, 160)
	for r.preemptions == 0 {
		s.AdvanceTo(s.now + 0.001)
	}
	tokens := r.generated
	assert.Zero(t, s.Stats()[0].Preemptions)
	s.AdvanceTo(s.now + 0.01)
	assert.Equal(t, 1, s.Stats()[0].WaitingCapacity)
	for r.generated == tokens {
		assert.Zero(t, s.Stats()[0].Preemptions)
		s.AdvanceTo(s.now + 0.001)
	}
	assert.InDelta(t, 1, s.Stats()[0].Preemptions, 0)
}

func TestNoRequestIsAdmittedInAStepThatPreempts(t *testing.T) {
	// The third has one block to ask for, which the victim's leave free.
	s := start(t, bare(fixed(0, 1, 1), func(c *Config) { c.Blocks, c.MaxModelLen = 40, 320 }))
	send(s, 160, 160)
	victim := send(s, 160, 160)
	for victim.preemptions == 0 {
		third := send(s, 10, 2)
		s.AdvanceTo(s.now + 0.004)
		if victim.preemptions > 0 {
			assert.False(t, third.started && third.admitted == s.engines[0].lastEnd)
		}
		check(t, s)
	}
	s.AdvanceTo(s.now + 5)
	for _, o := range s.Outcomes() {
		assert.Equal(t, EndStop, o.End)
	}
}

func TestFewerBlocksAreWithheldAndGivenBack(t *testing.T) {
	s := start(t, bare(Chat(8), func(c *Config) {
		c.Blocks, c.MaxModelLen = 2001, 4096
		c.Changes = []Change{{At: 60, Parameter: ParamBlocks, Value: 0.25}, {At: 120, Parameter: ParamBlocks, Value: 1}}
	}))
	s.AdvanceTo(59)
	assert.Equal(t, 2000, s.engines[0].pool.usable())
	before := s.Stats()[0].Preemptions
	s.AdvanceTo(119)
	check(t, s)
	assert.Equal(t, 500, s.engines[0].pool.usable())
	assert.Greater(t, s.Stats()[0].Preemptions, before)
	s.AdvanceTo(180)
	check(t, s)
	assert.Equal(t, 2000, s.engines[0].pool.usable())
}

// Lookups of preempted requests are counted when they are admitted again, and with the other
// defect of this counter each time that they are not.
func TestLookupsOfPreemptedRequestsAreCountedInSomeVersions(t *testing.T) {
	counted := func(semantics Semantics) (queries, once float64) {
		s := start(t, bare(fixed(12, 300, 400), func(c *Config) {
			c.Blocks, c.MaxModelLen, c.Semantics = 750, 4096, semantics
		}))
		s.AdvanceTo(60)
		require.Positive(t, s.States()[0].Preemptions)
		return s.Stats()[0].PrefixQueries, float64(s.States()[0].LookedUp)
	}
	none, once := counted(Semantics{})
	admitted, _ := counted(Semantics{RecountPreempted: true})
	blocked, _ := counted(Semantics{RecountBlocked: true})
	both, _ := counted(Semantics{RecountPreempted: true, RecountBlocked: true})
	assert.InDelta(t, once, none, 0)
	assert.Greater(t, admitted, none)
	assert.Greater(t, blocked, none)
	assert.Greater(t, both-blocked, admitted-none, "the admissions that failed")
}
