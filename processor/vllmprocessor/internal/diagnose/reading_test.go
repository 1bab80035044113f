package diagnose

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// busy is an engine that reports every input that a signal is read from.
func busy(utilization float64) scraped {
	return scraped{
		engine: "0",
		gauges: map[input.Metric]float64{input.Running: 4, input.Waiting: 3, input.KVCacheUtilization: utilization},
		labelled: map[input.Metric]map[string]float64{
			input.SleepState: {"awake": 1}, input.WaitingByReason: {"deferred": 1, "capacity": 2},
		},
		counts: map[input.Metric]float64{
			input.PromptTokens: 6000, input.PromptTokensCached: 1500, input.GenerationTokens: 1200,
			input.Preemptions: 2, input.Drafts: 100, input.AcceptedTokens: 150, input.CorruptedRequests: 1,
			input.FailedTransfers: 3, input.Dropped: 5,
		},
		labelledCounts: map[input.Metric]map[string]float64{input.RequestSuccess: {"stop": 9, "error": 1}},
		observed: map[input.Metric][2]float64{
			input.TimeToFirstToken: {15, 0.4}, input.InterTokenLatency: {600, 0.05}, input.RequestGenerationTokens: {10, 80},
			input.QueueTime: {10, 0.1}, input.PrefillTime: {10, 0.2}, input.InferenceTime: {10, 1.5}, input.E2ERequestLatency: {10, 1.9},
			input.KVBlockIdle: {40, 1}, input.KVBlockReuseGap: {10, 1},
		},
	}
}

// A reading has the rates, means and shares of the window, worked out by hand: 4 scrapes
// of 15 s.
func TestAReadingHasWhatTheServerReportsOverTheWindow(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	engine := func() scraped { return busy(0.6) }
	for range 5 {
		r.scrape(answers(1), engine())
	}
	got := &r.engine("0").last
	assert.InDelta(t, 60, got.elapsed, 1e-9)
	for one, want := range map[signal.Signal]float64{
		signal.Running: 4, signal.Waiting: 3, signal.Deferred: 1, signal.KVUtilization: 0.6,
		signal.TimeToFirstToken: 0.4, signal.StepTime: 0.05, signal.FirstTokenRate: 1, signal.ArrivalRate: 1,
		// 2400 outputs of 0.05 s bring 4800 tokens less the 60 first ones.
		signal.InterTokenLatency: 0.05 * 2400 / 4740,
		signal.GenerationRate:    80, signal.PromptTokens: 400, signal.OutputTokens: 80,
		// A quarter of the prompts is found in the cache.
		signal.ComputedTokens: 300, signal.Preemptions: 8. / 60, signal.AcceptanceLength: 2.5,
		// Two wait for capacity, and one request a second gets its first token.
		signal.QueueWait: 2, signal.QueueTime: 0.1, signal.PrefillTime: 0.2, signal.FrontEnd: 0.3,
		signal.KVBlockReuses: 0.25, signal.KVPerToken: 0.6 / (4 * 440), signal.KVPerComputed: 0.6 / (4 * 340),
		signal.ErrorRatio: 0.1, signal.CorruptedRatio: 0.1, signal.FailedTransfers: 0.2, signal.DroppedRatio: 20. / 80,
	} {
		assert.InEpsilon(t, want, got.Signals[one], 1e-9, one.String())
	}
	assert.InDelta(t, 60, got.FirstTokens, 1e-9)
	assert.InDelta(t, 40, got.finished, 1e-9)
	assert.InDelta(t, 20, got.dropped, 1e-9)
	assert.InDelta(t, 80, got.Generation, 1e-9)
	// Prompts of 300 tokens a second, and 8 preempted requests of 400 and half of 80 a minute.
	assert.InDelta(t, 300+8*440/60., got.Computed, 1e-9)
	assert.InDelta(t, 3, got.waitingNow, 1e-9)

	// More requests wait at the end of the window than at its beginning: they arrived as well.
	more := engine()
	more.gauges[input.Waiting] = 9
	r.scrape(answers(1), more)
	assert.InEpsilon(t, 66/60., r.engine("0").last.Signals[signal.ArrivalRate], 1e-9)
	// The prefix cache counts hits where the server does not count cached prompt tokens. A
	// server that observes only requests which queued has no mean of the queue.
	r = newRig(t)
	other := engine()
	delete(other.counts, input.PromptTokensCached)
	other.counts[input.PrefixCacheHits], other.counts[input.PrefixCacheQueries] = 3000, 6000
	other.observed[input.QueueTime] = [2]float64{4, 0.1}
	other.observed[input.KVBlockIdle] = [2]float64{4, 1} // 16 evicted blocks are too few.
	r.minutes(2, answers(1), other)
	signals := &r.engine("0").last.Signals
	assert.InEpsilon(t, 200, signals[signal.ComputedTokens], 1e-9)
	assert.False(t, signal.Known(signals[signal.QueueTime]) || signal.Known(signals[signal.FrontEnd]) || signal.Known(signals[signal.KVBlockReuses]))
}

// What the server before the engines reports can come in a later part of the batch. Until
// then the engines are judged by what it reported last.
func TestWhatTheServerReportsLaterInABatchHoldsFromBefore(t *testing.T) {
	t.Parallel()
	for name, front := range map[string]func(s *scraped){
		"/health": func(s *scraped) { s.gauges[input.Healthy] = 0 },
		"5xx":     func(s *scraped) { http(s, 30, 70) },
		"dropped": func(s *scraped) { s.counts = map[input.Metric]float64{input.Dropped: 10} },
	} {
		r := newRig(t)
		r.minutes(12, answers(1), serves("0"))
		for range 24 {
			s := answers(1)
			front(&s)
			r.scrape(serves("0"))
			r.part(s)
		}
		assert.Equal(t, Failing, r.verdict("0").Condition, name)
	}
}

// A part of a batch that lacks what the engine reported before does not judge it.
func TestAPartOfABatchIsWaitedFor(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.minutes(12, answers(1), serves("0"), serves("1"))
	before := r.engine("1")
	for range 20 {
		half := serves("0")
		half.gauges, half.labelled = nil, nil
		r.scrape(answers(1), half)
		for _, v := range r.state.Values(r.window, allRows()) {
			assert.True(t, v.Pending, "neither of the engines has all of its parts")
		}
		rest := serves("0")
		rest.counts, rest.labelledCounts, rest.observed = nil, nil, nil
		r.part(rest, serves("1"))
		assert.Equal(t, r.at, r.engine("0").at)
	}
	assert.Same(t, before, r.engine("1"), "it was never taken for gone")
	assert.Equal(t, Healthy, r.verdict("0").Condition)
	assert.Equal(t, Healthy, r.verdict("1").Condition)
}

// The factors of steps and prefills compare with the baseline's model of the load.
func TestAStepThatTakesLongerAtTheSameLoadHasAFactor(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.minutes(12, answers(1), serves("0"))
	slow := serves("0")
	slow.observed[input.InterTokenLatency] = [2]float64{1485, 0.03}
	r.minutes(2, answers(1), slow)
	factor := r.engine("0").last.Signals[signal.StepFactor]
	assert.Greater(t, factor, 1.2)
	assert.Less(t, factor, 1.6, "at most as much as the step itself, of which 1.5 times")
}

// A number that is infinite is not known.
func TestAQueueThatIsNotServedHasNoEstimate(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.minutes(3, answers(1), standsStill("0"))
	assert.True(t, math.IsNaN(r.engine("0").last.Signals[signal.QueueWait]), "3 wait, and none is served")
}
