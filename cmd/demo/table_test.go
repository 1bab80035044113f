package main

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	nan  = math.NaN()
)

// busy is what a server under load says.
var busy = reading{
	at: noon, running: 7, waiting: 2, kvCache: 0.625,
	prompt: 5000.4, generation: 1000, requests: 2.54,
	ttft: 0.0304, ttft95: 1.25, itl: 0.0086, itl95: 0.00991,
	prefixRatio: 0.25, queueWait: 0.7872,
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
	assert.Equal(t, "12:00:00 7 2 62 % 5000 1000 2.5 30 1250 8.6 9.9 25 % 787ms", last(busy))
	long := busy
	long.queueWait = 12.34
	assert.Equal(t, "12.3s", strings.Fields(last(long))[14])
}

func TestTableSaysWhyThereIsNothingToShow(t *testing.T) {
	first := busy
	first.prompt, first.generation, first.requests = nan, nan, nan
	first.ttft, first.ttft95, first.itl, first.itl95, first.prefixRatio, first.queueWait = nan, nan, nan, nan, nan, nan
	idle := first
	idle.prompt, idle.generation, idle.requests = 0, 0, 0
	decoding := idle
	decoding.generation, decoding.itl, decoding.itl95 = 30, 0.01, 0.02

	assert.Equal(t, "12:00:00 7 2 62 % rates and latencies need two scrapes", last(first))
	assert.Equal(t, "12:00:00 7 2 62 % 0 0 0 no traffic in the last 10s", last(idle))
	assert.Equal(t, "12:00:00 7 2 62 % 0 30 0.0 - - 10.0 20.0 - -", last(decoding), "no request got its first token")

	var out strings.Builder
	newTable(&out, time.Second).silent(noon)
	assert.Equal(t, "12:00:00  the server does not answer\n", out.String())
}

func TestEveryLineFitsIntoATerminalBelowItsHead(t *testing.T) {
	full := busy
	full.running, full.waiting, full.kvCache, full.prompt, full.generation, full.requests = 1024, 9999, 1, 999999, 99999, 999.9
	full.ttft, full.ttft95, full.itl, full.itl95, full.prefixRatio, full.queueWait = 99.9, 99.9, 0.9, 0.9, 1, 999
	var out strings.Builder
	tab := newTable(&out, 10*time.Second)
	tab.add(full)
	for line := range strings.Lines(out.String()) {
		assert.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), 80, line)
	}
	all := lines(full)
	require.Len(t, all, 3)
	for name, value := range map[string]string{"run": "1024", "cache": "100 %", "req/s": "999.9", "hits": "100 %", "wait": "999s"} {
		end := strings.LastIndex(all[1], name) + len(name)
		assert.Equal(t, value, strings.TrimLeft(all[2][end-len(value):end], " "), "%s stands below its name", name)
	}
}

func TestHeadComesAgainAfterAScreenful(t *testing.T) {
	readings := make([]reading, headEvery+1)
	assert.Len(t, lines(readings...), headEvery+1+2*2)

	var out strings.Builder
	tab := newTable(&out, time.Second)
	for _, r := range readings {
		tab.add(r)
	}
	assert.Equal(t, 1, strings.Count(out.String(), nameTTFT), "the legend comes once")
}
