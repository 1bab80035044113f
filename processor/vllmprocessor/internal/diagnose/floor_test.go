package diagnose

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// What is broken from the start keeps its cause, since it is not learned. Once it is mended, what
// is usual is learned as ever, and the next fault is found with its cause.
func TestABrokenStartKeepsItsCauseAndIsNotLearned(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		first, gap float64
		want       Cause
	}{
		"steps":     {2.5, 0.2, SlowSteps},
		"front end": {3, 0.02, FrontendBound},
	} {
		r := newRig(t)
		s := finishes("0")
		s.observed[input.TimeToFirstToken] = [2]float64{15, test.first}
		s.observed[input.InterTokenLatency] = [2]float64{1485, test.gap}
		if test.want == FrontendBound {
			// The engine begins late with the request, and is as fast as ever.
			s.observed[input.E2ERequestLatency] = [2]float64{15, test.first + 2}
		}
		r.minutes(3, answers(1), s)
		for range 50 {
			r.minutes(1, answers(1), s)
			v := r.verdict("0")
			assert.Equal(t, Degraded, v.Condition, name)
			assert.True(t, v.Explained && v.Primary == test.want, "%s: %s", name, v.Primary)
		}
		b := r.engine("0").baseline
		assert.False(t, b.Step.Ready() && test.want == SlowSteps, name)
		assert.False(t, signal.Known(b.Usual(signal.FrontEnd)) && test.want == FrontendBound, name)
		r.minutes(60, answers(1), finishes("0"))
		assert.Equal(t, Healthy, r.verdict("0").Condition, name)
		again := finishes("0")
		again.observed[input.InterTokenLatency] = [2]float64{1485, 0.08}
		r.minutes(5, answers(1), again)
		assert.Equal(t, Degraded, r.verdict("0").Condition, name)
		assert.Equal(t, SlowSteps, r.verdict("0").Primary, name)
	}
}

// Sixteen steps per scheduling take as long as sixteen. No limit is for them.
func TestAGapOfSeveralStepsIsNotComparedWithALimit(t *testing.T) {
	t.Parallel()
	for signs, want := range map[input.Sign]Condition{input.V0: Healthy, 0: Degraded} {
		r := newRig(t)
		r.version, r.signs = "0.8.0", signs
		s := finishes("0")
		s.observed[input.InterTokenLatency] = [2]float64{93, 0.32}
		r.minutes(12, answers(1), s)
		assert.Equal(t, want, r.verdict("0").Condition, signs)
	}
}

// A baseline that lacks what a factor is compared with, such as that of an older server, gets it
// once the factor is within the limits.
func TestWhatWasBrokenBeforeItHadAUsualValueGetsOne(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.minutes(20, answers(1), serves("0"))
	s := finishes("0")
	s.observed[input.TimeToFirstToken] = [2]float64{15, 3}
	s.observed[input.E2ERequestLatency] = [2]float64{15, 5}
	r.minutes(10, answers(1), s)
	assert.Equal(t, FrontendBound, r.verdict("0").Primary)
	assert.False(t, signal.Known(r.engine("0").baseline.Usual(signal.FrontEnd)))
	r.minutes(30, answers(1), finishes("0"))
	assert.Equal(t, Healthy, r.verdict("0").Condition)
	assert.True(t, signal.Known(r.engine("0").baseline.Usual(signal.FrontEnd)))
}
