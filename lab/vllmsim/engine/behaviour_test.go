package engine

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/observed"
)

func mean(h *observed.Histogram) float64 { return h.Sum / float64(h.Count) }

func TestOneSequenceAtATimeIsTheQueueWithConstantService(t *testing.T) {
	race.SkipSequential(t)
	// One token per request and one request per step: M/D/1, whose mean wait is
	// rho x S / (2 x (1 - rho)).
	service := Llama8B().StepTime(chunks(1, 4000), Nominal())
	for _, rho := range []float64{0.3, 0.6, 0.8} {
		s := start(t, bare(fixed(rho/service, 4000, 1), func(c *Config) { c.MaxSeqs, c.KeepOutcomes = 1, false }))
		s.AdvanceTo(150_000 * service / rho)
		st := s.Stats()[0]
		assert.InEpsilon(t, rho*service/(2*(1-rho)), mean(st.Queue), 0.04, "utilization %v", rho)
		assert.InDelta(t, service, mean(st.Prefill), 1e-9)
	}
}

func TestThroughputEndsWhereTheTokenBudgetDoes(t *testing.T) {
	// Prompts of 1024 tokens, 8 to a step of 8192; one token each.
	step := Llama8B().StepTime(chunks(8, 1024), Nominal())
	limit := 8 / step
	served := func(rate float64) (perSecond, wait float64) {
		s := start(t, bare(fixed(rate, 1024, 1)))
		s.AdvanceTo(300)
		return float64(s.Stats()[0].EndToEnd.Count) / 300, mean(s.Stats()[0].FirstToken)
	}
	below, short := served(0.7 * limit)
	assert.InEpsilon(t, 0.7*limit, below, 0.03)
	assert.Less(t, short, 1.0)
	above, long := served(1.3 * limit)
	assert.InEpsilon(t, limit, above, 0.02)
	assert.Greater(t, long, 20.0, "the queue grows without end")
}

func TestRequestsAreServedInTheOrderOfTheirArrival(t *testing.T) {
	s := start(t, bare(Chat(25), func(c *Config) { c.MaxSeqs = 32 }))
	s.AdvanceTo(300)
	admissions := map[int]float64{}
	for _, o := range s.Outcomes() {
		if o.End == EndStop || o.End == EndLength {
			admissions[o.ID] = o.Arrived + o.Queue
		}
	}
	require.Greater(t, len(admissions), 1000)
	last := 0.0
	for id := range s.serials {
		if at, ok := admissions[id]; ok {
			require.GreaterOrEqual(t, at, last-1e-9)
			last = at
		}
	}
}

func TestDecodesShareTheirStepsWithPromptsOfOthers(t *testing.T) {
	s := start(t, bare(fixed(0, 1, 1)))
	send(s, 100, 50)
	s.AdvanceTo(0.1)
	send(s, 8100, 1)
	s.AdvanceTo(2)
	outcomes := s.Outcomes()
	require.Len(t, outcomes, 2)
	// Products of 8100 tokens take 153 ms and attention over them 28 ms.
	assert.InDelta(t, 0.183, outcomes[1].MaxGap, 0.01, "one step took the whole prompt")
	assert.Less(t, outcomes[1].MeanGap, 0.015)
}

func TestAcceptedDraftsFollowTheirChances(t *testing.T) {
	s := start(t, bare(fixed(4, 100, 300), func(c *Config) { c.Speculation.Acceptance = []float64{0.8, 0.5, 0.25} }))
	s.AdvanceTo(300)
	st := s.Stats()[0]
	require.Greater(t, st.Drafts, 10_000.0)
	assert.InDelta(t, 3*st.Drafts, st.DraftTokens, 0)
	for pos, want := range []float64{0.8, 0.4, 0.1} {
		assert.InDelta(t, want, st.AcceptedPerPosition[pos]/st.Drafts, 0.01)
	}
	assert.InDelta(t, 300, mean(st.GenerationLength), 0)
	assert.InDelta(t, 1+0.8+0.4+0.1, 300/(float64(st.InterToken.Count)/float64(st.EndToEnd.Count)), 0.05,
		"distances are those of steps, each with 2.3 tokens in the mean")
}

func TestUselessDraftsCostTimeAndGiveNothing(t *testing.T) {
	lone := func(acceptance ...float64) Outcome {
		s := start(t, bare(fixed(0, 1, 1), func(c *Config) {
			c.Speculation = Speculation{Acceptance: acceptance, Seconds: 0.001 * float64(min(1, len(acceptance)))}
		}))
		send(s, 100, 100)
		s.AdvanceTo(10)
		return s.Outcomes()[0]
	}
	assert.Greater(t, lone(0, 0, 0).Ended, lone().Ended)
	assert.InEpsilon(t, lone().Ended/4, lone(1, 1, 1).Ended, 0.25, "all accepted is four tokens per step, which drafting makes 1 ms longer")
}

func TestAdaptersBeyondTheSlotsWaitAndLetOthersPass(t *testing.T) {
	s := start(t, bare(fixed(0, 1, 1), func(c *Config) { c.MaxLoRAs = 1 }))
	adapter := func(n int) func(*request) { return func(r *request) { r.adapter = n } }
	send(s, 100, 100, adapter(1))
	s.AdvanceTo(0.1)
	blocked := send(s, 100, 10, adapter(2))
	passing := send(s, 100, 10)
	same := send(s, 100, 10, adapter(1))
	s.AdvanceTo(0.3)
	st := s.Stats()[0]
	assert.Equal(t, 1, st.WaitingDeferred)
	assert.Zero(t, st.WaitingCapacity)
	assert.Equal(t, "adapter-01", st.Adapters[len(st.Adapters)-1].Running)
	assert.Equal(t, "adapter-02", st.Adapters[len(st.Adapters)-1].Waiting)
	s.AdvanceTo(5)
	assert.Less(t, passing.admitted, blocked.admitted)
	assert.Less(t, same.admitted, blocked.admitted)
	assert.Len(t, s.Outcomes(), 4)
}

func TestARemotePromptIsReadAndNotComputed(t *testing.T) {
	ask := func(failure float64) (Outcome, *observed.Stats) {
		s := start(t, bare(fixed(0, 1, 1), func(c *Config) {
			c.Transfer = Transfer{Share: 1, Latency: 0.02, BytesPerSecond: 10e9}
		}))
		send(s, 8001, 2, func(r *request) { r.remote, r.transferFails = 0, failure > 0 })
		s.AdvanceTo(0.1)
		assert.Equal(t, 0, s.Stats()[0].Running)
		s.AdvanceTo(5)
		check(t, s)
		return s.Outcomes()[0], s.Stats()[0]
	}
	read := 0.02 + 8000*131072/10e9
	o, st := ask(0)
	assert.InDelta(t, read+Llama8B().StepTime(rest(1, 8000), Nominal()), o.FirstToken, 1e-9)
	assert.InDelta(t, 8000, st.PromptExternal, 0)
	assert.InDelta(t, 8000, st.ExternalHits, 0)
	assert.InDelta(t, 8001, st.ExternalQueries, 0)
	assert.Zero(t, st.TransferFailures)

	o, st = ask(1)
	assert.InDelta(t, read+0.18, o.FirstToken, 0.01)
	assert.Zero(t, st.PromptExternal)
	assert.InDelta(t, 1, st.TransferFailures, 0)
}

func TestAStalledEngineChangesNothingAndGoesOn(t *testing.T) {
	cfg := bare(Chat(5), func(c *Config) {
		c.FrontEnd = DefaultFrontEnd()
		c.Changes = []Change{{At: 60, Parameter: ParamStall, Value: 1}, {At: 120, Parameter: ParamStall, Value: 0}}
	})
	s := start(t, cfg)
	s.AdvanceTo(61)
	before := *s.Stats()[0]
	require.Positive(t, before.Running)
	s.AdvanceTo(119.9)
	during := *s.Stats()[0]
	assert.Equal(t, before.GenerationTokens, during.GenerationTokens)
	assert.Equal(t, before.Running, during.Running)
	assert.Equal(t, before.PrefixQueries, during.PrefixQueries)
	s.AdvanceTo(180)
	assert.Greater(t, s.Stats()[0].GenerationTokens, before.GenerationTokens+1000)
	longest := 0.0
	for _, o := range s.Outcomes() {
		longest = max(longest, o.MaxGap)
	}
	assert.InDelta(t, 60, longest, 0.5)
}

func TestASleepingEngineAbortsForgetsAndLetsNewRequestsWait(t *testing.T) {
	cfg := bare(Chat(5), func(c *Config) {
		c.Workload.LeaveEarly = 0
		c.Changes = []Change{{At: 60, Parameter: ParamSleep, Value: 2}, {At: 90, Parameter: ParamSleep, Value: 0}}
	})
	s := start(t, cfg)
	s.AdvanceTo(59)
	assert.Zero(t, s.Stats()[0].SleepLevel)
	s.AdvanceTo(89)
	check(t, s)
	assert.Equal(t, 2, s.Stats()[0].SleepLevel)
	assert.Zero(t, s.Stats()[0].Running, "an empty step reports that no request is left")
	assert.Zero(t, s.Stats()[0].KVUsage)
	for _, one := range s.engines[0].pool.blocks {
		require.Zero(t, one.key, "a block of the emptied cache has its key")
	}
	assert.Zero(t, slices.Max(s.engines[0].pool.buckets), "a shared block can be found in the emptied cache")
	aborted := 0
	for _, o := range s.Outcomes() {
		if o.End == EndAborted {
			assert.InDelta(t, 60, o.Ended, 0.5)
			aborted++
		}
	}
	assert.Positive(t, aborted)
	assert.Greater(t, len(s.Unfinished()), 100)
	s.AdvanceTo(150)
	check(t, s)
	assert.Less(t, len(s.Unfinished()), 100)
	assert.Zero(t, s.Stats()[0].SleepLevel)
}

func TestAStarvedFrontEndDelaysClientsButNotTheEngine(t *testing.T) {
	run := func(factor float64) (*Server, *observed.Stats) {
		s := start(t, bare(fixed(5, 500, 100), func(c *Config) {
			c.FrontEnd = DefaultFrontEnd()
			c.Changes = []Change{{At: 0, Parameter: ParamFrontEnd, Value: factor}}
		}))
		s.AdvanceTo(300)
		return s, s.Stats()[0]
	}
	overhead := func(st *observed.Stats) float64 {
		return (st.EndToEnd.Sum - st.Queue.Sum - st.Inference.Sum) / float64(st.EndToEnd.Count)
	}
	_, healthy := run(1)
	_, starved := run(40)
	delay := DefaultFrontEnd().DelaySeconds
	assert.Greater(t, overhead(healthy), delay)
	assert.Less(t, overhead(healthy), delay+0.01)
	assert.Greater(t, overhead(starved), 0.1)
	assert.InEpsilon(t, mean(healthy.Decode), mean(starved.Decode), 0.3)
}

func TestRoutersSpreadAsTheySay(t *testing.T) {
	shares := func(change func(*Config)) []float64 {
		s := start(t, bare(fixed(20, 500, 50), func(c *Config) { c.Engines = 4; change(c) }))
		s.AdvanceTo(120)
		total := 0.0
		var out []float64
		for _, st := range s.Stats() {
			total += float64(st.FirstToken.Count)
			out = append(out, float64(st.FirstToken.Count))
		}
		for i := range out {
			out[i] /= total
		}
		return out
	}
	for _, share := range shares(func(c *Config) { c.Router = RouteRoundRobin }) {
		assert.InDelta(t, 0.25, share, 0.002)
	}
	for _, share := range shares(func(*Config) {}) {
		assert.InDelta(t, 0.25, share, 0.03)
	}
	skewed := shares(func(c *Config) { c.Router, c.Weights = RouteWeights, []float64{7, 1, 1, 1} })
	assert.InDelta(t, 0.7, skewed[0], 0.04)
	// A slow engine gets less by load, as much as the others in turn.
	slow := shares(func(c *Config) {
		c.Changes = []Change{{At: 0, Parameter: ParamHostDelay, Value: 0.1, Engines: []int{2}}}
	})
	assert.Less(t, slow[2], 0.18)
}
