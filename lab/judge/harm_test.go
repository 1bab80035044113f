package judge

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// group is a number of equal requests of 101 tokens: first is their time to the first token,
// gap the time between tokens.
type group struct {
	n          int
	first, gap float64
	fails      bool
}

// together adds up the requests of groups.
func together(objectives []objective, groups ...group) *sum {
	var m sum
	r := requests{objectives: objectives, workload: &engine.Workload{}, done: func(s *seen) { m.add(s) }}
	for _, g := range groups {
		o := engine.Outcome{Ended: g.first + 100*g.gap, FirstToken: g.first, MeanGap: g.gap, Output: 101, End: engine.EndStop}
		o.Gaps[gapBucket(g.gap)] = 100
		if g.fails {
			o.End = engine.EndError
		}
		for range g.n {
			r.add(&o)
		}
	}
	return &m
}

// answered returns n requests of which a share fails.
func answered(objectives []objective, n int, first, gap, failing float64) *sum {
	fail := int(math.Round(failing * float64(n)))
	return together(objectives, group{fail, first, gap, true}, group{n - fail, first, gap, false})
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
		"gaps beyond it":                       {token, 0.2, 0.04, 10},
		"first token, promised for gaps alone": {token, 0.5, 0.01, 3},
		"means within":                         {mean, 0.2, 0.02, 0},
		"means beyond":                         {mean, 0.2, 0.04, 10},
		"whole answers beyond":                 {whole, 0.2, 0.04, 10},
	} {
		h := assess(answered(c.objectives, 100, c.first, c.gap, 0), answered(c.objectives, 100, 0.2, 0.01, 0), c.objectives)
		assert.InDelta(t, c.want, h.effect(), 1e-9, name)
	}
}

// The effects follow from the rule, by hand.
func TestAnObjectiveThatTheNominalRunMissesCountsWithTheMean(t *testing.T) {
	first := func(threshold, target float64) objective { return objective{firstToken, threshold, target} }
	// late has a share of first tokens after 2 s, all others after 0.2 s.
	late := func(percent int) []group {
		return []group{{percent, 2, 0.01, false}, {100 - percent, 0.2, 0.01, false}}
	}
	all := func(first, gap float64) []group { return []group{{100, first, gap, false}} }
	for name, c := range map[string]struct {
		objectives    []objective
		usual, actual []group
		want          float64
	}{
		"8 of 10 allowed":                            {[]objective{first(0.5, 0.9)}, late(0), late(8), 0.8},
		"40 of 50 allowed":                           {[]objective{first(0.5, 0.5)}, late(0), late(40), 0.8},
		"exactly what is allowed is no harm":         {[]objective{first(0.5, 0.9)}, late(0), late(10), 1},
		"what is allowed in both":                    {[]objective{first(0.5, 0.9)}, late(10), late(20), 2},
		"20 beyond, 5 allowed":                       {[]objective{first(0.5, 0.95)}, late(10), late(30), 4},
		"3 beyond, 5 allowed":                        {[]objective{first(0.5, 0.95)}, late(10), late(13), 0.6},
		"4 beyond 60":                                {[]objective{first(0.5, 0.95)}, late(60), late(64), 0.8},
		"fewer":                                      {[]objective{first(0.5, 0.95)}, late(30), late(10), 0},
		"all late in both":                           {[]objective{first(0.5, 0.95)}, all(9, 0.01), all(9, 0.01), 0},
		"all late, and ten times as slow":            {[]objective{first(0.5, 0.95)}, all(1, 0.01), all(10, 0.01), 9 / 0.3},
		"all late, and a little slower":              {[]objective{first(0.5, 0.95)}, all(1, 0.01), all(1.15, 0.01), 0.5},
		"all late, and failing":                      {[]objective{first(0.5, 0.95)}, all(1, 0.01), []group{{100, 1, 0.01, true}}, 20},
		"failing within the objective":               {[]objective{first(0.5, 0.95)}, all(0.2, 0.01), []group{{4, 0.2, 0.01, true}, {96, 0.2, 0.01, false}}, 0.8},
		"gaps that are too long, ten times as long":  {[]objective{{interToken, 0.025, 0.9}}, all(0.2, 0.1), all(0.2, 1), 0.9 / 0.03},
		"means that are too long, ten times as long": {[]objective{{tokenMean, 0.025, 0.9}}, all(0.2, 0.1), all(0.2, 1), 0.9 / 0.03},
		"of two objectives one is missed":            {[]objective{first(0.1, 0.5), first(2.5, 0.95)}, all(0.2, 0.01), all(2, 0.01), 18},
		"whole answers that take too long": {
			[]objective{{wholeTime, 1, 0.9}, first(100, 0.9), {tokenMean, 10, 0.9}}, all(0.2, 0.01), all(2, 0.1), (12 - 1.2) / 0.36,
		},
		"whole answers that are fast enough": {
			[]objective{{wholeTime, 20, 0.9}, first(100, 0.9), {tokenMean, 10, 0.9}}, all(0.2, 0.01), all(2, 0.1), 0,
		},
	} {
		h := assess(together(c.objectives, c.actual...), together(c.objectives, c.usual...), c.objectives)
		assert.InDelta(t, c.want, h.effect(), 1e-9, name)
		assert.Equal(t, c.want > 1, h.effect() > 1, name)
	}
}

// However much of an objective the nominal run misses, a server that becomes slower beyond it
// has more harm, and one that is ten times as slow or dead is harmful.
func TestTheEffectGrowsWithHarmWhereAnObjectiveIsMissed(t *testing.T) {
	for _, target := range []float64{0.5, 0.9, 0.95, 0.99} {
		for _, objectives := range [][]objective{
			{{firstToken, 0.5, target}},
			{{tokenMean, 0.025, target}},
			{{wholeTime, 3, target}},
			{{firstToken, 0.5, target}, {interToken, 0.025, target}, {wholeTime, 3, target}},
		} {
			for missed := range 101 {
				serve := func(slower float64, fails bool) *sum {
					return together(objectives, group{missed, 0.6 * slower, 0.03 * slower, fails}, group{100 - missed, 0.2 * slower, 0.01 * slower, fails})
				}
				usual, before := serve(1, false), 0.0
				for _, slower := range []float64{1, 1.2, 1.5, 2, 3, 5, 10} {
					effect := assess(serve(slower, false), usual, objectives).effect()
					require.GreaterOrEqual(t, effect, before-1e-9, "%v, %d missed, %v times as slow", objectives, missed, slower)
					before = effect
				}
				require.Greater(t, before, 1.0, "%v, %d missed, ten times as slow", objectives, missed)
				require.InDelta(t, 20, assess(serve(1, true), usual, objectives).effect(), 1e-9, "%v, %d missed, dead", objectives, missed)
			}
		}
	}
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

// What is slower within its objective is no harm, so it has caused none. The first token is 3 s
// later, and 100 tokens are 1 s later.
func TestWhatIsUndoneIsOfTheHarmfulMeasures(t *testing.T) {
	within := []objective{{firstToken, 60, 0.9}, {tokenMean, 60, 0.9}}
	for name, c := range map[string]struct {
		objectives                           []objective
		withoutFirst, withoutGap, halfTheGap float64
	}{
		"tokens too late":       {[]objective{within[0], {tokenMean, 0.015, 0.9}}, 0, 1, 0.5},
		"first tokens too late": {[]objective{{firstToken, 2, 0.9}, within[1]}, 1, 0, 0},
		"both too late":         {[]objective{{firstToken, 2, 0.9}, {tokenMean, 0.015, 0.9}}, 0.75, 0.25, 0.125},
		"whole answers":         {append([]objective{{wholeTime, 3, 0.9}}, within...), 0.75, 0.25, 0.125},
	} {
		of := func(first, gap float64) *sum { return answered(c.objectives, 100, first, gap, 0) }
		actual, usual := of(3.2, 0.02), of(0.2, 0.01)
		h := assess(actual, usual, c.objectives)
		assert.InDelta(t, c.withoutFirst, h.undone(actual, of(0.2, 0.02), usual, 100), 1e-9, name)
		assert.InDelta(t, c.withoutGap, h.undone(actual, of(3.2, 0.01), usual, 100), 1e-9, name)
		assert.InDelta(t, c.halfTheGap, h.undone(actual, of(3.2, 0.015), usual, 100), 1e-9, name)
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
	// The two are late, and not lost.
	assert.InDelta(t, 0.75, m.completed(), 0)
	assert.InDelta(t, 2, m.unended, 0)
}
