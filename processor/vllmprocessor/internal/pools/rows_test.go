package pools_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// TestEachMetricOfAPoolByHand has one server with two engines, seen for 20 s, and
// one with a single engine, seen for 10 s.
func TestEachMetricOfAPoolByHand(t *testing.T) {
	type counters map[input.Metric]float64
	f := newFleet(t)
	engine := func(number string, grown float64, by counters, latencies map[input.Metric]dist) scraped {
		s := scraped{engine: number, model: "m", values: counters{}, distributions: map[input.Metric]dist{}}
		for in, n := range by {
			s.values[in] = 1000 + grown*n
		}
		for in, d := range latencies {
			counts := make([]float64, len(d.counts))
			for i, n := range d.counts {
				counts[i] = 50 + grown*n
			}
			s.distributions[in] = dist{d.bounds, counts, 70 + grown*d.sum}
		}
		return s
	}
	latencies := func(ttft, gaps, e2e, queue dist) map[input.Metric]dist {
		return map[input.Metric]dist{
			input.TimeToFirstToken: ttft, input.InterTokenLatency: gaps, input.E2ERequestLatency: e2e, input.QueueTime: queue,
		}
	}
	one, two := []float64{1}, []float64{0.01, 0.03}
	for _, grown := range []float64{0, 1} {
		f.scrape("a", 20*grown,
			engine("0", grown, counters{
				input.PromptTokens: 400, input.PromptTokensCached: 100, input.PromptTokensBySource: 300,
				input.RequestSuccess: 8, input.Preemptions: 6,
				input.ExternalPrefixCacheHits: 30, input.ExternalPrefixCacheQueries: 300,
				input.DraftTokens: 50, input.AcceptedTokens: 20,
			}, latencies(dist{one, []float64{4, 0}, 2}, dist{two, []float64{60, 20, 0}, 1}, dist{one, []float64{0, 8}, 40}, dist{one, []float64{8, 0}, 4})),
			engine("1", grown, counters{
				input.PromptTokens: 100, input.PromptTokensCached: 90, input.PromptTokensBySource: 10,
				input.RequestSuccess: 2, input.Preemptions: 0,
				input.ExternalPrefixCacheHits: 0, input.ExternalPrefixCacheQueries: 0,
				input.DraftTokens: 10, input.AcceptedTokens: 10,
			}, latencies(dist{one, []float64{1, 0}, 0.5}, dist{two, []float64{0, 10, 0}, 0.2}, dist{one, []float64{0, 2}, 10}, dist{one, []float64{2, 0}, 1})),
		)
		// This one reports neither cached tokens nor drafts.
		f.scrape("b", 10*grown,
			engine("0", grown, counters{
				input.PromptTokens: 500, input.RequestSuccess: 10, input.Preemptions: 4,
				input.ExternalPrefixCacheHits: 60, input.ExternalPrefixCacheQueries: 100,
			}, latencies(dist{one, []float64{5, 0}, 4.5}, dist{two, []float64{0, 10, 0}, 0.3}, dist{one, []float64{0, 10}, 50}, dist{one, []float64{10, 0}, 15})),
		)
	}
	got := f.evaluate(21)
	for name, want := range map[string]float64{
		"prompt_throughput m":                 500.0/20 + 500.0/10,
		"prefill_compute_throughput m":        310.0 / 20,
		"request_throughput m":                10.0/20 + 10.0/10,
		"first_token_rate m":                  5.0/20 + 5.0/10,
		"preemption_rate m":                   6.0/20 + 4.0/10,
		"prompt_tokens_cached_ratio m":        190.0 / 500,
		"external_prefix_cache.hit_ratio m":   90.0 / 400,
		"spec_decode.acceptance_ratio m":      30.0 / 60,
		"preemptions_per_first_token m":       10.0 / 10,
		"request.queue_time_ratio m":          20.0 / 100,
		"time_to_first_token_mean m":          7.0 / 10,
		"time_to_first_token_quantile m 0.5":  0.5,
		"inter_token_latency_mean m":          1.5 / 100,
		"inter_token_latency_quantile m 0.5":  0.01 * 50 / 60,
		"inter_token_latency_quantile m 0.95": 0.01 + 0.02*35/40,
		"e2e_request_latency_mean m":          100.0 / 20,
		"e2e_request_latency_quantile m 0.5":  1,
		"imbalance.max_ratio m running":       -1,
		"arrival_rate m":                      -1,
		"request.queue_wait_estimate m":       -1,
		"kv_cache.utilization_max m":          -1,
		"prefix_cache.hit_ratio m":            -1,
		"generation_throughput m":             -1,
		"replicas m":                          -1,
	} {
		if want < 0 {
			assert.NotContains(t, got, name, "no server says what it takes")
			continue
		}
		assert.InDelta(t, want, got[name], 1e-12, name)
	}
}

// A restart that no number shows: more hits than queries. The server is silent
// about its ratio, and the pool must not take its parts.
func TestAServerThatContradictsItselfIsLeftOutOfARatio(t *testing.T) {
	f := newFleet(t)
	for _, grown := range []float64{0, 1} {
		for server, hits := range map[string]float64{"a": 300, "b": 20} {
			f.scrape(server, 15*grown, scraped{engine: "0", model: "m", values: map[input.Metric]float64{
				input.PrefixCacheHits: grown * hits, input.PrefixCacheQueries: grown * 100,
			}})
		}
	}
	assert.InDelta(t, 0.2, f.evaluate(16)["prefix_cache.hit_ratio m"], 1e-12)
}
