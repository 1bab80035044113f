package diagnose

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// sends is a server to which so many canaries were sent that were answered in 0.03 s. Without an answer
// for so many seconds; NaN where that is not known.
func sends(canaries, unanswered float64) scraped {
	s := answers(1)
	s.observed = map[input.Metric][2]float64{input.CanaryDuration: {canaries, 0.03}}
	if signal.Known(unanswered) {
		s.gauges[input.CanaryUnanswered] = unanswered
	}
	return s
}

// canary lets engine 0 serve so many canaries until the next scrape.
func (r *rig) canary(n float64) {
	for _, in := range []input.Metric{input.GenerationTokens, input.PromptTokens} {
		r.counters[series{"0", "", in}] += n
	}
	for in, value := range map[input.Metric]float64{input.TimeToFirstToken: 0.03, input.RequestGenerationTokens: 1} {
		key := series{"0", "", in}
		sums := r.sums[key]
		r.sums[key] = [2]float64{sums[0] + n, sums[1] + n*value}
		if r.buckets[key] == nil {
			r.buckets[key] = make([]float64, len(bounds)+1)
		}
		place, _ := slices.BinarySearch(bounds, value)
		r.buckets[key][place] += n
	}
}

// canaries are some scrapes of an idle server that is sent a canary before each.
func (r *rig) canaries(scrapes int) {
	for range scrapes {
		r.canary(1)
		r.scrape(sends(1, 0), rests("0"))
	}
}

// An engine that serves only canaries has no requests, also where one of them is counted by the receiver
// before the scrape and by the server after it.
func TestAnEngineThatServesOnlyCanariesIsIdle(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.canaries(20)
	for n := range 24 {
		r.canary(1)
		r.scrape(sends(float64(n%3), 0), rests("0")) // 0, 1, 2, and the same in all.
		assert.Equal(t, Idle, r.engine("0").Raw, n)
	}
	assert.Equal(t, "unknown idle", r.conditions("0"), "unknown at first")

	r = newRig(t)
	for range 20 {
		r.canary(1)
		r.scrape(answers(1), rests("0"))
	}
	assert.Equal(t, Healthy, r.verdict("0").Condition, "the same requests of a user")
}

// A request of a user among them is one.
func TestARequestBesideCanariesIsNoIdleness(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.canaries(20)
	r.canary(1)
	user := rests("0")
	user.counts[input.GenerationTokens], user.observed[input.TimeToFirstToken] = 40, [2]float64{1, 0.3}
	r.scrape(sends(1, 0), user)
	assert.Equal(t, Healthy, r.engine("0").Raw)
	assert.InDelta(t, 0.3, r.engine("0").last.Signals[signal.TimeToFirstToken], 1e-9)
	assert.InDelta(t, 40.0/60, r.engine("0").last.Signals[signal.GenerationRate], 1e-9)
}

// Windows with many canaries are not learned. What is learned of others is that of users.
func TestWindowsWithManyCanariesAreNotLearned(t *testing.T) {
	t.Parallel()
	learned := func(users, canaries float64) (windows int, ttft float64) {
		r := newRig(t)
		engine := serves("0")
		engine.observed[input.TimeToFirstToken] = [2]float64{users, 0.1}
		for range 80 {
			r.canary(canaries)
			r.scrape(sends(canaries, 0), engine)
		}
		b := r.engine("0").baseline
		return b.Windows, b.Usual(signal.TimeToFirstToken)
	}
	windows, _ := learned(8, 1) // 4 of 32 in a minute.
	assert.Zero(t, windows)
	windows, _ = learned(8, 0)
	assert.Greater(t, windows, 10)
	windows, ttft := learned(11, 1)
	assert.Greater(t, windows, 10)
	assert.InDelta(t, 0.1, ttft, 1e-9)
}

// hang is an idle server that hangs: canaries are not answered, and its gauges stay at 0.
func hang(t *testing.T) *rig {
	t.Helper()
	r := newRig(t)
	r.state.Keeper = &store{baselines: map[string][]byte{}, diagnoses: map[string][]byte{}}
	r.minutes(15, sends(0, 0), serves("0"))
	r.canaries(20)
	r.scrape(sends(0, 0), rests("0"))
	require.Equal(t, Idle, r.verdict("0").Condition, "one timeout shows nothing")
	r.scrape(sends(0, 27), rests("0"))
	require.Equal(t, Stalled, r.verdict("0").Condition)
	return r
}

// A hang between two requests is seen without any request of a user, and while it lasts.
func TestAHangOfAnIdleEngineIsSeenByCanaries(t *testing.T) {
	t.Parallel()
	r := hang(t)
	assert.Equal(t, 3, r.verdict("0").Severity)
	change := r.changes[len(r.changes)-1]
	assert.Contains(t, change.Words("", func(string) bool { return true }).Sentence, "Canary requests have not been answered for 27 s.")
	for n := range 40 {
		r.scrape(sends(0, 42+15*float64(n)), rests("0"))
		assert.Equal(t, Stalled, r.verdict("0").Condition)
	}
	assert.Equal(t, "unknown healthy idle stalled", r.conditions("0"))
}

// While tokens come, canaries wait in the queue.
func TestCanariesThatWaitInAQueueAreNoStall(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.minutes(15, sends(0, 0), serves("0"))
	for n := range 20 {
		r.scrape(sends(0, 27+15*float64(n)), serves("0"))
		assert.NotEqual(t, Stalled, r.verdict("0").Condition)
	}
	// The last token came after the first of the canaries was sent: a minute must pass, as with any request.
	var conditions []Condition
	engine := complete(rests("0"))
	engine.labelled = serves("0").labelled
	for n := range 6 {
		r.scrape(sends(0, 327+15*float64(n)), engine)
		conditions = append(conditions, r.verdict("0").Condition)
	}
	assert.NotContains(t, conditions[:4], Stalled, "the KV cache has changed at the first of them")
	assert.Equal(t, []Condition{Stalled, Stalled}, conditions[4:])
	// An answer before that is the end of the wait.
	r = newRig(t)
	r.minutes(15, sends(0, 0), serves("0"))
	r.scrape(sends(0, 27), serves("0"))
	for range 20 {
		r.scrape(sends(0, 0), rests("0"))
		assert.NotEqual(t, Stalled, r.verdict("0").Condition)
	}
}

// Which of several engines has a canary is not known.
func TestCanariesOfSeveralEnginesShowNoStall(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.minutes(5, sends(1, 0), rests("0"), rests("1"))
	for n := range 20 {
		r.scrape(sends(0, 27+15*float64(n)), rests("0"), rests("1"))
	}
	assert.Equal(t, Idle, r.verdict("0").Condition)
	assert.Equal(t, Idle, r.verdict("1").Condition)
}

// A stall that canaries show ends by an answer, progress, a restart or sleep, and not because the
// receiver does not know any more.
func TestAStallOfCanariesEnds(t *testing.T) {
	t.Parallel()
	unknown := math.NaN()
	awake := rests("0")
	awake.labelled = map[input.Metric]map[string]float64{input.SleepState: {"awake": 1}}
	for name, test := range map[string]struct {
		next func(*rig)
		want Condition
	}{
		"nothing is known":       {func(r *rig) { r.scrape(sends(0, unknown), rests("0")) }, Stalled},
		"the server is lost":     {func(r *rig) { r.minutes(2, answers(0)); r.minutes(1, sends(0, unknown), rests("0")) }, Stalled},
		"a canary is answered":   {func(r *rig) { r.canaries(5) }, Idle},
		"the receiver says so":   {func(r *rig) { r.minutes(2, sends(0, 0), rests("0")) }, Idle},
		"a user is served":       {func(r *rig) { r.minutes(5, sends(0, unknown), serves("0")) }, Healthy},
		"a restart":              {func(r *rig) { r.restart(); r.minutes(2, sends(0, unknown), rests("0")) }, Starting},
		"some time after it":     {func(r *rig) { r.restart(); r.minutes(8, sends(0, unknown), rests("0")) }, Idle},
		"it sleeps":              {func(r *rig) { r.minutes(2, sends(0, 57), sleeps()) }, Asleep},
		"it has slept":           {func(r *rig) { r.minutes(2, sends(0, unknown), sleeps()); r.minutes(4, sends(0, unknown), awake) }, Idle},
		"the collector restarts": {func(r *rig) { r.restartCollector(r.state.Keeper.(*store)); r.minutes(5, sends(0, unknown), rests("0")) }, Stalled},
		"it served in that time": {func(r *rig) {
			r.restartCollector(r.state.Keeper.(*store))
			r.canary(1)
			r.minutes(5, sends(0, unknown), rests("0"))
		}, Idle},
	} {
		r := hang(t)
		test.next(r)
		assert.Equal(t, test.want, r.verdict("0").Condition, name)
	}
}
