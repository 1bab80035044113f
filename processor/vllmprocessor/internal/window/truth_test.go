package window

import (
	"maps"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// The expected values of these tests follow from the rules of the window, worked out
// by hand. All times are seconds after epoch.
const epoch = 1_700_000_000

func at(seconds float64) int64 { return int64(epoch)*1e9 + int64(seconds*1e9) }

// scrape observes a batch of engine 0 at a time.
func scrape(r *Resource, seconds float64, samples ...input.Sample) Report {
	return scrapeEngines(r, seconds, map[string][]input.Sample{"0": samples})
}

// scrapeEngines observes a batch of several engines. The front end of the server has
// the name "".
func scrapeEngines(r *Resource, seconds float64, engines map[string][]input.Sample) Report {
	b := &input.Batch{Time: at(seconds)}
	for name, samples := range maps.All(engines) {
		var attributes []input.Attribute
		if name != "" {
			attributes = []input.Attribute{{Name: "engine", Value: name}, {Name: "model_name", Value: "m"}}
		}
		b.Groups = append(b.Groups, input.GroupOf(attributes))
		for _, s := range samples {
			s.Group = len(b.Groups) - 1
			b.Samples = append(b.Samples, s)
		}
	}
	return r.Observe(b, math.MaxInt)
}

func tokens(value float64) input.Sample {
	return input.Sample{Input: input.PromptTokens, Value: value}
}

func success(reason input.Label, value float64) input.Sample {
	return input.Sample{Input: input.RequestSuccess, Label: reason, Value: value}
}

func waiting(value float64) input.Sample {
	return input.Sample{Input: input.Waiting, Value: value}
}

// latency is a point of a histogram with bounds.
func latency(sum float64, bounds []float64, counts ...float64) input.Sample {
	return input.Sample{Input: input.TimeToFirstToken, Bounds: bounds, Counts: counts, Sum: sum, HasSum: true}
}

func gone(s input.Sample) input.Sample {
	return input.Sample{Input: s.Input, Label: s.Label, Gone: true}
}

// only returns the one view of a resource.
func only(t *testing.T, r *Resource) *View {
	t.Helper()
	views := r.Views(nil, false)
	require.Len(t, views, 1)
	return &views[0]
}

func assertIncrease(t *testing.T, r *Resource, want float64) {
	t.Helper()
	got, status := only(t, r).Increase(input.PromptTokens)
	assert.Equal(t, Present, status)
	assert.Equal(t, want, got)
}

// The receiver reports a restart by the start time. The previous point is at 15 s and
// has counted 100, this one is at 30 s and has counted 150.
func TestAStartBetweenTwoPointsIsARestart(t *testing.T) {
	const grew, restarted = 50.0, 150.0
	for name, c := range map[string]struct {
		before, start float64
		want          float64
	}{
		"the same start":                           {0, 0, grew},
		"the start moved within the known time":    {0, 14.999, grew},
		"the start is the previous point":          {0, 15, restarted},
		"the start is between the points":          {0, 29.999, restarted},
		"the start is the point, so it is unknown": {0, 30, grew},
		"the start is later than the point":        {0, 31, grew},
		"the start was the previous point already": {15, 15, grew},
	} {
		t.Run(name, func(t *testing.T) {
			r := fresh()
			first, second := tokens(100), tokens(150)
			first.Start, second.Start = at(c.before), at(c.start)
			scrape(r, 15, first)
			report := scrape(r, 30, second)
			assertIncrease(t, r, c.want)
			assert.Equal(t, c.want == restarted, report.Resets == 1)
			when, ever := only(t, r).Restarted()
			assert.Equal(t, c.want == restarted, ever)
			if ever {
				assert.Equal(t, at(30), when)
			}
		})
	}
}

func TestACounterThatFallsCountsFromZero(t *testing.T) {
	r := fresh()
	for i, value := range []float64{100, 130, 5, 12} {
		scrape(r, float64(15*i), tokens(value))
	}
	assertIncrease(t, r, 30+5+7)
	total, _ := only(t, r).Total(input.PromptTokens)
	assert.Equal(t, 142.0, total)
	g := only(t, r).Group()
	assert.Equal(t, 142.0, g.Ever(input.PromptTokens))
}

// One engine restarts as a whole: its counters that did not fall count from 0 as well.
func TestACounterThatDidNotFallRestartsWithItsEngine(t *testing.T) {
	r := fresh()
	scrapeEngines(r, 0, map[string][]input.Sample{"0": {tokens(100), success("stop", 3)}, "1": {tokens(10)}})
	report := scrapeEngines(r, 15, map[string][]input.Sample{"0": {tokens(40), success("stop", 7)}, "1": {tokens(17)}})
	assert.Equal(t, 1, report.Resets)
	for _, view := range r.Views(nil, false) {
		got, _ := view.Increase(input.PromptTokens)
		if view.Group().Engine() == "0" {
			assert.Equal(t, 40.0, got)
			finished, _ := view.Increase(input.RequestSuccess)
			assert.Equal(t, 7.0, finished)
		} else {
			assert.Equal(t, 7.0, got)
		}
	}
}

// A batch can come in parts. What its later part reveals holds for the earlier one, too.
func TestARestartInALaterPartCorrectsTheEarlierPart(t *testing.T) {
	r := fresh()
	scrape(r, 0, success("stop", 3), tokens(100))
	scrape(r, 15, success("stop", 7))
	finished, _ := only(t, r).Increase(input.RequestSuccess)
	assert.Equal(t, 4.0, finished)
	report := scrape(r, 15, tokens(20))
	assert.Equal(t, 1, report.Resets)
	finished, _ = only(t, r).Increase(input.RequestSuccess)
	assert.Equal(t, 7.0, finished)
	assertIncrease(t, r, 20)
	scrape(r, 30, success("stop", 8), tokens(25))
	finished, _ = only(t, r).Increase(input.RequestSuccess)
	assert.Equal(t, 8.0, finished)
	assertIncrease(t, r, 25)
}

// The counters of the front end have no engine. It restarts with all engines, and not
// with some of them.
func TestTheFrontEndRestartsWithAllEngines(t *testing.T) {
	requests := func(value float64) input.Sample {
		return input.Sample{Input: input.HTTPRequests, Label: "200\x00/v1/completions\x00POST", Value: value}
	}
	served := func(r *Resource) float64 {
		for _, view := range r.Views(nil, false) {
			if view.Group().Engine() == "" {
				got, _ := view.Increase(input.HTTPRequests)
				return got
			}
		}
		return math.NaN()
	}
	for name, c := range map[string]struct {
		second map[string][]input.Sample
		resets int
		want   float64
	}{
		"all engines restart":                       {map[string][]input.Sample{"": {requests(50)}, "0": {tokens(1)}, "1": {tokens(2)}}, 3, 50},
		"one engine restarts":                       {map[string][]input.Sample{"": {requests(50)}, "0": {tokens(1)}, "1": {tokens(200)}}, 1, 10},
		"one engine restarts, the other is pending": {map[string][]input.Sample{"": {requests(50)}, "0": {tokens(1)}}, 1, 10},
		"one engine restarts, the other ends":       {map[string][]input.Sample{"": {requests(50)}, "0": {tokens(1)}, "1": {gone(tokens(0))}}, 2, 50},
		"the front end shows it by itself":          {map[string][]input.Sample{"": {requests(5)}, "0": {tokens(1)}, "1": {tokens(2)}}, 3, 5},
		"only the front end restarts":               {map[string][]input.Sample{"": {requests(5)}, "0": {tokens(101)}, "1": {tokens(102)}}, 1, 5},
	} {
		t.Run(name, func(t *testing.T) {
			r := fresh()
			scrapeEngines(r, 0, map[string][]input.Sample{"": {requests(40)}, "0": {tokens(100)}, "1": {tokens(100)}})
			report := scrapeEngines(r, 15, c.second)
			assert.Equal(t, c.resets, report.Resets)
			assert.Equal(t, c.want, served(r))
		})
	}
}

// The engine shows the restart one batch after the front end. The front end has restarted
// only once.
func TestTheFrontEndRestartsOnceWithItsEngines(t *testing.T) {
	r := fresh()
	requests := func(value float64) input.Sample {
		return input.Sample{Input: input.HTTPRequests, Label: "200", Value: value}
	}
	scrapeEngines(r, 0, map[string][]input.Sample{"": {requests(40)}, "0": {tokens(100)}})
	assert.Equal(t, 1, scrapeEngines(r, 15, map[string][]input.Sample{"": {requests(3)}}).Resets)
	assert.Equal(t, 1, scrapeEngines(r, 30, map[string][]input.Sample{"": {requests(10)}, "0": {tokens(1)}}).Resets)
	for _, view := range r.Views(nil, false) {
		if view.Group().Engine() == "" {
			got, _ := view.Increase(input.HTTPRequests)
			assert.Equal(t, 10.0, got)
		}
	}
}

// An engine that has been missing for two batches is not waited for.
func TestAnEngineThatIsGoneDoesNotHoldTheFrontEndBack(t *testing.T) {
	r := fresh()
	requests := func(value float64) input.Sample {
		return input.Sample{Input: input.HTTPRequests, Label: "200", Value: value}
	}
	scrapeEngines(r, 0, map[string][]input.Sample{"": {requests(40)}, "0": {tokens(100)}, "1": {tokens(100)}})
	scrapeEngines(r, 15, map[string][]input.Sample{"": {requests(40)}, "0": {tokens(100)}})
	assert.Equal(t, 2, scrapeEngines(r, 30, map[string][]input.Sample{"": {requests(50)}, "0": {tokens(1)}}).Resets)
}

// The counter counts the seconds, so its increase is the length of the window.
func TestTheWindowBeginsAtTheNewestBatchThatIsOldEnough(t *testing.T) {
	none := math.NaN()
	for name, c := range map[string]struct {
		window, staleness time.Duration
		times             []float64
		want              float64
	}{
		"the first batch":                       {time.Minute, 5 * time.Minute, []float64{0}, none},
		"less history than a window":            {time.Minute, 5 * time.Minute, []float64{0, 15, 30, 45, 59}, 59},
		"a batch exactly as old as the window":  {time.Minute, 5 * time.Minute, []float64{0, 15, 30, 45, 60, 75}, 60},
		"jitter":                                {time.Minute, 5 * time.Minute, []float64{0, 14, 30, 61, 75}, 61},
		"a gap of two windows":                  {time.Minute, 5 * time.Minute, []float64{0, 120}, 120},
		"a gap of more than two windows":        {time.Minute, 5 * time.Minute, []float64{0, 10, 131}, none},
		"after a gap":                           {time.Minute, 5 * time.Minute, []float64{0, 10, 131, 140}, 9},
		"a gap as long as the staleness":        {5 * time.Minute, 100 * time.Second, []float64{0, 50, 150}, 150},
		"a gap longer than the staleness":       {5 * time.Minute, 100 * time.Second, []float64{0, 50, 151}, none},
		"after a gap longer than the staleness": {5 * time.Minute, 100 * time.Second, []float64{0, 50, 151, 160}, 9},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewResource(Settings{Window: c.window, MaxStaleness: c.staleness})
			for _, seconds := range c.times {
				scrape(r, seconds, tokens(1000+seconds))
			}
			view := only(t, r)
			got, status := view.Increase(input.PromptTokens)
			if math.IsNaN(c.want) {
				assert.Equal(t, First, status)
				assert.Zero(t, view.Elapsed)
				return
			}
			assert.Equal(t, Present, status)
			assert.InDelta(t, c.want, got, 1e-9)
			assert.InDelta(t, c.want, view.Elapsed, 1e-9)
		})
	}
}

func TestTheLongWindowIsEmptyUntilItIsFull(t *testing.T) {
	r := fresh()
	for i := range 30 {
		scrape(r, float64(20*i), tokens(float64(20*i)))
		views := r.Views(nil, true)
		require.Len(t, views, 1)
		got, status := views[0].Increase(input.PromptTokens)
		if i < 15 {
			assert.Equal(t, First, status, i)
			continue
		}
		assert.Equal(t, Present, status, i)
		assert.Equal(t, 300.0, got)
		assert.Equal(t, 300.0, views[0].Elapsed)
	}
}

// A window that is longer than five minutes is the long window as well.
func TestTheLongWindowIsNeverTheShorterOne(t *testing.T) {
	r := NewResource(Settings{Window: 10 * time.Minute, MaxStaleness: 5 * time.Minute})
	for i := range 21 {
		scrape(r, float64(60*i), tokens(float64(60*i)))
	}
	assert.Equal(t, 600.0, r.Views(nil, true)[0].Elapsed)
	assert.Equal(t, 600.0, only(t, r).Elapsed)
}

// At ten batches a second the window begins less than two steps of 4 s too early,
// and nothing of what was counted is lost.
func TestFrequentBatchesShareTheirPlaces(t *testing.T) {
	r := fresh()
	for i := range 3000 {
		scrape(r, 0.1*float64(i), tokens(float64(i)))
		if i < 700 {
			continue
		}
		view := only(t, r)
		assert.GreaterOrEqual(t, view.Elapsed, 60.0)
		assert.LessOrEqual(t, view.Elapsed, 68.0)
		got, _ := view.Increase(input.PromptTokens)
		assert.InDelta(t, 10*view.Elapsed, got, 1e-6)
	}
	assert.LessOrEqual(t, int64(len(r.times)), int64(100), "five minutes at 4 s are 75 places")
}

func TestABatchThatIsOlderThanTheNewestIsRefused(t *testing.T) {
	r := fresh()
	scrape(r, 0, tokens(100))
	scrape(r, 15, tokens(110))
	report := scrape(r, 14, tokens(9000), success("stop", 1))
	assert.Equal(t, Report{Ignored: [NumReasons]int{OutOfOrder: 2}}, report)
	assertIncrease(t, r, 10)
}

func TestASecondPointAtOneTimeIsADuplicate(t *testing.T) {
	r := fresh()
	scrape(r, 0, tokens(100))
	report := scrape(r, 15, tokens(110), tokens(9000))
	assert.Equal(t, 1, report.Ignored[Duplicate])
	assert.Equal(t, 1, report.Used)
	assert.Equal(t, 1, scrape(r, 15, tokens(9000)).Ignored[Duplicate])
	assertIncrease(t, r, 10)
}

func TestABatchOfEndsIsNoObservation(t *testing.T) {
	r := fresh()
	scrape(r, 0, tokens(100), waiting(3))
	scrape(r, 15, tokens(110), waiting(3))
	report := scrape(r, 30, gone(waiting(0)))
	assert.Equal(t, Report{Changed: true, Used: 1}, report)
	assert.Equal(t, at(15), r.Time())
	assertIncrease(t, r, 10)
	_, status := only(t, r).Gauge(input.Waiting)
	assert.Equal(t, Gone, status)
	assert.Equal(t, Report{}, scrape(r, 30, gone(success("stop", 0))), "the end of a series that is not known")
}

func TestANewSeriesOfAKnownResourceCountsFromZero(t *testing.T) {
	r := fresh()
	scrape(r, 0, tokens(100))
	scrape(r, 15, tokens(100), success("stop", 4))
	finished, status := only(t, r).Increase(input.RequestSuccess)
	assert.Equal(t, Present, status)
	assert.Equal(t, 4.0, finished)
	scrape(r, 30, tokens(100), success("stop", 6), success("length", 1))
	finished, _ = only(t, r).Increase(input.RequestSuccess)
	assert.Equal(t, 7.0, finished)
	assert.Equal(t, map[input.Label]float64{"stop": 6, "length": 1}, maps.Collect(only(t, r).Increases(input.RequestSuccess)))
	for label, want := range map[input.Label]float64{"stop": 6, "length": 1, "error": 0} {
		got, status := only(t, r).IncreaseOf(input.RequestSuccess, label)
		assert.Equal(t, Present, status)
		assert.Equal(t, want, got, label)
	}
}

// The series comes back after more than MaxStaleness, in a resource that was read all
// the time.
func TestASeriesThatComesBackIsOnlyABaseline(t *testing.T) {
	for _, away := range []float64{300, 315} {
		r := fresh()
		scrape(r, 0, tokens(0), success("stop", 10))
		for s := 15.0; s < away; s += 15 {
			scrape(r, s, tokens(s))
		}
		scrape(r, away, tokens(away), success("stop", 1000))
		got, status := only(t, r).Increase(input.RequestSuccess)
		if away <= 300 {
			assert.Equal(t, Present, status)
			assert.Equal(t, 990.0, got, "it is known how much it grew")
		} else {
			assert.Equal(t, First, status)
			for s := 15.0; s <= 60; s += 15 {
				scrape(r, away+s, tokens(away), success("stop", 1000+s))
				got, status = only(t, r).Increase(input.RequestSuccess)
				assert.Equal(t, s == 60, status == Present, "the window begins before the series came back")
			}
			assert.Equal(t, 60.0, got)
		}
	}
}

func TestASeriesThatIsMissingIsPendingForOneBatch(t *testing.T) {
	r := fresh()
	scrape(r, 0, tokens(100), success("stop", 1))
	scrape(r, 15, tokens(100), success("stop", 5))
	_, status := only(t, r).Increase(input.Preemptions)
	assert.Equal(t, Missing, status)
	assert.False(t, only(t, r).Pending())
	scrape(r, 30, tokens(100))
	_, status = only(t, r).Increase(input.RequestSuccess)
	assert.Equal(t, Pending, status)
	assert.True(t, only(t, r).Pending())
	_, status = only(t, r).IncreaseOf(input.RequestSuccess, "stop")
	assert.Equal(t, Pending, status)
	scrape(r, 45, tokens(100))
	_, status = only(t, r).Increase(input.RequestSuccess)
	assert.Equal(t, Gone, status)
	assert.False(t, only(t, r).Pending())
}

// One reason of several has ended: what it counted within the window still counts.
func TestASeriesThatEndedCountsUntilItLeavesTheWindow(t *testing.T) {
	r := fresh()
	scrape(r, 0, success("stop", 1), success("abort", 1), success("length", 4))
	scrape(r, 15, success("stop", 3), success("abort", 2), success("length", 4))
	scrape(r, 30, success("stop", 3), gone(success("abort", 0)), gone(success("length", 0)))
	got, status := only(t, r).Increase(input.RequestSuccess)
	assert.Equal(t, Present, status)
	assert.Equal(t, 3.0, got)
	assert.Equal(t, map[input.Label]float64{"stop": 2, "abort": 1}, maps.Collect(only(t, r).Increases(input.RequestSuccess)))
	scrape(r, 80, success("stop", 3))
	got, _ = only(t, r).Increase(input.RequestSuccess)
	assert.Equal(t, 0.0, got)
	assert.Equal(t, map[input.Label]float64{"stop": 0}, maps.Collect(only(t, r).Increases(input.RequestSuccess)))
}

func TestADeltaIsTheIncreaseItself(t *testing.T) {
	delta := func(value float64) input.Sample {
		s := tokens(value)
		s.Delta = true
		return s
	}
	r := fresh()
	scrape(r, 0, delta(1000), waiting(1))
	scrape(r, 15, delta(7), waiting(1))
	assertIncrease(t, r, 7)
	scrape(r, 30, delta(2), waiting(1))
	assertIncrease(t, r, 9)
	scrape(r, 45, waiting(1))
	scrape(r, 60, waiting(1))
	assertIncrease(t, r, 9)
	scrape(r, 75, waiting(1))
	assertIncrease(t, r, 2)
	assert.False(t, only(t, r).Pending())
	// It is silent for longer than the staleness, and did not change in that time.
	for s := 90.0; s <= 600; s += 15 {
		scrape(r, s, waiting(1))
	}
	assertIncrease(t, r, 0)
	scrape(r, 615, delta(4), waiting(1))
	assertIncrease(t, r, 4)
	// The whole resource is silent for longer than the staleness.
	scrape(r, 1000, waiting(1))
	scrape(r, 1015, delta(5), waiting(1))
	assertIncrease(t, r, 5)
}

func TestACounterThatBecomesADeltaBeginsAnew(t *testing.T) {
	r := fresh()
	scrape(r, 0, tokens(100))
	delta := tokens(50)
	delta.Delta = true
	for s := 15.0; s < 75; s += 15 {
		assert.Zero(t, scrape(r, s, delta).Resets, "50 after 100 is an increase")
		_, status := only(t, r).Increase(input.PromptTokens)
		assert.Equal(t, First, status, "the window begins before the change")
	}
	scrape(r, 75, delta)
	assertIncrease(t, r, 4*50)
	for s := 90.0; s < 150; s += 15 {
		scrape(r, s, tokens(s))
		_, status := only(t, r).Increase(input.PromptTokens)
		assert.Equal(t, First, status, "the window begins before the change")
	}
	scrape(r, 150, tokens(155))
	assertIncrease(t, r, 65)
}

// A gauge that counts may fall without a restart: nothing is added then.
func TestAGaugeThatCountsMayFall(t *testing.T) {
	level := func(value float64) input.Sample {
		return input.Sample{Input: input.Preemptions, Level: true, Value: value}
	}
	r := fresh()
	for i, value := range []float64{10, 14, 3, 5} {
		assert.Zero(t, scrape(r, float64(15*i), level(value), tokens(1)).Resets)
	}
	got, status := only(t, r).Increase(input.Preemptions)
	assert.Equal(t, Present, status)
	assert.Equal(t, 4.0+0+2, got)
	// As a counter it begins again.
	scrape(r, 60, input.Sample{Input: input.Preemptions, Value: 100}, tokens(1))
	_, status = only(t, r).Increase(input.Preemptions)
	assert.Equal(t, First, status)
}
