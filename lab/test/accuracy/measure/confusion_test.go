package main

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/accuracy/stories"
)

// Of the 16 minutes that count, two are silent before the report of minute 26; a share is of
// the row, and minutes below effect 2 are not in it.
func TestWhatIsReportedForEachCause(t *testing.T) {
	var scores []Score
	for _, said := range []string{"slow_steps", "decode_load", ""} {
		scores = append(scores, scored(t, meta(), played("slow_steps", said)))
	}
	weak := played("frontend_bound", "frontend_bound")
	for i := range weak.Lines {
		weak.Lines[i].Effect = min(weak.Lines[i].Effect, 1.5)
	}
	m := meta()
	m.Injections[0].Cause = "frontend_bound"
	scores = append(scores, scored(t, m, weak))
	var page table
	page.confusion(scores)
	// 6 of 48 are silent, and 14 of 48 have each report.
	assert.Equal(t, "| true cause | minutes | silent | decode_load | degraded | slow_steps |\n|---|---|---|---|---|---|\n"+
		"| slow_steps | 48 | 12 | 29 | 29 | **29** |\n", page.String())
	assert.Equal(t, []string{"", "< 1", "1", "100"}, []string{part100(0, 5), part100(1, 201), part100(1, 199), part100(5, 5)})
}

func TestFalseWarningsByTheirReport(t *testing.T) {
	healthy := func(load float64, objectives bool, causes ...string) Score {
		s := Score{Record: &Record{Meta: stories.Meta{Kind: stories.Healthy, Load: load, Objectives: objectives}}, Healthy: 100}
		for _, c := range causes {
			s.False = append(s.False, judge.Alarm{Severity: 2, Condition: "degraded", Cause: c})
		}
		return s
	}
	scores := []Score{
		healthy(0.5, false, "slow_steps", "slow_steps", ""), healthy(0.5, false), healthy(0.2, true, "slow_steps"),
		healthy(0.9, false, "kv_pressure"), // Beyond the load of the bars.
	}
	var page table
	page.falses(scores)
	assert.Equal(t, "| reported | no objectives | stories | in 10,000 hours | with objectives | stories | in 10,000 hours |\n|---|---|---|---|---|---|---|\n"+
		"| slow_steps | 2 | 1 | 100 | 1 | 1 | 100 |\n| degraded | 1 | 1 | 50 | 0 | 0 | 0 |\n", page.String())
	page = table{}
	page.falses(scores[1:2])
	assert.Contains(t, page.String(), "no false warning at a load to 80 % of the knee, in 100 hours without and 0 with")
}
