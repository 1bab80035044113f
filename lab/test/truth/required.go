package truth

import (
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/surface"
)

// always are the metrics that a healthy server of every V1 version and dialect must have,
// so that absence is no way to be never wrong.
var always = []string{
	"vllm.arrival_rate", "vllm.e2e_request_latency_mean", "vllm.e2e_request_latency_quantile", "vllm.e2e_request_latency_quantile_bound",
	"vllm.first_token_rate", "vllm.frontend_overhead_mean", "vllm.generation_throughput", "vllm.input_output_ratio",
	"vllm.inter_token_latency_mean", "vllm.inter_token_latency_quantile", "vllm.inter_token_latency_quantile_bound",
	"vllm.prompt_throughput", "vllm.request.cancelled_estimate",
	"vllm.request.decode_time_mean", "vllm.request.generation_tokens_mean",
	"vllm.request.prefill_time_mean", "vllm.request.prefill_time_quantile", "vllm.request.prefill_time_quantile_bound",
	"vllm.request.prompt_tokens_mean", "vllm.request.prompt_tokens_quantile", "vllm.request.prompt_tokens_quantile_bound",
	"vllm.request.queue_time_mean", "vllm.request.queue_time_quantile", "vllm.request.queue_time_quantile_bound",
	"vllm.request.queue_time_ratio", "vllm.request.queue_wait_estimate", "vllm.request_throughput",
	"vllm.time_to_first_token_mean", "vllm.time_to_first_token_quantile", "vllm.time_to_first_token_quantile_bound",
}

// later are the metrics that a healthy server must have from a version on, in some
// dialects.
var later = []struct {
	metric, since string
	dialects      []surface.Dialect
}{
	{metric: "vllm.prefix_cache.hit_ratio", since: "0.9.2"}, // Earlier, lookups may be blocks.
	{metric: "vllm.prompt_tokens_cached_ratio", since: "0.16.0"},
	{metric: "vllm.prompt_tokens_cached_by_source_ratio", since: "0.32.0", dialects: []surface.Dialect{surface.V1, surface.V1MultiProcess}},
	{metric: "vllm.prefill_compute_throughput", since: "0.16.0", dialects: []surface.Dialect{surface.V1, surface.V1MultiProcess, surface.Rust}},
	{metric: "vllm.request.time_per_output_token_mean", since: "0.11.1"},
	{metric: "vllm.preemption_rate", since: "0.8.0", dialects: []surface.Dialect{surface.V1, surface.V1MultiProcess, surface.Rust}},
	{metric: "vllm.http.error_ratio", since: "0.8.5", dialects: []surface.Dialect{surface.V1, surface.V1MultiProcess, surface.Rust}},
	{metric: "vllm.kv_cache.capacity", since: "0.9.0", dialects: []surface.Dialect{surface.V1}},
	{metric: "vllm.kv_cache.free", since: "0.9.0", dialects: []surface.Dialect{surface.V1}},
	{metric: "vllm.kv_cache.free", since: "0.20.0", dialects: []surface.Dialect{surface.V1MultiProcess}},
	{metric: "vllm.tokens_per_iteration", since: "0.16.0", dialects: []surface.Dialect{surface.V1}},
}

// required are the metrics that a server must have without a gap.
func required(c *Case) (metrics []string) {
	if !c.Setup.Whole || c.dialect() == surface.V0 || c.dialect() == surface.RayOld {
		return nil
	}
	metrics = slices.Clone(always)
	for _, l := range later {
		if !c.before(l.since) && (l.dialects == nil || slices.Contains(l.dialects, c.dialect())) {
			metrics = append(metrics, l.metric)
		}
	}
	return metrics
}

// ofV0 are the metrics that a healthy V0 server must have since 0.6.4.
var ofV0 = []string{"vllm.first_token_rate", "vllm.prompt_throughput", "vllm.request_throughput", "vllm.e2e_request_latency_mean", "vllm.time_to_first_token_mean"}

// absent returns the required metrics that were withheld or that never had a value.
func absent(c *Case, v *Verdict) (metrics []string) {
	want := required(c)
	if c.Setup.Whole && c.dialect() == surface.V0 && !c.before("0.6.4") {
		want = ofV0
	}
	for _, metric := range want {
		if v.Withheld[metric] > 0 || v.Compared[metric] == 0 {
			metrics = append(metrics, metric)
		}
	}
	return metrics
}
