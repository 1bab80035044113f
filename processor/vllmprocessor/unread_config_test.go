package vllmprocessor

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
)

// A misspelt key hides no other mistake.
func TestUnknownKeysAndInvalidValuesAreReportedTogether(t *testing.T) {
	cfg, err := decode(t, `{windows: 1m, quantiles: [50], max_series: abc, max_staleness: 15sec, percentiles: {per_engines: true},
hardware: [{gpus: T4, flops: 1e12}], pool: {groupby: [model_name], interval: 1ms}, metrics: {vllm.prompt_throughput: {enable: true}},
objectives: [{nam: x, metric: vllm.inter_token_latency, threshold: 5sec, target: 2}]}`)
	require.NoError(t, err)
	got := strings.Split(confmap.Validate(cfg).Error(), "\n")
	for _, want := range []string{
		"windows: is unknown; did you mean window?",
		"quantiles::0: 50 is not from 0 to 1; write 0.5 for p50",
		"max_series: expected type 'int', got unconvertible type 'string'",
		"max_staleness: is not a duration; write a number with its unit, for example 15s",
		"percentiles::per_engines: is unknown; did you mean per_engine?",
		"hardware::0::gpus: is unknown; did you mean gpu?",
		"pool::groupby: is unknown; did you mean group_by?",
		"pool::interval: 1ms is too short; write the time between two scrapes, for example 15s",
		"metrics::vllm.prompt_throughput::enable: is unknown; did you mean enabled?",
		"objectives::0::nam: is unknown; did you mean name?",
		`objectives::0::threshold: "5sec" is not a duration; write for example 2.5s, 100ms, 1h30m, 2w or 30d`,
	} {
		assert.Contains(t, got, want)
	}
	assert.Contains(t, strings.Join(got, "\n"), "the target 2 is a percentage")
}
