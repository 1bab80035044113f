package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/accuracy/stories"
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
	t.line("\nBy background and load, healthy stories only. *Hours that count* are those without and with objectives together. Traffic")
	t.line("changes within a story, so its hours above the knee do not count; a cell with fewer than %d hours that count has an interval", leastHours)
	t.line("that says little. Where few minutes have 20 requests, traffic that is too much is not known as such. Up to 80 %% of the knee a")
	t.line("cell is played as long as it needs by an earlier run; above, where most hours have harm, half or a quarter of that is played.\n")
	t.head("background", "load", "hours played", "hours that count", "with 20 requests a minute", "warnings and pages, no objectives", "with objectives", "pages", "fewer than 500 hours, because")
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
	few := 0
	for _, c := range cells {
		in := func(s *Score) bool {
			return !s.Recorded && s.Kind == stories.Healthy && s.Model+", "+s.Traffic == c.place && stories.Band(s.Load) == c.band
		}
		played, judged, missed := 0.0, 0.0, 0.0
		for i := range scores {
			if s := &scores[i]; in(s) {
				played += s.hours()
				judged += float64(s.Judged) / 60
				missed += s.MissedHours
			}
		}
		a := falseAlarms(scores, in)
		if a.hours < leastHours {
			few++
		}
		without := falseAlarms(scores, func(s *Score) bool { return in(s) && !s.Objectives })
		with := falseAlarms(scores, func(s *Score) bool { return in(s) && s.Objectives })
		t.row(c.place, c.band, fmt.Sprintf("%.0f", played), fmt.Sprintf("%.0f", a.hours), percent(judged/played),
			without.warningText(), with.warningText(), a.pageText(), fewBecause(played, a.hours, missed))
	}
	t.line("\n%d of these %d cells have fewer than %d hours that count.", few, len(cells), leastHours)
}

// fewBecause says why a cell has few hours that count, of those played; missed are those in
// which an objective was missed.
func fewBecause(played, count, missed float64) string {
	left := played - count - missed
	switch {
	case count >= leastHours:
		return ""
	case left > 0.75*played:
		return "traffic alone does harm nearly always"
	case played < leastHours:
		return "too few were played"
	case missed >= 1:
		return fmt.Sprintf("%.0f had harm by traffic alone or just before, %.0f missed an objective", left, missed)
	}
	return fmt.Sprintf("%.0f had harm by traffic alone or just before", left)
}

// leastHours is how many hours of a cell should count.
const leastHours = 500

// examples says what the false alarms of healthy stories report, and which stories have the most.
func (t *table) examples(scores []Score) {
	const most = 8
	said := map[string]int{}
	n := 0
	var loud []*Score
	for i := range scores {
		s := &scores[i]
		if s.Kind != stories.Healthy || len(s.False) == 0 {
			continue
		}
		for _, a := range s.False {
			n++
			said[cmp.Or(a.Cause, a.Condition)]++
		}
		loud = append(loud, s)
	}
	slices.SortStableFunc(loud, func(a, b *Score) int { return cmp.Compare(len(b.False), len(a.False)) })
	if n == 0 {
		return
	}
	t.line("\nThe %d false warnings and pages of healthy stories report:\n%s. The stories with the most:\n", n, mostOf(said, len(said)))
	for _, s := range loud[:min(most, len(loud))] {
		a := s.False[0]
		t.line("%s", strings.TrimSpace(fmt.Sprintf("- %s (%s), %d in all, the first at %.0f s, severity %d: %s %s", s.Name, s.Variant, len(s.False), a.At, a.Severity, a.Condition, a.Cause)))
	}
}
