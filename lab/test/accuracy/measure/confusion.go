package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/accuracy/stories"
)

// silent is the column of minutes in which no harm was reported.
const silent = "silent"

// confusion has a row for each true cause and a column for each report: the share of the
// minutes of the cause that have it.
func (t *table) confusion(scores []Score) {
	sums, said := map[string]map[string]int{}, map[string]bool{}
	for i := range scores {
		s := &scores[i]
		for j := range s.Verdicts {
			v := &s.Verdicts[j]
			if v.Phase != Counted || !strong(s, v) {
				continue
			}
			if sums[v.Class] == nil {
				sums[v.Class] = map[string]int{}
			}
			report := v.Said
			if !v.Reported {
				report = silent
			}
			sums[v.Class][report]++
			said[report] = true
		}
	}
	delete(said, silent)
	columns := append([]string{silent}, slices.Sorted(maps.Keys(said))...)
	t.head(append([]string{"true cause", "minutes"}, columns...)...)
	for _, class := range everyCause {
		of := 0
		for _, n := range sums[class] {
			of += n
		}
		if of == 0 {
			continue
		}
		cells := []string{class, strconv.Itoa(of)}
		for _, c := range columns {
			cell := part100(sums[class][c], of)
			if c == class && cell != "" {
				cell = "**" + cell + "**"
			}
			cells = append(cells, cell)
		}
		t.row(cells...)
	}
}

// part100 is a share in whole percent; empty for none.
func part100(n, of int) string {
	switch share := 100 * float64(n) / float64(of); {
	case n == 0:
		return ""
	case share < 0.5:
		return "< 1"
	default:
		return fmt.Sprintf("%.0f", share)
	}
}

// names has, for each inferred cause that is named, how often it is right, in the minutes that strong keeps.
func (t *table) names(scores []Score) {
	t.head("named cause", "minutes", "stories", "right")
	for _, name := range inferredNames {
		m := tally(scores, everyCause, func(s *Score, v *Verdict) bool { return strong(s, v) && v.Named && v.Said == name })
		if m.minutes() > 0 {
			t.row(name, fmt.Sprintf("%.0f", m.minutes()), strconv.Itoa(len(m.byStory)), within(m.pooled(ofRight)))
		}
	}
}

// falses counts the warnings in hours without a fault by what they report, at loads to 80 % of the knee as the bars do,
// and names the stories with the most of those with nothing behind them.
func (t *table) falses(scores []Score) {
	type sum struct{ empty, slow, stories int }
	sums, all := map[string]*sum{}, 0.0
	var loud []*Score
	for i := range scores {
		s := &scores[i]
		if s.Kind == stories.Exposition || s.Load >= 0.8 {
			continue
		}
		all += s.Healthy
		seen := map[string]bool{}
		count := func(alarms []judge.Alarm, add func(*sum)) {
			for _, a := range alarms {
				name := cmp.Or(a.Cause, a.Condition)
				if sums[name] == nil {
					sums[name] = &sum{}
				}
				add(sums[name])
				if !seen[name] {
					seen[name] = true
					sums[name].stories++
				}
			}
		}
		count(s.False, func(s *sum) { s.empty++ })
		count(s.Natural, func(s *sum) { s.slow++ })
		if len(s.False) > 0 {
			loud = append(loud, s)
		}
	}
	t.head("reported", "warnings with nothing behind them", "in natural slow-downs", "stories", "nothing behind, in 10,000 hours")
	for _, name := range slices.SortedFunc(maps.Keys(sums), func(a, b string) int {
		return cmp.Or(cmp.Compare(sums[b].empty, sums[a].empty), cmp.Compare(sums[b].slow, sums[a].slow), cmp.Compare(a, b))
	}) {
		s := sums[name]
		t.row(name, strconv.Itoa(s.empty), strconv.Itoa(s.slow), strconv.Itoa(s.stories), fmt.Sprintf("%.0f", 10_000*float64(s.empty)/all))
	}
	slices.SortStableFunc(loud, func(a, b *Score) int { return cmp.Compare(len(b.False), len(a.False)) })
	t.line("")
	t.head("story", "variant", "warnings", "first at", "report")
	for _, s := range loud[:min(8, len(loud))] {
		a := s.False[0]
		t.row(s.Name, s.Variant, strconv.Itoa(len(s.False)), fmt.Sprintf("%.0f s", a.At), cmp.Or(a.Cause, a.Condition))
	}
}
