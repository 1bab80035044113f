package vllmprocessor

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadata"
)

// What leaves the processor for a server, by name. lab/test/cost has the values and the numbers of series.
func leaving(t *testing.T, config string) (names []string) {
	t.Helper()
	p := create(t, configured(t, config), processortest.NewNopSettings(metadata.Type))
	var out pmetric.Metrics
	for _, scrape := range scraped(t, "plain") {
		var err error
		out, err = p.process(t.Context(), scrape)
		require.NoError(t, err)
	}
	for _, sm := range out.ResourceMetrics().At(0).ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			names = append(names, m.Name())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func TestASwitchWinsOverThePreset(t *testing.T) {
	const counter, histogram, mean, quantile = "vllm.generation_tokens", "vllm.time_to_first_token", "vllm.time_to_first_token_mean", "vllm.time_to_first_token_quantile"
	for config, want := range map[string][]string{
		"":                    {counter, histogram, quantile},
		"{preset: full}":      {counter, histogram, mean, quantile},
		"{preset: essential}": {quantile},
		"{preset: essential, metrics: {vllm.generation_tokens: {enabled: true}, vllm.time_to_first_token_mean: {enabled: true}, vllm.time_to_first_token_quantile: {enabled: false}}}": {counter, mean},
		"{metrics: {vllm.time_to_first_token: {enabled: false}}}": {counter, quantile},
	} {
		names := leaving(t, config)
		got := slices.DeleteFunc(names, func(name string) bool { return !slices.Contains([]string{counter, histogram, mean, quantile}, name) })
		assert.Equal(t, want, got, config)
	}
}

// A processor in another collector derived it.
func TestASwitchRemovesWhatWasDerivedBefore(t *testing.T) {
	const metric = "vllm.generation_throughput"
	p := create(t, configured(t, "{metrics: {"+metric+": {enabled: false}}}"), processortest.NewNopSettings(metadata.Type))
	out, err := p.process(t.Context(), gauges("s", map[string]float64{metric: 1, "vllm.num_requests.running": 1}))
	require.NoError(t, err)
	for _, m := range out.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		assert.NotEqual(t, metric, m.Name())
	}
}

// Also one that an environment variable without a value leaves empty: standard may cost more than was meant.
func TestAnUnknownPreset(t *testing.T) {
	const spelled = `is unknown; write essential, standard or full`
	for value, mistake := range map[string]string{
		"small": spelled, "''": spelled, "": spelled, "2": "type", "-1": "type", "1.5": "type", "[essential]": "type",
	} {
		cfg, err := decode(t, "preset: "+value)
		require.NoError(t, err)
		assert.ErrorContains(t, cfg.Validate(), "preset: ", value)
		assert.ErrorContains(t, cfg.Validate(), mistake, value)
	}
}

// gen_ai.* are the receiver's only where its user asks for them, so the preset lets them pass.
func TestEssentialKeepsWhatAnotherSettingAskedFor(t *testing.T) {
	const asked = "gen_ai.server.request.duration"
	for config, want := range map[string][]string{
		"{preset: essential}": {asked, "vllm.up"},
		"{preset: essential, metrics: {" + asked + ": {enabled: false}}}": {"vllm.up"},
	} {
		p := create(t, configured(t, config), processortest.NewNopSettings(metadata.Type))
		out, err := p.process(t.Context(), gauges("s", map[string]float64{asked: 1, "vllm.up": 1, "vllm.iteration_tokens": 1}))
		require.NoError(t, err)
		var names []string
		for _, m := range out.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			names = append(names, m.Name())
		}
		assert.ElementsMatch(t, want, names, config)
	}
}
