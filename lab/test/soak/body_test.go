package soak

import (
	"math"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

const testdata = "../../../testdata"

func rendered(t *testing.T, folder string, s state) string {
	t.Helper()
	tmpl, err := loadTemplate(testdata, folder, "0.0.0")
	require.NoError(t, err)
	return string(tmpl.render(nil, s))
}

// value reads one number of a body: the family, and labels that the series must have.
func value(t *testing.T, body, name string, labels ...string) float64 {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	require.NoError(t, err)
	family := families[name]
	require.NotNil(t, family, name)
metrics:
	for _, m := range family.GetMetric() {
		for _, want := range labels {
			found := false
			for _, l := range m.GetLabel() {
				found = found || l.GetName()+"="+l.GetValue() == want
			}
			if !found {
				continue metrics
			}
		}
		switch {
		case m.GetCounter() != nil:
			return m.GetCounter().GetValue()
		case m.GetHistogram() != nil:
			return float64(m.GetHistogram().GetSampleCount())
		default:
			return m.GetGauge().GetValue()
		}
	}
	require.Fail(t, "no such series", "%s %v", name, labels)
	return math.NaN()
}

func TestABodySaysWhichAnswerItIs(t *testing.T) {
	body := rendered(t, "v1-0.24.0", state{
		State: fleet.State{Engines: 3, Model: "soak/m", Start: 1000}, id: 77, adapters: []string{"x", "y"}, now: 2000,
	})
	for _, engine := range []string{"0", "1", "2"} {
		assert.InDelta(t, 77, value(t, body, enginesFamily, "engine="+engine), 0)
	}
	assert.InDelta(t, 77, value(t, body, servedFamily), 0)
	assert.InDelta(t, 1000, value(t, body, "process_start_time_seconds"), 0)
	assert.InDelta(t, 2000, value(t, body, "vllm:lora_requests_info", "running_lora_adapters=x,y"), 0)
	assert.NotContains(t, body, `engine="3"`)
	assert.NotContains(t, body, "meta-llama")
}

// The ledger compares the prompt tokens, so the template must know what it writes.
func TestTheTokensOfAnAnswerAreKnown(t *testing.T) {
	for _, v := range versions {
		if v.folder == "rust-0.24.0" {
			continue // OpenMetrics, which the parser of this test does not read.
		}
		tmpl, err := loadTemplate(testdata, v.folder, v.version)
		require.NoError(t, err)
		tokens := value(t, rendered(t, v.folder, state{State: fleet.State{Engines: 1, Model: "m", Steps: 5}}), tokensFamily)
		assert.Positive(t, tokens, v.folder)
		assert.InDelta(t, tokens, tmpl.Value(tokensFamily, 5), 0, v.folder)
		assert.Greater(t, tmpl.Value(tokensFamily, 5), tmpl.Value(tokensFamily, 4), v.folder)
		assert.Equal(t, strings.HasPrefix(v.folder, "v1"), tmpl.ManyEngines, v.folder)
	}
}

func TestAnOpenMetricsBodyHasItsEndOnce(t *testing.T) {
	body := rendered(t, "rust-0.24.0", state{State: fleet.State{Engines: 2, Model: "m"}, id: 5})
	assert.Equal(t, 1, strings.Count(body, "# EOF"))
	assert.True(t, strings.HasSuffix(body, "vllm:soak_engine{engine=\"1\"} 5\n# EOF\n"))
}
