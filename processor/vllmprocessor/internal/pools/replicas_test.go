package pools_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/pools"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// generated is an engine of model m with a counter of tokens.
func generated(engine string, tokens float64) scraped {
	return scraped{engine: engine, model: "m", values: map[input.Metric]float64{
		input.Running: 1, input.GenerationTokens: tokens,
	}}
}

func TestAPoolSaysNoRateBeforeAServerCanBeCompared(t *testing.T) {
	f := newFleet(t)
	f.scrape("a", 0, generated("0", 1000))
	assert.Equal(t, map[string]float64{"replicas m": 1, "running m": 1}, f.evaluate(1))
	f.scrape("a", 10, generated("0", 1050))
	assert.Equal(t, 5.0, f.evaluate(11)["generation_throughput m"])
}

func TestAServerThatJoinsIsNotTakenForAnIdleOne(t *testing.T) {
	f := newFleet(t)
	for _, key := range []string{"a", "b"} {
		f.scrape(key, 0, generated("0", 0))
		f.scrape(key, 10, generated("0", 50))
	}
	f.scrape("new", 11, generated("0", 1_000_000))
	got := f.evaluate(12)
	assert.Equal(t, 3.0, got["replicas m"])
	assert.Equal(t, 10.0, got["generation_throughput m"])
	assert.Equal(t, 1.0, got["imbalance.max_ratio m generation_throughput"], "a and b are equal, new has no rate yet")
	assert.Equal(t, 0.0, got["imbalance.stddev_ratio m generation_throughput"])
}

func TestAnIdlePoolHasRatesOfZeroAndNoRatios(t *testing.T) {
	f := newFleet(t)
	for _, key := range []string{"a", "b"} {
		f.scrape(key, 0, everything(5))
		f.scrape(key, 10, everything(5))
	}
	got := f.evaluate(12)
	for name, rate := range map[string]bool{
		"generation_throughput m": true, "prompt_throughput m": true, "request_throughput m": true, "first_token_rate m": true,
		"preemption_rate m": true, "arrival_rate m": true, "prefill_compute_throughput m": true,
		"prefix_cache.hit_ratio m": false, "time_to_first_token_mean m": false, "request.queue_wait_estimate m": false,
		"time_to_first_token_quantile m 0.5": false, "imbalance.max_ratio m generation_throughput": false,
	} {
		value, is := got[name]
		assert.Equal(t, rate, is, name)
		assert.Zero(t, value, name)
	}
}

func TestTheQueueOfAStuckServerWeighsOnTheWholePool(t *testing.T) {
	f := newFleet(t)
	queue := func(waiting, first float64) scraped {
		return scraped{
			engine: "0", model: "m", values: map[input.Metric]float64{input.Waiting: waiting},
			distributions: map[input.Metric]dist{input.TimeToFirstToken: {[]float64{1}, []float64{first, 0}, 0}},
		}
	}
	f.scrape("stuck", 0, queue(0, 0))
	f.scrape("fine", 0, queue(0, 0))
	f.scrape("stuck", 10, queue(30, 0))
	f.scrape("fine", 10, queue(2, 40))
	// 32 wait, 4 per second are served. The stuck one alone has no estimate.
	assert.Equal(t, 8.0, f.evaluate(10)["request.queue_wait_estimate m"])
	assert.Equal(t, (30.0+42)/10, f.evaluate(10)["arrival_rate m"])
}

func TestAServerLeavesWhenItsSeriesHaveEnded(t *testing.T) {
	f := newFleet(t)
	f.scrape("a", 0, running("m", 3))
	f.scrape("b", 0, running("m", 4))
	f.end("a", 15, running("m", 0))
	got := f.evaluate(16)
	assert.Equal(t, map[string]float64{"replicas m": 1, "running m": 4}, got)
	f.end("b", 15, running("m", 0))
	assert.Empty(t, f.evaluate(16))
}

func TestAnEngineThatEndsTakesItsShareAlong(t *testing.T) {
	f := newFleet(t)
	f.scrape("a", 0, generated("0", 0), generated("1", 0))
	f.scrape("a", 10, generated("0", 20), generated("1", 30))
	assert.Equal(t, 5.0, f.evaluate(10)["generation_throughput m"])
	f.end("a", 11, generated("1", 0))
	got := f.evaluate(11)
	assert.Equal(t, 2.0, got["generation_throughput m"])
	assert.Equal(t, 1.0, got["replicas m"])
	assert.Equal(t, 1.0, got["running m"])
}

func TestASilentServerKeepsItsLastValuesUntilItIsStale(t *testing.T) {
	f := newFleet(t)
	f.scrape("silent", 0, generated("0", 0))
	f.scrape("silent", 10, generated("0", 100))
	for seconds := 15.0; seconds <= 310; seconds += 15 {
		f.scrape("alive", seconds, running("m", 1))
		got := f.evaluate(seconds)
		assert.Equal(t, 2.0, got["replicas m"], seconds)
		assert.Equal(t, 10.0, got["generation_throughput m"], seconds)
	}
	assert.Equal(t, 2.0, f.evaluate(310)["replicas m"])
	assert.Equal(t, map[string]float64{"replicas m": 1, "running m": 1}, f.evaluate(310.5))
}

func TestWhatIsLateInABatchKeepsItsLastValue(t *testing.T) {
	f := newFleet(t)
	f.scrape("a", 0, generated("0", 0), generated("1", 0))
	f.scrape("a", 10, generated("0", 20), generated("1", 30))
	before := f.evaluate(10)
	// Engine 1 is in a batch of its own, and of engine 0 the counter is.
	f.scrape("a", 12, running("m", 1))
	assert.Equal(t, before, f.evaluate(12))
	f.scrape("a", 20, generated("0", 40), generated("1", 60))
	assert.Equal(t, before, f.evaluate(20))
	f.scrape("a", 22, scraped{engine: "0", model: "m", values: map[input.Metric]float64{input.GenerationTokens: 44}})
	assert.Equal(t, before, f.evaluate(22), "the states are late")
}

func TestADistributionThatIsLateKeepsWhatItSaid(t *testing.T) {
	f := newFleet(t)
	latency := func(n float64) scraped {
		return scraped{engine: "0", model: "m", distributions: map[input.Metric]dist{
			input.E2ERequestLatency: {[]float64{1, 2}, []float64{n, n, 0}, n},
		}}
	}
	f.scrape("a", 0, latency(0))
	f.scrape("a", 10, latency(6))
	before := f.evaluate(10)
	assert.Equal(t, 1.0, before["e2e_request_latency_quantile m 0.5"])
	f.scrape("a", 12, running("m", 1))
	assert.Equal(t, 1.0, f.evaluate(12)["e2e_request_latency_quantile m 0.5"])
	f.scrape("a", 14, running("m", 1))
	assert.NotContains(t, f.evaluate(14), "e2e_request_latency_quantile m 0.5", "it has been away twice")
}

func TestAMetricThatStaysAwayLeavesThePool(t *testing.T) {
	f := newFleet(t)
	f.scrape("a", 0, generated("0", 0), generated("1", 0))
	f.scrape("a", 10, generated("0", 20), generated("1", 30))
	f.scrape("a", 20, generated("0", 40))
	assert.Equal(t, 5.0, f.evaluate(20)["generation_throughput m"])
	f.scrape("a", 30, generated("0", 60))
	assert.Equal(t, 2.0, f.evaluate(30)["generation_throughput m"])
}

func TestARestartOfOneServerIsNoHoleInThePool(t *testing.T) {
	f := newFleet(t)
	f.scrape("a", 0, generated("0", 1000))
	f.scrape("b", 0, generated("0", 1000))
	f.scrape("a", 20, generated("0", 1200))
	f.scrape("b", 20, generated("0", 1100))
	f.scrape("a", 40, generated("0", 60)) // began again: 60 since
	f.scrape("b", 40, generated("0", 1200))
	assert.Equal(t, (200+60)/40.0+200/40.0, f.evaluate(40)["generation_throughput m"])
}

func TestAServerThatComesBackTakesPartAgain(t *testing.T) {
	f := newFleet(t)
	f.scrape("a", 0, running("m", 3))
	f.end("a", 15, running("m", 0))
	assert.Empty(t, f.evaluate(16))
	f.scrape("a", 30, running("m", 4))
	assert.Equal(t, 4.0, f.evaluate(31)["running m"])
	assert.Empty(t, f.evaluate(1000))
	f.scrape("a", 1015, running("m", 5))
	assert.Equal(t, 5.0, f.evaluate(1016)["running m"])
}

func TestAServerThatWasForgottenBeginsAnew(t *testing.T) {
	f := newFleet(t)
	f.scrape("a", 0, generated("0", 0), generated("1", 0))
	f.scrape("a", 10, generated("0", 20), generated("1", 30))
	f.servers["a"].state = window.NewResource(window.Settings{Window: minute, MaxStaleness: 5 * minute})
	f.scrape("a", 20, generated("0", 40))
	assert.Equal(t, map[string]float64{"replicas m": 1, "running m": 1}, f.evaluate(20))
}

func TestServersThatCountBlocksAreLeftOutOfTheHitRatio(t *testing.T) {
	f := newFleet(t)
	for step, seconds := range []float64{0, 10} {
		n := float64(step)
		f.scrape("tokens", seconds, scraped{engine: "0", model: "m", values: map[input.Metric]float64{
			input.PrefixCacheHits: 250 * n, input.PrefixCacheQueries: 1000 * n,
		}})
		s := f.server("blocks")
		batch := input.Batch{
			Resource: "blocks", Time: at(seconds),
			Groups: []input.Group{{Key: "0", Attributes: []input.Attribute{{Name: "model_name", Value: "m"}}}},
			Samples: []input.Sample{
				{Input: input.PrefixCacheHits, Older: true, Value: 500 * n},
				{Input: input.PrefixCacheQueries, Older: true, Value: 500 * n},
			},
		}
		s.state.Observe(&batch, 10)
		f.pools.Observe("blocks", s.state, f.attributesOf(s), at(seconds))
	}
	assert.Equal(t, 0.25, f.evaluate(10)["prefix_cache.hit_ratio m"])
}

func TestBlocksAreLeftOutWhetherTheyAppearLateOrTurnIntoTokens(t *testing.T) {
	f := newFleet(t)
	cache := func(older bool, seconds, hits, queries float64) {
		s := f.server("a")
		batch := input.Batch{
			Resource: "a", Time: at(seconds), Evidence: input.Evidence{Version: f.version},
			Groups: []input.Group{{Key: "0", Attributes: []input.Attribute{{Name: "model_name", Value: "m"}}}},
			Samples: []input.Sample{
				{Input: input.Running, Value: 1},
				{Input: input.PrefixCacheHits, Older: older, Value: hits},
				{Input: input.PrefixCacheQueries, Older: older, Value: queries},
			},
		}
		if hits == 0 {
			batch.Samples = batch.Samples[:1]
		}
		s.state.Observe(&batch, 10)
		f.pools.Observe("a", s.state, f.attributesOf(s), at(seconds))
	}
	cache(true, 0, 0, 0)
	cache(true, 10, 5, 10)
	assert.NotContains(t, f.evaluate(10), "prefix_cache.hit_ratio m", "counted from 0 on, but blocks")
	cache(true, 20, 10, 20)
	assert.NotContains(t, f.evaluate(20), "prefix_cache.hit_ratio m")
	cache(false, 30, 15, 30)
	assert.Contains(t, f.evaluate(30), "prefix_cache.hit_ratio m")
}

func TestServersAreGroupedByAttributesOfPointsAndResources(t *testing.T) {
	f := newFleet(t, func(s *pools.Settings) { s.GroupBy = []string{"model_name", "k8s.namespace.name"} })
	f.server("a", "", "prod")
	f.server("b", "", "prod")
	f.server("c", "", "test")
	f.server("old", "resource-model", "")
	f.scrape("a", 0, running("m", 1), scraped{engine: "0", model: "n", values: map[input.Metric]float64{input.Running: 8}})
	f.scrape("b", 0, running("m", 2))
	f.scrape("c", 0, running("m", 4))
	f.scrape("old", 0, running("", 16))
	f.scrape("point", 0, running("", 32))
	values, _ := f.pools.Evaluate(at(1))
	got := map[string]float64{}
	for _, v := range values {
		if v.Row.Metric != "vllm.pool.running" && v.Row.Metric != "vllm.pool.replicas" {
			continue
		}
		key := v.Row.Metric
		for _, a := range v.Attributes {
			key += " " + a.Name + "=" + a.Value
		}
		got[key] = v.Number
	}
	assert.Equal(t, map[string]float64{
		"vllm.pool.replicas model_name=m k8s.namespace.name=prod": 2,
		"vllm.pool.running model_name=m k8s.namespace.name=prod":  3,
		"vllm.pool.replicas model_name=n k8s.namespace.name=prod": 1,
		"vllm.pool.running model_name=n k8s.namespace.name=prod":  8,
		"vllm.pool.replicas model_name=m k8s.namespace.name=test": 1,
		"vllm.pool.running model_name=m k8s.namespace.name=test":  4,
		"vllm.pool.replicas model_name=resource-model":            1,
		"vllm.pool.running model_name=resource-model":             16,
		"vllm.pool.replicas": 1,
		"vllm.pool.running":  32,
	}, got)
	assert.Empty(t, f.pools.NotFound())
}

func TestAnAttributeOfThePointGoesBeforeTheResources(t *testing.T) {
	f := newFleet(t)
	f.server("a", "of the resource")
	f.scrape("a", 0, running("m", 1))
	assert.Contains(t, f.evaluate(0), "running m")
}

func TestAServerOfTwoModelsIsAReplicaOfBoth(t *testing.T) {
	f := newFleet(t)
	f.scrape("a", 0, running("m", 1), running("n", 2), generated("1", 5))
	assert.Equal(t, map[string]float64{"replicas m": 1, "running m": 2, "replicas n": 1, "running n": 2}, f.evaluate(0))
}

func TestWhatNoPoolIsMadeOfMakesNoPool(t *testing.T) {
	f := newFleet(t)
	http := scraped{values: map[input.Metric]float64{input.HTTPRequests: 5}}
	f.scrape("a", 0, http)
	f.scrape("a", 10, http)
	assert.Empty(t, f.evaluate(10))
	assert.Nil(t, f.pools.NotFound(), "there is no server yet")
	f.server("a").attributes[0] = "of a front end"
	f.scrape("a", 20, http)
	f.scrape("b", 20, running("", 1))
	assert.Equal(t, []string{"model_name"}, f.pools.NotFound())
}

func TestAnAttributeThatArrivesLateMovesTheServer(t *testing.T) {
	f := newFleet(t, func(s *pools.Settings) { s.GroupBy = []string{"zone"} })
	f.scrape("a", 0, running("m", 1))
	assert.Equal(t, map[string]float64{"replicas": 1, "running": 1}, f.evaluate(0))
	f.server("a").attributes[0] = "north"
	f.scrape("a", 15, running("m", 2))
	assert.Equal(t, map[string]float64{"replicas north": 1, "running north": 2}, f.evaluate(15))
}

func TestAnAttributeThatNoServerHasIsReported(t *testing.T) {
	f := newFleet(t, func(s *pools.Settings) { s.GroupBy = []string{"model_name", "zone"} })
	assert.Nil(t, f.pools.NotFound())
	f.scrape("a", 0, running("m", 1))
	assert.Equal(t, []string{"zone"}, f.pools.NotFound())
	f.end("a", 1, running("m", 1))
	assert.Nil(t, f.pools.NotFound(), "a has left")
	f.server("b", "", "north")
	f.scrape("b", 0, running("m", 1))
	assert.Empty(t, f.pools.NotFound())
}

func TestThePoolsThatCameFirstStayWhenThereAreTooMany(t *testing.T) {
	f := newFleet(t, func(s *pools.Settings) { s.MaxPools = 2 })
	f.scrape("a", 0, running("m", 1))
	f.scrape("b", 0, running("n", 2))
	f.scrape("c", 0, running("o", 3))
	f.scrape("d", 0, running("o", 4))
	for range 3 {
		values, leftOut := f.pools.Evaluate(at(1))
		assert.Equal(t, 2, leftOut, "each server with an engine of o")
		assert.Equal(t, map[string]float64{"replicas m": 1, "running m": 1, "replicas n": 1, "running n": 2}, f.read(values))
	}
	f.end("a", 2, running("m", 1))
	f.end("b", 2, running("n", 2))
	f.end("c", 2, running("o", 3))
	_, leftOut := f.pools.Evaluate(at(3))
	assert.Equal(t, 1, leftOut, "the numbers are taken until the series of m and n have been ended")
	assert.Equal(t, map[string]float64{"replicas o": 1, "running o": 4}, f.evaluate(4))
}

// A server with many models came first and has all pools. It keeps what others do not
// need; a pool that others share is not taken from it.
func TestAServerWithManyModelsTakesNoPoolsFromOthers(t *testing.T) {
	f := newFleet(t, func(s *pools.Settings) { s.MaxPools = 5 })
	var many []scraped
	for i := range 20 {
		many = append(many, running(fmt.Sprintf("made-up-%02d", i), 1))
	}
	evaluate := func(seconds float64, others ...string) (got map[string]float64, pools int) {
		f.scrape("noisy", seconds, append([]scraped{running("shared", 1)}, many...)...)
		f.scrape("friend", seconds, running("shared", 2))
		for _, other := range others {
			f.scrape(other, seconds, running(other, 3))
		}
		values, _ := f.pools.Evaluate(at(seconds))
		got = f.read(values)
		for name := range got {
			if strings.HasPrefix(name, "replicas ") {
				pools++
			}
		}
		return got, pools
	}
	_, pools := evaluate(0)
	assert.Equal(t, 5, pools)
	for i := range 6 {
		got, pools := evaluate(float64(15+15*i), "b", "c", "d")
		assert.Equal(t, 5, pools, "%v", got)
		for _, pool := range []string{"b", "c", "d"} {
			assert.InDelta(t, 1, got["replicas "+pool], 0, "%v", got)
		}
		assert.InDelta(t, 2, got["replicas shared"], 0)
		assert.InDelta(t, 1, got["replicas made-up-00"], 0, "what came first stays")
	}
	got, _ := evaluate(120, "b", "c", "d", "e")
	assert.NotContains(t, got, "replicas e", "each has one")
}

func TestANumberIsNotGivenAwayWhileItsSeriesEnd(t *testing.T) {
	f := newFleet(t)
	f.scrape("a", 0, running("m", 1))
	first, _ := f.pools.Evaluate(at(1))
	number := first[0].Group
	f.end("a", 2, running("m", 1))
	f.scrape("b", 2, running("n", 1))
	second, _ := f.pools.Evaluate(at(3))
	assert.NotEqual(t, number, second[0].Group)
	f.pools.Evaluate(at(4))
	f.scrape("c", 5, running("o", 1))
	third, _ := f.pools.Evaluate(at(6))
	assert.True(t, has(third, number), "after that another pool may have it")
}

func has(values []derive.Value, number int) bool {
	for _, v := range values {
		if v.Group == number {
			return true
		}
	}
	return false
}
