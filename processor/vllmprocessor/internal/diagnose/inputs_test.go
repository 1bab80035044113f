package diagnose

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
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
	engine := func() scraped { return busy(0.4) }
	read := func(one scraped) signal.Values {
		r := newRig(t)
		for range 5 {
			r.scrape(answers(1), one)
		}
		return r.engine("0").last.Signals
	}
	before := read(engine())
	changes := 0
	check := func(in input.Metric, change func(*scraped)) {
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
	check(input.RequestSuccess, func(one *scraped) { one.labelledCounts[input.RequestSuccess]["error"] = 2 })
	check(input.WaitingByReason, func(one *scraped) { one.labelled[input.WaitingByReason]["deferred"] = 2 })
	assert.Greater(t, changes, 40)
}
