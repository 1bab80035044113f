package main

import (
	"fmt"
	"io"
	"math"
	"time"
)

// headEvery is after how many lines the head of the table is printed again.
const headEvery = 25

// table prints one line per reading, in 80 columns.
type table struct {
	out    io.Writer
	window time.Duration
	lines  int
}

// newTable returns a table of what is derived over a window.
func newTable(out io.Writer, window time.Duration) *table { return &table{out: out, window: window} }

const head = `
           requests   KV  TTFT   ITL tokens
time      run  wait cache   ms    ms  per s  the processor reports
`

func (t *table) add(now reading) {
	if t.lines == 0 {
		t.legend()
	}
	if t.lines%headEvery == 0 {
		fmt.Fprint(t.out, head[1:])
	}
	t.lines++
	fmt.Fprintf(t.out, "%s %4s %5s %5s ",
		now.at.Format(time.TimeOnly), show(now.running, "%.0f"), show(now.waiting, "%.0f"), show(100*now.kvCache, "%.0f %%"))
	switch {
	case math.IsNaN(now.generation):
		fmt.Fprintln(t.out, " rates and latencies need two scrapes")
	case now.quiet():
		fmt.Fprintf(t.out, "%4s %5s %6s  %s\n", "-", "-", "0", &now.verdict)
	default:
		fmt.Fprintf(t.out, "%4s %5s %6s  %s\n",
			show(1000*now.ttft, "%.0f"), show(1000*now.itl, "%.1f"), show(now.generation, "%.0f"), &now.verdict)
	}
}

// quiet reports whether nothing happened in the window, so that there are no
// latencies.
func (r reading) quiet() bool { return !(r.generation > 0) && math.IsNaN(r.ttft) && math.IsNaN(r.itl) }

// silent prints that the server does not answer.
func (t *table) silent(at time.Time) {
	fmt.Fprintf(t.out, "%s  the server does not answer\n", at.Format(time.TimeOnly))
}

// legend lists the metrics of the columns.
func (t *table) legend() {
	for _, row := range [][2]string{
		{"run, wait", nameRunning + ", ..._waiting"},
		{"KV cache", nameKVCache},
		{"TTFT", nameTTFT + ": time to the first token"},
		{"ITL", nameITL + ": time between two tokens"},
		{"tokens", nameGeneration},
		{"reports", nameCondition + ", ..._cause"},
	} {
		fmt.Fprintf(t.out, "  %-9s  %s\n", row[0], row[1])
	}
	fmt.Fprintf(t.out, "From TTFT on, all are derived by the processor, over the last %s.\n\n", t.window)
}

// show writes "-" for a missing number.
func show(value float64, format string) string {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return "-"
	}
	return fmt.Sprintf(format, value)
}
