package derive_test

import (
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// Ten steps process 1000 tokens, of which 400 come from a cache.
func stepCases() map[string][]defectCase {
	const mean = "tokens_per_iteration"
	steps := []point{lengths(input.IterationTokens, 1000, 0, 10)}
	cached := append(slices.Clone(steps), count(input.PromptTokensCached, 400))
	// A server of unknown version: 700 tokens of prompts and 300 generated ones.
	counted := func(steps float64) []point {
		return []point{
			lengths(input.IterationTokens, steps, 0, 10), count(input.PromptTokensCached, 400),
			count(input.PromptTokens, 700), count(input.GenerationTokens, 300),
		}
	}
	found := func(n float64) []point { return append(slices.Clone(steps), count(input.PrefixCacheHits, n)) }
	work := func(bytes float64) []point {
		return []point{count(input.EstimatedReadBytes, bytes), count(input.EstimatedWriteBytes, 0), count(input.GenerationTokens, 10)}
	}
	return map[string][]defectCase{
		"step-tokens-with-cached": {
			{name: "cached tokens", server: release("0.20.0"), points: cached, want: map[string]float64{mean: 60}},
			{name: "fixed", server: release("0.23.0"), points: cached, want: map[string]float64{mean: 100}},
			{name: "cached tokens are not counted", server: release("0.15.0"), points: found(400), want: map[string]float64{mean: absent}},
			{name: "unknown, with cached tokens", server: proves("0.16.0"), points: counted(1000), want: map[string]float64{mean: 60}},
			{name: "unknown, without", server: proves("0.16.0"), points: counted(600), want: map[string]float64{mean: 60}},
			{name: "unknown, neither", server: proves("0.16.0"), points: counted(999), want: map[string]float64{mean: absent}},
			{name: "unknown, no tokens to compare with", server: proves("0.16.0"), points: cached, want: map[string]float64{mean: absent}},
			{name: "nothing was ever cached", server: release("0.15.0"), points: found(0), want: map[string]float64{mean: 100}},
		},
		"steps-split-over-api-servers": {
			{name: "several API servers are seen", server: signed("0.11.0", input.Processes), points: steps, want: map[string]float64{mean: absent}},
			{name: "they are not", server: release("0.11.0"), points: steps, want: map[string]float64{mean: 100}},
		},
		"bytes-of-mla-models": {
			{name: "more than the peak", server: release("0.20.0"), points: work(2 * interval), want: map[string]float64{"memory_bandwidth_utilization": absent}},
			{name: "less", server: release("0.20.0"), points: work(interval / 2), want: map[string]float64{"memory_bandwidth_utilization": 0.5}},
		},
		"flops-of-hybrid-models": {
			{name: "more than the peak", server: release("0.27.0"), want: map[string]float64{"model_flops_utilization": absent}, points: []point{count(input.EstimatedFLOPs, 2*interval), count(input.GenerationTokens, 10)}},
			{name: "less", server: release("0.27.0"), want: map[string]float64{"model_flops_utilization": 0.5}, points: []point{count(input.EstimatedFLOPs, interval/2), count(input.GenerationTokens, 10)}},
		},
	}
}

// Four requests take 8 s to prefill and 2 s to decode.
func timeCases() map[string][]defectCase {
	phases := []point{times(input.PrefillTime, 2, 0, 4), times(input.DecodeTime, 8, 0, 0, 4), lengths(input.RequestGenerationTokens, 8, 0, 4)}
	first := func(zeros, others float64) []point {
		return []point{times(input.TimeToFirstToken, others, zeros, others), times(input.InterTokenLatency, others, zeros, others), lengths(input.RequestGenerationTokens, 8, 0, 4)}
	}
	near := func(value float64) map[string]float64 {
		return map[string]float64{
			"time_to_first_token_mean": value, "inter_token_latency_mean": value, "first_token_rate": 4.0 / interval,
		}
	}
	tokens := []point{
		count(input.PromptTokens, 300), count(input.GenerationTokens, 600+4), times(input.InterTokenLatency, 30, 600), times(input.TimeToFirstToken, 2, 0, 4),
		lengths(input.RequestPromptTokens, 300, 0, 4), count(input.Running, 0), count(input.Drafts, 0),
	}
	rates := map[string]float64{
		"generation_throughput": 604.0 / interval, "inter_token_latency_mean": 0.05, "inter_token_latency_quantile 1": 0.1,
		"inter_token_latency_per_token_mean": 30.0 / 600, "wasted_tokens_ratio abandoned_prefill lower": 0,
	}
	several := []point{
		count(input.GenerationTokens, 600+4), times(input.InterTokenLatency, 30, 0, 75), times(input.TimeToFirstToken, 2, 0, 4), count(input.Drafts, 0),
	}
	// Ten requests got their first token, of which two have ended, and 90 tokens followed.
	late := []point{
		count(input.GenerationTokens, 100), times(input.InterTokenLatency, 9, 90), times(input.TimeToFirstToken, 1, 0, 2),
		count(input.Waiting, 5), count(input.Preemptions, 20), count(input.Drafts, 0),
	}
	counted := func(n float64) map[string]float64 {
		return map[string]float64{
			"first_token_rate": n / interval, "arrival_rate": n / interval, "preemptions_per_first_token": 20 / n,
			"request.queue_wait_estimate": 5 * interval / n, "inter_token_latency_per_token_mean": 9 / (100 - n), "time_to_first_token_mean": 0.5,
		}
	}
	speculating := append(slices.Clone(late[:len(late)-1]), count(input.Drafts, 8))
	withheld := map[string]float64{}
	for name := range rates {
		withheld[name] = absent
	}
	return map[string][]defectCase{
		"prefill-decode-swapped": {
			{name: "swapped", server: release("0.6.4"), points: phases, want: map[string]float64{
				"request.prefill_time_mean": 2, "request.decode_time_mean": 0.5, "request.prefill_time_quantile 1": 10, "request.decode_time_quantile 1": 1,
			}},
			{name: "a V0 engine of unknown version", server: signed("", input.V0), points: phases, want: map[string]float64{
				"request.prefill_time_mean": absent, "request.decode_time_mean": absent, "request.prefill_time_quantile 1": absent,
			}},
			{name: "unknown, no V0 engine", points: phases, want: map[string]float64{"request.prefill_time_mean": 0.5, "request.decode_time_mean": 2}},
			{name: "fixed", server: release("0.6.5"), points: phases, want: map[string]float64{"request.prefill_time_mean": 0.5, "request.decode_time_mean": 2}},
		},
		"first-tokens-at-end": {
			{name: "at the end", server: signed("", input.LateFirstTokens), points: late, want: counted(10)},
			{name: "at the first token", points: late, want: counted(2)},
			{name: "with speculation", server: signed("", input.LateFirstTokens), points: speculating, want: map[string]float64{
				"first_token_rate": absent, "arrival_rate": absent, "preemptions_per_first_token": absent,
				"request.queue_wait_estimate": absent, "inter_token_latency_per_token_mean": absent, "time_to_first_token_mean": 0.5,
			}},
		},
		"latencies-near-zero": {
			{name: "known version", server: release("0.5.3"), points: first(0, 4), want: near(absent)},
			{name: "unknown, all in the first bucket", server: signed("", input.V0), points: first(4, 0), want: near(absent)},
			{name: "unknown, not all", server: signed("", input.V0), points: first(0, 4), want: map[string]float64{"time_to_first_token_mean": 1, "first_token_rate": 4.0 / interval}, elsewhere: true},
			{name: "fixed", server: release("0.5.4"), points: first(0, 4), want: near(1)},
		},
		// Eight steps take 0.4 s, which is observed once for their eight tokens.
		"multi-step-gaps": {
			{name: "perhaps a V1 engine", server: release("0.9.0"), points: several, want: map[string]float64{"inter_token_latency_mean": 0.4}},
			{name: "a V0 engine", server: signed("0.9.0", input.V0), points: several, want: map[string]float64{
				"inter_token_latency_mean": absent, "inter_token_latency_quantile 1": absent, "inter_token_latency_per_token_mean": 0.05, "generation_throughput": 604.0 / interval,
			}},
			{name: "one token for each", server: signed("0.9.0", input.V0), points: tokens, want: rates},
			{name: "without V0", server: release("0.11.0"), points: several, want: map[string]float64{"inter_token_latency_mean": 0.4}},
		},
		"multi-step-miscounts": {
			{name: "known version", server: release("0.6.3"), points: tokens, want: withheld},
			{name: "a V0 engine of unknown version", server: signed("", input.V0), points: tokens, want: withheld},
			{name: "unknown, no V0 engine", points: tokens, want: rates},
			{name: "fixed", server: release("0.6.4"), points: tokens, want: rates},
		},
	}
}
