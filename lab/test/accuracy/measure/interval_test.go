package main

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
)

// The bounds are those of Garwood's tables, as in Ulm, Am. J. Epidemiol. 131 (1990) 373:
// 0 events 0 to 3.689, 1 event 0.025 to 5.572, 10 events 4.795 to 18.390, 100 events 81.364
// to 121.627.
func TestTheIntervalOfARateIsExact(t *testing.T) {
	for _, c := range []struct {
		events    int
		low, high float64
	}{{0, 0, 3.689}, {1, 0.0253, 5.572}, {10, 4.795, 18.390}, {100, 81.364, 121.627}} {
		got := poisson(c.events, 10_000)
		assert.InDelta(t, c.low, got.Low, 0.001, "%d events", c.events)
		assert.InDelta(t, c.high, got.High, 0.001, "%d events", c.events)
		assert.InDelta(t, float64(c.events), got.Value, 1e-9)
	}
	half := poisson(10, 5_000)
	assert.InDelta(t, 20, half.Value, 1e-9, "per 10,000 hours")
	many := poisson(5_000, 10_000)
	assert.InDelta(t, 5_000-1.96*math.Sqrt(5_000), many.Low, 3, "a large number is nearly normal")
	assert.InDelta(t, 5_000+1.96*math.Sqrt(5_000), many.High, 3)
	assert.True(t, math.IsNaN(poisson(0, 0).Value), "without hours there is no rate")
}

// For the mean of many independent values the percentile interval is that of the normal
// distribution.
func TestTheBootstrapIsOverStories(t *testing.T) {
	const n = 400
	mean := func(times []int) float64 {
		sum, all := 0.0, 0.0
		for i, k := range times {
			sum += float64(k * (i % 2)) // Half of the stories are right.
			all += float64(k)
		}
		return sum / all
	}
	got := bootstrap(n, mean)
	half := 1.96 * 0.5 / math.Sqrt(n)
	assert.InDelta(t, 0.5, got.Value, 1e-9)
	assert.InDelta(t, 0.5-half, got.Low, 0.006)
	assert.InDelta(t, 0.5+half, got.High, 0.006)
	assert.Equal(t, got, bootstrap(n, mean), "the same stories have the same interval")
}

// Stories with many minutes must not make the interval narrow: two stories are two
// observations, however long they are.
func TestMinutesOfAStoryAreNotIndependent(t *testing.T) {
	long := func(right bool) Score {
		s := Score{Record: &Record{}}
		for i := range 1000 {
			s.Verdicts = append(s.Verdicts, Verdict{Minute: i, Class: "slow_steps", Right: right, Reported: true})
		}
		return s
	}
	all := func(*Score, *Verdict) bool { return true }
	got := tally([]Score{long(true), long(false)}, []string{"slow_steps"}, all).macro(ofRight)
	assert.InDelta(t, 0.5, got.Value, 1e-9)
	assert.Zero(t, got.Low)
	assert.InDelta(t, 1, got.High, 1e-9)
}

func TestAMacroMeanWeighsCausesEqually(t *testing.T) {
	s := Score{Record: &Record{}}
	for i := range 100 {
		s.Verdicts = append(s.Verdicts, Verdict{Minute: i, Class: "slow_steps", Right: true})
	}
	s.Verdicts = append(s.Verdicts, Verdict{Class: "kv_pressure"}, Verdict{Class: "kv_pressure", Right: true, Phase: Settling},
		Verdict{Class: "erroring"})
	all := func(*Score, *Verdict) bool { return true }
	got := tally([]Score{s}, []string{"slow_steps", "kv_pressure", "decode_load"}, all)
	assert.InDelta(t, 0.5, got.macro(ofRight).Value, 1e-9, "erroring is not asked for, decode_load has no minute")
	assert.InDelta(t, 100.0/101, got.pooled(ofRight).Value, 1e-9)
	assert.Equal(t, []string{"decode_load"}, got.missing())
	assert.InDelta(t, 101, got.minutes(), 0)
}

func TestQuantiles(t *testing.T) {
	assert.InDelta(t, 2, quantile([]float64{1, 2, 3, 4}, 0.5), 0)
	assert.InDelta(t, 4, quantile([]float64{1, 2, 3, 4}, 0.9), 0)
	assert.True(t, math.IsNaN(quantile(nil, 0.5)))
}

// Two stories that agree prove little: resampling them never gives another result.
func TestStoriesThatAgreeProveNoCertainty(t *testing.T) {
	story := func(right bool) Score {
		return Score{Record: &Record{}, Verdicts: []Verdict{{Class: "slow_steps", Right: right}}}
	}
	all := func(*Score, *Verdict) bool { return true }
	causes := []string{"slow_steps"}
	// Clopper and Pearson: two of two is at least 15.8 %, none of two at most 84.2 %.
	got := tally([]Score{story(true), story(true)}, causes, all).pooled(ofRight)
	assert.InDelta(t, 0.1581, got.Low, 1e-4)
	assert.InDelta(t, 1, got.High, 0)
	got = tally([]Score{story(false), story(false)}, causes, all).macro(ofRight)
	assert.InDelta(t, 0, got.Low, 0)
	assert.InDelta(t, 0.8419, got.High, 1e-4)
}

// Alarms come in groups. If one of ten stories has all of them, the rate is hardly known.
func TestTheIntervalOfARateIsOverStories(t *testing.T) {
	var grouped, spread []Score
	for i := range 10 {
		s := Score{Record: &Record{}, Healthy: 10}
		s.False = make([]judge.Alarm, 10)
		spread = append(spread, s)
		s.False = nil
		if i == 0 {
			s.False = make([]judge.Alarm, 100)
		}
		grouped = append(grouped, s)
	}
	all := func(*Score) bool { return true }
	even, uneven := alarmsIn(spread, all), alarmsIn(grouped, all)
	exact := poisson(100, 100)
	assert.Equal(t, exact, even.rate(nothing), "where all stories are alike, that of Poisson is the wider one")
	got := uneven.rate(nothing)
	assert.InDelta(t, exact.Value, got.Value, 1e-9)
	assert.Zero(t, got.Low)
	assert.Greater(t, got.High, 2*exact.Value)
	none := alarmsIn(spread[:0], all)
	assert.Equal(t, "-", none.text(nothing))
	few := alarmsIn(spread[:1], all)
	few.sum[hours] = 9
	assert.Equal(t, "10 in 9.0 h", few.text(nothing))
}

func TestTheMedianHasAnInterval(t *testing.T) {
	d := []float64{1, 1, 2, 2, math.Inf(1), math.Inf(1)}
	got := medianOf(d)
	assert.InDelta(t, quantile(d, 0.5), got.Value, 0)
	assert.InDelta(t, 1, got.Low, 0)
	assert.True(t, math.IsInf(got.High, 1))
	assert.Equal(t, "2.0 (1.0 to never)", medianText(d))
	assert.Equal(t, "1.0", medianText(d[:1]))
	assert.Equal(t, "-", medianText(nil))
	assert.Equal(t, 2, never(d))
}
