package vllmprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/objective"
)

// objectivesFrom decodes a configuration as the collector does.
func objectivesFrom(t *testing.T, text string) (*Config, error) {
	t.Helper()
	var raw map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &raw))
	config := createDefaultConfig().(*Config)
	return config, confmap.NewFromStringMap(raw).Unmarshal(config)
}

func TestObjectivesAreReadFromTheConfiguration(t *testing.T) {
	config, err := objectivesFrom(t, `
objectives:
  - {name: ttft, metric: vllm.time_to_first_token, threshold: 2.5s, target: 0.95}
  - {name: itl, metric: vllm.inter_token_latency, threshold: 100ms, target: 0.99, models: ["meta-llama/*"]}
budget_window: 4w
burn_windows: [5m, 3d]
storage: file_storage/state`)
	require.NoError(t, err)
	require.NoError(t, confmap.Validate(config))
	assert.Equal(t, []objective.Objective{
		promise("ttft", "vllm.time_to_first_token", 2500*time.Millisecond, 0.95),
		promise("itl", "vllm.inter_token_latency", 100*time.Millisecond, 0.99, "meta-llama/*"),
	}, config.Objectives)
	assert.Equal(t, objective.Duration(28*24*time.Hour), config.BudgetWindow)
	assert.Equal(t, []objective.Duration{objective.Duration(5 * time.Minute), objective.Duration(72 * time.Hour)}, config.BurnWindows)
	assert.Equal(t, &stateID, config.Storage)
}

func TestTheDefaultsOfObjectives(t *testing.T) {
	config, err := objectivesFrom(t, "{}")
	require.NoError(t, err)
	require.NoError(t, confmap.Validate(config))
	assert.Empty(t, config.Objectives)
	assert.Equal(t, "30d", config.BudgetWindow.String())
	assert.Equal(t, []objective.Duration{objective.Duration(time.Hour), objective.Duration(6 * time.Hour)}, config.BurnWindows)
	assert.Nil(t, config.Storage)
}

func TestAllInvalidValuesOfObjectivesAreReportedTogether(t *testing.T) {
	config, err := objectivesFrom(t, `
objectives:
  - {name: a, metric: vllm.time_to_first_token, threshold: 2.5, target: 95}
  - {name: a, metric: "vllm:e2e_request_latency_seconds", threshold: 3h, target: 1}
  - {metric: vllm.prompt_tokens, threshold: 1s, target: 0.9, models: [""]}
  - {name: c, metric: vllm.time_to_first_token, threshold: 0.5, target: 0.9}
budget_window: 2h
burn_windows: [1h, 1h, 3d]`)
	require.NoError(t, err)
	err = confmap.Validate(config)
	for _, want := range []string{
		`objectives::0: objective "a": the threshold 2 has no unit; write for example 2s or 2ms`,
		`objective "a": the target 95 is a percentage; write the share 0.95`,
		`objectives::1: objective "a": the metric vllm:e2e_request_latency_seconds is called vllm.e2e_request_latency here; write that`,
		`objective "a": the target 1 allows no single failure`,
		`objectives::2: an objective has no name; write for example name: ttft`,
		`no objective can be about the metric vllm.prompt_tokens; write one of vllm.time_to_first_token,`,
		`a pattern in models is empty`,
		`objectives::3: objective "c": the threshold is missing, is 0, or has no unit; write for example threshold: 2.5s`,
		`several objectives are called "a"`,
		`burn_windows has 1h twice`,
		`budget_window 2h is shorter than the burn window 3d`,
	} {
		assert.ErrorContains(t, err, want)
	}
}

func TestInvalidTimesAreReportedTogether(t *testing.T) {
	config, err := objectivesFrom(t, `
objectives:
  - {name: a, metric: vllm.time_to_first_token, threshold: soon, target: 0.9}
  - {name: b, metric: vllm.time_to_first_token, threshold: -2s, target: 0.9}
budget_window: a month`)
	require.NoError(t, err)
	err = confmap.Validate(config)
	for _, want := range []string{
		"objectives::0::threshold", `"soon" is not a duration; write for example 2.5s`,
		"objectives::1::threshold", "the duration -2s is negative",
		"budget_window", `"a month" is not a duration`,
	} {
		assert.ErrorContains(t, err, want)
	}
}

func TestEveryIndicatorCanBeMeasured(t *testing.T) {
	config, err := objectivesFrom(t, `
objectives:
  - {name: a, metric: vllm.time_to_first_token, threshold: 1s, target: 0.9}
  - {name: b, metric: vllm.inter_token_latency, threshold: 1s, target: 0.9}
  - {name: c, metric: vllm.e2e_request_latency, threshold: 1s, target: 0.9}
  - {name: d, metric: vllm.request.time_per_output_token, threshold: 1s, target: 0.9}
  - {name: e, metric: vllm.request.queue_time, threshold: 1s, target: 0.9}
  - {name: f, metric: vllm.request.inference_time, threshold: 1s, target: 0.9}
  - {name: g, metric: vllm.request.prefill_time, threshold: 1s, target: 0.9}
  - {name: h, metric: vllm.request.decode_time, threshold: 1s, target: 0.9}`)
	require.NoError(t, err)
	require.NoError(t, confmap.Validate(config))
	assert.NotNil(t, newInstance(t, config, &archive.Shared{}).objectives())
}
