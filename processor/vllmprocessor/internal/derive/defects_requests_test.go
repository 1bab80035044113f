package derive_test

import (
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// requestCases have defects that change what counts as a request, or which requests are
// counted. What is derived is right, or within the bounds of its decision.
func requestCases() map[string][]defectCase {
	const (
		cancelled = "request.cancelled_estimate"
		perToken  = "inter_token_latency_per_token_mean"
		lower     = "wasted_tokens_ratio abandoned_prefill lower"
		upper     = "wasted_tokens_ratio abandoned_prefill upper"
	)
	// requests of which first got a first token and done finished, with 100 prompt tokens
	// each, and gaps of 0.1 s between their tokens.
	requests := func(first, done, prompts, tokens float64) []point {
		return []point{
			times(input.TimeToFirstToken, first, 0, first), count(input.RequestSuccess, done, "stop"), times(input.E2ERequestLatency, 5*done, 0, 0, done),
			count(input.PromptTokens, prompts), lengths(input.RequestPromptTokens, 100*done, 0, done), count(input.PromptTokensCached, prompts/4),
			count(input.GenerationTokens, tokens), times(input.InterTokenLatency, 0.1*(tokens-first), 0, tokens-first), count(input.Drafts, 0),
			lengths(input.RequestGenerationTokens, 10*done, 0, done), count(input.Running, 0), count(input.Waiting, 0), count(input.Preemptions, 2),
		}
	}
	counted := map[string]float64{
		"first_token_rate": 4.0 / interval, "request_throughput": 4.0 / interval, "arrival_rate": 4.0 / interval, cancelled: 0,
		"prompt_throughput": 400.0 / interval, "prompt_tokens_cached_ratio": 0.25, "request.finished_ratio stop": 1,
		"e2e_request_latency_mean": 5, "time_to_first_token_mean": 1, "preemptions_per_first_token": 0.5, perToken: 0.1, lower: 0, upper: 0,
	}
	phases := []point{
		times(input.E2ERequestLatency, 20, 0, 0, 4), times(input.TimeToFirstToken, 4, 0, 4), times(input.QueueTime, 2, 0, 4), times(input.InferenceTime, 16, 0, 0, 4),
		times(input.PrefillTime, 4, 0, 4), times(input.DecodeTime, 12, 0, 0, 4), lengths(input.RequestGenerationTokens, 40, 0, 4),
	}
	measured := map[string]float64{
		"time_to_first_token_mean": 1, "e2e_request_latency_mean": 5, "request.queue_time_mean": 0.5, "request.prefill_time_mean": 1, "request.decode_time_mean": 3,
		"request.queue_time_ratio": 0.1, "frontend_overhead_mean": 0.5, "e2e_request_latency_quantile 1": 10,
	}
	failed := append(requests(4, 4, 400, 40)[1:], times(input.TimeToFirstToken, 5, 0, 5), count(input.RequestSuccess, 1, "error"))
	return map[string][]defectCase{
		// One request for four choices of ten tokens: the engine serves four requests.
		"choices-counted-singly": {{name: "four choices", server: release("0.27.0"), points: requests(4, 4, 400, 40), want: counted}},
		// Four steps of a beam search: the engine serves four requests.
		"beam-steps-counted":     {{name: "four steps", server: release("0.27.0"), points: requests(4, 4, 400, 40), want: counted}},
		"requests-on-both-sides": {{name: "four requests of the other side, too", server: release("0.27.0"), points: requests(4, 4, 400, 40), want: counted}},
		// Two of six requests are cancelled after five tokens.
		"client-aborts-uncounted": {{
			name: "two of six", server: release("0.27.0"), points: requests(6, 4, 600, 50), want: map[string]float64{
				"request_throughput": 4.0 / interval, cancelled: 2.0 / interval, "e2e_request_latency_mean": 5, "request.finished_ratio stop": 1,
				"request.prompt_tokens_mean": 100, "request.generation_tokens_mean": 10, "input_output_ratio": 10, lower: 200.0 / 600, upper: 200.0 / 600,
			},
		}},
		// A session of three chunks with ten tokens each is one request: the estimate is too
		// high by two.
		"sessions-per-chunk": {{
			name: "three chunks", server: release("0.27.0"), points: requests(3, 1, 300, 30), want: map[string]float64{
				cancelled: 2.0 / interval, perToken: 0.1, "first_token_rate": 3.0 / interval,
			},
		}},
		// One of five requests fails in its prefill; four have ten tokens each, so 36 after the
		// first. One of them is missing in the denominator of the time per token.
		"first-token-without-token": {{
			name: "one fails", server: release("0.27.0"), want: map[string]float64{
				cancelled: 0, perToken: 3.6 / 35, "time_to_first_token_mean": 1, "first_token_rate": 5.0 / interval, "preemptions_per_first_token": 2.0 / 5,
			},
			points: failed,
		}},
		"errors-uncounted": {{
			name: "before the reason error", server: release("0.12.0"), points: []point{count(input.RequestSuccess, 3, "stop"), count(input.RequestSuccess, 1, "length")},
			want: map[string]float64{"request.finished_ratio stop": 0.75, "request_throughput": 4.0 / interval},
		}},
		"arrival-time-moved": {
			{name: "before", server: release("0.16.0"), points: phases, want: measured},
			{name: "since", server: release("0.17.0"), points: phases, want: measured},
		},
		"first-wait-only": {{name: "as measured", server: release("0.27.0"), points: phases, want: measured}},
		// One request of 31 tokens in ten outputs after the first, one second apart.
		"gap-per-output": {{
			name: "three tokens in each output", server: release("0.27.0"), want: map[string]float64{"inter_token_latency_mean": 1, perToken: 10.0 / 30},
			points: []point{
				times(input.InterTokenLatency, 10, 0, 10), count(input.GenerationTokens, 31), times(input.TimeToFirstToken, 1, 0, 1), count(input.Drafts, 10),
			},
		}},
		"preemptions-counted-late": {{
			name: "those that returned", server: release("0.27.0"), points: requests(4, 4, 400, 40),
			want: map[string]float64{"preemption_rate": 2.0 / interval, "preemptions_per_first_token": 0.5},
		}},
		"negative-accepted-tokens": {{
			name: "until it fails", server: release("0.15.0"), points: []point{count(input.Drafts, 10), count(input.DraftTokens, 30), count(input.AcceptedTokens, 9), count(input.AcceptedTokensPerPosition, 9, "0"), count(input.GenerationTokens, 20)},
			want: map[string]float64{"spec_decode.acceptance_ratio": 0.3, "spec_decode.mean_acceptance_length": 1.9, "wasted_tokens_ratio rejected_drafts": 21.0 / 50},
		}},
	}
}

// gaugeCases have defects of gauges and of estimates.
func gaugeCases() map[string][]defectCase {
	queue := func(more ...point) []point {
		return append([]point{times(input.TimeToFirstToken, 3, 6), count(input.Running, 2), count(input.Waiting, 4)}, more...)
	}
	work := []point{
		count(input.EstimatedFLOPs, interval/4), count(input.EstimatedReadBytes, interval/2), count(input.EstimatedWriteBytes, 0), count(input.GenerationTokens, 10),
	}
	estimated := map[string]float64{"model_flops_utilization": 0.25, "memory_bandwidth_utilization": 0.5}
	return map[string][]defectCase{
		// Four requests wait, one of them for something else than capacity.
		"deferred-in-waiting": {
			{name: "all that wait", server: release("0.19.1"), points: queue(), want: map[string]float64{"arrival_rate": 6.0 / interval, "request.queue_wait_estimate": 4.0 * interval / 6}},
			{
				name: "those that wait for capacity", server: release("0.20.0"), points: queue(count(input.WaitingByReason, 3, "capacity"), count(input.WaitingByReason, 1, "deferred")),
				want: map[string]float64{"arrival_rate": 6.0 / interval, "request.queue_wait_estimate": 3.0 * interval / 6},
			},
		},
		// The gauges are those of the step before: the counters are not.
		"gauges-trail-steps": {{
			name: "gauges of 0", server: release("0.27.0"), want: map[string]float64{"arrival_rate": 2.0 / interval, "first_token_rate": 2.0 / interval},
			points: []point{times(input.TimeToFirstToken, 1, 0, 2), count(input.Waiting, 0), count(input.Running, 0)},
		}},
		// No request is served and none arrives while gauges are frozen.
		"frozen-rates": {{
			name: "frozen", server: release("0.10.0"), want: map[string]float64{"arrival_rate": 0, "request.queue_wait_estimate": absent}, uncounted: true,
			points: []point{times(input.TimeToFirstToken, 0), count(input.Waiting, 3), count(input.Running, 5)},
		}},
		// 100 blocks of eight tokens, one of which can never be used.
		"null-block-used": {{
			name: "an idle cache", server: release("0.10.0"), points: []point{count(input.CacheConfigTokens, 800), count(input.KVCacheUtilization, 0.01)},
			want: map[string]float64{"kv_cache.free": 99 * 8},
		}},
		"usage-per-process": {{
			name: "no use is known", server: release("0.11.0"), points: []point{count(input.CacheConfigTokens, 800)},
			want: map[string]float64{"kv_cache.free": absent, "kv_cache.capacity": 800}, uncounted: true,
		}},
		"blocks-unknown-to-api-servers": {{
			name: "no blocks", server: release("0.11.0"), points: []point{count(input.KVCacheBlockSize, 16), count(input.KVCacheUtilization, 0.25)},
			want: map[string]float64{"kv_cache.capacity": absent, "kv_cache.free": absent}, uncounted: true,
		}},
		"steps-without-outputs": {{
			name: "those with outputs", server: release("0.27.0"), points: []point{lengths(input.IterationTokens, 1000, 0, 10)},
			want: map[string]float64{"tokens_per_iteration": 100},
		}},
		"estimates": {
			{name: "0.17", server: release("0.17.0"), points: work, want: estimated},
			{name: "0.27", server: release("0.27.0"), points: work, want: estimated},
		},
		"rust-served-name": {{
			name: "another name", server: release("0.23.0"), points: []point{count(input.GenerationTokens, 30)}, want: map[string]float64{"generation_throughput": 30.0 / interval},
		}},
	}
}
