package pools_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/pools"
)

// timed are n requests that took a mean time each, in two buckets.
func timed(n, each float64) dist {
	counts := []float64{n, 0}
	if each > 1 {
		counts = []float64{0, n}
	}
	return dist{bounds: []float64{1}, counts: counts, sum: n * each}
}

// serves is an engine after n requests with a mean time to the first token and to the end.
func serves(model string, n, first, end float64) scraped {
	return scraped{
		engine: "0", model: model, values: map[input.Metric]float64{input.Running: 1},
		distributions: map[input.Metric]dist{input.TimeToFirstToken: timed(n, first), input.E2ERequestLatency: timed(n, end)},
	}
}

// passes is a gateway after n requests.
func passes(model string, n, first, end float64) scraped {
	return scraped{model: model, distributions: map[input.Metric]dist{
		input.GatewayTimeToFirstToken: timed(n, first), input.GatewayDuration: timed(n, end),
	}}
}

const untilFirst, untilEnd = "gateway_delay m first_token", "gateway_delay m end"

// The engine needs 0.3 s until the first token and 2 s in all. At the gateway it is 2.7 s and 5 s, so
// that the gateway adds 2.4 s and 3 s.
func TestTheDelayOfAGatewayIsTheDifferenceOfTheMeans(t *testing.T) {
	f := newFleet(t)
	f.scrape("engine", 0, serves("m", 0, 0, 0))
	f.scrape("gateway", 5, passes("m", 0, 0, 0))
	assert.NotContains(t, f.evaluate(6), untilFirst, "nothing was counted")
	f.scrape("engine", 60, serves("m", 60, 0.3, 2))
	// The gateway is read at other times; it is as busy.
	f.scrape("gateway", 80, passes("m", 75, 2.7, 5))
	got := f.evaluate(81)
	assert.InDelta(t, 2.4, got[untilFirst], 1e-9)
	assert.InDelta(t, 3, got[untilEnd], 1e-9)
	assert.NotContains(t, got, "gateway_delay  end", "a gateway is no server of a pool")
	assert.InDelta(t, 1, got["replicas m"], 0)
}

func TestTheDelayOfAGatewayNeedsTheSameRequests(t *testing.T) {
	for name, test := range map[string]struct {
		engine, gateway scraped
		first, end      float64 // -1: withheld
	}{
		"almost a fifth more":  {serves("m", 81, 0.3, 2), passes("m", 100, 1.3, 3), 1, 1},
		"more than a fifth":    {serves("m", 79, 0.3, 2), passes("m", 100, 1.3, 3), -1, -1},
		"almost a fifth fewer": {serves("m", 100, 0.3, 2), passes("m", 81, 1.3, 3), 1, 1},
		"many fewer":           {serves("m", 100, 0.3, 2), passes("m", 79, 1.3, 3), -1, -1},
		"another model":        {serves("m", 60, 0.3, 2), passes("n", 60, 1.3, 3), -1, -1},
		"nothing passed":       {serves("m", 60, 0.3, 2), passes("m", 0, 0, 0), -1, -1},
		"slightly faster":      {serves("m", 60, 0.3, 2), passes("m", 60, 0.295, 1.95), 0, 0},
		"faster than it can":   {serves("m", 60, 0.3, 2), passes("m", 60, 0.28, 1.8), -1, -1},
		"only few are streams": {serves("m", 60, 0.3, 2), scraped{model: "m", distributions: map[input.Metric]dist{
			input.GatewayTimeToFirstToken: timed(10, 1.3), input.GatewayDuration: timed(60, 3),
		}}, -1, 1},
	} {
		f := newFleet(t)
		f.scrape("engine", 0, serves("m", 0, 0, 0))
		f.scrape("gateway", 0, passes(test.gateway.model, 0, 0, 0))
		f.scrape("engine", 60, test.engine)
		f.scrape("gateway", 60, test.gateway)
		got := f.evaluate(61)
		for key, want := range map[string]float64{untilFirst: test.first, untilEnd: test.end} {
			is, has := got[key]
			assert.Equal(t, want >= 0, has, "%s: %s", name, key)
			if has {
				assert.InDelta(t, want, is, 1e-9, "%s: %s", name, key)
			}
		}
	}
}

// Two replicas of the gateway share the requests for two engines: 30 and 10 with 1 s and 3 s are 1.5 s
// at the gateway; 20 and 20 with 0.2 s and 0.4 s are 0.3 s at the engines.
func TestReplicasOfAGatewayAreAddedUp(t *testing.T) {
	f := newFleet(t)
	read := func(at, of float64) {
		f.scrape("engine 1", at, serves("m", 20*of, 0.2, 1))
		f.scrape("engine 2", at, serves("m", 20*of, 0.4, 1))
		f.scrape("gateway 1", at, passes("m", 30*of, 1, 2))
		f.scrape("gateway 2", at, passes("m", 10*of, 3, 4))
	}
	read(0, 0)
	read(60, 1)
	assert.InDelta(t, 1.2, f.evaluate(61)[untilFirst], 1e-9)
	assert.InDelta(t, 1.5, f.evaluate(61)[untilEnd], 1e-9, "2.5 s minus 1 s")
	// One of them falls silent: a quarter of the requests is missing.
	f.scrape("engine 1", 300, serves("m", 40, 0.2, 1))
	f.scrape("engine 2", 300, serves("m", 40, 0.4, 1))
	f.scrape("gateway 1", 300, passes("m", 60, 1, 2))
	assert.NotContains(t, f.evaluate(400), untilFirst, "after max_staleness")
}

// A picker behind another gateway sees the same requests; what the client waits for is at the outer one.
func TestTheOuterOfTwoGatewaysCounts(t *testing.T) {
	picker := func(n float64) scraped {
		return scraped{model: "m", distributions: map[input.Metric]dist{input.PickerTimeToFirstToken: timed(n, 0.8), input.PickerDuration: timed(n, 2.5)}}
	}
	f := newFleet(t)
	f.scrape("engine", 0, serves("m", 0, 0, 0))
	f.scrape("picker", 0, picker(0))
	f.scrape("engine", 60, serves("m", 60, 0.3, 2))
	f.scrape("picker", 60, picker(60))
	assert.InDelta(t, 0.5, f.evaluate(61)[untilFirst], 1e-9)
	f.scrape("gateway", 60, passes("m", 0, 0, 0))
	f.scrape("engine", 120, serves("m", 120, 0.3, 2))
	f.scrape("picker", 120, picker(120))
	f.scrape("gateway", 120, passes("m", 60, 1.3, 4))
	assert.InDelta(t, 1, f.evaluate(121)[untilFirst], 1e-9)
	assert.InDelta(t, 2, f.evaluate(121)[untilEnd], 1e-9)
}

// It is not known to which of two pools the requests for their model go.
func TestAModelOfTwoPoolsHasNoGatewayDelay(t *testing.T) {
	f := newFleet(t, func(s *pools.Settings) { s.GroupBy = []string{"model_name", "namespace"} })
	f.server("a", "", "x")
	f.server("b", "", "x")
	read := func(at, n float64) {
		f.scrape("a", at, serves("m", n, 0.3, 2))
		f.scrape("b", at, serves("m", n, 0.3, 2))
		f.scrape("gateway", at, passes("m", 2*n, 1.3, 3))
	}
	read(0, 0)
	read(60, 60)
	assert.Contains(t, f.evaluate(61), "gateway_delay m x first_token", "of two servers of one pool")
	f.server("c", "", "y")
	f.scrape("c", 60, serves("m", 0, 0, 0))
	read(120, 120)
	f.scrape("c", 120, serves("m", 1, 0.3, 2))
	got := f.evaluate(121)
	assert.NotContains(t, got, "gateway_delay m x first_token")
	assert.NotContains(t, got, "gateway_delay m y first_token")
}

// The requests of a gateway that restarts count from 0 again: 30 before and 30 after it, each of them
// with 1.3 s. What fell is not a negative number of requests.
func TestAGatewayRestartsInTheWindow(t *testing.T) {
	f := newFleet(t)
	f.scrape("engine", 0, serves("m", 0, 0, 0))
	f.scrape("gateway", 0, passes("m", 1000, 9, 9))
	f.scrape("engine", 30, serves("m", 30, 0.3, 2))
	f.scrape("gateway", 30, scraped{model: "m", distributions: map[input.Metric]dist{
		input.GatewayTimeToFirstToken: {bounds: []float64{1}, counts: []float64{0, 1030}, sum: 9000 + 30*1.3},
		input.GatewayDuration:         {bounds: []float64{1}, counts: []float64{0, 1030}, sum: 9000 + 30*3},
	}})
	f.scrape("engine", 60, serves("m", 60, 0.3, 2))
	f.scrape("gateway", 60, passes("m", 30, 1.3, 3))
	assert.InDelta(t, 1, f.evaluate(61)[untilFirst], 1e-9)
	assert.InDelta(t, 1, f.evaluate(61)[untilEnd], 1e-9)
}

// What is refused before its model is known belongs to no pool, also not to one without a model.
func TestRequestsWithoutAModelBelongToNoPool(t *testing.T) {
	f := newFleet(t)
	f.scrape("engine", 0, serves("", 0, 0, 0))
	f.scrape("gateway", 0, passes("", 0, 0, 0))
	f.scrape("engine", 60, serves("", 60, 0.3, 2))
	f.scrape("gateway", 60, passes("", 60, 1.3, 3))
	assert.NotContains(t, f.evaluate(61), "gateway_delay first_token")
}

// A gateway alone is no server without the attributes of the pools.
func TestAGatewayAloneLacksNothing(t *testing.T) {
	f := newFleet(t)
	f.scrape("gateway", 0, passes("m", 1, 1, 1))
	assert.Empty(t, f.evaluate(1))
	assert.Empty(t, f.pools.NotFound())
}

// Up to 400 s the engine needs 5 s and then 0.3 s, once a second; the gateway adds 0.05 s. Their windows are
// not the same, so that what the engine needed before seems to be the gateway's. It lasts less than two
// windows, also where the gateway is not read any more: the diagnosis waits for longer than that.
func TestWhatTheEnginesNeededBeforeIsSoonForgotten(t *testing.T) {
	const change = 400
	after := func(at, adds float64) dist {
		before := min(at, change)
		return dist{bounds: []float64{1}, counts: []float64{at - before, before}, sum: before*5 + (at-before)*0.3 + at*adds}
	}
	for _, gap := range []float64{15, 30, 59.99, 60} {
		for _, until := range []float64{900, change} {
			f := newFleet(t)
			next, wrong := 10.0, 0
			for now := 0.0; now <= 900; now += 5 {
				f.scrape("engine", now, scraped{engine: "0", model: "m", distributions: map[input.Metric]dist{input.TimeToFirstToken: after(now, 0)}})
				for ; next <= now && next < until; next += gap {
					f.scrape("gateway", now, scraped{model: "m", distributions: map[input.Metric]dist{input.GatewayTimeToFirstToken: after(now, 0.05)}})
				}
				if adds, known := f.evaluate(now)[untilFirst]; known && adds > 0.5 {
					wrong++
				} else if now > 240 && now < change {
					assert.InDelta(t, 0.05, adds, 1e-9, "every %g s, at %g s", gap, now)
				}
			}
			assert.Less(t, wrong*5, 120, "every %g s, up to %g s", gap, until)
		}
	}
}

// An engine that is not read any more and a gateway that is are not about the same requests.
func TestTheDelayEndsWithTheWindowOfASilentEngine(t *testing.T) {
	f := newFleet(t)
	f.scrape("engine", 0, serves("m", 0, 0, 0))
	f.scrape("engine", 60, serves("m", 60, 0.3, 2))
	for n := range 9 {
		f.scrape("gateway", 15*float64(n), passes("m", 15*float64(n), 2.7, 5))
	}
	assert.Contains(t, f.evaluate(135), untilFirst, "a quarter of the window later")
	got := f.evaluate(136)
	assert.NotContains(t, got, untilFirst)
	assert.NotContains(t, got, untilEnd)
	assert.Contains(t, got, "time_to_first_token_mean m", "of the pool alone")
}
