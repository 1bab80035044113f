package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

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
	for _, class := range slices.Concat(stories.Inferred, stories.ReadOff) {
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

// falses counts the false warnings and pages by what they report, at loads to 80 % of the
// knee as the bars do.
func (t *table) falses(scores []Score) {
	type sum struct{ events, stories [2]int }
	sums, hours := map[string]*sum{}, [2]float64{}
	for i := range scores {
		s := &scores[i]
		if s.Kind == stories.Exposition {
			continue
		}
		with := 0
		if s.Objectives {
			with = 1
		}
		if !moderate(s.Objectives)(s) {
			continue
		}
		hours[with] += s.Healthy
		seen := map[string]bool{}
		for _, a := range s.False {
			name := cmp.Or(a.Cause, a.Condition)
			if sums[name] == nil {
				sums[name] = &sum{}
			}
			sums[name].events[with]++
			if !seen[name] {
				seen[name] = true
				sums[name].stories[with]++
			}
		}
	}
	names := slices.SortedFunc(maps.Keys(sums), func(a, b string) int {
		return cmp.Or(cmp.Compare(sums[b].events[0]+sums[b].events[1], sums[a].events[0]+sums[a].events[1]), cmp.Compare(a, b))
	})
	if len(names) == 0 {
		t.line("There is no false warning at a load to 80 %% of the knee, in %.0f hours without and %.0f with objectives.", hours[0], hours[1])
		return
	}
	t.head("reported", "no objectives", "stories", "in 10,000 hours", "with objectives", "stories", "in 10,000 hours")
	for _, name := range names {
		cells := []string{name}
		for with := range 2 {
			n := sums[name].events[with]
			rate := "-"
			if hours[with] > 0 {
				rate = fmt.Sprintf("%.0f", math.Round(10_000*float64(n)/hours[with]))
			}
			cells = append(cells, strconv.Itoa(n), strconv.Itoa(sums[name].stories[with]), rate)
		}
		t.row(cells...)
	}
}
