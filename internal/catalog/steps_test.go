package catalog

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestStepsThatNameADisabledMetricAreLeftOut(t *testing.T) {
	steps := []Step{
		{Text: "Read the log."},
		{Text: "Look at `vllm.up`.", Queries: []string{"vllm_up"}},
		{Text: "Compare `vllm.num_requests.running` with `vllm.kv_cache.utilization`."},
		{Text: "Set `diagnosis::hold` and read about `degraded`."},
		{Text: "vllm.healthy is a metric, but it is not in backticks here: `vllm.up`."},
	}
	for name, c := range map[string]struct {
		off  []string
		left []int
	}{
		"all metrics are enabled":          {nil, []int{0, 1, 2, 3, 4}},
		"the only metric of a step":        {[]string{"vllm.up"}, []int{0, 2, 3}},
		"the first of two metrics":         {[]string{"vllm.num_requests.running"}, []int{0, 1, 3, 4}},
		"the second of two metrics":        {[]string{"vllm.kv_cache.utilization"}, []int{0, 1, 3, 4}},
		"a metric outside of backticks":    {[]string{"vllm.healthy"}, []int{0, 1, 2, 3, 4}},
		"names that are not metrics":       {[]string{"diagnosis::hold", "degraded"}, []int{0, 1, 2, 3, 4}},
		"an unquoted part between metrics": {[]string{" with "}, []int{0, 1, 2, 3, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			var want []string
			for _, i := range c.left {
				want = append(want, steps[i].Text)
			}
			given := slices.Clone(steps)
			assert.Equal(t, want, StepsWith(given, func(metric string) bool { return !slices.Contains(c.off, metric) }))
			assert.Equal(t, steps, given, "the catalogue's own steps must not change")
		})
	}
}

// Metrics that are off by default must not be in the only step.
func TestEveryConditionAndCauseKeepsAStepByDefault(t *testing.T) {
	enabled := func(metric string) bool {
		m, _ := ByName(metric)
		return m.In(Standard)
	}
	for _, c := range conditions {
		assert.NotEmpty(t, StepsWith(c.Next, enabled), c.Name)
	}
	for _, c := range causes {
		assert.NotEmpty(t, StepsWith(c.Next, enabled), c.Name)
	}
}
