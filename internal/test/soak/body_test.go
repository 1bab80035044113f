package soak

import (
	"bytes"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const testdata = "../../../testdata"

func rendered(t *testing.T, folder string, s state) string {
	t.Helper()
	tmpl, err := loadTemplate(filepath.Join(testdata, folder), "0.0.0")
	require.NoError(t, err)
	var b bytes.Buffer
	tmpl.render(&b, s)
	return b.String()
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

// The expected numbers are those of both files in testdata: 0 and 1 answers show them, and the
// tenth is nine times their difference above the first.
func TestCountersGrowAsThoseOfTheRecordedServer(t *testing.T) {
	s := state{id: 77, engines: 3, model: "soak/m", adapters: []string{"x", "y"}, start: 1000, now: 2000}
	for count, want := range map[uint64]float64{0: 261645, 1: 270996, 9: 261645 + 9*(270996-261645)} {
		s.count = count
		body := rendered(t, "v1-0.24.0", s)
		for _, engine := range []string{"0", "1", "2"} {
			assert.InDelta(t, want, value(t, body, "vllm:spec_decode_num_drafts_total", "engine="+engine, "model_name=soak/m"), 0)
			assert.InDelta(t, 77, value(t, body, enginesFamily, "engine="+engine), 0)
		}
		assert.InDelta(t, 77, value(t, body, servedFamily), 0)
		assert.InDelta(t, 1000, value(t, body, "process_start_time_seconds"), 0)
		assert.InDelta(t, 2000, value(t, body, "vllm:lora_requests_info", "running_lora_adapters=x,y"), 0)
		assert.NotContains(t, body, `engine="3"`)
		assert.NotContains(t, body, "meta-llama")
	}
}

// The ledger compares the prompt tokens, so the template must know what it writes.
func TestTheTokensOfAnAnswerAreKnown(t *testing.T) {
	for _, v := range versions {
		if v.folder == "rust-0.24.0" {
			continue // OpenMetrics, which the parser of this test does not read.
		}
		tmpl, err := loadTemplate(filepath.Join(testdata, v.folder), v.version)
		require.NoError(t, err)
		body := rendered(t, v.folder, state{id: 1, count: 5, engines: 1, model: "m"})
		tokens := value(t, body, tokensFamily)
		assert.Positive(t, tokens, v.folder)
		assert.InDelta(t, tokens, tmpl.tokens.at(5), 0, v.folder)
		assert.Greater(t, tmpl.tokens.at(5), tmpl.tokens.at(4), v.folder)
		assert.Equal(t, strings.HasPrefix(v.folder, "v1"), tmpl.manyEngines, v.folder)
	}
}

func TestAnOpenMetricsBodyHasItsEndOnce(t *testing.T) {
	body := rendered(t, "rust-0.24.0", state{id: 5, engines: 2, model: "m"})
	assert.Equal(t, 1, strings.Count(body, "# EOF"))
	assert.True(t, strings.HasSuffix(body, "vllm:soak_engine{engine=\"1\"} 5\n# EOF\n"))
}

func TestBodiesOfDifferentServersAreNoTemplate(t *testing.T) {
	tmpl := &template{}
	require.ErrorContains(t, tmpl.read("a 1\nb 2", "a 1"), "different lines")
	require.ErrorContains(t, tmpl.read("a 1", "b 1"), "more than values")
	require.Error(t, tmpl.read("a one", "a one"))
}
