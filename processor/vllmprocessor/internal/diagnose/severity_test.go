package diagnose

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// prefills is an engine whose prompts are five times as long; the first token takes so many seconds.
func prefills(first float64) scraped {
	long := finishes("0")
	for _, in := range []input.Metric{input.PromptTokens, input.PrefixCacheQueries, input.PrefixCacheHits} {
		long.counts[in] *= 5
	}
	long.observed[input.RequestPromptTokens] = [2]float64{15, 2500}
	long.observed[input.TimeToFirstToken] = [2]float64{15, first}
	long.observed[input.PrefillTime] = [2]float64{15, first - 0.05}
	return long
}

// noticed is an engine that is slower because its prompts are longer, which is a notice.
func noticed(t *testing.T) *rig {
	t.Helper()
	r := newRig(t)
	r.minutes(12, answers(1), finishes("0"))
	r.minutes(8, answers(1), prefills(0.45))
	v := r.verdict("0")
	require.Equal(t, [2]any{Degraded, 1}, [2]any{v.Condition, v.Severity})
	r.changes = nil
	return r
}

// The line in the log and the record of the connector are what an operator has beside the alert.
func TestANoticeThatBecomesAWarningIsNews(t *testing.T) {
	t.Parallel()
	r := noticed(t)
	r.minutes(4, answers(1), prefills(3))
	require.Len(t, r.changes, 1)
	change := r.changes[0]
	assert.Equal(t, [2]int{1, 2}, [2]int{change.From.Severity, change.To.Severity})
	assert.True(t, change.News())
}

// Requests that are lost warn, however small their share of the harm is beside longer work.
func TestWhatIsLostWarnsBesideLongerWork(t *testing.T) {
	t.Parallel()
	r := noticed(t)
	drops := answers(1)
	drops.gauges[input.Healthy] = 1
	drops.counts = map[input.Metric]float64{input.Dropped: 0, input.HTTPRequests: 15}
	r.minutes(2, drops, prefills(0.45))
	require.Equal(t, 1, r.verdict("0").Severity)
	drops.counts[input.Dropped] = 0.3 // Of 15 in a scrape.
	r.minutes(4, drops, prefills(0.45))
	v := r.verdict("0")
	assert.Equal(t, PrefillHeavy, v.Primary)
	assert.False(t, v.Contributing[RequestsDropped], "its share is small: %v", r.engine("0").Shares)
	assert.Equal(t, 2, v.Severity)
}

// Who gives up has waited too long, whatever the latency of those who stay.
func TestClientsThatLeaveAQueueWarn(t *testing.T) {
	t.Parallel()
	for cancelled, want := range map[float64]int{0: 1, 8: 2} {
		r := newRig(t)
		r.minutes(20, leaves(0), finishes("0"))
		long := prefills(0.45)
		long.gauges[input.Waiting] = 3
		r.minutes(8, leaves(cancelled), long)
		v := r.verdict("0")
		assert.Equal(t, [2]any{Degraded, want}, [2]any{v.Condition, v.Severity}, "%v leave", cancelled)
	}
}

// Both latencies of tokens have objectives: of one that is met six times the usual is not harm, and three times its
// threshold is.
func TestAnObjectiveForTokensDecidesWhatIsLong(t *testing.T) {
	t.Parallel()
	for _, in := range []input.Metric{input.InterTokenLatency, input.TimePerOutputToken} {
		for threshold, want := range map[float64]Condition{0.5: Healthy, 0.03: Critical} {
			r := newRig(t)
			r.settings.Objectives = []Objective{{Name: "tokens", Input: in, Threshold: threshold, Target: 0.9, Matches: func(string) bool { return true }}}
			s := serves("0")
			s.observed[input.TimePerOutputToken] = [2]float64{15, 0.02}
			r.minutes(20, answers(1), s)
			s.observed[input.InterTokenLatency], s.observed[input.TimePerOutputToken] = [2]float64{1485, 0.12}, [2]float64{15, 0.12}
			r.minutes(6, answers(1), s)
			assert.Equal(t, want, r.verdict("0").Condition, "%s within %v s", in, threshold)
		}
	}
}

// tardy is an engine whose steps take four times as long; so many of its requests in a scrape wait for their first
// token beyond the objective of half a second.
func tardy(requests, late float64) scraped {
	s := finishes("0")
	for in, o := range s.observed {
		s.observed[in] = [2]float64{o[0] * requests / 15, 4 * o[1]}
	}
	for in := range s.counts {
		s.counts[in] *= requests / 15
	}
	s.labelledCounts[input.RequestSuccess]["stop"] = requests
	if late > 0 {
		s.observed[input.TimeToFirstToken] = [2]float64{late, 0.6}
	}
	return s
}

// An engine that is slower than it was, and keeps its objective, is not harm. That a scrape now and then has late
// requests, a quarter of those in a window, is chance; that a window has nothing else is not.
func TestAnObjectiveMissedForAMomentIsChance(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.settings.Objectives = objectives()[:2]
	r.settings.Objectives[0].Threshold, r.settings.Objectives[1].Threshold = 0.5, 0.2
	r.minutes(20, answers(1), finishes("0"))
	r.minutes(10, answers(1), tardy(15, 0))
	require.True(t, r.engine("0").Harms[lateFirst].On, "beside its own past it is")
	r.changes = nil
	for n := range 160 {
		r.scrape(answers(1), tardy(15, max(0, 15*float64(1-n%40))))
	}
	assert.Empty(t, r.changes)
	r.minutes(1.5, answers(1), tardy(15, 15))
	assert.Equal(t, Degraded, r.verdict("0").Condition)
}

// So few requests have no evidence of the objective itself: after a restart what was known of it continues.
func TestAMissedObjectiveContinuesAfterARestart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.settings = settings(1)
	r.settings.Objectives = objectives()[:2]
	r.settings.Objectives[0].Threshold, r.settings.Objectives[1].Threshold = 0.5, 0.2
	r.state.Keeper = &store{baselines: map[string][]byte{}, diagnoses: map[string][]byte{}}
	r.minutes(20, answers(1), finishes("0"))
	r.minutes(10, answers(1), tardy(3, 3))
	require.Equal(t, Degraded, r.verdict("0").Condition)
	r.restartCollector(r.state.Keeper.(*store))
	for range 24 {
		r.scrape(answers(1), tardy(3, 3))
		require.Equal(t, Degraded, r.verdict("0").Condition)
	}
}
