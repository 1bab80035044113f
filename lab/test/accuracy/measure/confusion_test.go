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

// Of 14 minutes in which a cause is named, those are right that name the true one; one that is read off is none of them.
func TestHowOftenAName(t *testing.T) {
	scores := []Score{
		scored(t, meta(), played("slow_steps", "slow_steps")), scored(t, meta(), played("frontend_bound", "slow_steps")),
		scored(t, meta(), played("slow_steps", "erroring")), scored(t, meta(), played("slow_steps", "engine_slower")),
	}
	var page table
	page.names(scores)
	assert.Contains(t, page.String(), "| slow_steps | 28 | 2 | 50.0 % (")
	assert.NotContains(t, page.String(), "erroring")
	assert.NotContains(t, page.String(), "engine_slower")
	// By name, what is of two causes is one; a legitimate growth is not among the minutes, whatever is named.
	other := scored(t, meta(), played("slow_steps", "decode_load"))
	rows := map[string]headRow{}
	for _, r := range headlines() {
		rows[r.name] = r
	}
	byNames := rows["the same, mean over the names"].seen
	assert.InDelta(t, (0.5+0)/2, byNames(append(scores, other), strong).Value, 1e-9)
	other.Record = &Record{Meta: stories.Meta{Kind: stories.Healthy}}
	assert.InDelta(t, 0.5, byNames(append(scores, other), strong).Value, 1e-9)
	assert.InDelta(t, 0.5, tally(scores, everyCause, precise(strong)).pooled(ofRight).Value, 1e-9)
	assert.InDelta(t, 28/64.0, tally(scores, stories.Inferred, strong).pooled(ofNamed).Value, 1e-9)
}

func TestFalseWarningsByTheirReport(t *testing.T) {
	healthy := func(load float64, causes ...string) Score {
		s := Score{Record: &Record{Meta: stories.Meta{Name: "story", Variant: "alone", Kind: stories.Healthy, Load: load}}, Healthy: 100}
		for _, c := range causes {
			s.False = append(s.False, judge.Alarm{At: 90, Severity: 2, Condition: "degraded", Cause: c})
		}
		return s
	}
	scores := []Score{
		healthy(0.5, "slow_steps", "slow_steps", ""), healthy(0.5), healthy(0.2, "slow_steps"),
		healthy(0.9, "kv_pressure"), // Beyond the load of the bars.
	}
	scores[1].Natural = []judge.Alarm{{Severity: 2, Condition: "degraded"}}
	var page table
	page.falses(scores)
	assert.Equal(t, "| reported | warnings with nothing behind them | in natural slow-downs | stories | nothing behind, in 10,000 hours |\n|---|---|---|---|---|\n"+
		"| slow_steps | 3 | 0 | 2 | 100 |\n| degraded | 1 | 1 | 2 | 33 |\n\n"+
		"| story | variant | warnings | first at | report |\n|---|---|---|---|---|\n| story | alone | 3 | 90 s | slow_steps |\n| story | alone | 1 | 90 s | slow_steps |\n", page.String())
}
