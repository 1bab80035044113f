package catalog

import "strings"

// OnlyV0 are families of the V0 engine that the V1 engine has never had.
var OnlyV0 = []string{"vllm:num_requests_swapped", "vllm:cpu_cache_usage_perc"}

// ConnectorPrefixes are the beginnings of the families of KV connectors. The counters of the
// external prefix cache are not among them: they exist without a connector, too. Some
// connectors have no families.
var ConnectorPrefixes = []string{
	"vllm:nixl_", "vllm:kv_offload_", "vllm:simple_kv_offload_", "vllm:mooncake_", "vllm:hf3fs_", "vllm:kvcr_", "vllm:umbp_",
}

// AdapterPrefix is the beginning of the families of LoRA adapters.
const AdapterPrefix = "vllm:lora_"

// LMCache is what OtherProgram returns for the page of LMCache alone.
const LMCache = "an LMCache server"

// others are programs that are taken for vLLM, by the beginnings of their families.
var others = []struct{ prefix, name string }{
	{"lmcache:", LMCache},
	{"lmcache_mp_", LMCache},
	{"sglang:", "an SGLang server"},
	{"dynamo_", "a worker or the planner of NVIDIA Dynamo"},
	{"envoy_", "Envoy itself (Envoy AI Gateway has its metrics on the port 1064 of its external processor)"},
}

// OtherProgram says which program a family belongs to that is taken for vLLM; empty where it is none.
func OtherProgram(family string) string {
	for _, other := range others {
		if strings.HasPrefix(family, other.prefix) {
			return other.name
		}
	}
	return ""
}
