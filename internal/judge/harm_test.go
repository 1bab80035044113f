package judge

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/engine"
)

// answered returns n equal requests of 101 tokens, of which a share fails: first is their
// time to the first token, gap the time between tokens.
func answered(objectives []objective, n int, first, gap, failing float64) *sum {
	var m sum
	r := requests{objectives: objectives, workload: &engine.Workload{}, done: func(s *seen) { m.add(s) }}
	for i := range n {
		o := engine.Outcome{ID: i, Ended: first + 100*gap, FirstToken: first, MeanGap: gap, Output: 101, End: engine.EndStop}
		o.Gaps[gapBucket(gap)] = 100
		if float64(i) < failing*float64(n) {
			o.End = engine.EndError
		}
		r.add(&o)
	}
	return &m
}

// The effects follow from the definition of the bar, by hand.
func TestTheEffectIsTheHarmInBars(t *testing.T) {
	for name, c := range map[string]struct {
		n                   int
		first, gap, failing float64
		want                float64
	}{
		"equal":                          {100, 0.2, 0.01, 0, 0},
		"90 ms more of 200, the bar 100": {100, 0.29, 0.01, 0, 0.9},
		"200 ms more":                    {100, 0.4, 0.01, 0, 2},
		"5 ms more between tokens":       {100, 0.2, 0.015, 0, 1},
		"15 ms more":                     {100, 0.2, 0.025, 0, 3},
		"4 % fail":                       {100, 0.2, 0.01, 0.04, 0.8},
		"10 % fail":                      {100, 0.2, 0.01, 0.10, 2},
		"faster":                         {100, 0.1, 0.005, 0, 0},
		"the largest of all":             {100, 0.4, 0.06, 0.10, 10},
		"too few to judge":               {19, 9, 9, 1, 0},
	} {
		h := assess(answered(nil, c.n, c.first, c.gap, c.failing), answered(nil, c.n, 0.2, 0.01, 0), nil)
		assert.InDelta(t, c.want, h.effect(), 1e-9, name)
		assert.Equal(t, c.n >= 20, h.judged, name)
	}
	// Of a slow server the bar is 30 %.
	h := assess(answered(nil, 100, 3.2, 0.1, 0), answered(nil, 100, 2, 0.1, 0), nil)
	assert.InDelta(t, 1.2/0.6, h.effect(), 1e-9)
}

func TestObjectivesDecideAboutTheirMeasure(t *testing.T) {
	first := []objective{{of: firstToken, threshold: 0.5, target: 0.95}}
	token := []objective{{of: interToken, threshold: 0.025, target: 0.9}}
	whole := []objective{{of: wholeTime, threshold: 3, target: 0.9}}
	mean := []objective{{of: tokenMean, threshold: 0.025, target: 0.9}}
	for name, c := range map[string]struct {
		objectives []objective
		first, gap float64
		want       float64
	}{
		"slower within the objective":          {first, 0.4, 0.01, 0},
		"all beyond the objective":             {first, 0.6, 0.01, 20},
		"slower where nothing was promised":    {first, 0.2, 0.02, 2},
		"gaps within the objective":            {token, 0.2, 0.02, 0},
		"gaps beyond it":                       {token, 0.2, 0.04, 20},
		"first token, promised for gaps alone": {token, 0.5, 0.01, 3},
		"means within":                         {mean, 0.2, 0.02, 0},
		"means beyond":                         {mean, 0.2, 0.04, 20},
		"whole answers beyond":                 {whole, 0.2, 0.04, 20},
	} {
		h := assess(answered(c.objectives, 100, c.first, c.gap, 0), answered(c.objectives, 100, 0.2, 0.01, 0), c.objectives)
		assert.InDelta(t, c.want, h.effect(), 1e-9, name)
	}
	// An objective that the nominal run misses, too, is not harm.
	slow := answered(first, 100, 9, 0.01, 0)
	assert.Zero(t, assess(slow, slow, first).effect())
	// What is missed beyond it is: 30 of 100 instead of 10, where 5 are allowed.
	mixed := func(late int) *sum {
		m := answered(first, 100-late, 0.2, 0.01, 0)
		for _, part := range []*sum{answered(first, late, 9, 0.01, 0)} {
			m.requests, m.good, m.firstToken = m.requests+part.requests, m.good+part.good, m.firstToken+part.firstToken
			m.over[0], m.of[0] = m.over[0]+part.over[0], m.of[0]+part.of[0]
		}
		return m
	}
	assert.InDelta(t, 4, assess(mixed(30), mixed(10), first).latency, 1e-9)
	assert.InDelta(t, 0.6, assess(mixed(13), mixed(10), first).latency, 1e-9, "a little more is not harmful")
	assert.Zero(t, assess(mixed(10), mixed(30), first).latency)
}

func TestWhatIsUndoneIsTheShareOfTheDelayOrOfTheLostAnswers(t *testing.T) {
	usual := answered(nil, 100, 0.2, 0.01, 0)
	for name, c := range map[string]struct {
		actual, other *sum
		want          float64
	}{
		"nothing":               {answered(nil, 100, 2.2, 0.01, 0), answered(nil, 100, 2.2, 0.01, 0), 0},
		"all":                   {answered(nil, 100, 2.2, 0.01, 0), usual, 1},
		"a quarter of the wait": {answered(nil, 100, 2.2, 0.01, 0), answered(nil, 100, 1.7, 0.01, 0), 0.25},
		"one second of three":   {answered(nil, 100, 1.2, 0.03, 0), answered(nil, 100, 0.2, 0.03, 0), 1.0 / 3},
		"answers alone":         {answered(nil, 100, 0.2, 0.01, 0.4), answered(nil, 100, 0.2, 0.01, 0.1), 0.75},
		"slow and failing":      {answered(nil, 100, 2.2, 0.01, 0.4), answered(nil, 100, 2.2, 0.01, 0), 0.5},
		"worse":                 {answered(nil, 100, 2.2, 0.01, 0), answered(nil, 100, 5, 0.01, 0), 0},
	} {
		h := assess(c.actual, usual, nil)
		assert.InDelta(t, c.want, h.undone(c.actual, c.other, usual, 100), 1e-9, name)
	}
}

func TestRequestsThatHaveNotEndedCountWithTheirAge(t *testing.T) {
	var m sum
	r := requests{workload: &engine.Workload{}, born: 600, done: func(s *seen) { m.add(s) }}
	done := engine.Outcome{Arrived: 10, Ended: 13, FirstToken: 1, MeanGap: 0.02, Output: 101, End: engine.EndLength, Queue: 0.5}
	done.Gaps[gapBucket(0.02)] = 100
	r.add(&done)
	// One has no first token after 40 s, and one has waited 8 s for its next token.
	r.add(&engine.Outcome{ID: 1, Arrived: 20, Ended: 60, Queue: 40})
	hanging := engine.Outcome{ID: 2, Arrived: 50, Ended: 60, FirstToken: 1, MeanGap: 0.1, Output: 11}
	hanging.Gaps[gapBucket(0.1)] = 10
	r.add(&hanging)
	corrupted := done
	corrupted.ID, corrupted.Corrupted = 3, true
	r.add(&corrupted)
	assert.InDelta(t, (1+40+1+1)/4.0, m.meanFirst(), 1e-12)
	assert.InDelta(t, (2+1+8+2)/(100+11+100.0), m.perToken(), 1e-9)
	assert.InDelta(t, (0.5+40+0.5)/4, m.meanQueue(), 1e-12)
	assert.InDelta(t, 0.25, m.goodput(), 0)
}
