package pools_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// TestDefects has a pool of two servers for each decision about pools in
// internal/catalog/decisions.yaml: one without known defects, and one of an old version.
func TestDefects(t *testing.T) {
	type values = map[input.Metric]float64
	type latencies = map[input.Metric]dist
	for name, c := range map[string]struct {
		old string
		ray bool
		// good and bad are what the new and the old server have counted after 10 s.
		good, bad values
		times     latencies
		want      map[string]float64
		absent    []string
	}{
		// The old server has aborted all its requests; its gauges still show three.
		"gauges-freeze-on-abort": {
			old:  "0.10.0",
			good: values{input.Running: 2, input.Waiting: 1, input.KVCacheUtilization: 0.2, input.GenerationTokens: 50},
			bad:  values{input.Running: 3, input.Waiting: 4, input.KVCacheUtilization: 0.99, input.GenerationTokens: 0},
			want: map[string]float64{
				"replicas m": 2, "running m": 2, "waiting m": 1, "kv_cache.utilization_max m": 0.2, "kv_cache.utilization_mean m": 0.2, "generation_throughput m": 5,
			},
			absent: []string{"imbalance.max_ratio m running", "imbalance.stddev_ratio m kv_cache_utilization"},
		},
		// The old server reports two engines as one, whose gauges are those of either.
		"ray-last-engine": {
			old: "0.19.0", ray: true,
			good: values{input.Running: 2, input.KVCacheUtilization: 0.2, input.GenerationTokens: 50},
			bad:  values{input.Running: 3, input.KVCacheUtilization: 0.9, input.GenerationTokens: 30},
			want: map[string]float64{"replicas m": 2, "running m": 2, "kv_cache.utilization_max m": 0.2, "generation_throughput m": 8},
		},
		// A server of a fixed version that shows the same stands still.
		"gauges-of-a-stall": {
			old:  "0.10.2",
			good: values{input.Running: 2, input.GenerationTokens: 50},
			bad:  values{input.Running: 3, input.GenerationTokens: 0},
			want: map[string]float64{"replicas m": 2, "running m": 5, "imbalance.max_ratio m running": 3 / 2.5},
		},
		"null-block-used": {
			old:    "0.10.1",
			good:   values{input.KVCacheUtilization: 0},
			bad:    values{input.KVCacheUtilization: 1.0 / 5000},
			want:   map[string]float64{"kv_cache.utilization_max m": 0, "kv_cache.utilization_mean m": 0},
			absent: []string{"imbalance.max_ratio m kv_cache_utilization"},
		},
		// What nothing corrects is left out of ratios, as of a server that does not count.
		"left-out-of-ratios": {
			old:  "0.15.0",
			good: values{input.ExternalPrefixCacheHits: 30, input.ExternalPrefixCacheQueries: 40},
			bad:  values{input.ExternalPrefixCacheHits: 1, input.ExternalPrefixCacheQueries: 60},
			want: map[string]float64{"external_prefix_cache.hit_ratio m": 0.75},
		},
		"cache-queries-recounted": {
			old:  "0.20.0",
			good: values{input.PrefixCacheHits: 50, input.PrefixCacheQueries: 100, input.PromptTokens: 100},
			bad: values{
				input.PrefixCacheHits: 900, input.PrefixCacheQueries: 1000, input.PromptTokens: 300, input.PromptTokensCached: 30,
			},
			want: map[string]float64{"prefix_cache.hit_ratio m": 80.0 / 400, "prompt_throughput m": 40},
		},
		// A rate of the pool without one of its servers would be too low.
		"sums-of-rates": {
			old:    "0.6.3",
			good:   values{input.GenerationTokens: 50, input.PromptTokens: 10},
			bad:    values{input.GenerationTokens: 70, input.PromptTokens: 10},
			want:   map[string]float64{"prompt_throughput m": 2},
			absent: []string{"generation_throughput m"},
		},
		// Latencies of the old server are withheld, those of the new one are not.
		"latencies-near-zero": {
			old:   "0.5.3",
			times: latencies{input.TimeToFirstToken: {[]float64{1, 4}, []float64{0, 5, 0}, 10}},
			want:  map[string]float64{"time_to_first_token_mean m": 2, "first_token_rate m": 1, "time_to_first_token_quantile m 0.5": 2.5},
		},
		// Each request is served by both servers. The pool counts the requests of its servers.
		"requests-on-both-sides": {
			old:  "0.27.0",
			good: values{input.RequestSuccess: 10, input.PromptTokens: 1000},
			bad:  values{input.RequestSuccess: 10, input.PromptTokens: 1000},
			want: map[string]float64{"request_throughput m": 2, "prompt_throughput m": 200},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFleet(t)
			for _, seconds := range []float64{0, 10} {
				for _, server := range []struct {
					name, version string
					counted       values
				}{{"new", "0.40.0", c.good}, {"old", c.old, c.bad}} {
					e := scraped{engine: "0", model: "m", values: values{}, distributions: latencies{}}
					for in, value := range server.counted {
						if in.Define().Kind != input.Gauge {
							value *= seconds / 10
						}
						e.values[in] = value
					}
					for in, d := range c.times {
						counts := make([]float64, len(d.counts))
						for i := range counts {
							counts[i] = d.counts[i] * seconds / 10
						}
						e.distributions[in] = dist{d.bounds, counts, d.sum * seconds / 10}
					}
					f.version, f.signs = server.version, 0
					if c.ray && server.name == "old" {
						f.signs, e.engine = input.Ray, "1"
					}
					f.scrape(server.name, seconds, e)
				}
			}
			got := f.evaluate(11)
			for key, value := range c.want {
				if assert.Contains(t, got, key) {
					assert.InDelta(t, value, got[key], 1e-12, key)
				}
			}
			for _, key := range c.absent {
				assert.NotContains(t, got, key)
			}
		})
	}
}

// A pool of twenty servers does not lose its ratios because one of them is old.
func TestAnOldServerDoesNotSilenceAPool(t *testing.T) {
	f := newFleet(t)
	for _, seconds := range []float64{0, 10} {
		for i := range 20 {
			f.version = "0.40.0"
			if i == 0 {
				f.version = "0.10.0"
			}
			f.scrape(fmt.Sprint(i), seconds, scraped{engine: "0", model: "m", values: map[input.Metric]float64{
				input.PrefixCacheHits: seconds, input.PrefixCacheQueries: 2 * seconds, input.Preemptions: seconds, input.Running: 1, input.GenerationTokens: seconds,
			}})
		}
	}
	got := f.evaluate(11)
	assert.Equal(t, 0.5, got["prefix_cache.hit_ratio m"])
	assert.Equal(t, 20.0, got["running m"])
	assert.Equal(t, 20.0, got["generation_throughput m"])
}
