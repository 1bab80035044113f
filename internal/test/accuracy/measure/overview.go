package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/accuracy/stories"
)

// Overview is what a run prints at its end: the headline, the bars, and the cost.
func Overview(records []Record) string {
	scores := Scores(records)
	var t table
	t.line("")
	t.headline(scores)
	t.line("")
	for _, b := range Bars(scores) {
		t.line("%-12s %s: must be %s, is %s", b.Verdict(), b.Name, b.Must, b.Seen)
	}
	t.line("")
	t.confusion(scores)
	t.falses(scores)
	return t.String()
}

// cost is the processor time by background.
func (t *table) cost(records []Record) {
	type sum struct{ healthy, hours, faults, n float64 }
	sums := map[string]*sum{}
	for i := range records {
		r := &records[i]
		for _, place := range []string{r.Model + ", " + r.Traffic, "all", "all " + string(r.Kind)} {
			s := sums[place]
			if s == nil {
				s = &sum{}
				sums[place] = s
			}
			if r.Kind == stories.Healthy {
				s.healthy += r.CPU
				s.hours += r.hours()
			} else {
				s.faults += r.CPU
				s.n++
			}
		}
	}
	t.head("processor seconds", "per healthy hour", "hours", "per story with a fault", "stories")
	per := func(a, b float64) string {
		if b == 0 {
			return ""
		}
		return fmt.Sprintf("%.2f", a/b)
	}
	for _, place := range slices.SortedFunc(maps.Keys(sums), cmp.Compare) {
		s := sums[place]
		t.row(place, per(s.healthy, s.hours), fmt.Sprintf("%.0f", s.hours), per(s.faults, s.n), strconv.Itoa(int(s.n)))
	}
}

func (t *table) confusion(scores []Score) {
	type key struct{ class, said string }
	sum := map[key]int{}
	of := map[string]int{}
	for i := range scores {
		for _, v := range scores[i].Verdicts {
			if v.Phase != Counted || v.Effect < 2 {
				continue
			}
			said := v.Said
			if v.Right {
				said = "RIGHT"
			} else if !v.Reported {
				said = "silent"
			}
			sum[key{v.Class, said}]++
			of[v.Class]++
		}
	}
	for _, c := range slices.Sorted(maps.Keys(of)) {
		var parts []string
		for k, n := range sum {
			if k.class == c && float64(n) >= 0.02*float64(of[c]) {
				parts = append(parts, fmt.Sprintf("%s %d%%", k.said, 100*n/of[c]))
			}
		}
		slices.Sort(parts)
		t.line("CONF %-24s %5d %v", c, of[c], parts)
	}
}

func (t *table) falses(scores []Score) {
	for i := range scores {
		s := &scores[i]
		if len(s.False)+len(s.Broken) == 0 || s.Kind == stories.Exposition {
			continue
		}
		n := map[string]int{}
		for _, a := range s.False {
			n[a.Condition+"/"+a.Cause]++
		}
		t.line("FALSE %s load %.2f obj %v: %d in %.1f h, broken %d in %.1f h, time %.2f: %v", s.Name, s.Load, s.Objectives, len(s.False), s.Healthy, len(s.Broken), s.MissedHours, s.FalseTime, n)
	}
}
