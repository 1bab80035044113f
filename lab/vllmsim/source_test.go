package vllmsim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

func TestASimulatedServerShowsChangesOfItsEngines(t *testing.T) {
	s := newServer(t, Config{
		Hardware: "8b-h100", Version: "0.24.0", Engines: 2, Rate: 4, NaNCounter: true,
		Transfer: engine.Transfer{Share: 0.3, Latency: 0.01, BytesPerSecond: 10e9},
		Changes: []engine.Change{
			{At: 0, Parameter: engine.ParamCorruption, Value: 0.2},
			{At: 0, Parameter: engine.ParamTransferFailure, Value: 0.5},
			{At: 120, Parameter: engine.ParamSleep, Value: 1, Engines: []int{1}},
		},
	})
	value := func(family, label, want string) map[string]float64 {
		body, _, err := s.Targets()[0].Body()
		require.NoError(t, err)
		out := map[string]float64{}
		for _, m := range parseText(t, body)[family].GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if label == "" || labels[label] == want {
				out[labels["engine"]] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
		return out
	}
	s.Advance(100 * time.Second)
	for _, engine := range []string{"0", "1"} {
		assert.Positive(t, value("vllm:corrupted_requests_total", "", "")[engine])
		assert.Positive(t, value("vllm:nixl_num_failed_transfers_total", "", "")[engine])
		assert.Positive(t, value("vllm:external_prefix_cache_hits_total", "", "")[engine])
		assert.Positive(t, value("vllm:prompt_tokens_by_source_total", "source", "external_kv_transfer")[engine])
	}
	assert.Equal(t, map[string]float64{"0": 1, "1": 1}, value("vllm:engine_sleep_state", "sleep_state", "awake"))
	s.Advance(60 * time.Second)
	assert.Equal(t, map[string]float64{"0": 1, "1": 0}, value("vllm:engine_sleep_state", "sleep_state", "awake"))
	assert.Equal(t, map[string]float64{"0": 0, "1": 1}, value("vllm:engine_sleep_state", "sleep_state", "weights_offloaded"))
	tokens := value("vllm:generation_tokens_total", "", "")
	s.Advance(60 * time.Second)
	assert.Equal(t, tokens["1"], value("vllm:generation_tokens_total", "", "")["1"])
	assert.Greater(t, value("vllm:generation_tokens_total", "", "")["0"], tokens["0"])
}

func TestASimulatedServerBringsTheLimitsOfItsHardware(t *testing.T) {
	body := bodyOf(t, Config{Hardware: "8b-h100", Version: "0.24.0"})
	// Nine tenths of 80 GiB without 16.06 GB of weights and 1.5 GiB, at 128 KiB a token.
	assert.Contains(t, body, `num_gpu_blocks="28438"`)
	assert.Contains(t, body, `kv_cache_size_tokens="455008"`)
	assert.Contains(t, bodyOf(t, Config{Hardware: "8b-h100", KVCacheTokens: 32768}), `num_gpu_blocks="2048"`)
	for _, name := range []string{"", "simple"} {
		assert.Contains(t, bodyOf(t, Config{Hardware: name}), `num_gpu_blocks="2560"`, "the small server is the default")
	}
}

func TestAWorkloadOfTheCallersOwnIsServed(t *testing.T) {
	w := engine.Code(3)
	s := newServer(t, Config{Hardware: "70b-tp4-h100", Workload: &w})
	s.Advance(10 * time.Minute)
	body, _, err := s.Targets()[0].Body()
	require.NoError(t, err)
	families := parseText(t, body)
	prompt := families["vllm:request_prompt_tokens"].GetMetric()[0].GetHistogram()
	output := families["vllm:request_generation_tokens"].GetMetric()[0].GetHistogram()
	assert.InEpsilon(t, 1800, prompt.GetSampleCount(), 0.1)
	// The mean of a lognormal is its median x exp(sigma^2 / 2).
	assert.InEpsilon(t, 1500*1.5, prompt.GetSampleSum()/float64(prompt.GetSampleCount()), 0.15)
	assert.InEpsilon(t, 13*1.5, output.GetSampleSum()/float64(output.GetSampleCount()), 0.15)
}

func TestPresetsBringTheLimitsOfTheirGPUs(t *testing.T) {
	for name, want := range map[string][2]int{"8b-a100": {256, 2048}, "8b-l40s": {256, 2048}, "8b-h100": {1024, 8192}, "32b-h200": {1024, 8192}} {
		c, version, err := Config{Hardware: name}.withDefaults()
		require.NoError(t, err)
		sim := c.simulation(0, version)
		assert.Equal(t, want, [2]int{sim.MaxSeqs, sim.Model.MaxBatchedTokens}, name)
		measured := engine.Models()[name]
		c, version, err = Config{Measured: &measured, MaxSeqs: 7}.withDefaults()
		require.NoError(t, err)
		assert.Equal(t, 7, c.simulation(0, version).MaxSeqs)
		assert.Equal(t, name, c.simulation(0, version).Model.Name)
	}
	_, _, err := Config{Lockstep: true}.withDefaults()
	require.ErrorContains(t, err, "lockstep: it needs two or more engines")
}
