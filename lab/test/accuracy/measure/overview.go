package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/accuracy/stories"
)

// Overview is what a run prints at its end: the headline, the bars, what limits them, the
// comparison with other methods, and the cost.
func Overview(o Origin, records []Record, beside Beside) string {
	scores := Scores(records)
	var t table
	for _, part := range []func([]Score){
		t.headline, func(s []Score) { t.bars(Bars(s)) }, t.causes, t.names, t.confusion, t.alarms, t.falses, t.silence, t.felt,
	} {
		t.line("")
		part(scores)
	}
	if beside.Before != nil {
		t.line("")
		t.compared(o, beside.Before, records)
	}
	t.line("")
	t.cost(records)
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
