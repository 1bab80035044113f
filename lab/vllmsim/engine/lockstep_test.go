package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// inTurn is a server of so many engines that get requests in turn.
func inTurn(engines int, lockstep bool, changes ...Change) Config {
	return bare(fixed(8, 200, 100), func(c *Config) {
		c.Engines, c.Lockstep, c.Router, c.Changes = engines, lockstep, RouteRoundRobin, changes
	})
}

func itl(s *Server, engine int) float64 { return mean(s.Stats()[engine].InterToken) }

// One engine of eight reads its memory at half the rate: alone it is the only slow one, and
// in lockstep all are as slow as it is.
func TestOneSlowEngineOfEightIsEightSlowOnesInLockstep(t *testing.T) {
	slow := Change{Parameter: ParamBandwidth, Value: 0.5, Engines: []int{3}}
	run := func(lockstep bool, changes ...Change) *Server {
		s := start(t, inTurn(8, lockstep, changes...))
		s.AdvanceTo(120)
		check(t, s)
		return s
	}
	free, healthy, tied := run(false, slow), run(true), run(true, slow)
	for i := range 8 {
		want := 1.0
		if i == 3 {
			want = 1.8
		}
		assert.InDelta(t, want, itl(free, i)/itl(free, 0), 0.25, "engine %d without lockstep", i)
		assert.InDelta(t, itl(tied, 3), itl(tied, i), 0.1*itl(tied, 3), "engine %d", i)
		assert.Greater(t, itl(tied, i), 1.6*itl(healthy, i), "engine %d is slow with the slow one", i)
	}
}

// A rank without requests takes part in steps: if it is slow, those with requests are too,
// and where nothing is to be done there are no steps.
func TestARankWithoutRequestsHoldsUpTheOthers(t *testing.T) {
	one := func(lockstep bool, host float64) (Outcome, *Server) {
		s := start(t, bare(fixed(0, 1, 1), func(c *Config) {
			c.Engines, c.Lockstep = 2, lockstep
			c.Changes = []Change{{Parameter: ParamHostDelay, Value: host, Engines: []int{1}}}
		}))
		s.AdvanceTo(0.5)
		r := send(s, 100, 11)
		require.Zero(t, r.engine)
		s.AdvanceTo(60)
		outcomes := s.Outcomes()
		require.Len(t, outcomes, 1)
		return outcomes[0], s
	}
	free, _ := one(false, 0.1)
	tied, s := one(true, 0.1)
	assert.Less(t, free.MeanGap, 0.01)
	// The dummy step of one token, with 0.1 s more.
	dummy := Llama8B().StepTime(Batch{Seqs: 1, Tokens: 1}, Nominal()) + 0.1
	assert.InDelta(t, dummy, tied.MeanGap, 1e-9)
	assert.InDelta(t, 0.5+11*dummy, tied.Ended, 1e-9)
	assert.Zero(t, s.engines[1].step, "dummy steps report nothing")
	assert.Zero(t, s.Stats()[1].GenerationTokens)
	assert.False(t, s.together.running)
	quick, _ := one(true, 0)
	assert.InDelta(t, free.MeanGap, quick.MeanGap, 1e-9, "a dummy step is no longer than one of a request")
}

// A request that arrives at an idle rank while the others step waits for the next common step.
func TestStepsBeginTogether(t *testing.T) {
	s := start(t, bare(fixed(0, 1, 1), func(c *Config) { c.Engines, c.Lockstep, c.Router = 2, true, RouteRoundRobin }))
	long := send(s, 8000, 2)
	s.AdvanceTo(0.05)
	short := send(s, 10, 2)
	s.AdvanceTo(10)
	require.Equal(t, []int{0, 1}, []int{long.engine, short.engine})
	assert.InDelta(t, long.firstToken, short.admitted, 1e-9)
	assert.InDelta(t, long.lastToken, short.firstToken, 1e-9)
}

func TestAStalledRankStallsAll(t *testing.T) {
	changes := []Change{
		{At: 20, Parameter: ParamStall, Value: 1, Engines: []int{2}},
		{At: 25, Parameter: ParamStall, Value: 1, Engines: []int{0}},
		{At: 30, Parameter: ParamStall, Value: 0, Engines: []int{2}},
		{At: 40, Parameter: ParamStall, Value: 0, Engines: []int{0}},
	}
	s := start(t, inTurn(4, true, changes...))
	s.AdvanceTo(20.5)
	var before []int
	for _, c := range s.engines {
		before = append(before, c.step)
	}
	s.AdvanceTo(39.9)
	for i, c := range s.engines {
		assert.Equal(t, before[i], c.step, "engine %d", i)
	}
	s.AdvanceTo(40 + 1e-7)
	for i, c := range s.engines {
		assert.Equal(t, before[i], c.step, "engine %d: the rest of the step is still to come", i)
	}
	s.AdvanceTo(41)
	check(t, s)
	for i, c := range s.engines {
		assert.Greater(t, c.step, before[i]+10, "engine %d", i)
	}
	s.AdvanceTo(200)
	check(t, s)
	for i := range s.engines {
		assert.Less(t, s.Stats()[i].Running, 20, "engine %d has caught up", i)
	}
	longest := make([]float64, len(s.engines))
	for _, o := range s.Outcomes() {
		longest[o.Engine] = max(longest[o.Engine], o.MaxGap)
	}
	for i, gap := range longest {
		assert.InDelta(t, 20, gap, 0.3, "engine %d: the step under way lasts as long as a rank is stalled", i)
	}
}

// Sleep, engines that are added, journal and the number of calls change nothing in the
// order of things.
func TestLockstepWorksWithEverythingElse(t *testing.T) {
	cfg := inTurn(3, true,
		Change{At: 10, Parameter: ParamSleep, Value: 1},
		Change{At: 20, Parameter: ParamSleep, Value: 0},
		Change{At: 30, Parameter: ParamSleep, Value: 1, Engines: []int{1}},
		Change{At: 35, Parameter: ParamStall, Value: 1, Engines: []int{1}},
		Change{At: 40, Parameter: ParamStall, Value: 0, Engines: []int{1}},
		Change{At: 45, Parameter: ParamSleep, Value: 0, Engines: []int{1}},
		Change{At: 60, Parameter: ParamScaleUp, Value: 2},
	)
	cfg.FrontEnd, cfg.Speculation.Acceptance = DefaultFrontEnd(), []float64{0.7}
	run := func(step float64) (*Server, []Event) {
		var events []Event
		cfg := cfg
		cfg.Journal = func(e Event) { events = append(events, e) }
		s := start(t, cfg)
		for at := step; at < 120; at += step {
			s.AdvanceTo(at)
		}
		s.AdvanceTo(120)
		check(t, s)
		return s, events
	}
	once, events := run(120)
	often, same := run(0.37)
	a, b := once.Outcomes(), often.Outcomes()
	require.Len(t, b, len(a))
	for i := range a {
		require.Equal(t, a[i], b[i])
	}
	require.Len(t, same, len(events))
	require.Len(t, once.engines, 5)
	last := -1.0
	for _, e := range events {
		if e.Kind == EventStep {
			require.GreaterOrEqual(t, e.At, last)
			last = e.At
		}
	}
	for i, c := range once.engines {
		assert.Greater(t, c.step, 500, "engine %d", i)
	}
}
