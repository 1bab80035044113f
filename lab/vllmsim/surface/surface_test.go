package surface

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/wire"
)

func server(t *testing.T, dialect Dialect, version string, change ...func(*Server)) *Server {
	t.Helper()
	v, err := ParseVersion(version)
	require.NoError(t, err)
	require.NoError(t, Check(dialect, v))
	s := &Server{
		Dialect: dialect, Version: v, Model: "m", ProcessStart: 1000, Ready: 1074, Now: 1374,
		APIServers: 2, MaxModelLen: 8192, KVTokens: 40960, BlockSize: 16, MaxLoRAs: 2,
	}
	for _, c := range change {
		c(s)
	}
	cfg := engine.Config{
		Seed: 3, Model: engine.Llama8B(), Workload: engine.Chat(6), Blocks: s.KVTokens / s.BlockSize, BlockSize: s.BlockSize,
		MaxSeqs: 48, MaxModelLen: s.MaxModelLen, NoPrefixCaching: !s.PrefixCaching,
	}
	if s.LoRA {
		cfg.MaxLoRAs, cfg.Workload.Adapters, cfg.Workload.AdapterShare = s.MaxLoRAs, 3, 0.7
	}
	if s.SpecDecode {
		cfg.Speculation = engine.Speculation{Acceptance: []float64{0.75, 0.6, 0.5}, Seconds: 1e-3}
	}
	e, err := engine.New(cfg)
	require.NoError(t, err)
	e.AdvanceTo(s.Now - s.Ready)
	s.Engines = e.Stats()
	return s
}

func names(s *Server) []string {
	var out []string
	for _, f := range s.Families() {
		out = append(out, strings.TrimPrefix(f.Name, "vllm:"))
	}
	return out
}

func find(t *testing.T, s *Server, name string) wire.Family {
	t.Helper()
	for _, f := range s.Families() {
		if f.Name == name {
			return f
		}
	}
	require.Fail(t, "no family", name)
	return wire.Family{}
}

func labelValue(pt wire.Point, name string) string {
	for _, l := range pt.Labels {
		if l.Name == name {
			return l.Value
		}
	}
	return ""
}

func TestFamiliesComeAndGoWithTheVersion(t *testing.T) {
	for _, c := range []struct {
		dialect     Dialect
		version     string
		has, hasNot string
	}{
		{V0, "0.5.0", "num_requests_swapped cpu_cache_usage_perc avg_prompt_throughput_toks_per_s request_params_best_of python_info", "gpu_prefix_cache_hit_rate tokens iteration_tokens_total http_requests lora_requests_info"},
		{V0, "0.6.6", "gpu_prefix_cache_hit_rate iteration_tokens_total time_in_queue_requests lora_requests_info avg_prompt_throughput_toks_per_s", "request_params_best_of python_info http_requests model_forward_time_milliseconds"},
		{V0, "0.9.1", "request_queue_time_seconds gpu_cache_usage_perc", "num_requests_swapped time_in_queue_requests avg_prompt_throughput_toks_per_s"},
		{V1, "0.8.4", "gpu_prefix_cache_queries time_per_output_token_seconds", "http_requests kv_cache_usage_perc num_requests_swapped"},
		{V1, "0.8.5", "gpu_cache_usage_perc http_requests", "kv_cache_usage_perc prefix_cache_queries inter_token_latency_seconds"},
		{V1, "0.10.2", "gpu_cache_usage_perc kv_cache_usage_perc gpu_prefix_cache_hits prefix_cache_hits time_per_output_token_seconds inter_token_latency_seconds", "mm_cache_hits request_time_per_output_token_seconds engine_sleep_state"},
		{V1, "0.11.1", "kv_cache_usage_perc time_per_output_token_seconds inter_token_latency_seconds mm_cache_hits engine_sleep_state", "gpu_cache_usage_perc"},
		{V1, "0.13.0", "engine_sleep_state request_prefill_kv_computed_tokens", "time_per_output_token_seconds prompt_tokens_by_source estimated_flops_per_gpu"},
		{V1, "0.19.0", "prompt_tokens_recomputed prompt_tokens_by_source estimated_flops_per_gpu", "num_requests_waiting_by_reason"},
		{V1, "0.20.0", "num_requests_waiting_by_reason", "prompt_tokens_recomputed spec_decode_num_drafts lora_requests_info request_num_preemptions"},
		{V1, "0.28.0", "num_requests_waiting_by_reason cache_config_info", "gpu_cache_usage_perc"},
		{V1, "0.30.0", "request_num_preemptions", ""},
		{Rust, "0.24.0", "kv_block_reuse_gap_seconds lora_requests_info http_requests", "cache_config_info engine_sleep_state iteration_tokens_total mm_cache_hits python_info http_request_size_bytes"},
		{RayOld, "0.6.3", "ray_node_cpu_count num_requests_swapped process_start_time_seconds", "request_params_best_of http_requests"},
		{RayNew, "0.20.0", "ray_node_cpu_count num_requests_waiting_by_reason", "http_requests"},
	} {
		t.Run(string(c.dialect)+" "+c.version, func(t *testing.T) {
			got := names(server(t, c.dialect, c.version))
			for _, want := range strings.Fields(c.has) {
				assert.Contains(t, got, want)
			}
			for _, not := range strings.Fields(c.hasNot) {
				assert.NotContains(t, got, not)
			}
		})
	}
}

func TestSpeculativeDecodingAndLoRABringTheirFamilies(t *testing.T) {
	got := names(server(t, V1, "0.24.0", func(s *Server) { s.LoRA, s.SpecDecode = true, true }))
	assert.Contains(t, got, "spec_decode_num_accepted_tokens_per_pos")
	assert.Contains(t, got, "lora_requests_info")
	assert.Contains(t, names(server(t, V0, "0.6.6", func(s *Server) { s.SpecDecode = true })), "spec_decode_efficiency")
}

func TestEveryTableRowHasADefinitionAndEveryDefinitionARow(t *testing.T) {
	used := map[string]bool{loraInfo: true, cacheConfig: true, rejections: true}
	for _, rows := range [][]row{v1Rows, v0Rows, rustRows} {
		seen := map[string]bool{}
		for _, r := range rows {
			assert.False(t, seen[r.name], "%s twice", r.name)
			seen[r.name] = true
			used[r.name] = true
			_, err := ParseVersion(r.since)
			assert.NoError(t, err, r.name)
			if r.name != loraInfo && r.name != cacheConfig && r.name != rejections {
				assert.Contains(t, definitions, r.name)
			}
		}
	}
	for name := range definitions {
		assert.True(t, used[name], "%s is in no table", name)
	}
}

func TestPartsAddUpToTheirWhole(t *testing.T) {
	s := server(t, V1, "0.24.0", func(s *Server) { s.LoRA, s.SpecDecode, s.PrefixCaching, s.MaxLoRAs = true, true, true, 1 })
	sum := func(name string) float64 {
		total := 0.0
		for _, pt := range find(t, s, "vllm:"+name).Points {
			total += pt.Value
		}
		return total
	}
	assert.InDelta(t, sum("num_requests_waiting"), sum("num_requests_waiting_by_reason"), 0)
	assert.InDelta(t, sum("prompt_tokens"), sum("prompt_tokens_by_source"), 0)
	assert.InDelta(t, sum("spec_decode_num_accepted_tokens"), sum("spec_decode_num_accepted_tokens_per_pos"), 0)
	assert.InDelta(t, find(t, s, "vllm:e2e_request_latency_seconds").Points[0].Count, sum("request_success"), 0)
	assert.Positive(t, sum("prompt_tokens"))
}

func TestBucketsFollowTheVersion(t *testing.T) {
	last := func(dialect Dialect, version, name string) float64 {
		bounds := find(t, server(t, dialect, version), "vllm:"+name).Points[0].Bounds
		return bounds[len(bounds)-1]
	}
	assert.InDelta(t, 10, last(V1, "0.8.3", "time_to_first_token_seconds"), 0)
	assert.InDelta(t, 2560, last(V1, "0.8.4", "time_to_first_token_seconds"), 0)
	assert.InDelta(t, 2.5, last(V0, "0.6.6", "time_per_output_token_seconds"), 0)
	assert.InDelta(t, 60, last(V0, "0.6.6", "e2e_request_latency_seconds"), 0)
	assert.InDelta(t, 7680, last(V1, "0.20.0", "e2e_request_latency_seconds"), 0)
	assert.InDelta(t, 5000, last(V1, "0.20.0", "request_prompt_tokens"), 0)
	assert.InDelta(t, 131072, last(Rust, "0.24.0", "request_prompt_tokens"), 0)
	assert.InDelta(t, 256, last(V0, "0.6.6", "iteration_tokens_total"), 0)
	assert.InDelta(t, 16384, last(V1, "0.8.5", "iteration_tokens_total"), 0)
}

func TestPrefixCacheCountersChangedTheirUnit(t *testing.T) {
	caching := func(s *Server) { s.PrefixCaching = true }
	blocks := find(t, server(t, V1, "0.8.5", caching), "vllm:gpu_prefix_cache_hits").Points[0].Value
	tokens := find(t, server(t, V1, "0.10.2", caching), "vllm:gpu_prefix_cache_hits").Points[0].Value
	assert.Positive(t, blocks)
	assert.InDelta(t, 16*blocks, tokens, 0)
}

func TestTheProcessLabelIsOnOneGaugeOfSomeVersions(t *testing.T) {
	for version, want := range map[string]int{"0.9.2": 2, "0.10.2": 2, "0.11.0": 2, "0.12.0": 0, "0.20.0": 0} {
		s := server(t, V1MultiProcess, version)
		pids := 0
		for _, f := range s.Families() {
			for _, pt := range f.Points {
				if labelValue(pt, "pid") != "" {
					assert.Equal(t, "vllm:kv_cache_usage_perc", f.Name)
					pids++
				}
			}
		}
		assert.Equal(t, want, pids, version)
	}
}

func TestLoRATimesAreAddedUpOverAPIServersAndStaleOnesStay(t *testing.T) {
	lora := func(s *Server) { s.LoRA = true }
	single := find(t, server(t, V1, "0.20.0", lora), "vllm:lora_requests_info")
	multi := find(t, server(t, V1MultiProcess, "0.20.0", lora), "vllm:lora_requests_info")
	require.Greater(t, len(single.Points), 1)
	require.Len(t, multi.Points, len(single.Points))
	newest := 0.0
	for i, pt := range single.Points {
		assert.InDelta(t, 2*pt.Value, multi.Points[i].Value, 1e-6)
		newest = max(newest, pt.Value)
		assert.Empty(t, labelValue(pt, "engine"))
		assert.Equal(t, "2", labelValue(pt, "max_lora"))
	}
	assert.InDelta(t, 1374, newest, 2, "the present combination was seen just now")
	assert.Less(t, single.Points[0].Value, newest)

	rust := find(t, server(t, Rust, "0.24.0", lora), "vllm:lora_requests_info")
	assert.LessOrEqual(t, len(rust.Points), 1)
}

func TestCacheSettingsGrowWithTheVersion(t *testing.T) {
	for _, c := range []struct {
		dialect Dialect
		version string
		labels  int
		engine  string
		blocks  string
	}{
		{V0, "0.5.0", 10, "", "2560"},
		{V0, "0.6.6", 12, "", "2560"},
		{V0, "0.9.1", 15, "", "2560"},
		{V1, "0.8.5", 15, "", "None"},
		{V1, "0.10.2", 21, "0", "2560"},
		{V1, "0.20.0", 26, "0", "2560"},
		{V1, "0.24.0", 27, "0", "2560"},
		{V1, "0.26.0", 29, "0", "2560"},
	} {
		pt := find(t, server(t, c.dialect, c.version), "vllm:cache_config_info").Points[0]
		assert.Len(t, pt.Labels, c.labels, c.version)
		assert.Equal(t, c.engine, labelValue(pt, "engine"), c.version)
		assert.Equal(t, c.blocks, labelValue(pt, "num_gpu_blocks"), c.version)
		assert.Empty(t, labelValue(pt, "model_name"), c.version)
	}
}

func TestAFreshV0ServerShowsItsFamiliesWithoutValues(t *testing.T) {
	s := server(t, V0, "0.5.0")
	e, err := engine.New(engine.Config{Model: engine.Llama8B(), Workload: engine.Chat(1)})
	require.NoError(t, err)
	s.Engines = e.Stats()
	assert.Empty(t, find(t, s, "vllm:num_requests_running").Points)
	assert.Empty(t, find(t, s, "vllm:time_to_first_token_seconds").Points)
	s.Dialect, s.Version = V1, Version{0, 20, 0}
	assert.Len(t, find(t, s, "vllm:time_to_first_token_seconds").Points, 1, "V1 creates them at once")
}

func TestContentTypesFollowTheClient(t *testing.T) {
	for _, c := range []struct {
		dialect Dialect
		version string
		want    string
	}{
		{V0, "0.6.6", "text/plain; version=0.0.4; charset=utf-8"},
		{V1, "0.10.2", "text/plain; version=0.0.4; charset=utf-8"},
		{V1, "0.20.0", "text/plain; version=1.0.0; charset=utf-8"},
		{RayNew, "0.20.0", "text/plain; version=0.0.4; charset=utf-8"},
		{Rust, "0.24.0", "application/openmetrics-text; version=1.0.0; charset=utf-8"},
	} {
		assert.Equal(t, c.want, server(t, c.dialect, c.version).Encoder().ContentType(), c.dialect)
	}
}

func TestVersionsAreReadAndRefusedInWords(t *testing.T) {
	for text, want := range map[string]Version{"0.20.0": {0, 20, 0}, "v0.9.2": {0, 9, 2}, "0.20": {0, 20, 0}} {
		got, err := ParseVersion(text)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	for _, text := range []string{"", "latest", "0.1.2.3", "0.-1", "0..1"} {
		_, err := ParseVersion(text)
		assert.ErrorContains(t, err, "want three numbers")
	}
	assert.ErrorContains(t, Check("v2", Version{}), "unknown dialect")
	assert.ErrorContains(t, Check(Rust, Version{0, 20, 0}), "too old")
	assert.ErrorContains(t, Check(V0, Version{0, 12, 0}), "older than 0.11.0")
	for _, name := range Dialects() {
		v, err := ParseVersion(DefaultVersion(Dialect(name)))
		require.NoError(t, err)
		assert.NoError(t, Check(Dialect(name), v), "the default of %s", name)
	}
	assert.True(t, slices.Contains(Dialects(), "v1"))
}
