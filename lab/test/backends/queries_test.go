//go:build e2e

package backends

import (
	"regexp"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// query is a question that operators ask about vLLM, in the names of the wire. "JOB" is
// replaced by the matcher of a job.
type query struct {
	name, promql string
}

// queries cover latency, throughput, load, cache and failures.
var queries = []query{
	{name: "TTFT p95", promql: `histogram_quantile(0.95, sum by (le, model_name) (rate(vllm:time_to_first_token_seconds_bucket{JOB}[5m])))`},
	{name: "TTFT p50", promql: `histogram_quantile(0.5, sum by (le, model_name) (rate(vllm:time_to_first_token_seconds_bucket{JOB}[1m])))`},
	{name: "TTFT p99 per engine", promql: `histogram_quantile(0.99, sum by (le, model_name, engine) (rate(vllm:time_to_first_token_seconds_bucket{JOB}[5m])))`},
	{name: "TTFT mean", promql: `sum by (model_name) (rate(vllm:time_to_first_token_seconds_sum{JOB}[5m])) / sum by (model_name) (rate(vllm:time_to_first_token_seconds_count{JOB}[5m]))`},
	{name: "ITL p99", promql: `histogram_quantile(0.99, sum by (le, model_name) (rate(vllm:inter_token_latency_seconds_bucket{JOB}[5m])))`},
	{name: "TPOT p95", promql: `histogram_quantile(0.95, sum by (le, model_name) (rate(vllm:request_time_per_output_token_seconds_bucket{JOB}[5m])))`},
	{name: "queue time p95", promql: `histogram_quantile(0.95, sum by (le, model_name) (rate(vllm:request_queue_time_seconds_bucket{JOB}[5m])))`},
	{name: "end-to-end p95", promql: `histogram_quantile(0.95, sum by (le, model_name) (rate(vllm:e2e_request_latency_seconds_bucket{JOB}[5m])))`},
	{name: "prefill p95", promql: `histogram_quantile(0.95, sum by (le, model_name) (rate(vllm:request_prefill_time_seconds_bucket{JOB}[5m])))`},
	{name: "decode p95", promql: `histogram_quantile(0.95, sum by (le, model_name) (rate(vllm:request_decode_time_seconds_bucket{JOB}[5m])))`},
	{name: "prompt tokens per second", promql: `sum by (model_name) (rate(vllm:prompt_tokens_total{JOB}[5m]))`},
	{name: "generated tokens per second", promql: `sum by (model_name) (irate(vllm:generation_tokens_total{JOB}[1m]))`},
	{name: "completions per second", promql: `sum by (model_name) (rate(vllm:request_success_total{JOB}[5m]))`},
	{name: "completions by reason", promql: `sum by (model_name, finished_reason) (rate(vllm:request_success_total{JOB}[5m]))`},
	{name: "prompt length p90", promql: `histogram_quantile(0.9, sum by (le, model_name) (rate(vllm:request_prompt_tokens_bucket{JOB}[5m])))`},
	{name: "output length p90", promql: `histogram_quantile(0.9, sum by (le, model_name) (rate(vllm:request_generation_tokens_bucket{JOB}[5m])))`},
	{name: "max_tokens p90", promql: `histogram_quantile(0.9, sum by (le, model_name) (rate(vllm:request_params_max_tokens_bucket{JOB}[5m])))`},
	{name: "running", promql: `sum by (model_name, engine) (vllm:num_requests_running{JOB})`},
	{name: "waiting", promql: `sum by (model_name, engine) (vllm:num_requests_waiting{JOB})`},
	{name: "longest queue", promql: `max by (model_name) (max_over_time(vllm:num_requests_waiting{JOB}[5m]))`},
	{name: "preemptions per second", promql: `sum by (model_name) (rate(vllm:num_preemptions_total{JOB}[5m]))`},
	{name: "preemptions", promql: `sum by (model_name) (increase(vllm:num_preemptions_total{JOB}[10m]))`},
	{name: "KV cache usage", promql: `max by (model_name, engine) (vllm:kv_cache_usage_perc{JOB})`},
	{name: "KV cache usage over time", promql: `avg by (model_name) (avg_over_time(vllm:kv_cache_usage_perc{JOB}[5m]))`},
	{name: "prefix cache hit ratio", promql: `sum by (model_name) (rate(vllm:prefix_cache_hits_total{JOB}[5m])) / clamp_min(sum by (model_name) (rate(vllm:prefix_cache_queries_total{JOB}[5m])), 1)`},
	{name: "tokens per iteration p50", promql: `histogram_quantile(0.5, sum by (le, model_name) (rate(vllm:iteration_tokens_total_bucket{JOB}[5m])))`},
	{name: "aborts", promql: `sum by (model_name) (rate(vllm:request_success_total{JOB,finished_reason="abort"}[5m])) / sum by (model_name) (rate(vllm:request_success_total{JOB}[5m]))`},
	{name: "HTTP requests by status", promql: `sum by (status) (rate(http_requests_total{JOB}[5m]))`},
	{name: "HTTP errors", promql: `sum(rate(http_requests_total{JOB,status=~"4xx|5xx"}[5m])) / sum(rate(http_requests_total{JOB}[5m]))`},
	{name: "HTTP p95", promql: `histogram_quantile(0.95, sum by (le, handler) (rate(http_request_duration_seconds_bucket{JOB}[5m])))`},
	{name: "TTFT alert", promql: `histogram_quantile(0.95, sum by (le, model_name) (rate(vllm:time_to_first_token_seconds_bucket{JOB}[5m]))) > 0.001`},
	{name: "queue alert", promql: `histogram_quantile(0.95, sum by (le, model_name) (rate(vllm:request_queue_time_seconds_bucket{JOB}[5m]))) > 0.001`},
	{name: "preemption alert", promql: `sum by (model_name) (increase(vllm:num_preemptions_total{JOB}[10m])) > 0 and histogram_quantile(0.95, sum by (le, model_name) (rate(vllm:time_to_first_token_seconds_bucket{JOB}[5m]))) > 0.001`},
}

var wireName = regexp.MustCompile(`vllm:[a-z0-9_]+`)

// through returns the query for one job. Behind the collector every "vllm:" is a "vllm_",
// except where the catalogue gives a reason for another name.
func (q query) through(job string) string {
	promql := strings.ReplaceAll(q.promql, "JOB", `job="`+job+`"`)
	if job == "direct" {
		return promql
	}
	return wireName.ReplaceAllStringFunc(promql, func(name string) string {
		for _, suffix := range []string{"", "_bucket", "_sum", "_count"} {
			family, ok := strings.CutSuffix(name, suffix)
			if !ok {
				continue
			}
			for _, match := range catalog.BySource(family) {
				if match.Metric.Exception != "" {
					return prometheusName(*match.Metric) + suffix
				}
			}
		}
		return strings.Replace(name, ":", "_", 1)
	})
}
