package window

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

func TestAGaugeIsAveragedOverTheBatchesOfTheWindow(t *testing.T) {
	r := fresh()
	for i, value := range []float64{100, 40, 1, 2, 3, 6} {
		scrape(r, float64(15*i), waiting(value))
	}
	// The window begins at 15 s; its first batch is what the others are compared with.
	average, status := only(t, r).Average(input.Waiting)
	assert.Equal(t, Present, status)
	assert.Equal(t, (1.0+2+3+6)/4, average)
	change, status := only(t, r).Change(input.Waiting)
	assert.Equal(t, Present, status)
	assert.Equal(t, 6.0-40, change)
	value, status := only(t, r).Gauge(input.Waiting)
	assert.Equal(t, Present, status)
	assert.Equal(t, 6.0, value)
}

func TestTheFirstValueOfAGaugeIsItsAverage(t *testing.T) {
	r := fresh()
	scrape(r, 0, waiting(7))
	average, status := only(t, r).Average(input.Waiting)
	assert.Equal(t, Present, status)
	assert.Equal(t, 7.0, average)
	_, status = only(t, r).Change(input.Waiting)
	assert.Equal(t, First, status)
}

// Before a gauge was first read it had no value, not 0.
func TestANewGaugeIsAveragedSinceItsFirstValue(t *testing.T) {
	r := fresh()
	scrape(r, 0, tokens(1))
	scrape(r, 15, tokens(1))
	scrape(r, 30, tokens(1), waiting(8))
	scrape(r, 45, tokens(1), waiting(10))
	average, _ := only(t, r).Average(input.Waiting)
	assert.Equal(t, 9.0, average)
	_, status := only(t, r).Change(input.Waiting)
	assert.Equal(t, First, status)
}

// A gauge that one batch lacks keeps its value there.
func TestABatchWithoutTheGaugeCountsWithTheValueBefore(t *testing.T) {
	r := fresh()
	scrape(r, 0, tokens(1), waiting(50))
	scrape(r, 15, tokens(1), waiting(2))
	scrape(r, 30, tokens(1))
	_, status := only(t, r).Average(input.Waiting)
	assert.Equal(t, Pending, status)
	scrape(r, 45, tokens(1), waiting(5))
	average, status := only(t, r).Average(input.Waiting)
	assert.Equal(t, Present, status)
	assert.Equal(t, (2.0+2+5)/3, average)
}

func TestTheValuesOfALabelAreReadOneByOne(t *testing.T) {
	reason := func(label input.Label, value float64) input.Sample {
		return input.Sample{Input: input.WaitingByReason, Label: label, Value: value}
	}
	r := fresh()
	scrape(r, 0, reason("capacity", 1), reason("deferred", 10), reason("old", 3))
	scrape(r, 15, reason("capacity", 3), reason("deferred", 20), gone(reason("old", 0)))
	scrape(r, 30, reason("capacity", 5), reason("deferred", 20))
	view := only(t, r)
	for label, want := range map[input.Label]struct {
		last, average float64
		status        Status
	}{
		"capacity": {5, 4, Present}, "deferred": {20, 20, Present}, "never": {0, 0, Missing},
	} {
		last, status := view.GaugeOf(input.WaitingByReason, label)
		assert.Equal(t, want.status, status)
		assert.Equal(t, want.last, last)
		average, status := view.AverageOf(input.WaitingByReason, label)
		assert.Equal(t, want.status, status)
		assert.Equal(t, want.average, average)
	}
	_, status := view.GaugeOf(input.WaitingByReason, "old")
	assert.Equal(t, Gone, status)
	_, status = view.AverageOf(input.WaitingByReason, "old")
	assert.Equal(t, Gone, status)
	assert.Equal(t, map[input.Label]float64{"capacity": 5, "deferred": 20}, maps.Collect(view.States(input.WaitingByReason)))
	for range view.States(input.WaitingByReason) {
		break
	}
	sum, _ := view.Gauge(input.WaitingByReason)
	assert.Equal(t, 25.0, sum)
	average, _ := view.Average(input.WaitingByReason)
	assert.Equal(t, 24.0, average)
}

// The configuration of the cache carries the engine and no model.
func TestAStateOfTheEngineIsFoundWithoutTheModel(t *testing.T) {
	r := fresh()
	b := &input.Batch{Time: at(0)}
	add := func(value float64, attributes ...input.Attribute) {
		b.Groups = append(b.Groups, input.GroupOf(attributes))
		b.Samples = append(b.Samples, input.Sample{Input: input.KVCacheBlocks, Group: len(b.Groups) - 1, Value: value})
	}
	engine := func(name string) input.Attribute { return input.Attribute{Name: "engine", Value: name} }
	model := input.Attribute{Name: "model_name", Value: "m"}
	add(5, engine("1"))
	add(7, engine("0"))
	b.Groups = append(b.Groups, input.GroupOf([]input.Attribute{engine("0"), model}))
	b.Samples = append(b.Samples, input.Sample{Input: input.Running, Group: 2, Value: 1, Older: true})
	r.Observe(b, math.MaxInt)
	for _, view := range r.Views(nil, false) {
		if view.Group().Value("model_name") != "m" {
			assert.False(t, view.Older(input.KVCacheBlocks))
			continue
		}
		blocks, status := view.Engine(input.KVCacheBlocks)
		assert.Equal(t, Present, status)
		assert.Equal(t, 7.0, blocks)
		running, status := view.Engine(input.Running)
		assert.Equal(t, Present, status)
		assert.Equal(t, 1.0, running)
		_, status = view.Engine(input.Waiting)
		assert.Equal(t, Missing, status)
		assert.True(t, view.Older(input.Running))
	}
}

var bounds = []float64{1, 2, 5}

// read returns what a distribution counted in the window.
func read(t *testing.T, r *Resource) (Histogram, Status) {
	t.Helper()
	var h Histogram
	status := only(t, r).AddTo(&h, input.TimeToFirstToken)
	return h, status
}

func TestADistributionGrowsByItsBuckets(t *testing.T) {
	r := fresh()
	scrape(r, 0, latency(100, bounds, 10, 20, 30, 40))
	_, status := read(t, r)
	assert.Equal(t, First, status)
	scrape(r, 15, latency(112, bounds, 11, 22, 33, 40))
	h, status := read(t, r)
	assert.Equal(t, Present, status)
	assert.Equal(t, Histogram{Bounds: bounds, Counts: []float64{1, 2, 3, 0}, Count: 6, Sum: 12, HasSum: true}, h)
	count, sum, hasSum, status := only(t, r).Moments(input.TimeToFirstToken)
	assert.Equal(t, Present, status)
	assert.True(t, hasSum)
	assert.Equal(t, []float64{6, 12}, []float64{count, sum})
	for bound, want := range map[float64]float64{1: 1, 2: 3, 5: 6} {
		n, status := only(t, r).AtMost(input.TimeToFirstToken, bound)
		assert.Equal(t, Present, status)
		assert.Equal(t, want, n)
	}
	_, status = only(t, r).AtMost(input.TimeToFirstToken, 3)
	assert.Equal(t, Missing, status, "3 is not one of the bounds")
	_, status = only(t, r).AtMost(input.QueueTime, 1)
	assert.Equal(t, Missing, status)
}

// All counts rise, only the sum falls: with negative observations it may.
func TestAFallingSumDoesNotRestartTheEngine(t *testing.T) {
	r := fresh()
	scrape(r, 0, latency(100, bounds, 10, 20, 30, 40))
	assert.Zero(t, scrape(r, 15, latency(99, bounds, 11, 20, 30, 40)).Resets)
	_, sum, _, _ := only(t, r).Moments(input.TimeToFirstToken)
	assert.Equal(t, -1.0, sum)
}

func TestABucketThatFallsIsARestart(t *testing.T) {
	for bucket := range 4 {
		r := fresh()
		counts := []float64{10, 20, 30, 40}
		scrape(r, 0, latency(100, bounds, counts...))
		after := slices.Clone(counts)
		after[bucket]--
		assert.Equal(t, 1, scrape(r, 15, latency(100, bounds, after...)).Resets)
		h, _ := read(t, r)
		assert.Equal(t, after, h.Counts)
	}
}

func TestADistributionWithoutBucketsRestartsWhenItsCountFalls(t *testing.T) {
	r := fresh()
	scrape(r, 0, latency(100, nil, 10))
	assert.Zero(t, scrape(r, 15, latency(101, nil, 12)).Resets)
	assert.Equal(t, 1, scrape(r, 30, latency(3, nil, 4)).Resets)
	count, sum, _, _ := only(t, r).Moments(input.TimeToFirstToken)
	assert.Equal(t, []float64{6, 4}, []float64{count, sum})
}

// Before the restart the bounds were others: both parts count, each in its buckets.
func TestARestartWithOtherBucketsKeepsWhatTheOldOnesCounted(t *testing.T) {
	r := fresh()
	scrape(r, 0, latency(100, bounds, 10, 20, 30, 40))
	scrape(r, 15, latency(103, bounds, 13, 20, 30, 40))
	assert.Equal(t, 1, scrape(r, 30, latency(4, []float64{1, 4}, 2, 1, 0)).Resets)
	count, sum, _, status := only(t, r).Moments(input.TimeToFirstToken)
	assert.Equal(t, Present, status)
	assert.Equal(t, []float64{6, 7}, []float64{count, sum})
	n, _ := only(t, r).AtMost(input.TimeToFirstToken, 1)
	assert.Equal(t, 5.0, n)
	_, status = only(t, r).AtMost(input.TimeToFirstToken, 4)
	assert.Equal(t, Missing, status, "the old buckets do not have it")
	// Once the long window begins after the restart only the new buckets are kept.
	for s := 45.0; s <= 360; s += 15 {
		scrape(r, s, latency(4, []float64{1, 4}, 2, 1, 0))
	}
	count, _, _, _ = only(t, r).Moments(input.TimeToFirstToken)
	assert.Zero(t, count)
	assert.Nil(t, r.groups[0].inputs.of(input.TimeToFirstToken)[0].rest().before)
}

// Of a server that has other buckets with every scrape some generations are kept.
func TestGenerationsOfBucketsAreBounded(t *testing.T) {
	r := NewResource(Settings{Window: fresh().settings.Window, MaxStaleness: fresh().settings.MaxStaleness})
	for i := range 12 {
		scrape(r, float64(5*i), latency(1, []float64{float64(i + 1)}, 1, 0))
	}
	depth := 0
	for s := r.groups[0].inputs.of(input.TimeToFirstToken)[0]; s != nil; s = s.rest().before {
		depth++
	}
	assert.Equal(t, generations+1, depth)
}

// What an earlier part of a batch said stays where a later part shows that the engine has restarted; only cumulative
// counters begin at 0.
func TestGaugesAndDeltasOfABatchDoNotBeginAnewInItsLaterPart(t *testing.T) {
	r := fresh()
	scrape(r, 0, tokens(100), waiting(5), asDelta(preempted(3)))
	scrape(r, 15, waiting(7), asDelta(preempted(2)))
	assert.Equal(t, 1, scrape(r, 15, tokens(4)).Resets)
	value, _ := only(t, r).Gauge(input.Waiting)
	assert.Equal(t, 7.0, value)
	assertPreempted(t, r, 2)
}

func TestTheHighestBucketThatEverCounted(t *testing.T) {
	highest := func(r *Resource) (float64, bool, bool) { return only(t, r).Highest(input.TimeToFirstToken) }
	r := fresh()
	scrape(r, 0, latency(0, bounds, 0, 0, 0, 0))
	_, _, known := highest(r)
	assert.False(t, known)
	for i, c := range []struct {
		counts []float64
		bound  float64
		open   bool
	}{
		{[]float64{1, 0, 0, 0}, 1, false}, {[]float64{1, 0, 1, 0}, 5, false}, {[]float64{1, 0, 1, 1}, 5, true},
	} {
		scrape(r, float64(15*(i+1)), latency(0, bounds, c.counts...))
		bound, open, known := highest(r)
		assert.True(t, known)
		assert.Equal(t, c.open, open)
		assert.Equal(t, c.bound, bound)
	}
	_, _, known = only(t, r).Highest(input.QueueTime)
	assert.False(t, known)
	r = fresh()
	scrape(r, 0, latency(3, nil, 3))
	_, _, known = highest(r)
	assert.False(t, known, "it has no buckets")
}

func TestASumThatIsMissingOnceIsMissingInTheWindow(t *testing.T) {
	r := fresh()
	without := latency(0, bounds, 3, 0, 0, 0)
	without.HasSum = false
	scrape(r, 0, latency(1, bounds, 1, 0, 0, 0))
	scrape(r, 15, latency(2, bounds, 2, 0, 0, 0))
	scrape(r, 30, without)
	scrape(r, 45, latency(4, bounds, 4, 0, 0, 0))
	_, _, hasSum, _ := only(t, r).Moments(input.TimeToFirstToken)
	assert.False(t, hasSum)
	for s := 60.0; s <= 90; s += 15 {
		scrape(r, s, latency(4, bounds, 4, 0, 0, 0))
	}
	_, _, hasSum, _ = only(t, r).Moments(input.TimeToFirstToken)
	assert.False(t, hasSum, "the window begins at the point without a sum")
	scrape(r, 105, latency(4, bounds, 4, 0, 0, 0))
	_, _, hasSum, _ = only(t, r).Moments(input.TimeToFirstToken)
	assert.True(t, hasSum)
}

// A step is what a distribution counted since its previous point.
func TestAStepIsTheIncreaseSinceThePreviousPoint(t *testing.T) {
	settings := fresh().settings
	settings.Steps[input.TimeToFirstToken] = true
	r := NewResource(settings)
	step := func() (float64, Histogram, bool) {
		since, h, status := only(t, r).Step(input.TimeToFirstToken)
		if status != Present {
			return 0, Histogram{}, false
		}
		return float64(since-at(0)) / 1e9, *h, true
	}
	scrape(r, 0, latency(100, bounds, 10, 20, 30, 40), tokens(1))
	_, _, ok := step()
	assert.False(t, ok, "there is nothing before")
	scrape(r, 15, latency(104, bounds, 12, 20, 31, 40), tokens(1))
	since, h, ok := step()
	require.True(t, ok)
	assert.Equal(t, 0.0, since)
	assert.Equal(t, Histogram{Bounds: bounds, Counts: []float64{2, 0, 1, 0}, Count: 3, Sum: 4, HasSum: true}, h)
	scrape(r, 30, tokens(1))
	_, _, ok = step()
	assert.False(t, ok, "it has no point in the newest batch")
	scrape(r, 45, latency(104, bounds, 12, 20, 31, 41), tokens(1))
	since, h, _ = step()
	assert.Equal(t, 15.0, since)
	assert.Equal(t, []float64{0, 0, 0, 1}, h.Counts)
	// A restart: the step counts from 0.
	scrape(r, 60, latency(1, bounds, 3, 0, 0, 0), tokens(1))
	since, h, _ = step()
	assert.Equal(t, 45.0, since)
	assert.Equal(t, []float64{3, 0, 0, 0}, h.Counts)
	// A restart with other buckets.
	scrape(r, 75, latency(9, []float64{1}, 2, 3), tokens(1))
	since, h, _ = step()
	assert.Equal(t, 60.0, since)
	assert.Equal(t, []float64{2, 3}, h.Counts)
	assert.Equal(t, 9.0, h.Sum)
	scrape(r, 75, gone(latency(0, nil)))
	_, _, ok = step()
	assert.True(t, ok, "an end at the time of the point is ignored")
	scrape(r, 76, gone(latency(0, nil)))
	_, _, ok = step()
	assert.False(t, ok)
}

// A new series in a known resource: its step counts from 0, since the previous batch.
func TestTheFirstStepOfANewSeriesBeginsAtThePreviousBatch(t *testing.T) {
	settings := fresh().settings
	settings.Steps[input.TimeToFirstToken] = true
	r := NewResource(settings)
	scrape(r, 0, tokens(1))
	scrape(r, 15, tokens(1))
	scrape(r, 30, tokens(1), latency(5, bounds, 1, 1, 0, 0))
	since, h, status := only(t, r).Step(input.TimeToFirstToken)
	require.Equal(t, Present, status)
	assert.Equal(t, at(15), since)
	assert.Equal(t, []float64{1, 1, 0, 0}, h.Counts)
	_, _, status = only(t, r).Step(input.QueueTime)
	assert.Equal(t, Missing, status)
}

// The processes of a server report different values: the gauge is unknown as long as they
// do, and not missing.
func TestAGaugeThatContradictsItselfIsDefective(t *testing.T) {
	r := fresh()
	unclear := func(seconds float64) {
		b := &input.Batch{Time: at(seconds)}
		b.Groups = []input.Group{input.GroupOf([]input.Attribute{{Name: "engine", Value: "0"}, {Name: "model_name", Value: "m"}})}
		b.Samples = []input.Sample{{Input: input.PromptTokens, Value: 5}}
		b.Contradicted = []input.Sample{{Input: input.KVCacheUtilization}}
		r.Observe(b, math.MaxInt)
	}
	used := input.Sample{Input: input.KVCacheUtilization, Value: 0.5}
	for _, before := range []bool{false, true} {
		r = fresh()
		if before {
			scrape(r, 0, tokens(1), used)
		}
		scrape(r, 15, tokens(1))
		unclear(30)
		unclear(45)
		for _, read := range []func(*View) (float64, Status){
			func(v *View) (float64, Status) { return v.Gauge(input.KVCacheUtilization) },
			func(v *View) (float64, Status) { return v.Average(input.KVCacheUtilization) },
			func(v *View) (float64, Status) { return v.Change(input.KVCacheUtilization) },
		} {
			_, status := read(only(t, r))
			assert.Equal(t, Defective, status)
		}
		_, status := only(t, r).Gauge(input.Waiting)
		assert.Equal(t, Missing, status)
		scrape(r, 60, tokens(6), used)
		value, status := only(t, r).Gauge(input.KVCacheUtilization)
		assert.Equal(t, Present, status)
		assert.Equal(t, 0.5, value)
	}
}
