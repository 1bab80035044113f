package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/accuracy/stories"
)

// healthyHours says how many hours were left out of the false alarms.
func healthyHours(scores []Score) string {
	played, count, judged, missed, alarms, wrong, broken := 0.0, 0.0, 0.0, 0.0, 0, 0, 0
	for i := range scores {
		s := &scores[i]
		if s.Kind != stories.Healthy {
			continue
		}
		played += s.hours()
		count += s.Healthy
		judged += float64(s.Judged) / 60
		wrong += len(s.False)
		missed += s.MissedHours
		broken += len(s.Broken)
		for _, a := range s.Alarms {
			if a.Severity >= 2 {
				alarms++
			}
		}
	}
	return fmt.Sprintf(`Of %.0f hours of healthy stories, %.0f count, and %d of their %d warnings and pages. In %.0f hours there were fewer
than 20 requests in a minute: whether these had harm is not known, they count, and an alarm in them is false.
In %.0f hours the traffic alone made the server miss an objective for longer than two windows. They have %d warnings and
pages, which are not false, so both are left out; a miss of one or two minutes is chance, and counts.`,
		played, count, wrong, alarms, played-judged, missed, broken)
}

// cells are the false alarms and the hours of each background and load.
func (t *table) cells(scores []Score) {
	t.line("\nBy background and load, with and without objectives. Traffic changes within a story, so its hours above the knee do not count;")
	t.line("a cell with fewer than %d hours that count has an interval that says little.\n", leastHours)
	t.head("background", "load", "hours played", "hours that count", "with 20 requests a minute", "warnings and pages", "pages", "fewer than 500 hours, because")
	type cell struct{ place, band string }
	seen := map[cell]bool{}
	for i := range scores {
		if s := &scores[i]; !s.Recorded && s.Kind == stories.Healthy {
			seen[cell{s.Model + ", " + s.Traffic, stories.Band(s.Load)}] = true
		}
	}
	cells := slices.Collect(maps.Keys(seen))
	slices.SortFunc(cells, func(a, b cell) int {
		return cmp.Or(cmp.Compare(a.place, b.place), cmp.Compare(slices.Index(stories.Bands(), a.band), slices.Index(stories.Bands(), b.band)))
	})
	for _, c := range cells {
		in := func(s *Score) bool {
			return !s.Recorded && s.Kind == stories.Healthy && s.Model+", "+s.Traffic == c.place && stories.Band(s.Load) == c.band
		}
		played, judged := 0.0, 0.0
		for i := range scores {
			if s := &scores[i]; in(s) {
				played += s.hours()
				judged += float64(s.Judged) / 60
			}
		}
		a := falseAlarms(scores, in)
		why := ""
		switch {
		case a.hours >= leastHours:
		case played < leastHours:
			why = "too few were played"
		default:
			why = fmt.Sprintf("traffic alone did harm in most of %.0f others", played-a.hours)
		}
		if a.hours < leastHours && a.hours < 0.25*played {
			why = "traffic alone does harm nearly always"
		}
		t.row(c.place, c.band, fmt.Sprintf("%.0f", played), fmt.Sprintf("%.0f", a.hours), percent(judged/played),
			perTenThousand(poisson(a.warnings, a.hours)), perTenThousand(poisson(a.pages, a.hours)), why)
	}
}

// leastHours is how many hours of a cell should count.
const leastHours = 500

// examples are false alarms of healthy stories.
func (t *table) examples(scores []Score) {
	const most = 15
	n, shown := 0, 0
	for i := range scores {
		s := &scores[i]
		if s.Kind != stories.Healthy {
			continue
		}
		n += len(s.False)
		if len(s.False) == 0 || shown == most {
			continue
		}
		shown++
		if shown == 1 {
			t.line("\nThe first of some healthy stories:\n")
		}
		a := s.False[0]
		t.line("- %s (%s), %d in all: at %.0f s, severity %d: %s %s", s.Name, s.Variant, len(s.False), a.At, a.Severity, a.Condition, a.Cause)
	}
	if n > 0 {
		t.line("\nThese stories have %d in all.", n)
	}
}
