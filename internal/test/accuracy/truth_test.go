package accuracy

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/engine"
)

// requests returns a minute of n equal requests with 101 tokens each: first is their
// time to first token, gap the time between tokens, failing the share that fails.
func requests(n int, first, gap, failing float64) minute {
	var m minute
	for i := range n {
		o := engine.Outcome{Arrived: 0, Ended: first + 100*gap, FirstToken: first, MeanGap: gap, Output: 101, End: engine.EndStop}
		o.Gaps[gapBucket(gap)] = 100
		if float64(i) < failing*float64(n) {
			o.End = engine.EndError
		}
		m.add(&o)
	}
	return m
}

func TestAMinuteSumsUpItsRequests(t *testing.T) {
	var m minute
	done := engine.Outcome{Arrived: 10, Ended: 13, FirstToken: 1, MeanGap: 0.02, Output: 101, End: engine.EndLength, Queue: 0.5}
	done.Gaps[gapBucket(0.02)] = 100
	m.add(&done)
	// One has no first token after 40 s, and one has waited 8 s for its next token.
	m.add(&engine.Outcome{Arrived: 20, Ended: 60, Queue: 40})
	hanging := engine.Outcome{Arrived: 50, Ended: 60, FirstToken: 1, MeanGap: 0.1, Output: 11}
	hanging.Gaps[gapBucket(0.1)] = 10
	m.add(&hanging)
	corrupted := done
	corrupted.Corrupted = true
	m.add(&corrupted)
	m.add(&engine.Outcome{Arrived: 30, Ended: 30.1, End: engine.EndRefused})

	assert.InDelta(t, 4, m.requests, 0)
	assert.InDelta(t, (1+40+1+1)/4.0, m.meanFirst(), 1e-12)
	assert.InDelta(t, (2+1+8+2)/(100+11+100.0), m.perToken(), 1e-9)
	assert.InDelta(t, (0.5+40+0.5)/4, m.meanQueue(), 1e-12)
	assert.InDelta(t, 1, m.complete, 0)
	assert.InDelta(t, 0.25, m.good(nil), 0)
	assert.InDelta(t, 0.25, m.good([]Objective{{Threshold: 1}, {InterToken: true, Threshold: 0.02}}), 0)
	assert.InDelta(t, 0, m.good([]Objective{{Threshold: 0.5}}), 0)
	assert.InDelta(t, 0.25, m.missed(Objective{Threshold: 1}), 0)
	assert.InDelta(t, 1, m.missed(Objective{Threshold: 0.5}), 0)
	assert.InDelta(t, 11/211.0, m.missed(Objective{InterToken: true, Threshold: 0.05}), 1e-12)
	assert.InDelta(t, 1/211.0, m.missed(Objective{InterToken: true, Threshold: 0.1}), 1e-12)
}

func TestHarmIsLatencyOrLostAnswers(t *testing.T) {
	first := []Objective{{Threshold: 0.5, Target: 0.95}}
	token := []Objective{{InterToken: true, Threshold: 0.025, Target: 0.9}}
	usual := requests(100, 0.2, 0.01, 0)
	for name, c := range map[string]struct {
		actual     minute
		objectives []Objective
		want       harm
	}{
		"equal":                                {usual, nil, harm{judged: true}},
		"first token 1.3 times, too little":    {requests(100, 0.29, 0.01, 0), nil, harm{judged: true}},
		"first token slower":                   {requests(100, 0.31, 0.01, 0), nil, harm{judged: true, latency: true}},
		"gap 1.4 times, but 4 ms":              {requests(100, 0.2, 0.014, 0), nil, harm{judged: true}},
		"gap slower":                           {requests(100, 0.2, 0.016, 0), nil, harm{judged: true, latency: true}},
		"4 % fail":                             {requests(100, 0.2, 0.01, 0.04), nil, harm{judged: true}},
		"6 % fail":                             {requests(100, 0.2, 0.01, 0.06), nil, harm{judged: true, lost: true}},
		"too few":                              {requests(19, 9, 9, 1), nil, harm{}},
		"slower within the objective":          {requests(100, 0.4, 0.01, 0), first, harm{judged: true}},
		"beyond the objective":                 {requests(100, 0.6, 0.01, 0), first, harm{judged: true, latency: true, lost: true}},
		"slower where nothing was promised":    {requests(100, 0.2, 0.02, 0), first, harm{judged: true, latency: true}},
		"gaps within the objective":            {requests(100, 0.2, 0.02, 0), token, harm{judged: true}},
		"first token, promised for gaps alone": {requests(100, 0.5, 0.01, 0), token, harm{judged: true, latency: true}},
	} {
		assert.Equal(t, c.want, judge(&c.actual, &usual, c.objectives), name)
	}
	few := requests(19, 0.2, 0.01, 0)
	slow := requests(100, 9, 9, 0)
	assert.False(t, judge(&slow, &few, nil).judged)
	// An objective that the nominal run misses is not harm.
	assert.False(t, judge(&slow, &slow, first).any())
}

// injected is a story with causes that begin at once.
func injected(parameters ...engine.Parameter) *Story {
	s := &Story{Length: window}
	for _, p := range parameters {
		s.Injections = append(s.Injections, inject(p, 0.5, 0, window))
	}
	return s
}

func one(m minute) []minute { return []minute{m} }

func TestACauseIsTrueIfItsRemovalRestores(t *testing.T) {
	const slow, front, errors, demand, prefixes = engine.ParamClock, engine.ParamFrontEnd, engine.ParamErrorRate, engine.ParamArrivalRate, engine.ParamPrefixPool
	usual := requests(100, 0.2, 0.01, 0)
	for name, c := range map[string]struct {
		story         *Story
		actual        minute
		without       map[string]minute
		workload      minute
		primary, true []string
		ofWorkload    bool
	}{
		"one of two restores all": {
			injected(slow, front), requests(100, 0.2, 0.03, 0),
			map[string]minute{"slow_steps": usual, "frontend_bound": requests(100, 0.2, 0.03, 0)},
			usual,
			[]string{"slow_steps"},
			[]string{"slow_steps"},
			false,
		},
		"each restores its part": {
			// 2 s of 3 are from the gaps, 1 s is from the front end.
			injected(front, slow), requests(100, 1.2, 0.03, 0),
			map[string]minute{"slow_steps": requests(100, 1.2, 0.01, 0), "frontend_bound": requests(100, 0.2, 0.03, 0)},
			usual,
			[]string{"slow_steps"},
			[]string{"slow_steps", "frontend_bound"},
			false,
		},
		"within ten points of each other": {
			injected(front, slow), requests(100, 2.1, 0.03, 0),
			map[string]minute{"slow_steps": requests(100, 2.1, 0.01, 0), "frontend_bound": requests(100, 0.2, 0.03, 0)},
			usual,
			[]string{"slow_steps", "frontend_bound"},
			[]string{"slow_steps", "frontend_bound"},
			false,
		},
		"each suffices": {
			injected(front, slow), requests(100, 2.2, 0.03, 0),
			map[string]minute{"slow_steps": requests(100, 2.1, 0.03, 0), "frontend_bound": requests(100, 2.1, 0.03, 0)},
			usual,
			nil, nil, false,
		},
		"only together: both": {
			injected(front, slow), requests(100, 2.2, 0.03, 0),
			map[string]minute{"slow_steps": usual, "frontend_bound": usual},
			usual,
			[]string{"frontend_bound", "slow_steps"},
			[]string{"frontend_bound", "slow_steps"},
			false,
		},
		"slow and failing weigh the same": {
			injected(slow, errors), requests(100, 9, 0.03, 0.3),
			map[string]minute{"slow_steps": requests(100, 0.2, 0.01, 0.3), "erroring": requests(100, 9, 0.03, 0)},
			usual,
			[]string{"slow_steps", "erroring"},
			[]string{"slow_steps", "erroring"},
			false,
		},
		"an engine that copes with the demand only while it is fast": {
			injected(slow, demand), requests(100, 5, 0.01, 0),
			map[string]minute{"slow_steps": requests(100, 0.25, 0.01, 0), "demand_exceeds_capacity": requests(100, 0.6, 0.01, 0)},
			requests(100, 0.25, 0.01, 0),
			[]string{"slow_steps", "demand_exceeds_capacity"},
			[]string{"slow_steps", "demand_exceeds_capacity"},
			false,
		},
		"a workload cause": {
			injected(prefixes), requests(100, 1, 0.01, 0),
			map[string]minute{"prefill_heavy": usual},
			requests(100, 1, 0.01, 0),
			[]string{"prefill_heavy"},
			[]string{"prefill_heavy"},
			true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := &runs{actual: one(c.actual), nominal: one(usual), workload: one(c.workload), without: map[string][]minute{}}
			for cause, m := range c.without {
				r.without[cause] = one(m)
			}
			bins := truth(c.story, r)
			require.Len(t, bins, 1)
			assert.True(t, bins[0].Judged && bins[0].Harm)
			assert.Equal(t, c.primary, bins[0].Primary, bins[0].Restored)
			assert.Equal(t, c.true, bins[0].True)
			assert.Equal(t, c.ofWorkload, bins[0].Workload)
		})
	}
}

func TestWithoutHarmThereIsNoTrueCause(t *testing.T) {
	usual := requests(100, 0.2, 0.01, 0)
	r := &runs{actual: one(requests(100, 0.25, 0.012, 0)), nominal: one(usual), workload: one(usual), without: map[string][]minute{"slow_steps": one(usual)}}
	assert.Equal(t, []Bin{{Judged: true}}, truth(injected(engine.ParamClock), r))
}

func TestOtherNamesThatCountAsRight(t *testing.T) {
	usual := requests(100, 0.2, 0.01, 0)
	queueing, growing := requests(100, 1.2, 0.01, 0), requests(100, 0.2, 0.03, 0)
	queueing.queued = 100
	for _, c := range []struct {
		parameter engine.Parameter
		actual    minute
		want      []string
	}{
		{engine.ParamArrivalRate, queueing, nil},
		{engine.ParamArrivalRate, growing, []string{"decode_load"}},
		{engine.ParamPrefixPool, growing, []string{"cache_thrash"}},
		{engine.ParamClock, growing, nil},
	} {
		s := injected(c.parameter)
		r := &runs{actual: one(c.actual), nominal: one(usual), workload: one(usual), without: map[string][]minute{causes[c.parameter]: one(usual)}}
		assert.Equal(t, c.want, truth(s, r)[0].Also, c.parameter)
	}
}

func TestEveryParameterHasACause(t *testing.T) {
	// They show what vLLM's metrics get wrong. No story of the measurement has them.
	ofDefects := []engine.Parameter{engine.ParamUnscheduled, engine.ParamClientErrors, engine.ParamClientsLeave, engine.ParamScaleUp}
	for p := range engine.ParameterCount {
		assert.Equal(t, !slices.Contains(ofDefects, p), causes[p] != "", p)
	}
}

// With one cause, the run without it is the nominal run. So the cause is true for all
// the harm, including the drain of the queue.
func TestTheTruthOfASimulatedOverloadLastsThroughTheDrain(t *testing.T) {
	s := Story{
		Name: "overload", Config: server(1, engine.Llama8B(), 8), Length: 20 * window,
		Injections: []Injection{inject(engine.ParamArrivalRate, 4, 5*window, 10*window)},
	}
	actual, err := simulate(s.Config, s.changes(everything), nil, s.Length)
	require.NoError(t, err)
	r, err := explore(&s, actual)
	require.NoError(t, err)
	bins := truth(&s, r)
	for i, b := range bins[:5] {
		assert.Equal(t, Bin{Judged: true}, b, i)
	}
	for i, b := range bins[6:11] {
		assert.Equal(t, []string{"demand_exceeds_capacity"}, b.Primary, i)
		assert.True(t, b.Workload)
	}
	assert.True(t, bins[10].Harm, "the queue drains in the first minute at the old rate")
}
