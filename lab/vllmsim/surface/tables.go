package surface

// row places a family in a server's body.
type row struct {
	name string
	// since and until are the first vLLM version with it and the first without.
	since, until string
	// deprecated is the notice in HELP from version deprecatedSince on.
	deprecated, deprecatedSince string
	// needs names a feature without which the family does not exist.
	needs feature
}

type feature uint8

const (
	always feature = iota
	needsSpecDecode
	needsLoRA
	needsNaNCounter
	needsTransfer
	needsBlockMetrics
	needsPriority
)

// Names of families that are not built from definitions.
const (
	loraInfo    = "lora_requests_info"
	cacheConfig = "cache_config_info"
	rejections  = "admission_rejections"
)

// v1Rows is the V1 engine's body in order.
var v1Rows = []row{
	{name: "spec_decode_num_drafts", since: "0.8.5", needs: needsSpecDecode},
	{name: "spec_decode_num_draft_tokens", since: "0.8.5", needs: needsSpecDecode},
	{name: "spec_decode_num_accepted_tokens", since: "0.8.5", needs: needsSpecDecode},
	{name: "spec_decode_num_accepted_tokens_per_pos", since: "0.8.5", needs: needsSpecDecode},
	{name: "nixl_num_failed_transfers", since: "0.11.1", needs: needsTransfer},
	{name: "estimated_flops_per_gpu", since: "0.17.0"},
	{name: "estimated_read_bytes_per_gpu", since: "0.17.0"},
	{name: "estimated_write_bytes_per_gpu", since: "0.17.0"},
	{name: "num_requests_running", since: "0.8.0"},
	{name: "num_requests_waiting", since: "0.8.0"},
	{name: "num_requests_waiting_by_reason", since: "0.20.0"},
	{name: "engine_sleep_state", since: "0.11.1"},
	{name: "scheduler_policy_info", since: "0.8.0", needs: needsPriority},
	{name: "gpu_cache_usage_perc", since: "0.8.0", until: "0.11.0", deprecated: useUsage, deprecatedSince: "0.9.2"},
	{name: "gpu_prefix_cache_queries", since: "0.8.0", until: "0.11.0", deprecated: useQueries, deprecatedSince: "0.9.2"},
	{name: "gpu_prefix_cache_hits", since: "0.8.0", until: "0.11.0", deprecated: useHits, deprecatedSince: "0.9.2"},
	{name: "kv_cache_usage_perc", since: "0.9.2"},
	{name: "corrupted_requests", since: "0.11.1", needs: needsNaNCounter},
	{name: "prefix_cache_queries", since: "0.9.2"},
	{name: "prefix_cache_hits", since: "0.9.2"},
	{name: "external_prefix_cache_queries", since: "0.11.1"},
	{name: "external_prefix_cache_hits", since: "0.11.1"},
	{name: "mm_cache_queries", since: "0.11.1"},
	{name: "mm_cache_hits", since: "0.11.1"},
	{name: "num_preemptions", since: "0.8.0"},
	{name: "prompt_tokens", since: "0.8.0"},
	{name: "prompt_tokens_by_source", since: "0.16.0"},
	{name: "prompt_tokens_cached", since: "0.16.0"},
	{name: "prompt_tokens_recomputed", since: "0.16.0", until: "0.20.0"},
	{name: "prompt_tokens_cached_by_source", since: "0.32.0"},
	{name: "generation_tokens", since: "0.8.0"},
	{name: "request_success", since: "0.8.0"},
	{name: rejections, since: "0.32.0"},
	{name: "request_prompt_tokens", since: "0.8.0"},
	{name: "request_generation_tokens", since: "0.8.0"},
	{name: "iteration_tokens_total", since: "0.8.0"},
	{name: "request_max_num_generation_tokens", since: "0.8.0"},
	{name: "request_params_n", since: "0.8.0"},
	{name: "request_params_max_tokens", since: "0.8.0"},
	{name: "time_to_first_token_seconds", since: "0.8.0"},
	{name: "time_per_output_token_seconds", since: "0.8.0", until: "0.12.0", deprecated: useITL, deprecatedSince: "0.10.2"},
	{name: "inter_token_latency_seconds", since: "0.10.2"},
	{name: "request_time_per_output_token_seconds", since: "0.11.0"},
	{name: "e2e_request_latency_seconds", since: "0.8.0"},
	{name: "request_queue_time_seconds", since: "0.8.0"},
	{name: "request_inference_time_seconds", since: "0.8.0"},
	{name: "request_prefill_time_seconds", since: "0.8.0"},
	{name: "request_decode_time_seconds", since: "0.8.0"},
	{name: "request_prefill_kv_computed_tokens", since: "0.13.0"},
	{name: "kv_block_lifetime_seconds", since: "0.12.0", needs: needsBlockMetrics},
	{name: "kv_block_idle_before_evict_seconds", since: "0.12.0", needs: needsBlockMetrics},
	{name: "kv_block_reuse_gap_seconds", since: "0.12.0", needs: needsBlockMetrics},
	{name: "request_num_preemptions", since: "0.30.0"},
	{name: loraInfo, since: "0.8.0", needs: needsLoRA},
	{name: cacheConfig, since: "0.8.0"},
}

// v0Rows is the V0 engine's body in order.
var v0Rows = []row{
	{name: cacheConfig, since: "0.5.0"},
	{name: "num_requests_running", since: "0.5.0"},
	{name: "num_requests_waiting", since: "0.5.0"},
	{name: loraInfo, since: "0.6.4"},
	{name: "num_requests_swapped", since: "0.5.0", until: "0.9.1"},
	{name: "gpu_cache_usage_perc", since: "0.5.0"},
	{name: "cpu_cache_usage_perc", since: "0.5.0", until: "0.9.1"},
	{name: "cpu_prefix_cache_hit_rate", since: "0.5.5", until: "0.9.1"},
	{name: "gpu_prefix_cache_hit_rate", since: "0.5.5", until: "0.9.1"},
	{name: "num_preemptions", since: "0.5.0"},
	{name: "prompt_tokens", since: "0.5.0"},
	{name: "generation_tokens", since: "0.5.0"},
	{name: "tokens", since: "0.6.4", until: "0.8.0"},
	{name: "iteration_tokens_total", since: "0.6.4"},
	{name: "time_to_first_token_seconds", since: "0.5.0"},
	{name: "time_per_output_token_seconds", since: "0.5.0"},
	{name: "e2e_request_latency_seconds", since: "0.5.0"},
	{name: "request_queue_time_seconds", since: "0.6.4"},
	{name: "request_inference_time_seconds", since: "0.6.4"},
	{name: "request_prefill_time_seconds", since: "0.6.4"},
	{name: "request_decode_time_seconds", since: "0.6.4"},
	{name: "time_in_queue_requests", since: "0.6.4", until: "0.9.1"},
	{name: "model_forward_time_milliseconds", since: "0.6.4", until: "0.9.1"},
	{name: "model_execute_time_milliseconds", since: "0.6.4", until: "0.9.1"},
	{name: "request_prompt_tokens", since: "0.5.0"},
	{name: "request_generation_tokens", since: "0.5.0"},
	{name: "request_max_num_generation_tokens", since: "0.6.4"},
	{name: "request_params_best_of", since: "0.5.0", until: "0.6.3"},
	{name: "request_params_n", since: "0.5.0"},
	{name: "request_params_max_tokens", since: "0.6.4"},
	{name: "request_success", since: "0.5.0"},
	{name: "spec_decode_draft_acceptance_rate", since: "0.5.3", until: "0.10.0", needs: needsSpecDecode},
	{name: "spec_decode_efficiency", since: "0.5.3", until: "0.10.0", needs: needsSpecDecode},
	{name: "spec_decode_num_accepted_tokens", since: "0.5.3", until: "0.10.0", needs: needsSpecDecode},
	{name: "spec_decode_num_draft_tokens", since: "0.5.3", until: "0.10.0", needs: needsSpecDecode},
	{name: "spec_decode_num_emitted_tokens", since: "0.5.3", until: "0.10.0", needs: needsSpecDecode},
	{name: "avg_prompt_throughput_toks_per_s", since: "0.5.0", until: "0.7.0"},
	{name: "avg_generation_throughput_toks_per_s", since: "0.5.0", until: "0.7.0"},
}

// rustRows is the Rust front end's body in order. It declares every family
// whether or not the feature is on.
var rustRows = []row{
	{name: "num_requests_running", since: "0.22.0"},
	{name: "num_requests_waiting", since: "0.22.0"},
	{name: "num_requests_waiting_by_reason", since: "0.22.0"},
	{name: "kv_cache_usage_perc", since: "0.22.0"},
	{name: loraInfo, since: "0.22.0"},
	{name: "prefix_cache_queries", since: "0.22.0"},
	{name: "prefix_cache_hits", since: "0.22.0"},
	{name: "external_prefix_cache_queries", since: "0.22.0"},
	{name: "external_prefix_cache_hits", since: "0.22.0"},
	{name: "spec_decode_num_drafts", since: "0.22.0"},
	{name: "spec_decode_num_draft_tokens", since: "0.22.0"},
	{name: "spec_decode_num_accepted_tokens", since: "0.22.0"},
	{name: "spec_decode_num_accepted_tokens_per_pos", since: "0.22.0"},
	{name: "estimated_flops_per_gpu", since: "0.22.0"},
	{name: "estimated_read_bytes_per_gpu", since: "0.22.0"},
	{name: "estimated_write_bytes_per_gpu", since: "0.22.0"},
	{name: "kv_block_lifetime_seconds", since: "0.22.0"},
	{name: "kv_block_idle_before_evict_seconds", since: "0.22.0"},
	{name: "kv_block_reuse_gap_seconds", since: "0.22.0"},
	{name: "num_preemptions", since: "0.22.0"},
	{name: "prompt_tokens", since: "0.22.0"},
	{name: "prompt_tokens_by_source", since: "0.22.0"},
	{name: "prompt_tokens_cached", since: "0.22.0"},
	{name: "generation_tokens", since: "0.22.0"},
	{name: "request_success", since: "0.22.0"},
	{name: "request_prompt_tokens", since: "0.22.0"},
	{name: "request_generation_tokens", since: "0.22.0"},
	{name: "request_max_num_generation_tokens", since: "0.22.0"},
	{name: "request_params_max_tokens", since: "0.22.0"},
	{name: "request_params_n", since: "0.22.0"},
	{name: "request_prefill_kv_computed_tokens", since: "0.22.0"},
	{name: "time_to_first_token_seconds", since: "0.22.0"},
	{name: "inter_token_latency_seconds", since: "0.22.0"},
	{name: "e2e_request_latency_seconds", since: "0.22.0"},
	{name: "request_queue_time_seconds", since: "0.22.0"},
	{name: "request_prefill_time_seconds", since: "0.22.0"},
	{name: "request_decode_time_seconds", since: "0.22.0"},
	{name: "request_inference_time_seconds", since: "0.22.0"},
	{name: "request_time_per_output_token_seconds", since: "0.22.0"},
}
