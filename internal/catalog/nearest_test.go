package catalog

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestEditDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"abc", "", 3},
		{"kitten", "sitting", 3},
		{"flaw", "lawn", 2},
		{"same", "same", 0},
	} {
		assert.Equal(t, c.want, EditDistance(c.a, c.b), "%q %q", c.a, c.b)
	}
}

func TestAbbreviationsAreSpelledOut(t *testing.T) {
	for name, want := range map[string]string{
		"vllm.pool.ttft_mean": "vllm.pool.time_to_first_token_mean",
		"vllm.itl":            "vllm.inter_token_latency",
		"ttft_quantile_bound": "time_to_first_token_quantile_bound",
		".tpot":               ".request.time_per_output_token",
		"vllm.ttfts_mean":     "vllm.ttfts_mean",
		"vllm.request_ttft":   "vllm.request_ttft",
		"":                    "",
	} {
		assert.Equal(t, want, spelledOut(name), name)
	}
}

func TestOfEquallyNearNamesTheFirstIsChosen(t *testing.T) {
	// The distance from the empty name is the length, 14 for both.
	either := func(m *Metric) bool { return m.Name == "vllm.slo.valid" || m.Name == "vllm.drop_rate" }
	assert.Equal(t, "vllm.drop_rate", Nearest("", either))
}

func TestTheNearestNameFits(t *testing.T) {
	receiver := func(m *Metric) bool { return m.EmittedBy == "receiver" }
	processor := func(m *Metric) bool { return m.EmittedBy == "processor" }
	assert.Equal(t, "vllm.prompt_tokens", Nearest("vllm.promt_tokens", receiver))
	assert.Equal(t, "vllm.prompt_throughput", Nearest("vllm.promt_throughput", processor))
	for abbreviated, want := range map[string]string{
		"vllm.ttft_quantile": "vllm.time_to_first_token_quantile", "vllm.ttft_mean": "vllm.time_to_first_token_mean",
		"vllm.itl_quantile": "vllm.inter_token_latency_quantile", "vllm.tpot_mean": "vllm.request.time_per_output_token_mean",
		"vllm.e2e_quantile": "vllm.e2e_request_latency_quantile", "vllm.ttft_quantle": "vllm.time_to_first_token_quantile",
		"vllm.e2e_request_latency_men": "vllm.e2e_request_latency_mean",
	} {
		assert.Equal(t, want, Nearest(abbreviated, processor), abbreviated)
	}
	assert.Equal(t, "vllm.time_to_first_token", Nearest("vllm.ttft", receiver))
	for _, usage := range []string{"vllm.kv_cache.usage", "vllm.kv_cache.usage_perc", "vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"} {
		assert.Equal(t, "vllm.kv_cache.utilization", Nearest(usage, receiver), usage)
	}
	assert.Empty(t, Nearest("vllm.prompt_tokens", func(*Metric) bool { return false }))
}
