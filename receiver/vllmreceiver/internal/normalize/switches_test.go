package normalize

import (
	"testing"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

func TestSwitchesGoByTheEmittedName(t *testing.T) {
	on := func(names ...string) Options {
		o := Options{Enabled: map[string]bool{}}
		for _, n := range names {
			o.Enabled[n] = true
		}
		return o
	}
	off := func(names ...string) Options {
		o := on(names...)
		for _, n := range names {
			o.Enabled[n] = false
		}
		return o
	}
	python := counter("python_gc_collections_total", `generation="0"`, 1)
	runPlanCases(t, []planCase{
		{name: "python is off", body: python, want: []string{"dropped disabled 1"}},
		{name: "python can be switched on", options: on("python_gc_collections"), body: python, want: []string{"python_gc_collections sum {collection} {generation=0} = 1"}},
		{name: "process is off", body: gauge("process_resident_memory_bytes", "", 1), want: []string{"dropped disabled 1"}},
		{name: "process can be switched on", options: on("process_resident_memory"), body: gauge("process_resident_memory_bytes", "", 1), want: []string{"process_resident_memory gauge By {} = 1"}},
		{name: "an unknown go family is off and not reported", body: gauge("go_goroutines", "", 1), want: []string{"dropped disabled 1"}},
		{name: "an unknown go family can be switched on", options: on("go_goroutines"), body: gauge("go_goroutines", "", 1), want: []string{"go_goroutines gauge no-unit {} = 1"}},
		{
			name: "an unknown go family goes by the name that it is emitted under", options: on("go_gc_new"),
			body: summary("go_gc_new_seconds", "", 1) + summary("go_gc_other_seconds", "", 1),
			want: []string{"go_gc_new summary s {} = 1", "dropped disabled 1"},
		},
		{name: "an unknown python family is off", body: gauge("python_new", "", 1), want: []string{"dropped disabled 1"}},
		{
			name: "a vLLM metric can be switched off", options: off("vllm.num_requests.running"),
			body: "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{engine=\"0\"} 1\nvllm:num_requests_running{engine=\"1\"} 1\n" +
				gauge("vllm:num_requests_waiting", "", 2),
			want: []string{"vllm.num_requests.waiting gauge {request} {} = 2", "dropped disabled 2"},
		},
		{
			name: "an unknown vLLM metric can be switched off", options: off("vllm.new_depth"),
			body: gauge("vllm:new_depth", "", 1), want: []string{"dropped disabled 1"},
		},
		{
			name: "a number from an info label can be switched off", options: off("vllm.kv_cache.block_size"),
			body: gauge("vllm:cache_config_info", `block_size="16",num_gpu_blocks="100",swap_space="4"`, 1),
			want: []string{"vllm.kv_cache.num_gpu_blocks gauge {block} {} = 100", "dropped info 1"},
		},
		{
			name: "LoRA adapters can be switched off", options: off("vllm.lora.adapter.running", "vllm.lora.max_adapters"),
			body: gauge("vllm:lora_requests_info", `max_lora="4",running_lora_adapters="a",waiting_lora_adapters="b"`, 1),
			want: []string{"vllm.lora.adapter.waiting gauge {adapter} {adapter_name=b} = 1", "dropped info 1"},
		},
		{
			name: "essential is what is looked at first, and what that is computed from", options: Options{Preset: catalog.Essential},
			body: gauge("vllm:num_requests_running", "", 1) + counter("vllm:generation_tokens_total", "", 2) + counter("vllm:tool_call_parser_invocations_total", "", 3) +
				gauge("vllm:new_depth", "", 4),
			want: []string{"vllm.generation_tokens sum {token} {} = 2", "vllm.num_requests.running gauge {request} {} = 1", "dropped disabled 2"},
		},
		{
			name: "a switch wins over essential", options: Options{Preset: catalog.Essential, Enabled: map[string]bool{"vllm.new_depth": true, "vllm.num_requests.running": false}},
			body: gauge("vllm:num_requests_running", "", 1) + gauge("vllm:new_depth", "", 4),
			want: []string{"vllm.new_depth gauge no-unit {} = 4", "dropped disabled 1", "unknown vllm:new_depth"},
		},
	})
}

// naming: wire is for people whose dashboards query vLLM's own names.
func TestWireNamingKeepsNamesAndLabels(t *testing.T) {
	wire := Options{Wire: true}
	runPlanCases(t, []planCase{
		{name: "a counter", options: wire, body: counter("vllm:prompt_tokens_total", `engine="0"`, 1), want: []string{"vllm:prompt_tokens_total sum no-unit {engine=0} = 1"}},
		{name: "a histogram", options: wire, body: histogram("vllm:time_to_first_token_seconds", "", 1, "1"), want: []string{"vllm:time_to_first_token_seconds histogram no-unit {} = 1"}},
		{name: "a summary", options: Options{Wire: true, Enabled: map[string]bool{"http_request_size": true}}, body: summary("http_request_size_bytes", "", 1), want: []string{"http_request_size_bytes summary no-unit {} = 1"}},
		{
			name: "nothing is folded", options: wire,
			body: gauge("vllm:gpu_cache_usage_perc", "", 1) + gauge("vllm:kv_cache_usage_perc", "", 2),
			want: []string{"vllm:gpu_cache_usage_perc gauge no-unit {} = 1", "vllm:kv_cache_usage_perc gauge no-unit {} = 2"},
		},
		{
			name: "Ray's twins and labels stay", options: wire,
			body: counter("ray_vllm_prompt_tokens_total", `SessionName="s",WorkerId="w"`, 1) + gauge("ray_vllm_prompt_tokens", `SessionName="s",WorkerId="w"`, 2),
			want: []string{"ray_vllm_prompt_tokens_total sum no-unit {SessionName=s,WorkerId=w} = 1", "ray_vllm_prompt_tokens gauge no-unit {SessionName=s,WorkerId=w} = 2"},
		},
		{
			name: "info families stay", options: wire,
			body: gauge("vllm:cache_config_info", `block_size="16"`, 1),
			want: []string{"vllm:cache_config_info gauge no-unit {block_size=16} = 1"},
		},
		{name: "python is off here as well", options: wire, body: counter("python_gc_collections_total", "", 1), want: []string{"dropped disabled 1"}},
		{
			name: "switches go by the canonical name", options: Options{Wire: true, Enabled: map[string]bool{"vllm.num_requests.running": false, "python_gc_collections": true}},
			body: gauge("ray_vllm_num_requests_running", "", 1) + counter("python_gc_collections_total", "", 2),
			want: []string{"python_gc_collections_total sum no-unit {} = 2", "dropped disabled 1"},
		},
		{
			name: "what a family is called depends on the version here as well", options: Options{Wire: true, Version: "0.9.1", Enabled: map[string]bool{"vllm.prefix_cache.hits": false}},
			body: counter("vllm:gpu_prefix_cache_hits_total", "", 1), want: []string{"dropped disabled 1"},
		},
		{
			name: "an imitator's counter has the same switch", options: Options{Wire: true, Enabled: map[string]bool{"vllm.prompt_tokens": false}},
			body: counter("vllm:prompt_tokens", "", 1), want: []string{"dropped disabled 1"},
		},
		{
			name: "what cannot be a point is counted", options: wire,
			body: "# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_count 1\n# TYPE g gaugehistogram\ng_bucket{le=\"+Inf\"} 1\ng_gcount 1\n",
			want: []string{"dropped no_inf_bucket 1", "dropped unsupported 1"},
		},
	})
}
