package conformance

import (
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/audit"
)

var update = flag.Bool("update", false, "write the page")

const pageFile = "../../../docs/why/conformance.md"

func TestThePageIsWhatWasFound(t *testing.T) {
	reports, err := Kept("results")
	require.NoError(t, err)
	require.NotEmpty(t, reports)
	if *update {
		require.NoError(t, os.WriteFile(pageFile, []byte(Page(reports)), 0o644))
	}
	page, err := os.ReadFile(pageFile)
	require.NoError(t, err)
	assert.Equal(t, Page(reports), string(page), "make conform-page")
	for _, r := range reports {
		assert.Empty(t, r.Wrong(), r.Program)
	}
}

func TestAFormulaTakesTheNewestFamilyOfThePage(t *testing.T) {
	both := map[string]bool{"vllm:gpu_cache_usage_perc": true, "vllm:kv_cache_usage_perc": true}
	assert.Equal(t, "vllm:kv_cache_usage_perc", newest("vllm.kv_cache.utilization", both))
	assert.Empty(t, formula("vllm.prompt_throughput", "", both), "the page lacks its family")
	page := map[string]bool{"vllm:prompt_tokens_total": true, "vllm:time_to_first_token_seconds": true}
	assert.Equal(t, "sum by (BY) (vllm:prompt_tokens_total - (vllm:prompt_tokens_total offset WINDOW or vllm:prompt_tokens_total * 0)) / E",
		formula("vllm.prompt_throughput", "", page))
	assert.Equal(t, "histogram_quantile(Q, sum by (le, BY) (vllm:time_to_first_token_seconds_bucket - "+
		"(vllm:time_to_first_token_seconds_bucket offset WINDOW or vllm:time_to_first_token_seconds_bucket * 0)))",
		formula("vllm.time_to_first_token_quantile", "", page))
}

func TestAPageTellsWhatBecameOfEachSample(t *testing.T) {
	r := Report{Program: "p"}
	fates := map[audit.Fate]int{audit.Emitted: 20, audit.Disabled: 9, audit.Unused: 5, audit.Sentinel: 1, audit.StartTime: 2, audit.Info: 1, audit.BadLine: 2}
	r.families(&audit.Report{Fates: fates, Origins: []audit.Origin{{Family: "f", Fates: fates}}})
	assert.Contains(t, Page([]*Report{&r}), "| p | 0 | 1 | 40 | 20 | 9 | 6 | 3 | 2 | 0 |")
	r.Unknown = []string{"f"}
	assert.Contains(t, Page([]*Report{&r}), "- p, not in the catalogue: `*`\n")
	r.Uncompared = []string{"a_quantile_bound", "b_quantile_bound", "c"}
	assert.Contains(t, Page([]*Report{&r}), "Not compared: `*_quantile_bound`, `c`.")
	assert.Equal(t, []string{"f: dropped: bad line (2)"}, r.Lost)
}

func TestAReportNamesWhatIsWrong(t *testing.T) {
	r := Report{
		Unitless: []string{"a"}, Moved: []string{"b"}, Alone: []string{"c"}, Lost: []string{"d: not found (1)"}, Absent: []string{"e"},
		Derived: map[string][]Derived{"3": {{Metric: "f", Largest: 0.5, At: "{} is 3, not 2"}, {Metric: "g", Largest: 1e-12}}},
	}
	assert.Equal(t, []string{"d: not found (1)", "e", "f is off by 0.5 of what Prometheus 3 says ({} is 3, not 2)"}, r.Wrong())
}
