package catalog

import "strings"

// Requirement is what a server needs besides its version to expose some families.
type Requirement struct {
	// Flag is the flag or the environment variable that switches them on; empty where it is
	// another property of the server.
	Flag string
	// Words complete the sentence "only with ...".
	Words string
}

// requirements are by the beginnings of families, the longest first where one begins another.
// metadata.yaml explains the same in the descriptions of the metrics; a test compares both.
var requirements = []struct {
	prefix string
	Requirement
}{
	{"vllm:corrupted_requests", Requirement{"VLLM_COMPUTE_NANS_IN_LOGITS=1", "VLLM_COMPUTE_NANS_IN_LOGITS=1 in the environment of the server"}},
	{"vllm:diffusion_", Requirement{"", "a diffusion language model"}},
	{"vllm:engine_healthy", Requirement{"--enable-fault-tolerance", "--enable-fault-tolerance"}},
	{"vllm:hf3fs_", connectorRequirement},
	{"vllm:hisparse_", Requirement{"", "hierarchical sparse attention, and --kv-cache-metrics for the lives of its blocks"}},
	{"vllm:kv_block_", Requirement{"--kv-cache-metrics", "--kv-cache-metrics"}},
	{"vllm:kv_offload_", connectorRequirement},
	{"vllm:kvcr_", connectorRequirement},
	{AdapterPrefix, Requirement{"--enable-lora", "--enable-lora"}},
	{"vllm:model_execute_time_milliseconds", detailedTraces},
	{"vllm:model_forward_time_milliseconds", detailedTraces},
	{"vllm:mooncake_", connectorRequirement},
	{"vllm:nixl_", connectorRequirement},
	{"vllm:num_requests_kv_fetch_by_stage", Requirement{"--kv-transfer-config", "a KV connector that receives (--kv-transfer-config)"}},
	{"vllm:rl_weight_update_", developerMode},
	{"vllm:simple_kv_offload_", connectorRequirement},
	{"vllm:sleep_mode_", developerMode},
	{"vllm:spec_decode_", Requirement{"--speculative-config", "speculative decoding (--speculative-config)"}},
	{"vllm:tool_call_parser_", Requirement{"--tool-call-parser", "--tool-call-parser"}},
	{"vllm:umbp_", connectorRequirement},
	{"vllm:watermark_requests", Requirement{"--watermark-config", "--watermark-config"}},
	{"vllm:websocket_", Requirement{"", "the realtime API of the server"}},
}

var (
	connectorRequirement = Requirement{"--kv-transfer-config", "a KV connector of this kind (--kv-transfer-config)"}
	detailedTraces       = Requirement{"--collect-detailed-traces", "--collect-detailed-traces"}
	developerMode        = Requirement{"VLLM_SERVER_DEV_MODE=1", "VLLM_SERVER_DEV_MODE=1 in the environment of the server, after the first such operation"}
)

// RequirementOf returns what a server needs to expose a family, written as Source.Family
// writes it. It returns false for families that each server of the right version exposes.
func RequirementOf(family string) (Requirement, bool) {
	for i := range requirements {
		if strings.HasPrefix(family, requirements[i].prefix) {
			return requirements[i].Requirement, true
		}
	}
	return Requirement{}, false
}
