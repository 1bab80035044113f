package diagnose

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// slowed is an engine whose tokens and first tokens take so many times as long.
func slowed(times float64) scraped {
	s := serves("0")
	for _, in := range []input.Metric{input.TimeToFirstToken, input.InterTokenLatency} {
		was := s.observed[in]
		s.observed[in] = [2]float64{was[0], was[1] * times}
	}
	return s
}

// Harm that has collected evidence ends soon after users are served as before, so that its alert ends within
// two minutes: the half minute has to be full, and then it has to last.
func TestHarmEndsSoonAfterItIsOver(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		after  func(n int) scraped
		within float64 // In seconds; -1: not within ten minutes.
	}{
		"as before":              {func(int) scraped { return slowed(1) }, 90},
		"a tenth slower":         {func(int) scraped { return slowed(1.1) }, 90},
		"still half as slow":     {func(int) scraped { return slowed(1.5) }, -1},
		"now and then as before": {func(n int) scraped { return slowed(1 + float64(n%4/3)) }, -1},
		"as before, some wait": {func(int) scraped {
			s := slowed(1)
			s.gauges[input.Waiting] = 3
			return s
		}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := usually(t)
			require.GreaterOrEqual(t, r.after(Degraded, func(int) scraped { return slowed(2) }), 0.0)
			r.minutes(3, answers(1), slowed(2))
			require.Equal(t, Degraded, r.verdict("0").Condition)
			require.False(t, r.engine("0").Felt.On, "by evidence alone")
			got := r.after(Healthy, test.after)
			if test.within < 0 {
				assert.InDelta(t, -1, got, 0)
				return
			}
			assert.GreaterOrEqual(t, got, soundFor.Seconds()-1)
			assert.LessOrEqual(t, got, test.within)
			r.minutes(5, answers(1), test.after(0))
			assert.Equal(t, Healthy, r.verdict("0").Condition, "it does not come back by itself")
		})
	}
}

// An objective ends in the same way where its misses are over, and not before.
func TestAMissedObjectiveEndsSoonAfterItIsMet(t *testing.T) {
	t.Parallel()
	r := usually(t)
	r.settings.Objectives = []Objective{{
		Name: "ttft", Input: input.TimeToFirstToken, Threshold: 0.25, Target: 0.95, Matches: func(string) bool { return true },
	}}
	late := serves("0")
	late.observed[input.TimeToFirstToken] = [2]float64{15, 0.4}
	require.GreaterOrEqual(t, r.after(Degraded, func(int) scraped { return late }), 0.0)
	r.minutes(3, answers(1), late)
	got := r.after(Healthy, func(int) scraped { return serves("0") })
	assert.GreaterOrEqual(t, got, soundFor.Seconds()-1)
	assert.LessOrEqual(t, got, 90.0)
}

// Where nobody waits for each answer, a long wait is not harm, and slow tokens page nobody. An engine that stands
// still pages.
func TestABatchModelDoesNotPage(t *testing.T) {
	t.Parallel()
	slow := serves("0")
	slow.observed[input.InterTokenLatency] = [2]float64{1485, 0.4}
	for name, test := range map[string]struct {
		pattern string
		next    scraped
		want    Condition
	}{
		"it waits":                {"*", lately(15, 8, 20), Healthy},
		"its tokens are slow":     {"*", slow, Degraded},
		"another model waits":     {"other", lately(15, 8, 20), Critical},
		"another has slow tokens": {"other", slow, Critical},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := usually(t)
			r.settings.BatchModels = []string{test.pattern}
			r.minutes(6, answers(1), test.next)
			assert.Equal(t, test.want, r.verdict("0").Condition)
			assert.GreaterOrEqual(t, r.after(Stalled, func(int) scraped { s := standsStill("0"); s.gauges[input.Waiting] = 9; return s }), 0.0)
		})
	}
}
