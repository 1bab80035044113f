package check_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/check"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
)

// statesOf are the states of the derived metrics of the only target.
func statesOf(tb testing.TB, s *simulated) map[string]string {
	tb.Helper()
	report := checked(tb, configuration(tb, "endpoint: "+serve(tb, s), ""))
	out := map[string]string{}
	for _, d := range report.Targets[0].Derived {
		out[d.Name] = d.State
		assert.Equal(tb, d.State == "exists", d.Why == "", d.Name)
	}
	require.NotEmpty(tb, out)
	return out
}

// What is said of a server without traffic is compared with what the processor emits once there
// is traffic: nothing appears that was said to be missing, and what waited for traffic appears.
func TestDerivedMetricsAreForetoldWithoutTraffic(t *testing.T) {
	// These wait for more than requests: a preemption, a dropped request, a harm, waiting
	// requests, or images.
	rare := map[string]bool{
		"vllm.diagnosis.cause": true, "vllm.diagnosis.cause_share": true, "vllm.wasted_tokens_ratio": true,
		"vllm.request.queue_wait_estimate": true, "vllm.inter_token_latency_per_token_mean": true,
		"vllm.spec_decode.acceptance_ratio": true, "vllm.external_prefix_cache.hit_ratio": true,
		"vllm.spec_decode.mean_acceptance_length": true, "vllm.spec_decode.position_acceptance_ratio": true,
	}
	for _, cfg := range []vllmsim.Config{
		{Version: "0.20.0"},
		{Version: "0.24.0", SpecDecode: true},
		{Version: "0.13.0"},
		{Version: "0.10.2"},
		{Dialect: "v0", Version: "0.5.0"},
		{Dialect: "v0", Version: "0.6.6"},
		{Dialect: "rust", Version: "0.24.0"},
	} {
		t.Run(fmt.Sprintf("%s %s", cfg.Dialect, cfg.Version), func(t *testing.T) {
			quiet := newSimulated(t, cfg)
			quiet.idle = true
			foretold, seen := statesOf(t, quiet), statesOf(t, newSimulated(t, cfg))
			exist := 0
			for name, state := range seen {
				if state == "exists" {
					exist++
					assert.Contains(t, []string{"exists", "idle"}, foretold[name], "%s exists with traffic", name)
				} else if foretold[name] == "idle" && !rare[name] && (name != "vllm.prefix_cache.hit_ratio" || cfg.Dialect == "" && cfg.Version >= "0.2") {
					// Without the cached tokens of 0.16 the ratio is emitted only where it is certain.
					assert.Fail(t, "foretold, and not there with traffic", name)
				}
			}
			assert.Greater(t, exist, 15)
		})
	}
}

// The reasons are those of the server: nothing is said to need a flag that the server has.
func TestMissingFamiliesHaveTheReasonOfTheServer(t *testing.T) {
	reason := func(cfg vllmsim.Config, name string) string {
		report := checked(t, configuration(t, "endpoint: "+serve(t, newSimulated(t, cfg)), ""))
		for _, m := range report.Targets[0].Missing {
			if m.Name == name {
				return m.Reason + ": " + m.Why
			}
		}
		return ""
	}
	for _, c := range []struct {
		cfg        vllmsim.Config
		name, want string
	}{
		{vllmsim.Config{Version: "0.20.0"}, "vllm.kv_block.lifetime", "flag: only with --kv-cache-metrics"},
		{vllmsim.Config{Version: "0.20.0", FollowBlocks: 0.1}, "vllm.kv_block.lifetime", ""},
		{vllmsim.Config{Version: "0.10.2"}, "vllm.kv_block.lifetime", "version: since vLLM 0.12.0"},
		{vllmsim.Config{Version: "0.20.0"}, "vllm.lora.max_adapters", "flag: only with --enable-lora"},
		{vllmsim.Config{Version: "0.20.0", LoRA: true}, "vllm.lora.max_adapters", ""},
		{vllmsim.Config{Version: "0.20.0"}, "vllm.request.params_best_of", "removed: removed in vLLM 0.6.3"},
		{vllmsim.Config{Version: "0.20.0"}, "vllm.prompt_tokens", ""},
		{vllmsim.Config{Dialect: "rust", Version: "0.24.0"}, "vllm.iteration_tokens", "role: the Rust front end does not have it"},
		{vllmsim.Config{Dialect: "v0", Version: "0.8.5"}, "vllm.prefix_cache.hits", "recent: since about vLLM 0.9.0"},
		{vllmsim.Config{Version: "0.20.0"}, "vllm.spec_decode.num_drafts", "flag: only with speculative decoding (--speculative-config)"},
	} {
		assert.Equal(t, c.want, reason(c.cfg, c.name), "%s of %+v", c.name, c.cfg)
	}
}

// An interruption is no result.
func TestAnInterruptedCheckHasNoResult(t *testing.T) {
	silent := serve(t, healthy(t))
	ctx, cancel := contextFor(t, 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	_, err := check.Configured(ctx, []string{configuration(t, "endpoint: "+silent, "")}, check.Settings{Delay: time.Hour})
	require.ErrorContains(t, err, "interrupted")
	assert.Less(t, time.Since(began), 10*time.Second)
}

// The diagnosis and the objectives use those inputs that are there.
func TestMetricsWithManyInputsNeedNoneOfThem(t *testing.T) {
	s := newSimulated(t, vllmsim.Config{Version: "0.20.0"})
	report := checked(t, configuration(t, "endpoint: "+serve(t, s), "objectives: [{name: o, metric: vllm.time_to_first_token, threshold: 1s, target: 0.9}]"))
	states := map[string]string{}
	for _, d := range report.Targets[0].Derived {
		states[d.Name] = d.State
	}
	assert.Equal(t, "idle", states["vllm.diagnosis.cause"])
	assert.Equal(t, "exists", states["vllm.diagnosis.condition"])
	assert.Equal(t, "exists", states["vllm.slo.valid"])
	assert.Equal(t, "setting", states["vllm.slo.joint_attainment"], "it needs two objectives")
	assert.Equal(t, "setting", states["vllm.pool.replicas"])

	// A reader who knows Prometheus counts each bucket as a series, so the line says what it counts.
	numbers := map[string]int{}
	for _, state := range states {
		numbers[state]++
	}
	line := fmt.Sprintf("%d series (a histogram counts as one); the processor adds %d series, for %d derived metrics; %d more metrics need traffic, and %d a setting",
		report.Targets[0].Series, report.Targets[0].Added, numbers["exists"], numbers["idle"], numbers["setting"])
	assert.True(t, slices.ContainsFunc(report.Targets[0].Passes, func(p check.Pass) bool { return p.Text == line }), "%s: %v", line, report.Targets[0].Passes)
}

// The storage of the collector is left alone, and the processor starts without it.
func TestAProcessorWithStorageIsTriedWithoutIt(t *testing.T) {
	folder := t.TempDir()
	report := checked(t, written(t, "receivers: {vllm: {"+patient+"endpoint: "+serve(t, healthy(t))+"}}\nprocessors: {vllm: {storage: file_storage}}\nexporters: {debug: {}}\n"+
		"extensions: {file_storage: {directory: "+folder+"}}\nservice: {extensions: [file_storage], pipelines: {metrics: {receivers: [vllm], processors: [vllm], exporters: [debug]}}}\n"))
	assert.Empty(t, codesOf(report, check.Problem, check.Warning))
	assert.Greater(t, report.Targets[0].Added, 20)
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	assert.Empty(t, entries)
}

// The buckets of percentiles are those of the histogram.
func TestBucketsOfPercentilesAreBoundsOfTheHistogram(t *testing.T) {
	report := checked(t, configuration(t, "endpoint: "+serve(t, healthy(t)), ""))
	words := regexp.MustCompile(`quantile of (\S+) is between (\S+) s and (\S+) s`)
	seen := 0
	for _, f := range all(report) {
		for _, detail := range f.Details {
			m := words.FindStringSubmatch(detail)
			if f.Code != check.CodeQuantile || m == nil {
				continue
			}
			seen++
			bounds := append([]float64{0}, catalog.Bounds("vllm."+m[1])...)
			lower, err := strconv.ParseFloat(m[2], 64)
			require.NoError(t, err)
			upper, err := strconv.ParseFloat(m[3], 64)
			require.NoError(t, err)
			i := slices.Index(bounds, lower)
			require.GreaterOrEqual(t, i, 0, detail)
			require.Less(t, i+1, len(bounds), detail)
			assert.Equal(t, bounds[i+1], upper, "the next bound: %s", detail)
		}
	}
	assert.Positive(t, seen)
}
