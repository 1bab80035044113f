package diagnose

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// works is an engine that generates tokens for the requests that run, while others wait and none of
// them gets its first token.
func works(waiting float64) scraped {
	s := serves("0")
	s.gauges = map[input.Metric]float64{input.Running: 2, input.Waiting: waiting, input.KVCacheUtilization: 0.1}
	s.counts = map[input.Metric]float64{input.PromptTokens: 0, input.GenerationTokens: 1500}
	s.observed = map[input.Metric][2]float64{
		input.TimeToFirstToken: {0, 0}, input.InterTokenLatency: {1500, 0.02}, input.RequestGenerationTokens: {0, 0},
	}
	s.labelledCounts = nil
	return s
}

// Where requests wait and none gets its first token, no latency is observed, and each has waited for
// the window: that is harm, although no factor has changed. An objective for the first token cannot
// show it, because it has nothing to count.
func TestAQueueWithoutFirstTokensIsHarm(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		waiting, threshold float64
		want               Condition
	}{
		"many wait":                        {20, 0, Critical},
		"one waits":                        {1, 0, Healthy},
		"none waits":                       {0, 0, Healthy},
		"an objective":                     {20, 2.5, Critical},
		"an objective that allows an hour": {20, 3600, Healthy},
	} {
		r := newRig(t)
		if test.threshold > 0 {
			r.settings.Objectives = []Objective{{
				Name: "ttft", Input: input.TimeToFirstToken, Threshold: test.threshold, Target: 0.95, Matches: func(string) bool { return true },
			}}
		}
		r.minutes(20, answers(1), serves("0"))
		assert.Equal(t, Healthy, r.verdict("0").Condition, name)
		r.minutes(4, answers(1), works(test.waiting))
		assert.Equal(t, test.want, r.verdict("0").Condition, name)
		r.minutes(5, answers(1), serves("0"))
		assert.Equal(t, Healthy, r.verdict("0").Condition, "%s: it ends", name)
	}
}

// Steps are those of the engine. They are judged where no request is new, if there are enough.
func TestStepsAreJudgedWithoutNewRequests(t *testing.T) {
	t.Parallel()
	for gaps, want := range map[float64]Condition{1500: Degraded, 4: Healthy} {
		r := newRig(t)
		usual, slow := serves("0"), works(0)
		// Two sequences of 550 tokens. Without a new request only the KV cache shows what they hold.
		usual.gauges[input.KVCacheCapacity], slow.gauges[input.KVCacheCapacity] = 11_000, 11_000
		r.minutes(20, answers(1), usual)
		slow.observed[input.InterTokenLatency] = [2]float64{gaps, 0.06}
		r.minutes(5, answers(1), slow)
		assert.Equal(t, want, r.verdict("0").Condition, "%g gaps", gaps)
		if want == Degraded {
			assert.Equal(t, SlowSteps, r.verdict("0").Primary)
		}
	}
}

// The documented limits are wide, so that one window within them ends the harm that only they show.
// What is compared with a baseline needs two.
func TestHarmByALimitEndsWithAWindowWithinIt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	late := serves("0")
	late.observed[input.TimeToFirstToken] = [2]float64{15, 9}
	r.minutes(4, answers(1), late)
	assert.Equal(t, Degraded, r.verdict("0").Condition)
	// The window has a part from before for a minute, and one more is within the limit.
	r.minutes(2, answers(1), serves("0"))
	assert.Equal(t, Healthy, r.verdict("0").Condition)
}

// Before there is a baseline, a late first token is that of its prompts where they are most of a
// step and nothing waited.
func TestPromptsAreTheCauseBeforeABaseline(t *testing.T) {
	t.Parallel()
	for prompt, want := range map[float64]bool{60_000: true, 500: false} {
		r := newRig(t)
		s := serves("0")
		s.counts[input.PromptTokens] = prompt * 15
		s.observed[input.TimeToFirstToken] = [2]float64{15, 9}
		s.observed[input.PrefillTime], s.observed[input.QueueTime] = [2]float64{15, 8.9}, [2]float64{15, 0.1}
		s.observed[input.InterTokenLatency] = [2]float64{1485, 0.09}
		r.minutes(3, answers(1), s)
		v := r.verdict("0")
		assert.Equal(t, Degraded, v.Condition)
		assert.Equal(t, want, v.Explained && v.Primary == PrefillHeavy, "prompts of %g tokens: %v %s", prompt, v.Explained, v.Primary)
	}
}
