package diagnose

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// Each condition follows from what docs/diagnosis.md says about it. What happens begins
// after ten healthy minutes.
func TestEachConditionFollowsFromItsRule(t *testing.T) {
	t.Parallel()
	with := func(change func(s *scraped)) func() []scraped {
		return func() []scraped {
			s := finishes("0")
			change(&s)
			return []scraped{answers(1), s}
		}
	}
	server := func(change func(s *scraped)) func() []scraped {
		return func() []scraped {
			s := answers(1)
			change(&s)
			return []scraped{s, finishes("0")}
		}
	}
	errors := func(bad, good float64) func() []scraped {
		return with(func(s *scraped) {
			s.labelledCounts[input.RequestSuccess] = map[string]float64{"stop": good, "error": bad}
		})
	}
	for name, test := range map[string]struct {
		scrape func() []scraped
		want   Condition
	}{
		"nothing happens": {with(func(*scraped) {}), Healthy},
		"no requests":     {func() []scraped { return []scraped{answers(1), rests("0")} }, Idle},
		"it sleeps": {with(func(s *scraped) {
			s.labelled[input.SleepState] = map[string]float64{"awake": 0, "weights_offloaded": 1}
		}), Asleep},
		"nothing moves":    {func() []scraped { return []scraped{answers(1), standsStill("0")} }, Stalled},
		"nothing answers":  {func() []scraped { return []scraped{answers(0)} }, Unreachable},
		"/health fails":    {server(func(s *scraped) { s.gauges[input.Healthy] = 0 }), Failing},
		"/health succeeds": {server(func(s *scraped) { s.gauges[input.Healthy] = 1 }), Healthy},
		"pod is deleted":   {server(func(s *scraped) { s.gauges[input.PodTerminating] = 1 }), Draining},
		"pod is not":       {server(func(s *scraped) { s.gauges[input.PodTerminating] = 0 }), Healthy},
		// 5 % of at least 3 requests is degraded, 20 % is failing.
		"4 % errors":     {errors(0.6, 14.4), Healthy},
		"6 % errors":     {errors(0.9, 14.1), Degraded},
		"19 % errors":    {errors(19, 81), Degraded},
		"21 % errors":    {errors(21, 79), Failing},
		"4 % corrupted":  {with(func(s *scraped) { s.counts[input.CorruptedRequests] = 0.6 }), Healthy},
		"6 % corrupted":  {with(func(s *scraped) { s.counts[input.CorruptedRequests] = 0.9 }), Degraded},
		"40 % corrupted": {with(func(s *scraped) { s.counts[input.CorruptedRequests] = 6 }), Failing},
		// Any dropped request is harm; a fifth of what arrives is failing.
		"one dropped":      {with(func(s *scraped) { s.counts[input.Dropped] = 0.25 }), Degraded},
		"none dropped":     {with(func(s *scraped) { s.counts[input.Dropped] = 0 }), Healthy},
		"20 % dropped":     {with(func(s *scraped) { s.counts[input.Dropped] = 3.75 }), Failing},
		"18 % dropped":     {with(func(s *scraped) { s.counts[input.Dropped] = 15 * 18 / 82. }), Degraded},
		"22 % dropped":     {with(func(s *scraped) { s.counts[input.Dropped] = 15 * 22 / 78. }), Failing},
		"dropped in front": {server(func(s *scraped) { s.counts = map[input.Metric]float64{input.Dropped: 15 * 22 / 78.} }), Failing},
		"18 % in front":    {server(func(s *scraped) { s.counts = map[input.Metric]float64{input.Dropped: 15 * 18 / 82.} }), Degraded},
		"4 % 5xx":          {server(func(s *scraped) { http(s, 4, 96) }), Healthy},
		"6 % 5xx":          {server(func(s *scraped) { http(s, 6, 94) }), Degraded},
		"21 % 5xx":         {server(func(s *scraped) { http(s, 21, 79) }), Failing},
		"no latencies": {with(func(s *scraped) {
			delete(s.observed, input.TimeToFirstToken)
			delete(s.observed, input.InterTokenLatency)
		}), Healthy},
		// What a factor costs is harmful from 28 % above the usual latency and 90 ms, or 4.5 ms,
		// on. Half of it is less than what the noise can be.
		"front end 40 ms slower":     {with(func(s *scraped) { later(s, 0.04) }), Healthy},
		"front end 120 ms slower":    {with(func(s *scraped) { later(s, 0.12) }), Degraded},
		"further tokens 2 ms later":  {with(func(s *scraped) { s.observed[input.InterTokenLatency] = [2]float64{1485, 0.022} }), Healthy},
		"further tokens 10 ms later": {with(func(s *scraped) { s.observed[input.InterTokenLatency] = [2]float64{1485, 0.03} }), Degraded},
		"first tokens come at once":  {with(func(s *scraped) { s.observed[input.TimeToFirstToken] = [2]float64{15, 0.01} }), Healthy},
		"one waits for a short time": {with(func(s *scraped) { s.gauges[input.Waiting] = 1 }), Healthy},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.minutes(12, answers(1), finishes("0"))
			require.Equal(t, Healthy, r.verdict("0").Condition)
			if name == "no latencies" {
				r.minutes(2, test.scrape()...)
				require.Equal(t, NoLatencies, func() Because {
					r := newRig(t)
					r.minutes(2, test.scrape()...)
					return r.verdict("0").Because
				}())
			}
			for range 40 {
				r.scrape(test.scrape()...)
			}
			assert.Equal(t, test.want, r.verdict("0").Condition)
			assert.Equal(t, conditions[test.want].Severity, r.verdict("0").Severity)
		})
	}
}

// It takes three bad answers in a window: of few requests a single one is a large share.
func TestFewErrorsAreNoHarm(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		bad  float64 // for each scrape, so that a window has four times as many
		want Condition
	}{"2.4 of 6": {0.6, Healthy}, "3.2 of 6": {0.8, Failing}} {
		ends := serves("0")
		ends.observed[input.TimeToFirstToken] = [2]float64{1.5, 0.1}
		ends.observed[input.RequestGenerationTokens] = [2]float64{1.5, 100}
		refused := ends
		ends.labelledCounts = map[input.Metric]map[string]float64{input.RequestSuccess: {"stop": 1.5 - test.bad, "error": test.bad}}
		front := answers(1)
		http(&front, test.bad, 1.5-test.bad)
		dropped := answers(1)
		dropped.counts = map[input.Metric]float64{input.Dropped: test.bad}
		for way, scrape := range map[string][]scraped{"ended by the engine": {answers(1), ends}, "refused by the front end": {front, refused}, "dropped": {dropped, refused}} {
			r := newRig(t)
			r.minutes(8, scrape...)
			want := test.want
			if way == "dropped" && want == Healthy {
				want = Degraded // any dropped request is harm
			}
			assert.Equal(t, want, r.verdict("0").Condition, "%s, %s", name, way)
		}
	}
}

// later makes the front end slower by some seconds, and with it the first tokens and the
// whole of a request.
func later(s *scraped, seconds float64) {
	for _, in := range []input.Metric{input.TimeToFirstToken, input.E2ERequestLatency} {
		s.observed[in] = [2]float64{s.observed[in][0], s.observed[in][1] + seconds}
	}
}

// http adds requests that the server answered with 500, and others with 200. Those for
// /metrics are no requests of users.
func http(s *scraped, bad, good float64) {
	s.labelledCounts = map[input.Metric]map[string]float64{input.HTTPRequests: {
		"500\x00/v1/completions\x00POST": bad, "200\x00/v1/completions\x00POST": good, "200\x00/metrics\x00GET": 1000,
	}}
}

// A server whose health check fails is starting for as long as start_timeout, and failing
// after it.
func TestAFailingHealthCheckOfANewServerIsAStart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	s := answers(1)
	s.gauges[input.Healthy] = 0
	for n := range 60 {
		r.scrape(s, serves("0"))
		if age := time.Duration(n) * 15 * time.Second; age < r.settings.StartTimeout {
			require.Equal(t, Starting, r.verdict("0").Condition, age)
		}
	}
	assert.Equal(t, Failing, r.verdict("0").Condition)
}

// An engine that already stands still when it is seen first is unknown, never healthy,
// and stalled after a minute.
func TestAnEngineThatStandsStillFromTheStartIsUnknownAndThenStalled(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for n := range 10 {
		r.scrape(answers(1), standsStill("0"))
		want := Unknown
		if n >= 4 {
			want = Stalled
		}
		assert.Equal(t, want, r.verdict("0").Condition, "scrape %d", n)
	}
}

// Standing still takes a minute and three scrapes: with scrapes a minute apart, three
// minutes.
func TestAStallTakesAMinuteAndThreeScrapes(t *testing.T) {
	t.Parallel()
	for apart, after := range map[time.Duration]time.Duration{5 * time.Second: time.Minute, 15 * time.Second: time.Minute, time.Minute: 3 * time.Minute} {
		r := newRig(t)
		step := func(s scraped) {
			r.at += int64(apart) - scrape
			r.scrape(answers(1), s)
		}
		for range int(12 * time.Minute / apart) {
			step(serves("0"))
		}
		began := r.at
		for r.verdict("0").Condition != Stalled && r.at < began+int64(10*time.Minute) {
			step(standsStill("0"))
		}
		// The first scrape of the standstill still has the gauges of another load.
		assert.InDelta(t, float64(after+apart), float64(r.at-began), float64(apart), apart)
		step(serves("0"))
		assert.InDelta(t, 0, r.engine("0").last.Signals[signal.Standstill], 1e-9)
	}
}

// The gauges of an idle engine that show a cache in use for a minute are frozen.
func TestFrozenGaugesAreANotice(t *testing.T) {
	t.Parallel()
	for used, want := range map[float64]bool{0.49: false, 0.51: true} {
		r := newRig(t)
		r.minutes(10, answers(1), serves("0"))
		s := rests("0")
		s.gauges[input.KVCacheUtilization] = used
		r.minutes(5, answers(1), s)
		assert.Equal(t, Idle, r.verdict("0").Condition)
		assert.Equal(t, want, r.verdict("0").Notices[FrozenGauges], used)
		severity := 0
		if want {
			severity = 1
		}
		assert.Equal(t, severity, r.verdict("0").Severity)
	}
}

// Twice as many requests that are served as well as before are a notice; half as many
// more are none.
func TestAShiftOfTheWorkIsANotice(t *testing.T) {
	t.Parallel()
	for factor, want := range map[float64]bool{0.4: true, 1: false, 1.5: false, 2.2: true} {
		r := newRig(t)
		r.minutes(12, answers(1), serves("0"))
		s := serves("0")
		s.observed[input.TimeToFirstToken] = [2]float64{15 * factor, 0.1}
		s.counts[input.PromptTokens] *= factor
		s.counts[input.GenerationTokens] *= factor
		s.observed[input.InterTokenLatency] = [2]float64{1485 * factor, 0.02}
		s.observed[input.RequestGenerationTokens] = [2]float64{15 * factor, 100}
		r.minutes(2, answers(1), s)
		assert.Equal(t, Healthy, r.verdict("0").Condition)
		assert.Equal(t, want, r.verdict("0").Notices[WorkloadShift], factor)
	}
}

// Without a baseline, two documented numbers decide: 2 s and 100 ms.
func TestDefaultsJudgeBeforeABaseline(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		requests, first, gap, minutes float64
		want                          Condition
	}{
		"below both":                              {15, 1.9, 0.09, 10, Healthy},
		"first tokens":                            {15, 2.1, 0.09, 6, Degraded},
		"further tokens":                          {15, 1.9, 0.11, 6, Degraded},
		"first tokens, three times the limit":     {15, 6, 0.09, 3, Degraded},
		"further tokens, three times the limit":   {15, 1.9, 0.3, 3, Degraded},
		"two requests a minute can be judged":     {0.5, 2.1, 0.09, 6, Degraded},
		"two requests a minute can be judged too": {0.5, 1.9, 0.11, 6, Degraded},
		"one request a minute cannot":             {0.25, 9, 0.09, 10, Healthy},
		"but 25 steps of it can":                  {0.25, 1.9, 0.9, 6, Degraded},
	} {
		r := newRig(t)
		s := serves("0")
		s.observed[input.TimeToFirstToken] = [2]float64{test.requests, test.first}
		s.observed[input.InterTokenLatency] = [2]float64{99 * test.requests, test.gap}
		r.minutes(test.minutes, answers(1), s)
		assert.Equal(t, test.want, r.verdict("0").Condition, name)
		if test.want == Degraded {
			assert.Equal(t, Defaults, r.verdict("0").Reference, name)
		}
	}
}

// The usual latencies are learned only of windows without harm. An engine that is beyond the
// defaults from the start has none to compare with until relearn_after has passed.
func TestTheFirstBaselineIsLearnedOnlyWhileHealthy(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	slow := serves("0")
	slow.observed[input.TimeToFirstToken] = [2]float64{15, 3}
	r.minutes(1, answers(1), slow)
	assert.Zero(t, r.engine("0").baseline.Levels[signal.TimeToFirstToken], "what looks like harm is not learned before it is reported either")
	r.minutes(54, answers(1), slow)
	assert.Equal(t, Degraded, r.verdict("0").Condition)
	for _, of := range latencies {
		assert.Zero(t, r.engine("0").baseline.Levels[of], of.String())
	}
	r.minutes(10, answers(1), slow)
	assert.Equal(t, Healthy, r.verdict("0").Condition)
	assert.InEpsilon(t, 3, r.engine("0").baseline.Usual(signal.TimeToFirstToken), 0.01)

	r = newRig(t)
	bad := serves("0")
	bad.labelledCounts[input.RequestSuccess] = map[string]float64{"stop": 10, "error": 5}
	r.minutes(90, answers(1), bad)
	assert.Equal(t, Failing, r.verdict("0").Condition, "errors are never usual")
	assert.Zero(t, r.engine("0").baseline.Windows)
}

// A level follows the time of day. What varies is in the spread, and a window with fewer
// than 5 requests is not learned.
func TestABaselineFollowsWhatIsHealthy(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.minutes(4, answers(1), serves("0"))
	assert.False(t, r.engine("0").baseline.Ready(), "four windows are too few")
	r.minutes(3, answers(1), serves("0"))
	require.True(t, r.engine("0").baseline.Ready())
	assert.InEpsilon(t, 0.1, r.engine("0").baseline.Usual(signal.TimeToFirstToken), 1e-9)
	was := r.engine("0").baseline.Windows
	few := serves("0")
	few.observed[input.TimeToFirstToken] = [2]float64{1, 0.1}
	r.minutes(10, answers(1), few)
	assert.LessOrEqual(t, r.engine("0").baseline.Windows, was+3, "those of the minutes before are learned later")
	faster := serves("0")
	faster.observed[input.TimeToFirstToken] = [2]float64{15, 0.08}
	r.minutes(120, answers(1), faster)
	assert.InEpsilon(t, 0.08, r.engine("0").baseline.Usual(signal.TimeToFirstToken), 0.01)
}

// An engine that restarts is starting for three windows, and after that it is judged. One
// that restarts again and again is degraded with its third restart, after the hold.
func TestARestartIsAStartAndALoopOfThemIsHarm(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.minutes(12, answers(1), serves("0"))
	r.changes = nil
	r.restart()
	r.minutes(6, answers(1), serves("0"))
	assert.Equal(t, "starting healthy", r.conditions("0"))

	r = newRig(t)
	r.minutes(12, answers(1), serves("0"))
	r.changes = nil
	for n := range 14 {
		r.restart()
		r.minutes(1, answers(1), serves("0"))
		require.Equal(t, n > 2, r.verdict("0").Condition == Degraded, n)
	}
	assert.Equal(t, "starting degraded", r.conditions("0"))
	assert.True(t, r.verdict("0").Explained)
	assert.Equal(t, Restarting, r.verdict("0").Primary)
}

// Without a keeper, engines and servers end all the same.
func TestAnEngineEndsWithoutAKeeper(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.minutes(2, answers(1), serves("0"), serves("1"))
	r.minutes(1, answers(1), serves("0"))
	assert.Nil(t, r.engine("1"))
	r.state.End()
	assert.Empty(t, r.state.engines)
}
