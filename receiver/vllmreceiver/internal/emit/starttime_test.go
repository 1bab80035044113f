package emit

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

// withCreated is a counter at slot 0 with its created time at slot 1.
func withCreated() *normalize.Plan {
	return planOf(metricOf(catalog.KindSum, "c", pointWith("0", createdValue(0, 1))))
}

func TestTheFirstStart(t *testing.T) {
	for name, tc := range map[string]struct {
		plan   *normalize.Plan
		values []float64
		want   float64
	}{
		"unknown: the point's own time":           {planOf(counter("c", 0)), []float64{1}, 100},
		"the process's":                           {withProcessStart(planOf(counter("c", 0)), 1), []float64{1, unix(40)}, 40},
		"created":                                 {withCreated(), []float64{1, unix(50)}, 50},
		"created before the process":              {withProcessStart(withCreated(), 2), []float64{1, unix(50), unix(60)}, 50},
		"created after the scrape":                {withCreated(), []float64{1, unix(101)}, 100},
		"created after the scrape, process":       {withProcessStart(withCreated(), 2), []float64{1, unix(101), unix(60)}, 60},
		"created that is not a time":              {withCreated(), []float64{1, math.NaN()}, 100},
		"created that is 0":                       {withCreated(), []float64{1, 0}, 100},
		"created beyond all times":                {withCreated(), []float64{1, 1e12}, 100},
		"the process's that is a little ahead":    {withProcessStart(planOf(counter("c", 0)), 1), []float64{1, unix(101)}, 100},
		"the process's that is too far ahead":     {withProcessStart(planOf(counter("c", 0)), 1), []float64{1, unix(100 + 301)}, 100},
		"the process's at the time of the scrape": {withProcessStart(planOf(counter("c", 0)), 1), []float64{1, unix(100)}, 100},
	} {
		r := newRig(t, Settings{})
		assert.Equal(t, []float64{tc.want}, r.starts(scrapeAt(100, tc.plan, tc.values...)), name)
	}
}

// The largest time is in the year 2262: more nanoseconds do not fit 63 bits.
func TestUnixTime(t *testing.T) {
	for seconds, want := range map[float64]pcommon.Timestamp{
		1: 1e9, 1.5: 15e8, 0.25: 25e7, 1.75e9: 175e16, 9.223e9: 9223e15,
		0: 0, -1: 0, -0.5: 0, -1.75e9: 0, 9.224e9: 0, 1e12: 0, 1e300: 0,
		math.Inf(1): 0, math.Inf(-1): 0, math.NaN(): 0,
	} {
		assert.Equal(t, want, unixTime(seconds), "%v", seconds)
	}
}

// The created time of a point with several parts is the earliest, if all have one.
func TestTheCreatedTimeOfSeveralParts(t *testing.T) {
	point := pointWith("0", createdValue(0, 1))
	point.Parts = append(point.Parts, createdValue(2, 3))
	plan := planOf(metricOf(catalog.KindSum, "c", point))
	for want, values := range map[float64][]float64{
		30: {1, unix(30), 1, unix(40)}, 35: {1, unix(45), 1, unix(35)}, 100: {1, unix(30), 1, 0},
	} {
		r := newRig(t, Settings{})
		metrics := r.scrape(100, plan, values...)
		p := metrics.At(0).Sum().DataPoints().At(0)
		assert.Equal(t, seconds(want), p.StartTimestamp())
		assert.InDelta(t, 2, p.DoubleValue(), 0)
	}
	point.Parts[1].Created = none
	r := newRig(t, Settings{})
	assert.Equal(t, []float64{100}, r.starts(scrapeAt(100, planOf(metricOf(catalog.KindSum, "c", point)), 1, unix(30), 1)))
}

// A series that the last scrape proves to have been absent began after it. Else its start
// is unknown.
func TestTheStartOfANewSeries(t *testing.T) {
	bad := func(n int) []exposition.Problem {
		problems := make([]exposition.Problem, n)
		for i := range problems {
			problems[i].Reason = exposition.ReasonBadValue
		}
		return problems
	}
	for name, tc := range map[string]struct {
		before, after func(*Scrape)
		process       float64
		want          float64
	}{
		"the last scrape is complete":      {want: 15},
		"the process began before":         {process: 5, want: 15},
		"the last body had an open end":    {before: func(s *Scrape) { s.Open = true }, want: 30},
		"the same, with a process":         {before: func(s *Scrape) { s.Open = true }, process: 5, want: 5},
		"this body has an open end":        {after: func(s *Scrape) { s.Open = true }, want: 15},
		"the last body had no end mark":    {before: func(s *Scrape) { s.Snapshot.Problems = []exposition.Problem{{Reason: exposition.ReasonMissingEOF}} }, want: 30},
		"the last body had too many lines": {before: func(s *Scrape) { s.Snapshot.Problems = []exposition.Problem{{Reason: exposition.ReasonTooManyLines}} }, want: 30},
		"the last body had too many bad lines": {before: func(s *Scrape) {
			s.Snapshot.Problems = []exposition.Problem{{Reason: exposition.ReasonTooManyBadLines}}
		}, want: 30},
		"a bad line of the last body is good now":        {before: func(s *Scrape) { s.Snapshot.Problems = bad(1) }, want: 30},
		"both bodies have a bad line":                    {before: func(s *Scrape) { s.Snapshot.Problems = bad(1) }, after: func(s *Scrape) { s.Snapshot.Problems = bad(1) }, want: 15},
		"a bad comment of the last body is not a series": {before: func(s *Scrape) { s.Snapshot.Problems = []exposition.Problem{{Reason: exposition.ReasonBadComment}} }, want: 15},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Settings{MaxSeries: 10})
			one, both := planOf(counter("a", 0)), planOf(counter("a", 0), counter("b", 1))
			values := []float64{1, 1, 0}
			if tc.process > 0 {
				withProcessStart(one, 2)
				withProcessStart(both, 2)
				values[2] = unix(tc.process)
			}
			for at, plan := range map[float64]*normalize.Plan{15: one} {
				s := scrapeAt(at, plan, values...)
				if tc.before != nil {
					tc.before(&s)
				}
				r.emit(s)
			}
			s := scrapeAt(30, both, values...)
			if tc.after != nil {
				tc.after(&s)
			}
			starts := r.starts(s)
			require.Len(t, starts, 2)
			assert.InDelta(t, tc.want, starts[1], 0)
		})
	}
}

func TestTheStartAfterAReset(t *testing.T) {
	for name, tc := range map[string]struct {
		plan        *normalize.Plan
		first, then []float64
		want        float64
	}{
		"a value that fell":                  {planOf(counter("c", 0)), []float64{5}, []float64{4}, 30},
		"a value that stayed":                {planOf(counter("c", 0)), []float64{5}, []float64{5}, 15},
		"a newer created time":               {withCreated(), []float64{5, unix(3)}, []float64{9, unix(32)}, 32},
		"the same created time":              {withCreated(), []float64{5, unix(3)}, []float64{9, unix(3)}, 3},
		"a fall with the same created time":  {withCreated(), []float64{5, unix(3)}, []float64{4, unix(3)}, 30},
		"a newer created time in the future": {withCreated(), []float64{5, unix(3)}, []float64{9, unix(77)}, 30},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Settings{})
			r.scrape(15, tc.plan, tc.first...)
			r.scrape(30, tc.plan, tc.first...)
			assert.Equal(t, []float64{tc.want}, r.starts(scrapeAt(45, tc.plan, tc.then...)))
		})
	}
}

// A start that does not move means that there was no reset. It moves by a nanosecond where
// the first point's own time is the start and the last scrape.
func TestAResetAlwaysMovesTheStart(t *testing.T) {
	r, plan := newRig(t, Settings{}), planOf(counter("c", 0))
	r.scrape(15, plan, 5)
	metrics := r.scrape(30, plan, 4)
	assert.Equal(t, seconds(15)+1, metrics.At(0).Sum().DataPoints().At(0).StartTimestamp())
}

// A clock that was set back must not make a start later than its point.
func TestTheStartIsNotAfterThePoint(t *testing.T) {
	r, plan := newRig(t, Settings{}), planOf(counter("c", 0))
	r.scrape(15, plan, 5)
	assert.Equal(t, []float64{10}, r.starts(scrapeAt(10, plan, 6)))
}

// One counter of vLLM falls: all series of its process begin again, also those that have
// grown, that have no value now, or that vanished. Those of another process do not.
func TestARestartResetsAllSeriesOfItsProcess(t *testing.T) {
	other := pointWith("1", value(2))
	other.Process = "other"
	plan := planOf(metricOf(catalog.KindSum, "c", pointWith("0", value(0)), other), counter("grown", 1), counter("gap", 3))
	r := newRig(t, Settings{MaxSeries: 10})
	r.scrape(15, plan, 5, 5, 5, 5)
	r.scrape(30, plan, 5, 5, 5, 5)
	assert.False(t, r.target.Restarted(scrapeAt(45, plan, 5, 6, 6, 6)))
	assert.True(t, r.target.Restarted(scrapeAt(45, plan, 4, 6, 6, 6)))
	assert.Equal(t, []float64{30, 15, 30}, r.starts(scrapeAt(45, plan, 4, 6, 6, math.NaN())))
	assert.Equal(t, []float64{30, 15, 30, 30}, r.starts(scrapeAt(60, plan, 4, 6, 6, 6)), "its first value is the new process's")
}

func TestOnlyVLLMsCountersShowARestart(t *testing.T) {
	plugin := counter("plugin", 0)
	plugin.Engine = false
	histogram := metricOf(catalog.KindHistogram, "h", pointWith("0", buckets()))
	for name, tc := range map[string]struct {
		metric      normalize.Metric
		first, then []float64
		want        bool
	}{
		"a counter that fell":           {counter("c", 0), []float64{5}, []float64{4}, true},
		"a counter that is the same":    {counter("c", 0), []float64{5}, []float64{5}, false},
		"a counter that is NaN":         {counter("c", 0), []float64{5}, []float64{math.NaN()}, false},
		"a counter of a plug-in":        {plugin, []float64{5}, []float64{4}, false},
		"a gauge":                       {metricOf(catalog.KindGauge, "g", pointWith("0", value(0))), []float64{5}, []float64{4}, false},
		"a histogram's count that fell": {histogram, []float64{1, 2, 3, 4, 3}, []float64{0, 1, 2, 4, 2}, true},
		"an inconsistent histogram":     {histogram, []float64{1, 2, 3, 4, 3}, []float64{1, 2, 3, 4, 2}, false},
		"a histogram whose sum fell":    {histogram, []float64{1, 2, 3, 4, 3}, []float64{1, 2, 3, 1, 3}, false},
	} {
		r, plan := newRig(t, Settings{}), planOf(tc.metric)
		assert.False(t, r.target.Restarted(scrapeAt(0, plan, tc.first...)), "the first scrape shows none")
		r.scrape(15, plan, tc.first...)
		assert.Equal(t, tc.want, r.target.Restarted(scrapeAt(30, plan, tc.then...)), name)
		// The same with a plan that the target does not have yet.
		wider := planOf(append([]normalize.Metric{counter("before", 9)}, tc.metric)...)
		then := append(append([]float64{}, tc.then...), make([]float64, 10)...)
		assert.Equal(t, tc.want, r.target.Restarted(scrapeAt(30, wider, then...)), name)
	}
}

// A vanished series shows a restart, too, when it appears again with less.
func TestAVanishedSeriesShowsARestart(t *testing.T) {
	r := newRig(t, Settings{MaxSeries: 10})
	both, one := planOf(counter("a", 0), counter("b", 1)), planOf(counter("a", 0))
	r.scrape(0, both, 5, 5)
	r.scrape(15, one, 5)
	assert.False(t, r.target.Restarted(scrapeAt(30, both, 5, 5)))
	assert.True(t, r.target.Restarted(scrapeAt(30, both, 5, 4)))
	r.target.Restart()
	assert.Equal(t, []float64{15}, r.starts(scrapeAt(30, one, 6)))
	// The vanished b was the old process's: its first value counts from the last scrape.
	assert.Equal(t, []float64{15, 30}, r.starts(scrapeAt(45, both, 7, 7)))
}

// Without room for what vanished, a series that appears may be an old one.
func TestForgottenSeriesHaveNoKnownStart(t *testing.T) {
	r := newRig(t, Settings{MaxSeries: 1})
	plan := func(name string) *normalize.Plan { return withProcessStart(planOf(counter(name, 0)), 1) }
	r.scrape(0, plan("a"), 5, unix(-50))
	r.scrape(15, plan("b"), 5, unix(-50))
	assert.Equal(t, []float64{15}, r.starts(scrapeAt(30, plan("c"), 5, unix(-50))), "it is new")
	// b is remembered, and there was no room for a.
	assert.Equal(t, []float64{45}, r.starts(scrapeAt(45, plan("a"), 5, unix(-50))), "it may be the old one")
	// A restart of the process ends this doubt.
	r.target.Restart()
	r.scrape(60, plan("a"), 6, unix(-50))
	assert.Equal(t, []float64{60}, r.starts(scrapeAt(75, plan("d"), 5, unix(-50))))
}

func TestABalancedAddressIsReported(t *testing.T) {
	falls := func(scrapes string) (reported []int) {
		r, plan := newRig(t, Settings{}), planOf(counter("c", 0))
		last := 100.0
		r.scrape(0, plan, last)
		for i, what := range scrapes {
			last++
			if what == 'f' {
				last -= 2
			}
			report := r.target.Emit(scrapeAt(float64(15*(i+1)), plan, last), Own{}, pmetric.NewMetrics())
			if report.Balanced {
				reported = append(reported, i)
			}
		}
		return reported
	}
	assert.Equal(t, []int{2, 3, 4, 5}, falls("ffffff"))
	assert.Equal(t, []int{7}, falls("f...f..f"))
	assert.Empty(t, falls("f...f...f"), "nine scrapes")
	assert.Empty(t, falls("ff......"))
}

// processRig scrapes a target whose process is named by slot 1.
func processRig(t *testing.T) (*rig, func(at, start float64, change ...func(*Scrape)) Scrape) {
	t.Helper()
	plan := withProcessStart(planOf(counter("c", 0)), 1)
	return newRig(t, Settings{MaxSeries: 10}), func(at, start float64, change ...func(*Scrape)) Scrape {
		s := scrapeAt(at, plan, 5, unix(start))
		for _, c := range change {
			c(&s)
		}
		return s
	}
}

func TestAnotherProcessAtTheSameAddress(t *testing.T) {
	for name, tc := range map[string]struct {
		first, then      float64
		restart, foreign bool
	}{
		"the same start":                {first: -100, then: -100},
		"a start within the jitter":     {first: -100, then: -99},
		"a later start":                 {first: -100, then: 20, restart: true},
		"a start just after the jitter": {first: -100, then: 16.5, restart: true},
		"an earlier start":              {first: -100, then: -102, foreign: true},
		"it ran when the own answered":  {first: -1000, then: -400, foreign: true},
		"a start within the skew":       {first: -1000, then: -280, restart: true},
	} {
		r, scrape := processRig(t)
		r.emit(scrape(15, tc.first))
		s := scrape(30, tc.then)
		assert.Equal(t, tc.restart, r.target.Restarted(s), name)
		assert.Equal(t, tc.foreign, r.target.Foreign(s), name)
	}
}

// Answers of another process are dropped until the target's own has been silent for five
// minutes. Then the other one takes over, and its start is unknown but for its process.
func TestAForeignAnswerIsDroppedUntilItsOwnIsSilent(t *testing.T) {
	r, scrape := processRig(t)
	r.emit(scrape(15, -100))
	out := pmetric.NewMetrics()
	report := r.target.Emit(scrape(30, -500), Own{}, out)
	want := Report{Foreign: true}
	want.Dropped[normalize.ReasonOtherProcess] = 1
	assert.Equal(t, want, report)
	assert.Zero(t, metricsOf(t, out).Len())
	assert.True(t, r.target.Foreign(scrape(314, -500)))
	assert.False(t, r.target.Foreign(scrape(315, -500)))
	assert.True(t, r.target.Restarted(scrape(315, -500)))
	assert.Equal(t, []float64{-500}, r.starts(scrape(315, -500)))
	assert.False(t, r.target.Foreign(scrape(330, -500)))
	r.target.Forget()
	assert.False(t, r.target.Known())
}

// The server's clock is wrong by an hour, which its Date header shows.
func TestTimesOfAWrongClockAreConverted(t *testing.T) {
	const slow = 3600
	dated := func(offset float64) func(*Scrape) {
		return func(s *Scrape) {
			s.Answered = s.Time.Add(time.Second)
			s.ServerTime = s.Time.Add(time.Duration(offset * float64(time.Second)))
		}
	}
	r, scrape := processRig(t)
	// The server reports whole seconds, so its clock is behind by 3599 s at least.
	assert.Equal(t, []float64{-101}, r.starts(scrape(15, -100-slow, dated(-slow))))
	// The clock is set right: the start follows it, and it is the same process.
	s := scrape(30, -100, dated(0))
	assert.False(t, r.target.Restarted(s))
	assert.Equal(t, []float64{-101}, r.starts(s))
	// The same words by a clock that moved: the same process, or a machine that booted.
	s = scrape(45, -100, dated(-slow))
	assert.False(t, r.target.Restarted(s))
	assert.False(t, r.target.Foreign(s))
	assert.Equal(t, []float64{-101}, r.starts(s))
	// Clocks that may agree are not converted: between the second before and the answer.
	for offset, want := range map[float64]float64{0: -100, -0.5: -100, 1: -100, 2: -103, -1: -100, -1.5: -99.5} {
		r, scrape = processRig(t)
		assert.Equal(t, []float64{want}, r.starts(scrape(15, -100, dated(offset))), "offset %v", offset)
	}
}
