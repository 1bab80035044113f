package traffic

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// columnsOfTable are what the table compares.
var columnsOfTable = []struct {
	name  string
	value func(s Statistics) float64
}{
	{"requests/s", func(s Statistics) float64 { return s.Rate }},
	{"IDC 1 s", func(s Statistics) float64 { return s.IDC1 }},
	{"IDC 60 s", func(s Statistics) float64 { return s.IDC60 }},
	{"trend removed", func(s Statistics) float64 { return s.Within }},
	{"peak to mean", func(s Statistics) float64 { return s.PeakToMean }},
	{"minute to minute", func(s Statistics) float64 { return s.Lag }},
	{"prompt p50", func(s Statistics) float64 { return s.Prompt.P50 }},
	{"prompt p90", func(s Statistics) float64 { return s.Prompt.P90 }},
	{"prompt p99", func(s Statistics) float64 { return s.Prompt.P99 }},
	{"output p50", func(s Statistics) float64 { return s.Output.P50 }},
	{"output p90", func(s Statistics) float64 { return s.Output.P90 }},
	{"output p99", func(s Statistics) float64 { return s.Output.P99 }},
	{"prompt with output", func(s Statistics) float64 { return s.Correlation }},
	{"reuse", func(s Statistics) float64 { return s.Reuse }},
	{"turns p50", func(s Statistics) float64 { return s.Turns.P50 }},
	{"turns p90", func(s Statistics) float64 { return s.Turns.P90 }},
	{"think p50", func(s Statistics) float64 { return s.Think.P50 }},
	{"think p90", func(s Statistics) float64 { return s.Think.P90 }},
	{"think p99", func(s Statistics) float64 { return s.Think.P99 }},
}

const tableSeeds = 9

func TestShow(t *testing.T) {
	for _, name := range Names() {
		k := kinds[name]
		tr := trace(t, k.trace)
		want := Measure(tr)
		seconds := tr.Span
		if seconds == 0 {
			seconds = 86400
		}
		var got []Statistics
		for seed := range uint64(tableSeeds) {
			g, err := Generate(name, seed+1, 0, seconds)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, Measure(g))
		}
		var b strings.Builder
		for _, c := range columnsOfTable {
			w := c.value(want)
			if math.IsNaN(w) {
				continue
			}
			var all []float64
			for _, g := range got {
				all = append(all, c.value(g))
			}
			slices.Sort(all)
			fmt.Fprintf(&b, "%-20s %10.4g   %10.4g  %10.4g .. %.4g\n", c.name, w, all[len(all)/2], all[0], all[len(all)-1])
		}
		t.Logf("%s\n%s", name, b.String())
	}
}
