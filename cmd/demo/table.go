package main

import (
	"fmt"
	"io"
	"math"
	"time"
)

// headEvery is after how many lines the head of the table is printed again.
const headEvery = 15

// table prints one line per reading. What rises is shown as the change since the
// line before.
type table struct {
	out    io.Writer
	lines  int
	before reading
}

func newTable(out io.Writer) *table { return &table{out: out} }

func (t *table) add(now reading) {
	if t.lines == 0 {
		t.legend()
	}
	if t.lines%headEvery == 0 {
		fmt.Fprintln(t.out, "time      up   running  waiting  kv cache  prompt tok/s  gen tok/s  req/s  TTFT mean  ITL mean  prefix hits")
	}
	before := t.before
	if t.lines == 0 {
		// Nothing to compare with: everything that is a change is unknown.
		before = now
	}
	seconds := now.at.Sub(before.at).Seconds()
	fmt.Fprintf(t.out, "%s  %-3s  %7s  %7s  %8s  %12s  %9s  %5s  %9s  %8s  %11s\n",
		now.at.Format(time.TimeOnly),
		fmt.Sprintf("%d/%d", now.up, now.targets),
		show(now.running, "%.0f"),
		show(now.waiting, "%.0f"),
		show(100*now.kvCache, "%.1f %%"),
		show(change(before.prompt, now.prompt)/seconds, "%.0f"),
		show(change(before.generation, now.generation)/seconds, "%.0f"),
		show(change(before.success, now.success)/seconds, "%.1f"),
		show(1000*mean(before.firstToken, now.firstToken), "%.0f ms"),
		show(1000*mean(before.interToken, now.interToken), "%.1f ms"),
		show(100*change(before.prefixHits, now.prefixHits)/change(before.prefixAsked, now.prefixAsked), "%.0f %%"),
	)
	t.before = now
	t.lines++
}

// legend says which metrics the columns are made of.
func (t *table) legend() {
	for _, row := range [][2]string{
		{"up", nameUp},
		{"running, waiting", nameRunning + ", " + nameWaiting},
		{"kv cache", nameKVCache},
		{"tok/s", "rate of " + namePrompt + ", " + nameGeneration},
		{"req/s", "rate of " + nameSuccess},
		{"TTFT, ITL mean", nameFirstToken + ", " + nameInterToken},
		{"prefix hits", namePrefixHits + " / " + namePrefixAsked},
	} {
		fmt.Fprintf(t.out, "  %-17s %s\n", row[0], row[1])
	}
	fmt.Fprintln(t.out)
}

// change is how much a counter rose, NaN where it fell: the server was restarted.
func change(before, now float64) float64 {
	if now < before {
		return math.NaN()
	}
	return now - before
}

// mean is the mean in seconds of what was observed between two readings.
func mean(before, now totals) float64 {
	return change(before.sum, now.sum) / change(before.count, now.count)
}

// show writes "-" for a number that is not there, or a rate over no time.
func show(value float64, format string) string {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return "-"
	}
	return fmt.Sprintf(format, value)
}
