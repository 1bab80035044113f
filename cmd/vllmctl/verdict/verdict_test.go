package verdict_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/verdict"
	"github.com/otelcol-vllm/otelcol-vllm/internal/wording"
)

func of(condition, cause string) *verdict.Verdict {
	return &verdict.Verdict{Diagnosis: wording.Diagnosis{Condition: condition, Cause: cause}}
}

func TestAVerdictInAColumn(t *testing.T) {
	assert.Equal(t, "-", of("", "").String())
	assert.Equal(t, "healthy", of("healthy", "").String())
	assert.Equal(t, "degraded: slow_steps", of("degraded", "slow_steps").String())
	assert.True(t, of("degraded", "slow_steps").Is(of("degraded", "slow_steps")))
	assert.False(t, of("degraded", "slow_steps").Is(of("degraded", "")))
	assert.False(t, of("failing", "slow_steps").Is(of("degraded", "slow_steps")))
}

func TestStepsAreThereOnlyWhereThereIsSomethingToDo(t *testing.T) {
	assert.Empty(t, of("healthy", "").Words().Next)
	assert.NotEmpty(t, of("unknown", "").Words().Next)
	slow := of("degraded", "slow_steps").Words()
	assert.NotEmpty(t, slow.Next)
	assert.NotContains(t, slow.Sentence+strings.Join(slow.Next, ""), "`")
	assert.Contains(t, slow.Runbook, "slow_steps.md")
	noticed := of("healthy", "")
	noticed.Notices = []string{"workload_shift"}
	assert.NotEmpty(t, noticed.Words().Next, "a notice has steps")
}

func TestEvidenceHasWhatIsUsual(t *testing.T) {
	v := of("degraded", "slow_steps")
	v.Signals = map[string]verdict.Measure{
		"step_time_factor": verdict.Against(3, 0),
		"running":          verdict.Against(30, 2),
		"no_such_signal":   verdict.Against(1, 1),
		"step_time_mean":   verdict.Against(math.NaN(), 1),
		"queue_time_mean":  verdict.Against(1, math.NaN()),
		"error_ratio":      verdict.Against(1, math.Inf(1)),
	}
	evidence := v.Evidence()
	assert.Contains(t, evidence, "step_time_factor 3", "without what is usual, since the ratio is 0")
	assert.Contains(t, strings.Join(evidence, "\n"), "running 30 requests (usual 15)")
	assert.NotContains(t, strings.Join(evidence, "\n"), "no_such_signal")
	assert.NotContains(t, strings.Join(evidence, "\n"), "NaN")
}
