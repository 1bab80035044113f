package window

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// Each rule finds what the others cannot see.
func TestEachRuleFindsABadObservation(t *testing.T) {
	for name, c := range map[string]struct {
		leave []input.Metric
		act   func(e *times)
		want  bool
	}{
		"nothing": {nil, func(*times) {}, false},
		"a negative time alone": {
			[]input.Metric{input.E2ERequestLatency, input.PrefillTime, input.InferenceTime},
			func(e *times) { e.queue.observe(-20) }, true,
		},
		"a negative time that others hide": {
			[]input.Metric{input.E2ERequestLatency, input.PrefillTime, input.InferenceTime},
			func(e *times) {
				for range 10 {
					e.queue.observe(50)
				}
				e.queue.observe(-20)
			}, false,
		},
		"a negative time below the bounds of the others": {
			[]input.Metric{input.E2ERequestLatency, input.PrefillTime, input.InferenceTime},
			func(e *times) {
				for range 10 {
					e.queue.observe(21)
				}
				// The ten add up to more than 200 s without one of them 180 s.
				e.queue.observe(-40)
			}, true,
		},
		"a time in the open bucket, nothing near as a whole": {
			[]input.Metric{input.QueueTime},
			func(e *times) {
				for range 1000 {
					e.finish(0, 1, 900, 0)
				}
				e.unscheduled(1, 8000)
			}, true,
		},
		"a time in a bucket between": {
			[]input.Metric{input.QueueTime, input.PrefillTime},
			func(e *times) { e.finish(0, 1, 1, 0); e.unscheduled(1, 500) }, true,
		},
		"true times as long as the false one": {
			[]input.Metric{input.QueueTime, input.PrefillTime},
			func(e *times) { e.finish(0, 1, 8000, 0) }, false,
		},
		"a clock that was set back by less than a minute": {
			nil, func(e *times) { e.finish(1, 20, 41, -59) }, false,
		},
		"other requests": {
			[]input.Metric{input.QueueTime},
			func(e *times) { e.e2e.observe(1); e.unscheduled(1, 8000) }, false,
		},
	} {
		r := fresh()
		var e times
		samples := func() []input.Sample {
			all := e.samples()
			for _, in := range c.leave {
				all = without(all, in)
			}
			return all
		}
		e.finish(0.1, 0.2, 1, 0.01)
		scrape(r, 0, samples()...)
		c.act(&e)
		scrape(r, 15, samples()...)
		left := input.InferenceTime
		if slices.Contains(c.leave, left) {
			left = input.QueueTime
		}
		assert.Equal(t, c.want, statusOf(t, r, left) == Defective, name)
	}
}

func TestWithoutBucketsTheSumsAreCompared(t *testing.T) {
	r := fresh()
	sum := func(in input.Metric, sum float64) input.Sample {
		return input.Sample{Input: in, Counts: []float64{sum / 1000}, Count: sum / 1000, Sum: sum, HasSum: true}
	}
	point := func(seconds, e2e, inference float64) {
		a, b := sum(input.E2ERequestLatency, 1000*seconds), sum(input.InferenceTime, 1000*seconds)
		a.Sum, b.Sum = e2e, inference
		scrape(r, seconds, a, b)
	}
	point(0, 0, 0)
	point(10, 100, 100+600)
	assert.Equal(t, Present, statusOf(t, r, input.InferenceTime), "a minute for each request")
	point(20, 200, 100+600+100+601)
	assert.Equal(t, Defective, statusOf(t, r, input.InferenceTime))
}

// A point without a sum proves nothing, and neither does the one after it.
func TestASumThatIsMissingIsNotBad(t *testing.T) {
	r := fresh()
	var e times
	for i := range 4 {
		e.finish(100, 0.2, 1, 0.01)
		samples := without(without(e.samples(), input.E2ERequestLatency), input.InferenceTime)
		if i == 2 {
			for k := range samples {
				samples[k].HasSum, samples[k].Sum = false, 0
			}
		}
		scrape(r, float64(15*i), samples...)
		if i > 0 {
			assert.Equal(t, Present, statusOf(t, r, input.QueueTime), i)
		}
	}
}

// The first part of a batch seems bad until the second shows the restart.
func TestARestartInALaterPartIsNoBadObservation(t *testing.T) {
	for _, before := range []bool{false, true} {
		r := fresh()
		var old, young times
		old.queue.observe(50)
		scrape(r, 0, old.queue.sample(input.QueueTime), tokens(100))
		old.queue.observe(50)
		if before {
			old.queue.observe(-1000)
		}
		scrape(r, 15, old.queue.sample(input.QueueTime), tokens(100))
		// The new process has counted as much already, with less time.
		for range 3 {
			young.queue.observe(21)
			young.queue.observe(0)
		}
		scrape(r, 30, young.queue.sample(input.QueueTime))
		if !before {
			require.Equal(t, Defective, statusOf(t, r, input.QueueTime))
		}
		scrape(r, 30, tokens(1))
		assert.Equal(t, before, statusOf(t, r, input.QueueTime) == Defective)
	}
}
