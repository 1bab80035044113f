package main

import (
	"fmt"
	"io"
	"math"
	"time"
)

// headEvery is after how many lines the head of the table is printed again.
const headEvery = 15

// table prints one line per reading, in 80 columns.
type table struct {
	out    io.Writer
	window time.Duration
	lines  int
}

// newTable returns a table of what is derived over a window.
func newTable(out io.Writer, window time.Duration) *table { return &table{out: out, window: window} }

const head = `
          requests    KV     tokens/s         TTFT, ms     ITL, ms  prefix queue
time      run wait cache     in    out req/s  mean   p95  mean   p95  hits  wait
`

func (t *table) add(now reading) {
	if t.lines == 0 {
		t.legend()
	}
	if t.lines%headEvery == 0 {
		fmt.Fprint(t.out, head[1:])
	}
	t.lines++
	fmt.Fprintf(t.out, "%s %4s %4s %5s ",
		now.at.Format(time.TimeOnly), show(now.running, "%.0f"), show(now.waiting, "%.0f"), show(100*now.kvCache, "%.0f %%"))
	switch {
	case math.IsNaN(now.prompt) && math.IsNaN(now.generation):
		fmt.Fprintln(t.out, " rates and latencies need two scrapes")
	case now.quiet():
		fmt.Fprintf(t.out, "%6s %6s %5s  no traffic in the last %s\n", "0", "0", "0", t.window)
	default:
		fmt.Fprintf(t.out, "%6s %6s %5s %5s %5s %5s %5s %5s %5s\n",
			show(now.prompt, "%.0f"), show(now.generation, "%.0f"), show(now.requests, "%.1f"),
			show(1000*now.ttft, "%.0f"), show(1000*now.ttft95, "%.0f"), show(1000*now.itl, "%.1f"), show(1000*now.itl95, "%.1f"),
			show(100*now.prefixRatio, "%.0f %%"), duration(now.queueWait))
	}
}

// quiet tells whether nothing happened in the window, so that there are neither
// latencies nor ratios.
func (r reading) quiet() bool {
	for _, n := range []float64{r.prompt, r.generation, r.requests} {
		if n > 0 {
			return false
		}
	}
	return math.IsNaN(r.ttft) && math.IsNaN(r.itl)
}

// silent says that the server does not answer.
func (t *table) silent(at time.Time) {
	fmt.Fprintf(t.out, "%s  the server does not answer\n", at.Format(time.TimeOnly))
}

// legend says which metrics the columns are made of.
func (t *table) legend() {
	for _, row := range [][2]string{
		{"run, wait", nameRunning + ", ..._waiting"},
		{"KV cache", nameKVCache},
		{"tokens/s in", namePrompt},
		{"tokens/s out", nameGeneration},
		{"req/s", nameRequests},
		{"TTFT", nameTTFT + ", ..._quantile_seconds"},
		{"ITL", nameITL + ", ..._quantile_seconds"},
		{"prefix hits", namePrefixRatio},
		{"queue wait", nameQueueWait},
	} {
		fmt.Fprintf(t.out, "  %-12s  %s\n", row[0], row[1])
	}
	fmt.Fprintf(t.out, "From tokens/s on, all are derived, over the last %s.\n", t.window)
	fmt.Fprintln(t.out, "TTFT: time to first token; ITL: time between two tokens; -: nothing to tell.")
	fmt.Fprintln(t.out, "A p95 is interpolated within vLLM's buckets; the first of ITL ends at 10 ms.")
	fmt.Fprintln(t.out)
}

// duration shows seconds with a unit.
func duration(seconds float64) string {
	switch {
	case seconds < 1:
		return show(1000*seconds, "%.0fms")
	case seconds < 100:
		return show(seconds, "%.1fs")
	}
	return show(seconds, "%.0fs")
}

// show writes "-" for a number that is not there.
func show(value float64, format string) string {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return "-"
	}
	return fmt.Sprintf(format, value)
}
