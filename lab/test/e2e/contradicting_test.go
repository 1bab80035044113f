//go:build e2e

package e2e

import (
	"testing"
)

// handmade is a body that no current server writes.
type handmade struct{ name, body, contentType string }

// Each of these tests one decision of the naming rule.
var contradictingBodies = []handmade{
	{
		// Rule 6: Ray's labels are kept where series differ in them.
		"the same Ray metric of two components", `# TYPE ray_grpc_server_req_finished_total counter
ray_grpc_server_req_finished_total{Component="raylet",NodeAddress="10.0.0.1",Version="2.54.0",Method="Get"} 3.0
ray_grpc_server_req_finished_total{Component="gcs_server",NodeAddress="10.0.0.1",Version="2.54.0",Method="Get"} 5.0
`, text,
	},
	{
		"a counter of Ray and its gauge twin", `# TYPE ray_vllm_prompt_tokens_total counter
ray_vllm_prompt_tokens_total{Component="core_worker",WorkerId="a",model_name="m"} 3.0
# TYPE ray_vllm_prompt_tokens gauge
ray_vllm_prompt_tokens{Component="core_worker",WorkerId="a",model_name="m"} 3.0
`, text,
	},
	{
		// Two families of OpenMetrics, not Ray's twins: both count.
		"a gauge and a counter of one name outside Ray", `# TYPE cache_entries gauge
cache_entries{model_name="m"} 4.0
# TYPE cache_entries_total counter
cache_entries_total{model_name="m"} 9.0
`, text,
	},
	{
		"a reserved label and its replacement together", `# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{job="a",instance="b",namespace="c",location="d",cluster="e",project_id="f",model_name="m"} 3.0
`, text,
	},
	{
		"an imitator's finish_reason", `# TYPE vllm:request_success_total counter
vllm:request_success_total{finish_reason="stop",model_name="m"} 3.0
vllm:request_success_total{finish_reason="length",model_name="m"} 4.0
`, text,
	},
	{
		"several pids without a twin, and a twin", `# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{model_name="m",pid="1"} 3.0
vllm:num_requests_running{model_name="m",pid="2"} 4.0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{model_name="m",pid="1"} 3.0
vllm:num_requests_waiting{model_name="m"} 5.0
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{model_name="m",pid="1"} 0.5
`, text,
	},
	{
		"every prefix", `# TYPE vllm_num_requests_running gauge
vllm_num_requests_running{model_name="m"} 3.0
# TYPE kserve_vllm:num_requests_waiting gauge
kserve_vllm:num_requests_waiting{model_name="m"} 4.0
# TYPE ray_vllm:prompt_tokens_total counter
ray_vllm:prompt_tokens_total{model_name="m"} 5.0
# TYPE ray_vllm_generation_tokens_total counter
ray_vllm_generation_tokens_total{model_name="m"} 6.0
`, text,
	},
	{
		"unknown families whose names would nest or collide", `# TYPE vllm:prompt_tokens:cached gauge
vllm:prompt_tokens:cached{model_name="m"} 1.0
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{model_name="m"} 2.0
# TYPE vllm:time_to_first_token gauge
vllm:time_to_first_token{model_name="m"} 3.0
# TYPE vllm:brand_new_seconds gauge
vllm:brand_new_seconds{model_name="m"} 4.0
# TYPE vllm:brand_new_bytes gauge
vllm:brand_new_bytes{model_name="m"} 5.0
`, text,
	},
	{
		"a histogram where the catalogue has a gauge, and the other way round", `# TYPE vllm:num_requests_running histogram
vllm:num_requests_running_bucket{le="1.0",model_name="m"} 1.0
vllm:num_requests_running_bucket{le="+Inf",model_name="m"} 2.0
vllm:num_requests_running_sum{model_name="m"} 3.0
vllm:num_requests_running_count{model_name="m"} 2.0
# TYPE vllm:time_to_first_token_seconds gauge
vllm:time_to_first_token_seconds{model_name="m"} 0.25
# TYPE vllm:prompt_tokens_total summary
vllm:prompt_tokens_total{quantile="0.5",model_name="m"} 0.25
vllm:prompt_tokens_total_sum{model_name="m"} 5.0
vllm:prompt_tokens_total_count{model_name="m"} 2.0
`, text,
	},
}

// Families that by their TYPE have no single number, although the catalogue reads one from
// them.
var numberlessBodies = []handmade{
	{
		"info families of a type that has no number", `# TYPE vllm:cache_config_info histogram
vllm:cache_config_info_bucket{block_size="16",le="+Inf"} 1.0
vllm:cache_config_info_count{block_size="16"} 1.0
vllm:cache_config_info_sum{block_size="16"} 1.0
# TYPE vllm:lora_requests_info histogram
vllm:lora_requests_info_bucket{max_lora="4",running_lora_adapters="a",le="+Inf"} 1.0
vllm:lora_requests_info_count{max_lora="4",running_lora_adapters="a"} 1.0
vllm:lora_requests_info_sum{max_lora="4",running_lora_adapters="a"} 1.0
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{model_name="m"} 3.0
`, text,
	},
	{
		"a gauge histogram under a name of the catalogue", `# TYPE vllm:time_to_first_token_seconds gaugehistogram
vllm:time_to_first_token_seconds_bucket{le="0.5",model_name="m"} 1
vllm:time_to_first_token_seconds_bucket{le="+Inf",model_name="m"} 2
vllm:time_to_first_token_seconds_gsum{model_name="m"} 3
vllm:time_to_first_token_seconds_gcount{model_name="m"} 2
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{model_name="m"} 3.0
# EOF
`, "application/openmetrics-text; version=1.0.0; charset=utf-8",
	},
}

func TestEverySampleOfContradictingBodiesIsAccountedFor(t *testing.T) {
	t.Parallel()
	account(t, pagesOf(contradictingBodies))
}

// A body must never crash the collector, so each has its own collector.
func TestEverySampleOfNumberlessFamiliesIsAccountedFor(t *testing.T) {
	t.Parallel()
	for _, body := range numberlessBodies {
		t.Run(body.name, func(t *testing.T) { account(t, pagesOf([]handmade{body})) })
	}
}

func pagesOf(bodies []handmade) []*page {
	pages := make([]*page, len(bodies))
	for i, b := range bodies {
		pages[i] = &page{name: b.name, body: []byte(b.body), contentType: b.contentType}
	}
	return pages
}
