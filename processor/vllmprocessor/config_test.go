package vllmprocessor

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/confmaptest"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/stages"
)

// decode reads a configuration as the collector does.
func decode(t *testing.T, text string) (*Config, error) {
	t.Helper()
	var raw map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(text), &raw))
	cfg := createDefaultConfig().(*Config)
	if err := confmap.NewFromStringMap(raw).Unmarshal(cfg); err != nil {
		return nil, err
	}
	return cfg, nil
}

// configured returns a valid configuration.
func configured(t *testing.T, text string) *Config {
	t.Helper()
	cfg, err := decode(t, text)
	require.NoError(t, err)
	require.NoError(t, confmap.Validate(cfg))
	return cfg
}

func fromFile(t *testing.T, name string) *Config {
	t.Helper()
	file, err := confmaptest.LoadConf("testdata/config.yaml")
	require.NoError(t, err)
	section, err := file.Sub(name)
	require.NoError(t, err)
	cfg := createDefaultConfig().(*Config)
	require.NoError(t, section.Unmarshal(cfg))
	require.NoError(t, confmap.Validate(cfg))
	return cfg
}

func TestEveryKeyIsRead(t *testing.T) {
	on, off := true, false
	want := createDefaultConfig().(*Config)
	want.Window, want.MaxStaleness = 2*time.Minute, 10*time.Minute
	want.Derived.Quantiles, want.MaxSeries = []float64{0.5, 0.9}, 20000
	want.Derived.CapacityFromBlocks = true
	want.Derived.Percentiles = stages.Percentiles{Interpolation: stages.MeanConstrained, PerEngine: true, Detailed: true}
	want.Derived.Hardware = []stages.Hardware{
		{Match: map[string]string{"k8s.node.name": "gpu-a-*"}, GPU: "H100-SXM", DType: "fp8"},
		{Match: map[string]string{"k8s.node.name": "gpu-old-*"}, GPU: "V100-SXM"},
		{FLOPS: 989e12, MemoryBandwidth: 3.35e12},
	}
	want.Metrics = map[string]MetricConfig{
		"vllm.request.finished_ratio": {Enabled: &on}, "vllm.prompt_throughput": {Enabled: &off},
	}
	want.Diagnosis = stages.DiagnosisConfig{
		Enabled: true, Hold: 3, RelearnAfter: 2 * time.Hour, StartTimeout: 20 * time.Minute, SpeculationBreakEven: 1.5,
		BatchModels: []string{"batch/*"},
		Runbooks:    "https://wiki.example.com/vllm", Boards: "http://grafana.example.com:3000/a",
	}
	assert.Equal(t, want, fromFile(t, "vllm"))
}

func TestAnEmptyConfigurationIsComplete(t *testing.T) {
	cfg := fromFile(t, "vllm/empty")
	assert.Equal(t, createDefaultConfig(), cfg)
	assert.Equal(t, time.Minute, cfg.Window)
	assert.Equal(t, []float64{0.5, 0.95, 0.99}, cfg.Derived.Quantiles)
	assert.Equal(t, 5*time.Minute, cfg.MaxStaleness)
	assert.Equal(t, 100_000, cfg.MaxSeries)
	assert.Equal(t, stages.Percentiles{Interpolation: stages.Linear}, cfg.Derived.Percentiles)
	assert.False(t, cfg.Derived.CapacityFromBlocks)
	assert.Equal(t, stages.DiagnosisConfig{
		Enabled: true, Hold: 2, RelearnAfter: time.Hour, StartTimeout: 30 * time.Minute,
		Runbooks: "https://github.com/otelcol-vllm/otelcol-vllm/blob/main/docs/runbooks/",
	}, cfg.Diagnosis)
	assert.Empty(t, cfg.Derived.Hardware)
	assert.Empty(t, cfg.Metrics)
}

func TestALongWindowAloneIsNoMistake(t *testing.T) {
	assert.Equal(t, 20*time.Minute, fromFile(t, "vllm/long_window").MaxStaleness)
	assert.Equal(t, 5*time.Minute, configured(t, "window: 2m").MaxStaleness)
	assert.Equal(t, 10*time.Minute, configured(t, "{window: 10m, max_staleness: 10m}").MaxStaleness)
	assert.Equal(t, 2*time.Hour, configured(t, "window: 12m").Diagnosis.RelearnAfter, "five times two windows")
	assert.Equal(t, time.Hour, configured(t, "window: 2m").Diagnosis.RelearnAfter)
}

// Days and weeks, which Go's durations lack, work in every duration.
func TestDurationsHaveDays(t *testing.T) {
	for text, want := range map[string]time.Duration{"1d": 24 * time.Hour, "1d12h": 36 * time.Hour, "1w": 7 * 24 * time.Hour, "90s": 90 * time.Second} {
		assert.Equal(t, want, configured(t, "window: "+text).Window, text)
	}
	long := configured(t, "{window: 1d, max_staleness: 3d, diagnosis: {relearn_after: 2w, start_timeout: 1d}}")
	assert.Equal(t, 72*time.Hour, long.MaxStaleness)
	assert.Equal(t, 14*24*time.Hour, long.Diagnosis.RelearnAfter)
	assert.Equal(t, 24*time.Hour, long.Diagnosis.StartTimeout)
	assert.Equal(t, 2, long.Diagnosis.Hold, "a setting next to a duration keeps its default")
	assert.Equal(t, 48*time.Hour, configured(t, "window: 1d").MaxStaleness)
	for _, text := range []string{"window: 1 day", "diagnosis: {start_timeout: soon}", `pool: {interval: ""}`} {
		cfg, err := decode(t, text)
		require.NoError(t, err)
		assert.ErrorContains(t, confmap.Validate(cfg), ": is not a duration; write a number with its unit, for example 15s", text)
	}
}

func TestNoQuantilesAndTheUtmostQuantilesAreAllowed(t *testing.T) {
	assert.Empty(t, configured(t, "quantiles: []").Derived.Quantiles)
	assert.Equal(t, []float64{0, 1}, configured(t, "quantiles: [0, 1]").Derived.Quantiles)
}

// Each invalid value is reported with its key and with what to write instead.
func TestMistakes(t *testing.T) {
	for _, c := range []struct{ config, want string }{
		{`window: 0`, "window: must be more than 0; write for example 1m"},
		{`window: -1m`, "window: must be more than 0; write for example 1m"},
		{`window: 60`, "window: 60 has no unit; write 60s"},
		{`window: 100ms`, "window: 100ms is too short; write at least twice the time between two scrapes, for example 1m"},
		{`max_staleness: 0`, "max_staleness: must be more than 0; write for example 5m"},
		{`max_staleness: 300`, "max_staleness: 300 has no unit; write 300s"},
		{`max_staleness: 30s`, "max_staleness: 30s is shorter than window (1m0s), so that a window could never be filled; write at least 1m0s"},
		{`max_series: 0`, "max_series: must be at least 1, not 0; the default is 100000"},
		{`quantiles: [95]`, "quantiles::0: 95 is not from 0 to 1; write 0.95 for p95"},
		{`quantiles: [0.5, 99.9]`, "quantiles::1: 99.9 is not from 0 to 1; write 0.999 for p99.9"},
		{`quantiles: [-0.5]`, "quantiles::0: -0.5 is not from 0 to 1; write for example 0.95"},
		{`quantiles: [950]`, "quantiles::0: 950 is not from 0 to 1; write for example 0.95"},
		{`quantiles: [.nan]`, "quantiles::0: NaN is not from 0 to 1; write for example 0.95"},
		{`quantiles: [0.9, 0.90]`, "quantiles::1: 0.9 is there twice; remove one"},
		{`{percentiles: {detailed: true}, quantiles: []}`, `percentiles::detailed: adds quantiles, and the list of quantiles is empty; write for example quantiles: [0.5, 0.95], or remove detailed`},
		{`percentiles: {interpolation: cubic}`, `percentiles::interpolation: "cubic" is not known; write linear or mean_constrained`},
		{`metrics: {vllm.promt_throughput: {enabled: true}}`, "metrics::vllm.promt_throughput: no metric has this name; did you mean vllm.prompt_throughput?"},
		{`metrics: {prompt_throughput: {enabled: true}}`, "metrics::prompt_throughput: no metric has this name; did you mean vllm.prompt_throughput?"},
		{`metrics: {hit_ratio: {enabled: true}}`, "metrics::hit_ratio: no metric has this name; did you mean vllm.mm_cache.hit_ratio?"},
		{`metrics: {vllm_prompt_throughput: {enabled: true}}`, "metrics::vllm_prompt_throughput: no metric has this name; did you mean vllm.prompt_throughput?"},
		{
			`metrics: {vllm.prompt_tokens: {enabled: true}}`,
			"metrics::vllm.prompt_tokens: the receiver emits this metric, and it passes with this preset; write the switch under receivers::vllm::metrics",
		},
		{
			`metrics: {"vllm:prompt_tokens_total": {enabled: true}}`,
			"metrics::vllm:prompt_tokens_total: this is vLLM's own name of vllm.prompt_tokens, which the receiver emits; " +
				"write the switch under receivers::vllm::metrics",
		},
		{`metrics: {vllm.prompt_throughput: {}}`, "metrics::vllm.prompt_throughput: write {enabled: true} or {enabled: false}"},
		{
			`metrics: {vllm.pool.replicas: {enabled: true}}`,
			"metrics::vllm.pool.replicas: is emitted only where there are pools; write pool: {} next to metrics, or remove the switch",
		},
		{
			`metrics: {vllm.slo.burn_rate: {enabled: true}}`,
			"metrics::vllm.slo.burn_rate: is emitted only where there are objectives; write objectives next to metrics, or remove the switch",
		},
		{
			`metrics: {vllm.model_flops_utilization: {enabled: true}}`,
			"metrics::vllm.model_flops_utilization: is emitted only where hardware says what the GPUs can do; write hardware next to metrics, or remove the switch",
		},
		{
			`{quantiles: [], metrics: {vllm.request.queue_time_quantile_bound: {enabled: true}}}`,
			"metrics::vllm.request.queue_time_quantile_bound: is emitted only where there are quantiles, and the list is empty; write for example quantiles: [0.95], or remove the switch",
		},
		{
			`{storage: file_storage, diagnosis: {enabled: false}}`,
			"storage: keeps objectives and the baselines of the diagnosis, and there are neither; write objectives, leave out diagnosis::enabled, or remove storage",
		},
		{`diagnosis: {hold: 0}`, "diagnosis::hold: must be from 1 to 60 windows, not 0; the default is 2"},
		{`diagnosis: {hold: 61}`, "diagnosis::hold: must be from 1 to 60 windows, not 61; the default is 2"},
		{`metrics: {vllm.ttft_quantile: {enabled: true}}`, "metrics::vllm.ttft_quantile: no metric has this name; did you mean vllm.time_to_first_token_quantile?"},
		{`metrics: {ttft_quantile: {enabled: true}}`, "metrics::ttft_quantile: no metric has this name; did you mean vllm.time_to_first_token_quantile?"},
		{`diagnosis: {start_timeout: -1m}`, "diagnosis::start_timeout: must not be negative; write for example 10m, or 0s to report a server that does not answer at once"},
		{`diagnosis: {start_timeout: 600}`, "diagnosis::start_timeout: 600 has no unit; write 600s"},
		{`diagnosis: {start_timeout: 48h}`, "diagnosis::start_timeout: 48h0m0s is too long: a server that never starts would not be reported; write at most 24h"},
		{`diagnosis: {relearn_after: 0}`, "diagnosis::relearn_after: must be more than 0; write for example 1h"},
		{`diagnosis: {relearn_after: 60}`, "diagnosis::relearn_after: 60 has no unit; write 60s"},
		{
			`diagnosis: {relearn_after: 5m}`,
			"diagnosis::relearn_after: 5m0s is too short: harm would be taken as usual as soon as it is reported; write at least 10m0s, five times hold times window",
		},
		{
			`diagnosis: {speculation_break_even: 0.5}`,
			"diagnosis::speculation_break_even: 0.5 is not a number of tokens per step; write for example 1.5, or leave it out",
		},
		{
			`diagnosis: {batch_models: [a, ""]}`,
			"diagnosis::batch_models: has an empty pattern; write the name of a model, or a pattern such as batch-*",
		},
		{
			`diagnosis: {speculation_break_even: .nan}`,
			"diagnosis::speculation_break_even: NaN is not a number of tokens per step; write for example 1.5, or leave it out",
		},
		{
			`{diagnosis: {enabled: false}, metrics: {vllm.diagnosis.signal: {enabled: true}}}`,
			"metrics::vllm.diagnosis.signal: is emitted only where there is a diagnosis; leave out diagnosis::enabled, or remove the switch",
		},
		{
			`hardware: [{gpu: H100, dtype: bf16}]`,
			`hardware::0: gpu "H100" is not known, or fits several; write one of V100-PCIe, V100-SXM, T4, `,
		},
		{`hardware: [{gpu: H100-SXM, dtype: fp4}]`, `hardware::0: dtype "fp4" is not known for H100-SXM; write one of bf16, fp16, fp8, or give flops`},
		{`hardware: [{gpu: H100-SXM, flops: 989e12}]`, "hardware::0: gives gpu as well as numbers; write either gpu, or flops and memory_bandwidth"},
		{`hardware: [{match: {host.name: a}}]`, "hardware::0: write gpu, one of V100-PCIe, "},
		{`hardware: [{dtype: bf16, flops: 989e12}]`, "hardware::0::dtype: belongs to gpu; flops are already those of one type, so remove it"},
		{`hardware: [{flops: 989}]`, "hardware::0::flops: 989 is too small or not a number; write operations per second, for example 989e12"},
		{`hardware: [{flops: .nan}]`, "hardware::0::flops: NaN is too small or not a number; write operations per second, for example 989e12"},
		{`hardware: [{memory_bandwidth: 3.35}]`, "hardware::0::memory_bandwidth: 3.35 is too small or not a number; write bytes per second, for example 3.35e12"},
		{`hardware: [{memory_bandwidth: .inf}]`, "hardware::0::memory_bandwidth: +Inf is too small or not a number; write bytes per second, for example 3.35e12"},
		{
			`hardware: [{flops: 989e12, match: {host.name: ""}}]`,
			`hardware::0::match: "host.name": "" matches nothing; write a resource attribute and a pattern, for example k8s.node.name: gpu-a-*`,
		},
		{
			`hardware: [{flops: 989e12, match: {host.name: "gpu-(a|b)"}}]`,
			`hardware::0::match::host.name: the pattern "gpu-(a|b)" has '(', and a pattern is not a regular expression: write * for any characters and ? for a single one`,
		},
		{`hardware: [{flops: 989e12}, {gpu: T4}]`, "hardware::0: has no match, so hardware::1 is never used; write the entry without match last"},
	} {
		t.Run(c.config, func(t *testing.T) {
			cfg, err := decode(t, c.config)
			require.NoError(t, err)
			err = confmap.Validate(cfg)
			require.Error(t, err)
			lines := strings.Split(err.Error(), "\n")
			assert.Len(t, lines, 1, "one invalid value, one sentence")
			if strings.HasSuffix(c.want, ", ") {
				assert.Contains(t, lines[0], c.want)
				assert.Contains(t, lines[0], "H100-SXM, H100-NVL")
			} else {
				assert.Equal(t, c.want, lines[0])
			}
		})
	}
}

func TestAllInvalidValuesAreReportedTogether(t *testing.T) {
	cfg, err := decode(t, "{window: -1s, quantiles: [50], max_series: -1}")
	require.NoError(t, err)
	err = confmap.Validate(cfg)
	require.Error(t, err)
	for _, key := range []string{"window: ", "quantiles::0: ", "max_series: "} {
		assert.Contains(t, err.Error(), key)
	}
}

// A slip of the pen in a key or a type does not pass as the default.
func TestWhatIsNotAKeyIsRejected(t *testing.T) {
	for _, c := range []struct{ config, want string }{
		{`windows: 1m`, "windows"},
		{`percentiles: {per_engines: true}`, "per_engines"},
		{`hardware: [{gpus: T4}]`, "gpus"},
		{`metrics: {vllm.prompt_throughput: {enable: true}}`, "enable"},
		{`metrics: {vllm.prompt_throughput: true}`, "metrics::vllm.prompt_throughput: expected a map"},
		{`window: soon`, "window"},
	} {
		cfg, err := decode(t, c.config)
		require.NoError(t, err)
		assert.ErrorContains(t, confmap.Validate(cfg), c.want, c.config)
	}
}

// One key switches on the detailed quantiles; a switch of a metric has precedence.
func TestDetailedPercentilesAreFourMore(t *testing.T) {
	plain := configured(t, "")
	detailed := configured(t, "percentiles: {detailed: true}")
	var more []string
	for _, m := range catalog.All() {
		assert.True(t, detailed.Switched(m.Name) || !plain.Switched(m.Name), m.Name)
		if detailed.Switched(m.Name) && !plain.Switched(m.Name) {
			more = append(more, m.Name)
		}
	}
	assert.Equal(t, []string{
		"vllm.request.generation_tokens_quantile", "vllm.request.prompt_tokens_quantile",
		"vllm.request.queue_time_quantile", "vllm.request.time_per_output_token_quantile",
	}, more)
	without := configured(t, "{percentiles: {detailed: true}, metrics: {vllm.request.queue_time_quantile: {enabled: false}}}")
	assert.False(t, without.Switched("vllm.request.queue_time_quantile"))
	assert.True(t, without.Switched("vllm.request.prompt_tokens_quantile"))
}

// What the reference says about which component a metric's switch belongs to.
func TestEveryMetricHasASwitchWhereItHasAnEffect(t *testing.T) {
	on, off := true, false
	standard, essential := configured(t, ""), configured(t, "preset: essential")
	for _, m := range catalog.All() {
		assert.Equal(t, m.Derived(), standard.unknownMetric(m.Name, &on) == "", m.Name)
		assert.Empty(t, standard.unknownMetric(m.Name, &off), m.Name)
		assert.Empty(t, essential.unknownMetric(m.Name, &on), m.Name)
	}
}
