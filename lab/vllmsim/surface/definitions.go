package surface

import (
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/observed"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/wire"
)

type stats = observed.Stats

// Like in vLLM, the HELP of a deprecated family ends with a notice, without a blank.
const (
	useUsage   = "DEPRECATED: Use vllm:kv_cache_usage_perc."
	useQueries = "DEPRECATED: Use vllm:prefix_cache_queries."
	useHits    = "DEPRECATED: Use vllm:prefix_cache_hits."
	useITL     = "DEPRECATED: Use vllm:inter_token_latency_seconds."
)

// definitions are all families with engine data, by their name in vLLM's code.
var definitions = map[string]definition{
	"num_requests_running": whole("Requests in the running batch.",
		func(s *stats) float64 { return float64(s.Running) }),
	"num_requests_waiting": whole("Requests in the queue.",
		func(s *stats) float64 { return float64(s.Waiting()) }),
	"num_requests_waiting_by_reason": labelled("Queued requests split by what they wait for.", wire.Gauge, "reason", waitingReasons),
	"num_requests_swapped": whole("Requests moved out to CPU memory.",
		func(*stats) float64 { return 0 }),
	"engine_sleep_state":    labelled("One series per sleep state, 1 for the present one.", wire.Gauge, "sleep_state", sleepStates),
	"scheduler_policy_info": labelled("One series per scheduling policy, 1 for the present one.", wire.Gauge, "policy", policies),
	"kv_cache_usage_perc": gauge("Used share of the KV cache, from 0 to 1.",
		func(s *stats) float64 { return s.KVUsage }),
	"gpu_cache_usage_perc": gauge("Used share of the KV cache on the GPU, from 0 to 1.",
		func(s *stats) float64 { return s.KVUsage }),
	"cpu_cache_usage_perc": gauge("Used share of the KV cache on the CPU, from 0 to 1.",
		func(*stats) float64 { return 0 }),
	"cpu_prefix_cache_hit_rate": gauge("Hit rate of prefix blocks on the CPU.",
		func(*stats) float64 { return -1 }),
	"gpu_prefix_cache_hit_rate": {
		help: "Hit rate of prefix blocks on the GPU.", kind: wire.Gauge,
		points: func(s *Server, st *stats) []wire.Point {
			if !s.PrefixCaching {
				return []wire.Point{{Value: -1}}
			}
			return []wire.Point{{Value: ratio(st.PrefixHitBlocks, st.PrefixQueryBlocks)}}
		},
	},
	"prefix_cache_queries": counter("Tokens looked up in the prefix cache.",
		func(s *stats) float64 { return s.PrefixQueries }),
	"prefix_cache_hits": counter("Tokens found in the prefix cache.",
		func(s *stats) float64 { return s.PrefixHits }),
	"gpu_prefix_cache_queries": {help: "Lookups in the prefix cache on the GPU.", kind: wire.Counter, points: prefixUnits(
		func(s *stats) float64 { return s.PrefixQueryBlocks }, func(s *stats) float64 { return s.PrefixQueries })},
	"gpu_prefix_cache_hits": {help: "Hits in the prefix cache on the GPU.", kind: wire.Counter, points: prefixUnits(
		func(s *stats) float64 { return s.PrefixHitBlocks }, func(s *stats) float64 { return s.PrefixHits })},
	"external_prefix_cache_queries": counter("Tokens looked up through a KV connector.",
		func(s *stats) float64 { return s.ExternalQueries }),
	"external_prefix_cache_hits": counter("Tokens found through a KV connector.",
		func(s *stats) float64 { return s.ExternalHits }),
	"nixl_num_failed_transfers": counter("Transfers of KV blocks that failed.",
		func(s *stats) float64 { return s.TransferFailures }),
	"corrupted_requests": counter("Requests whose logits were not numbers.",
		func(s *stats) float64 { return s.Corrupted }),
	"mm_cache_queries": counter("Items looked up in the multi-modal cache.",
		func(s *stats) float64 { return s.MediaQueries }),
	"mm_cache_hits": counter("Items found in the multi-modal cache.",
		func(s *stats) float64 { return s.MediaHits }),
	"num_preemptions": counter("Requests preempted so far.",
		func(s *stats) float64 { return s.Preemptions }),
	"prompt_tokens": counter("Prompt tokens of requests that got their first token.",
		func(s *stats) float64 { return s.PromptTokens }),
	"prompt_tokens_by_source": labelled("Prompt tokens by where their KV came from.", wire.Counter, "source", promptSources),
	"prompt_tokens_cached": counter("Prompt tokens that were not computed.",
		func(s *stats) float64 { return s.PromptCached }),
	"prompt_tokens_cached_by_source": labelled("Cached prompt tokens by the tier that had them.", wire.Counter, "source", cacheTiers),
	"prompt_tokens_recomputed":       counter("Cached tokens that were computed again.", zero),
	"generation_tokens": counter("Tokens generated so far.",
		func(s *stats) float64 { return s.GenerationTokens }),
	"request_success": labelled("Finished requests by reason.", wire.Counter, "finished_reason", finishedReasons),
	"tokens":          bare("Tokens of prompts and outputs together.", wire.Counter),

	"spec_decode_num_drafts": counter("Drafts proposed.",
		func(s *stats) float64 { return s.Drafts }),
	"spec_decode_num_draft_tokens": counter("Tokens drafted.",
		func(s *stats) float64 { return s.DraftTokens }),
	"spec_decode_num_accepted_tokens": counter("Drafted tokens that were accepted.",
		func(s *stats) float64 { return s.AcceptedTokens }),
	"spec_decode_num_accepted_tokens_per_pos": labelled("Accepted tokens by place in the draft.", wire.Counter, "position", draftPositions),
	"spec_decode_num_emitted_tokens": counter("Tokens emitted by drafting and checking.",
		func(s *stats) float64 { return s.AcceptedTokens + s.Drafts }),
	"spec_decode_draft_acceptance_rate": gauge("Share of drafted tokens accepted.",
		func(s *stats) float64 { return ratio(s.AcceptedTokens, s.DraftTokens) }),
	"spec_decode_efficiency": gauge("Emitted tokens by what perfect drafts would have given.",
		func(s *stats) float64 { return ratio(s.AcceptedTokens+s.Drafts, s.DraftTokens+s.Drafts) }),

	"estimated_flops_per_gpu": counter("Estimated floating point operations on each GPU.",
		func(s *stats) float64 { return s.Flops }),
	"estimated_read_bytes_per_gpu": counter("Estimated bytes that each GPU read from its memory.",
		func(s *stats) float64 { return s.ReadBytes }),
	"estimated_write_bytes_per_gpu": counter("Estimated bytes that each GPU wrote to its memory.",
		func(s *stats) float64 { return s.WriteBytes }),

	"avg_prompt_throughput_toks_per_s": gauge("Prompt tokens per second of late.",
		func(s *stats) float64 { return s.PromptRate }),
	"avg_generation_throughput_toks_per_s": gauge("Generated tokens per second of late.",
		func(s *stats) float64 { return s.GenerationRate }),

	"request_prompt_tokens": histogram("Prompt tokens per finished request.", tokenBounds,
		func(s *stats) *observed.Histogram { return s.PromptLength }),
	"request_generation_tokens": histogram("Generated tokens per finished request.", tokenBounds,
		func(s *stats) *observed.Histogram { return s.GenerationLength }),
	"iteration_tokens_total": histogram("Tokens worked on per engine step.", iterationBounds,
		func(s *stats) *observed.Histogram { return s.IterationTokens }),
	"request_max_num_generation_tokens": histogram("Longest output among a request's sequences.", tokenBounds,
		func(s *stats) *observed.Histogram { return s.LongestGeneration }),
	"request_params_n": histogram("Value of n per request.", sequenceBounds,
		func(s *stats) *observed.Histogram { return s.ParamsN }),
	"request_params_best_of": histogram("Value of best_of per request.", sequenceBounds,
		func(s *stats) *observed.Histogram { return s.ParamsN }),
	"request_params_max_tokens": histogram("Value of max_tokens per request.", tokenBounds,
		func(s *stats) *observed.Histogram { return s.ParamsMaxTokens }),
	"time_to_first_token_seconds": latency("Seconds until a request's first token.", firstTokenBounds,
		func(s *stats) *observed.Histogram { return s.FirstToken }),
	"inter_token_latency_seconds": histogram("Seconds between tokens of a request.", tokenTimeBounds,
		func(s *stats) *observed.Histogram { return s.InterToken }),
	"time_per_output_token_seconds": latency("Seconds per output token.", tokenTimeBounds,
		func(s *stats) *observed.Histogram { return s.InterToken }),
	"request_time_per_output_token_seconds": histogram("Mean seconds per output token of each request.", tokenTimeBounds,
		func(s *stats) *observed.Histogram { return s.TokenMean }),
	"e2e_request_latency_seconds": histogram("Seconds from arrival to the last token.", latencyBounds,
		func(s *stats) *observed.Histogram { return s.EndToEnd }),
	"request_queue_time_seconds": histogram("Seconds that a request waited.", latencyBounds,
		func(s *stats) *observed.Histogram { return s.Queue }),
	"time_in_queue_requests": histogram("Seconds that a request waited, older name.", latencyBounds,
		func(s *stats) *observed.Histogram { return s.Queue }),
	"request_inference_time_seconds": histogram("Seconds that a request ran.", latencyBounds,
		func(s *stats) *observed.Histogram { return s.Inference }),
	"request_prefill_time_seconds": swapped("Seconds of prefill per request.", prefillTime, decodeTime),
	"request_decode_time_seconds":  swapped("Seconds of decoding per request.", decodeTime, prefillTime),
	"request_prefill_kv_computed_tokens": histogram("Prompt tokens computed per request, without cached ones.", tokenBounds,
		func(s *stats) *observed.Histogram { return s.PrefillComputed }),
	"request_num_preemptions": histogram("Preemptions per finished request.", preemptionBounds,
		func(s *stats) *observed.Histogram { return s.RequestPreemptions }),
	"model_forward_time_milliseconds": bare("Milliseconds of the forward pass, with detailed traces.", wire.Histogram),
	"model_execute_time_milliseconds": bare("Milliseconds of a model call, with detailed traces.", wire.Histogram),

	"kv_block_lifetime_seconds": histogram("Seconds from allocation to eviction of a block.", residencyBounds,
		func(s *stats) *observed.Histogram { return s.BlockLifetime }),
	"kv_block_idle_before_evict_seconds": histogram("Seconds without use before a block's eviction.", residencyBounds,
		func(s *stats) *observed.Histogram { return s.BlockIdle }),
	"kv_block_reuse_gap_seconds": histogram("Seconds between uses of a block.", residencyBounds,
		func(s *stats) *observed.Histogram { return s.BlockReuseGap }),
}

func zero(*stats) float64 { return 0 }

func prefillTime(s *stats) *observed.Histogram { return s.Prefill }
func decodeTime(s *stats) *observed.Histogram  { return s.Decode }

// prefixUnits picks blocks before v0.9.0 and tokens from then on: the unit of
// these two families changed while their names did not.
func prefixUnits(blocks, tokens func(*stats) float64) func(*Server, *stats) []wire.Point {
	return func(s *Server, st *stats) []wire.Point {
		if s.Version.before("0.9.0") {
			return []wire.Point{{Value: blocks(st)}}
		}
		return []wire.Point{{Value: tokens(st)}}
	}
}
