package window

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// preempted is a point of a counter of which a Ray also has a gauge.
func preempted(value float64) input.Sample {
	return input.Sample{Input: input.Preemptions, Value: value}
}

// asGauge is the point of its gauge, asDelta its point as a delta.
func asGauge(s input.Sample) input.Sample { s.Level = true; return s }

func asDelta(s input.Sample) input.Sample { s.Delta = true; return s }

func assertPreempted(t *testing.T, r *Resource, want float64) {
	t.Helper()
	got, status := only(t, r).Increase(input.Preemptions)
	assert.Equal(t, Present, status)
	assert.Equal(t, want, got)
}

// A sender of deltas drops the first point of the counter and does not change the gauge.
func TestTheFirstDeltaFollowsTheGauge(t *testing.T) {
	r := fresh()
	scrape(r, 0, asGauge(preempted(100)), asDelta(tokens(1)))
	scrape(r, 15, asDelta(preempted(5)), asDelta(tokens(1)))
	assertPreempted(t, r, 5)
	scrape(r, 30, asDelta(preempted(2)), asDelta(tokens(1)))
	assertPreempted(t, r, 7)
}

// A sender of deltas may leave out zeros: then only the gauge is there.
func TestASilentDeltaIsNotReplacedByTheGauge(t *testing.T) {
	r := fresh()
	scrape(r, 0, asGauge(preempted(100)), waiting(1))
	scrape(r, 15, asGauge(preempted(100)), waiting(1))
	scrape(r, 30, asDelta(preempted(3)), waiting(1))
	assertPreempted(t, r, 3)
	report := scrape(r, 45, asGauge(preempted(103)), waiting(1))
	assert.Equal(t, 1, report.Ignored[Duplicate])
	assertPreempted(t, r, 3)
	scrape(r, 60, asDelta(preempted(4)), waiting(1))
	assertPreempted(t, r, 7)
	for s := 75.0; s <= 105; s += 15 {
		scrape(r, s, asGauge(preempted(107)), waiting(1))
	}
	assertPreempted(t, r, 4)
}

// What the gauge counted before the first delta still counts within the window.
func TestTheGaugeCountsUntilTheFirstDelta(t *testing.T) {
	r := fresh()
	scrape(r, 0, asGauge(preempted(100)), waiting(1))
	scrape(r, 15, asGauge(preempted(110)), waiting(1))
	scrape(r, 30, asDelta(preempted(3)), waiting(1))
	assertPreempted(t, r, 13)
}

// Between the last gauge and the delta is a batch with neither, so it is not known when
// the delta begins.
func TestADeltaLongAfterTheGaugeIsABaseline(t *testing.T) {
	r := fresh()
	scrape(r, 0, asGauge(preempted(100)), waiting(1))
	scrape(r, 15, waiting(1))
	scrape(r, 30, asDelta(preempted(3)), waiting(1))
	_, status := only(t, r).Increase(input.Preemptions)
	assert.Equal(t, First, status)
}

// The parts of a batch can come one by one, the gauge before the counter.
func TestTheGaugeOfAnEarlierPartDoesNotReplaceTheCounter(t *testing.T) {
	r := fresh()
	scrape(r, 0, preempted(100), waiting(1))
	scrape(r, 15, asGauge(preempted(105)), waiting(1))
	_, status := only(t, r).Increase(input.Preemptions)
	assert.Equal(t, Pending, status)
	assert.Equal(t, 1, scrape(r, 15, preempted(105)).Used)
	assertPreempted(t, r, 5)
}

// A server that was updated has only the gauge from then on.
func TestTheGaugeReplacesACounterThatEnded(t *testing.T) {
	for _, counter := range []input.Sample{preempted(100), asDelta(preempted(100))} {
		r := fresh()
		scrape(r, 0, counter, waiting(1))
		scrape(r, 15, gone(counter), waiting(1))
		for s := 30.0; s <= 90; s += 15 {
			scrape(r, s, asGauge(preempted(s)), waiting(1))
		}
		assertPreempted(t, r, 60)
	}
}
