package main

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/verdict"
)

var (
	noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	nan  = math.NaN()
)

// busy is what a server under load says.
var busy = reading{
	at: noon, running: 7, waiting: 2, kvCache: 0.625, generation: 1000, ttft: 0.0304, itl: 0.0086,
	verdict: verdictOf("degraded", "slow_steps"),
}

// lines are those of a table below its legend.
func lines(readings ...reading) []string {
	var out strings.Builder
	tab := newTable(&out, 10*time.Second)
	for _, r := range readings {
		tab.add(r)
	}
	_, below, _ := strings.Cut(out.String(), "\n\n")
	return strings.Split(strings.TrimRight(below, "\n"), "\n")
}

func last(readings ...reading) string {
	all := lines(readings...)
	return strings.Join(strings.Fields(all[len(all)-1]), " ")
}

func TestTableShowsWhatIsDerivedInItsUnits(t *testing.T) {
	assert.Equal(t, "12:00:00 7 2 62 % 30 8.6 1000 degraded: slow_steps", last(busy))
}

func TestTableSaysWhyThereIsNothingToShow(t *testing.T) {
	first := busy
	first.generation, first.ttft, first.itl, first.verdict = nan, nan, nan, verdict.Verdict{}
	idle := first
	idle.generation, idle.verdict.Condition = 0, "idle"
	decoding := idle
	decoding.generation, decoding.itl, decoding.verdict.Condition = 30, 0.01, "healthy"

	assert.Equal(t, "12:00:00 7 2 62 % rates and latencies need two scrapes", last(first))
	assert.Equal(t, "12:00:00 7 2 62 % - - 0 idle", last(idle))
	assert.Equal(t, "12:00:00 7 2 62 % - 10.0 30 healthy", last(decoding), "no request got its first token")

	var out strings.Builder
	newTable(&out, time.Second).silent(noon)
	assert.Equal(t, "12:00:00  the server does not answer\n", out.String())
}

func TestEveryLineFitsIntoATerminalBelowItsHead(t *testing.T) {
	full := busy
	full.running, full.waiting, full.kvCache, full.generation, full.ttft, full.itl = 1024, 99999, 1, 999999, 9.999, 0.9999
	full.verdict.Cause = "demand_exceeds_capacity"
	var out strings.Builder
	tab := newTable(&out, 10*time.Second)
	tab.add(full)
	for line := range strings.Lines(out.String()) {
		assert.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), 80, line)
	}
	all := lines(full)
	require.Len(t, all, 3)
	for name, value := range map[string]string{"run": "1024", "wait": "99999", "cache": "100 %", "per s": "999999"} {
		end := strings.LastIndex(all[1], name) + len(name)
		assert.Equal(t, value, strings.TrimLeft(all[2][end-len(value):end], " "), "%s stands below its name", name)
	}
	assert.Equal(t, strings.Index(all[1], "the processor"), strings.Index(all[2], "degraded"))
}

func TestHeadComesAgainAfterAScreenful(t *testing.T) {
	readings := make([]reading, headEvery+1)
	assert.Len(t, lines(readings...), headEvery+1+2*2)

	var out strings.Builder
	tab := newTable(&out, time.Second)
	for _, r := range readings {
		tab.add(r)
	}
	assert.Equal(t, 1, strings.Count(out.String(), nameTTFT), "the legend is printed once")
}
