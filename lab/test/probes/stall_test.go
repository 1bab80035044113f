//go:build e2e

package probes

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

const (
	// confirmed is how long an engine must make no progress until it is confirmed as stalled (stalledFor).
	confirmed = time.Minute
	// checks is how long the proxy's check takes to see it: two failures, two seconds apart, and the phase.
	checks = 3 * 2 * time.Second
	margin = 10 * time.Second
	// outAfter follows: the last progress is seen at a scrape, and so is that a minute has passed.
	outAfter = confirmed + 2*scrape + checks + margin
)

// A stalled engine gets no requests once it is confirmed. Without the probe it gets them to the end, since /health
// answers.
func TestAStalledEngineGetsNoMoreRequests(t *testing.T) {
	const at, lasts = 45 * time.Second, 130 * time.Second
	began := time.Now()
	nodes := simulated(t,
		engine.Change{At: at.Seconds(), Parameter: engine.ParamStall, Value: 1},
		engine.Change{At: (at + lasts).Seconds(), Parameter: engine.ParamStall, Value: 0})
	w := newWorld(t, nodes)
	w.startCollector(t)
	w.send(t, "probe", "", 125*time.Millisecond)
	w.send(t, "health", "", 125*time.Millisecond)
	w.waitUntilServing(t)
	stall := began.Add(at)
	require.True(t, time.Now().Before(stall), "all is ready before the stall")
	shown(t, w, stall, stall.Add(lasts))

	// It comes back by itself. The processor holds a verdict for a minute, so the bound is the same.
	require.Eventually(t, func() bool { return nodes[0].last("probe").After(stall.Add(lasts)) }, outAfter, time.Second)
	t.Logf("from the end of the stall to the next request: %s", nodes[0].last("probe").Sub(stall.Add(lasts)).Round(time.Second))
}

// shown waits until end, and checks what the first server got from its stall on.
func shown(t *testing.T, w *world, stall, end time.Time) {
	t.Helper()
	time.Sleep(time.Until(end))
	t.Log("way      last request after the stall   requests to it   lost   out")
	for _, way := range []string{"health", "probe"} {
		t.Logf("%-8s %28s %16d %6d   %v", way, w.nodes[0].last(way).Sub(stall).Round(time.Second),
			w.nodes[0].between(way, stall, end), w.lostBetween(way, stall, end), w.outs(t, map[string]string{"health": "health", "probe": "vllm"}[way]))
	}
	assert.Less(t, w.nodes[0].last("probe").Sub(stall), outAfter)
	assert.Positive(t, w.nodes[0].between("probe", stall, end), "it did get requests before that")
	assert.True(t, w.nodes[0].last("health").After(end.Add(-2*patience)), "without the probe it gets requests to the end")
	for i, outs := range w.outs(t, "vllm") {
		if i == 0 {
			assert.Equal(t, 1, outs)
		} else {
			assert.Zero(t, outs, "the others stay")
		}
	}
	assert.Positive(t, w.lostBetween("health", end.Add(-30*time.Second), end.Add(-patience)))
	assert.Zero(t, w.lostBetween("probe", stall.Add(outAfter), end), "clients lose nothing once it is out")
}
