package surface

import (
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/observed"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/wire"
)

// loraFamily is lora_requests_info: one series per combination of adapters ever
// seen, with the time at which it last held as its value. It has neither model
// nor engine. The Rust front end keeps only the present combination and nothing
// while no adapter is in use; multi-process mode adds the times of all API
// servers up.
func (s *Server) loraFamily() wire.Family {
	f := wire.Family{Name: "vllm:" + loraInfo, Help: "LoRA adapters running and waiting; the value is the time of the report.", Type: wire.Gauge}
	sets := s.adapterSets()
	if s.Dialect == Rust {
		f.Points = rustAdapters(s, sets)
		return f
	}
	slots := s.MaxLoRAs
	if !s.LoRA {
		slots = 0
	}
	for _, set := range sets {
		value := s.Ready + set.Last
		if s.Dialect == V1MultiProcess {
			value *= float64(s.APIServers)
		}
		f.Points = append(f.Points, wire.Point{Value: value, Labels: []wire.Label{
			{Name: "max_lora", Value: strconv.Itoa(slots)},
			{Name: "running_lora_adapters", Value: set.Running},
			{Name: "waiting_lora_adapters", Value: set.Waiting},
		}})
	}
	return f
}

// adapterSets merges what the engines saw, oldest first; V0 reports an empty
// combination where LoRA is off.
func (s *Server) adapterSets() []observed.AdapterSet {
	var sets []observed.AdapterSet
	for _, st := range s.reported() {
		if st == nil {
			continue
		}
		if !s.LoRA && st.LastStep > 0 {
			return []observed.AdapterSet{{Last: st.LastStep}}
		}
		for _, set := range st.Adapters {
			if s.shows(catalog.DefectAdaptersListedTwice) {
				set.Running = inEither(set)
				set.Waiting = set.Running
			}
			i := slices.IndexFunc(sets, func(o observed.AdapterSet) bool {
				return o.Running == set.Running && o.Waiting == set.Waiting
			})
			if i < 0 {
				sets = append(sets, set)
				continue
			}
			sets[i].First = min(sets[i].First, set.First)
			sets[i].Last = max(sets[i].Last, set.Last)
		}
	}
	slices.SortStableFunc(sets, func(a, b observed.AdapterSet) int {
		switch {
		case a.First < b.First:
			return -1
		case a.First > b.First:
			return 1
		}
		return 0
	})
	return sets
}

// inEither are the adapters of both lists.
func inEither(set observed.AdapterSet) string {
	names := slices.DeleteFunc(strings.Split(set.Running+","+set.Waiting, ","), func(name string) bool { return name == "" })
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}

func rustAdapters(s *Server, sets []observed.AdapterSet) []wire.Point {
	if len(sets) == 0 {
		return nil
	}
	newest := slices.MaxFunc(sets, func(a, b observed.AdapterSet) int {
		if a.Last < b.Last {
			return -1
		}
		return 1
	})
	if newest.Running == "" && newest.Waiting == "" {
		return nil
	}
	return []wire.Point{{Value: s.Ready + newest.Last, Labels: []wire.Label{
		{Name: "running_lora_adapters", Value: newest.Running},
		{Name: "waiting_lora_adapters", Value: newest.Waiting},
	}}}
}

// cacheFamily is cache_config_info. It has no model; the engine label exists
// since v0.10.0.
func (s *Server) cacheFamily() wire.Family {
	f := wire.Family{Name: "vllm:" + cacheConfig, Help: "Settings of the KV cache, as labels.", Type: wire.Gauge}
	engines := len(s.Engines)
	if s.Version.before("0.10.0") {
		engines = 1
	}
	for i := range engines {
		var labels []wire.Label
		for _, name := range s.cacheFields() {
			labels = append(labels, wire.Label{Name: name, Value: s.cacheValue(name)})
		}
		if !s.Version.before("0.10.0") {
			labels = append(labels, wire.Label{Name: "engine", Value: strconv.Itoa(i)})
		}
		f.Points = append(f.Points, wire.Point{Value: 1, Labels: labels})
	}
	return f
}

// cacheFields returns the names of the settings. They are known exactly for
// v0.5, v0.6.6, v0.9, v0.10.2, v0.20, v0.24, v0.26 and v0.32; versions between show
// those of the one before.
func (s *Server) cacheFields() []string {
	const (
		v05  = "block_size cache_dtype cpu_kvcache_space_bytes enable_prefix_caching gpu_memory_utilization num_cpu_blocks num_gpu_blocks num_gpu_blocks_override sliding_window swap_space_bytes"
		v066 = "block_size cache_dtype calculate_kv_scales cpu_offload_gb enable_prefix_caching gpu_memory_utilization is_attention_free num_cpu_blocks num_gpu_blocks num_gpu_blocks_override sliding_window swap_space_bytes"
		v09  = v066 + " cpu_kvcache_space_bytes prefix_caching_hash_algo swap_space"
		v010 = v09 + " kv_cache_memory_bytes kv_sharing_fast_prefill mamba_cache_dtype mamba_page_size_padded mamba_ssm_cache_dtype"
		core = "_block_size_resolved block_size cache_dtype calculate_kv_scales enable_prefix_caching gpu_memory_utilization is_attention_free kv_cache_dtype_skip_layers kv_cache_memory_bytes kv_offloading_backend kv_offloading_size kv_sharing_fast_prefill mamba_block_size mamba_cache_dtype mamba_cache_mode mamba_page_size_padded mamba_ssm_cache_dtype num_cpu_blocks num_gpu_blocks num_gpu_blocks_override prefix_caching_hash_algo sliding_window user_specified_block_size user_specified_mamba_block_size"
		v020 = core + " hash_block_size"
		v024 = core + " kv_cache_max_concurrency kv_cache_size_tokens"
		v026 = v024 + " prefix_match_unit skip_page_size_padded"
		v032 = "_block_size_resolved block_size cache_dtype cache_hit_alignment_tokens effective_attention_block_size enable_mamba_shared_prefix_checkpoint enable_prefix_caching gpu_memory_utilization hash_block_size is_attention_free kv_cache_dtype_skip_layers kv_cache_layout kv_cache_max_concurrency kv_cache_memory_bytes kv_cache_size_tokens kv_offloading_backend kv_offloading_size kv_sharing_fast_prefill mamba_block_size mamba_cache_dtype mamba_cache_mode mamba_page_size_padded mamba_ssm_cache_dtype num_cpu_blocks num_gpu_blocks num_gpu_blocks_override prefix_cache_retention_interval prefix_caching_hash_algo prefix_match_unit replayssm_buffer_len skip_page_size_padded sliding_window swa_bounded_replay use_kda_recoverssm use_replayssm user_specified_block_size"
	)
	fields := v05
	for _, step := range []struct{ since, fields string }{
		{"0.6.4", v066}, {"0.8.0", v09}, {"0.10.2", v010}, {"0.20.0", v020}, {"0.24.0", v024}, {"0.26.0", v026}, {"0.32.0", v032},
	} {
		if !s.Version.before(step.since) {
			fields = step.fields
		}
	}
	return strings.Fields(fields)
}

// cacheValue is one setting as Python's str() writes it.
func (s *Server) cacheValue(field string) string {
	switch field {
	case "effective_attention_block_size":
		return strconv.Itoa(s.BlockSize)
	case "prefix_cache_retention_interval":
		return "0"
	case "replayssm_buffer_len":
		return "16"
	case "block_size":
		if s.Hybrid && s.shows(catalog.DefectBlockSizeOfHybridModels) {
			return s.hybridBlockSize()
		}
		return strconv.Itoa(s.BlockSize)
	case "num_gpu_blocks":
		blocks := s.KVTokens / s.BlockSize
		switch {
		case s.shows(catalog.DefectBlocksNotANumber),
			s.Dialect == V1MultiProcess && s.APIServers > 1 && s.shows(catalog.DefectBlocksUnknownToApiServers):
			return "None"
		case s.shows(catalog.DefectBlocksSummedOverEngines):
			blocks *= len(s.Engines)
		}
		return strconv.Itoa(blocks)
	case "kv_cache_size_tokens":
		return strconv.Itoa(s.KVTokens / s.BlockSize * s.BlockSize)
	case "kv_cache_max_concurrency":
		return wire.PythonRepr(float64(s.KVTokens/s.BlockSize*s.BlockSize) / float64(s.MaxModelLen))
	case "enable_prefix_caching":
		return pythonBool(s.PrefixCaching)
	case "_block_size_resolved", "swa_bounded_replay":
		return "True"
	case "calculate_kv_scales", "is_attention_free", "kv_sharing_fast_prefill",
		"user_specified_block_size", "user_specified_mamba_block_size",
		"enable_mamba_shared_prefix_checkpoint", "use_kda_recoverssm", "use_replayssm":
		return "False"
	case "cache_dtype", "mamba_cache_dtype", "mamba_ssm_cache_dtype":
		return "auto"
	case "gpu_memory_utilization":
		if s.Version.before("0.22.0") {
			return "0.9"
		}
		return "0.92"
	case "cpu_offload_gb":
		return "0"
	case "swap_space":
		return "4.0"
	case "swap_space_bytes":
		if s.Version.before("0.8.0") {
			return "4294967296"
		}
		return "4294967296.0"
	case "num_cpu_blocks":
		if s.isV0() {
			return "2048"
		}
		return "None"
	case "prefix_caching_hash_algo":
		if s.Version.before("0.10.2") {
			return "builtin"
		}
		return "sha256"
	case "kv_cache_dtype_skip_layers":
		return "[]"
	case "kv_offloading_backend":
		return "native"
	case "mamba_cache_mode":
		return "none"
	default:
		return "None"
	}
}

// rejectionsFamily has no engine: the front end rejects. The simulated one has no limits of its
// queue and rejects nothing.
func (s *Server) rejectionsFamily() wire.Family {
	f := wire.Family{Name: "vllm:" + rejections, Help: "Requests that a limit of the queue kept out, by the limit.", Type: wire.Counter}
	for _, reason := range []string{"max_num_queued_reqs", "max_num_queued_tokens"} {
		f.Points = append(f.Points, wire.Point{Labels: []wire.Label{s.baseLabels(0)[0], {Name: "reason", Value: reason}}})
	}
	return f
}

func pythonBool(b bool) string {
	if b {
		return "True"
	}
	return "False"
}
