package diagnose

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// inputsOf are the metrics and signals that the catalogue names for a signal, and what
// these are computed from.
func inputsOf(name string, all map[string]bool) map[string]bool {
	for _, s := range catalog.Signals() {
		if s.Name != name {
			continue
		}
		for _, from := range s.From {
			all[from] = true
			inputsOf(from, all)
		}
	}
	return all
}

// Decisions about defects are made for what the catalogue names as the inputs of a signal.
// Whatever metric of the server changes, only signals change that name it.
func TestSignalsChangeWithTheInputsThatTheCatalogueNames(t *testing.T) {
	t.Parallel()
	engine := func() scraped {
		return scraped{
			engine: "0",
			gauges: map[collect.Input]float64{collect.Running: 4, collect.Waiting: 3, collect.KVCacheUtilization: 0.4},
			labelled: map[collect.Input]map[string]float64{
				collect.SleepState: {"awake": 1}, collect.WaitingByReason: {"deferred": 1, "capacity": 2},
			},
			counts: map[collect.Input]float64{
				collect.PromptTokens: 6000, collect.PromptTokensCached: 1500, collect.GenerationTokens: 1200,
				collect.Preemptions: 2, collect.Drafts: 100, collect.AcceptedTokens: 150, collect.CorruptedRequests: 1,
				collect.FailedTransfers: 3, collect.Dropped: 5,
			},
			labelledCounts: map[collect.Input]map[string]float64{collect.RequestSuccess: {"stop": 9, "error": 1}},
			observed: map[collect.Input][2]float64{
				collect.TimeToFirstToken: {15, 0.4}, collect.InterTokenLatency: {600, 0.05}, collect.RequestGenerationTokens: {10, 80},
				collect.QueueTime: {10, 0.1}, collect.PrefillTime: {10, 0.2}, collect.InferenceTime: {10, 1.5}, collect.E2ERequestLatency: {10, 1.9},
				collect.KVBlockIdle: {40, 1}, collect.KVBlockReuseGap: {10, 1},
			},
		}
	}
	read := func(one scraped) signal.Values {
		r := newRig(t)
		for range 5 {
			r.scrape(answers(1), one)
		}
		return r.engine("0").last.Signals
	}
	before := read(engine())
	changes := 0
	check := func(in collect.Input, change func(*scraped)) {
		one := engine()
		change(&one)
		after := read(one)
		for s := range signal.Count {
			a, b := before[s], after[s]
			if a == b || math.IsNaN(a) && math.IsNaN(b) {
				continue
			}
			changes++
			assert.True(t, inputsOf(s.String(), map[string]bool{})[in.String()], "%s changes with %s, which diagnosis.yaml does not name", s, in)
		}
	}
	for _, in := range slices.Collect(maps.Keys(engine().gauges)) {
		check(in, func(one *scraped) { one.gauges[in] *= 1.5 })
	}
	for _, in := range slices.Collect(maps.Keys(engine().counts)) {
		check(in, func(one *scraped) { one.counts[in] *= 1.5 })
		check(in, func(one *scraped) { delete(one.counts, in) })
	}
	for _, in := range slices.Collect(maps.Keys(engine().observed)) {
		check(in, func(one *scraped) { one.observed[in] = [2]float64{one.observed[in][0], one.observed[in][1] * 1.5} })
		check(in, func(one *scraped) { one.observed[in] = [2]float64{one.observed[in][0] * 2, one.observed[in][1]} })
		check(in, func(one *scraped) { delete(one.observed, in) })
	}
	check(collect.RequestSuccess, func(one *scraped) { one.labelledCounts[collect.RequestSuccess]["error"] = 2 })
	check(collect.WaitingByReason, func(one *scraped) { one.labelled[collect.WaitingByReason]["deferred"] = 2 })
	assert.Greater(t, changes, 40)
}
