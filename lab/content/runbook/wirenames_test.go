package runbook

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// With "naming: wire" a query of a runbook that has a metric of the server finds nothing.
// The page has the name that the server writes, as a page of vLLM 0.20 shows it.
func TestRunbooksHaveTheNamesThatTheServerWrites(t *testing.T) {
	body, err := os.ReadFile(filepath.Join("..", "..", "..", "testdata", "v1-0.20.0", "metrics.txt"))
	require.NoError(t, err)
	exposed := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^[a-z][a-zA-Z0-9_:]*`).FindAllString(string(body), -1) {
		exposed[found] = true
	}
	for ours, wire := range map[string]string{
		"vllm_generation_tokens_total":           "vllm:generation_tokens_total",
		"vllm_kv_cache_utilization_ratio":        "vllm:kv_cache_usage_perc",
		"vllm_num_requests_running":              "vllm:num_requests_running",
		"vllm_request_params_max_tokens_bucket":  "vllm:request_params_max_tokens_bucket",
		"vllm_time_to_first_token_seconds_count": "vllm:time_to_first_token_seconds_count",
	} {
		require.True(t, exposed[wire], "%s", wire)
		got, ok := wireName(ours)
		assert.True(t, ok, "%s", ours)
		assert.Equal(t, wire, got)
	}
	for _, derived := range []string{"vllm_diagnosis_severity", "vllm_up", "vllm_inter_token_latency_mean_seconds"} {
		_, ok := wireName(derived)
		assert.False(t, ok, "%s has the same name with either naming", derived)
	}
	assert.Contains(t, section(t, pages(t)["restarting"], "Check"),
		"(`naming: wire`), read `vllm:generation_tokens_total`.\n")
	assert.Contains(t, pages(t)["kv_pressure"], "read `vllm:kv_cache_usage_perc` for `vllm_kv_cache_utilization_ratio`")
	assert.NotContains(t, pages(t)["VLLMCollectorSilent"], "naming: wire")
}
