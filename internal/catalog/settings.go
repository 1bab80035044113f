package catalog

import "strings"

// RequiredSetting returns the setting of a vLLM server without which it does not fill a metric, as an
// argument, "--enable-lora", or as an environment variable with its value; empty if none is
// needed or if it is not one setting.
func RequiredSetting(metric string) string {
	for _, f := range requiredSettings {
		for _, name := range f.metrics {
			if metric == name || strings.HasSuffix(name, ".") && strings.HasPrefix(metric, name) {
				return f.flag
			}
		}
	}
	return ""
}

// requiredSettings are the settings and the metrics that need them. A name that ends with a dot stands
// for all that begin with it.
var requiredSettings = []struct {
	flag    string
	metrics []string
}{
	{"--kv-cache-metrics", []string{
		"vllm.kv_block.", "vllm.hisparse_host_block_lifetime", "vllm.hisparse_host_block_idle_before_evict", "vllm.hisparse_host_block_reuse_gap",
	}},
	{"--enable-mfu-metrics", []string{
		"vllm.estimated_flops_per_gpu", "vllm.estimated_read_bytes_per_gpu", "vllm.estimated_write_bytes_per_gpu",
		"vllm.model_flops_utilization_ratio", "vllm.memory_bandwidth_utilization_ratio",
	}},
	{"--enable-lora", []string{"vllm.lora."}},
	{"--enable-fault-tolerance", []string{"vllm.engine.healthy"}},
	{"--collect-detailed-traces", []string{"vllm.model_forward_time", "vllm.model_execute_time"}},
	{"--speculative-config", []string{"vllm.spec_decode."}},
	{"--kv-transfer-config", []string{"vllm.nixl.", "vllm.mooncake_store.", "vllm.hf3fs.", "vllm.external_prefix_cache."}},
	{"--kv-offloading-size", []string{"vllm.kv_offload.", "vllm.simple_kv_offload."}},
	{"VLLM_COMPUTE_NANS_IN_LOGITS=1", []string{"vllm.corrupted_requests"}},
}
