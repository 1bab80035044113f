package catalog

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
