package fleet

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const testdata = "../../../testdata"

func parsed(t *testing.T, text []byte) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	require.NoError(t, err)
	return families
}

func content(t *testing.T, folder, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testdata, folder, name))
	require.NoError(t, err)
	return text
}

func loaded(t *testing.T, folder string) *Template {
	t.Helper()
	tmpl, err := Load(filepath.Join(testdata, folder))
	require.NoError(t, err)
	return tmpl
}

// At the beginning a body is the first file, and after a step the second one.
func TestABodyIsTheRecordedOne(t *testing.T) {
	for _, folder := range []string{"v1-0.24.0", "v1-0.20.0", "v1-0.8.5", "v0-0.6.6"} {
		tmpl := loaded(t, folder)
		for name, s := range map[string]State{"metrics.txt": {}, "metrics-2.txt": {Steps: 1, Odd: true}} {
			want, got := parsed(t, content(t, folder, name)), parsed(t, tmpl.Append(nil, s))
			require.Len(t, got, len(want))
			for name, family := range want {
				if strings.HasSuffix(name, "_created") || name == "process_start_time_seconds" {
					continue
				}
				// Of several engines the first is there.
				assert.Equal(t, family.GetMetric()[0].String(), got[name].GetMetric()[0].String(), "%s, %s", folder, name)
			}
		}
	}
}

// The expected numbers are those of both files: the tenth body is nine times their difference above the first.
func TestCountersGrowAsThoseOfTheRecordedServer(t *testing.T) {
	tmpl := loaded(t, "v1-0.24.0")
	for steps, want := range map[float64]float64{0: 261645, 1: 270996, 9: 261645 + 9*(270996-261645)} {
		body := tmpl.Append(nil, State{Engines: 3, Model: "m/x", Steps: steps, Start: 1000})
		drafts := parsed(t, body)["vllm:spec_decode_num_drafts_total"].GetMetric()
		require.Len(t, drafts, 3)
		for _, m := range drafts {
			assert.Equal(t, want, m.GetCounter().GetValue())
		}
		assert.Equal(t, want, tmpl.Value("vllm:spec_decode_num_drafts_total", steps))
		assert.Equal(t, 1000.0, parsed(t, body)["process_start_time_seconds"].GetMetric()[0].GetGauge().GetValue())
		assert.NotContains(t, string(body), "meta-llama")
	}
	assert.True(t, tmpl.ManyEngines)
	assert.False(t, loaded(t, "v0-0.6.6").ManyEngines)
}

// No count falls, that of a single bucket neither: a server that falls has restarted. The mean stays nearly the same.
func TestNoCountFallsFromStepToStep(t *testing.T) {
	growing, err := Growing(string(content(t, "v1-0.20.0", "metrics.txt")), 1.0/36)
	require.NoError(t, err)
	pair := loaded(t, "v1-0.20.0")
	for name, c := range map[string]struct {
		tmpl *Template
		step float64
	}{"growing": {growing, 1}, "pair": {pair, 7.0 / 150}, "late": {pair.Late("vllm:time_to_first_token_seconds", 5), 7.0 / 150}} {
		grown, before := 0, parsed(t, c.tmpl.Append(nil, State{Engines: 3}))
		for step := 1; step < 30; step++ {
			later := parsed(t, c.tmpl.Append(nil, State{Engines: 3, Steps: float64(step) * c.step}))
			for family, was := range before {
				for i, m := range was.GetMetric() {
					now := later[family].GetMetric()[i]
					assert.GreaterOrEqual(t, now.GetCounter().GetValue(), m.GetCounter().GetValue(), "%s: %s", name, family)
					if h := now.GetHistogram(); h != nil && grew(t, family, m.GetHistogram(), h) {
						grown++
					}
				}
			}
			before = later
		}
		assert.Positive(t, grown, name)
	}
}

// grew reports whether a histogram has counted more.
func grew(t *testing.T, name string, was, is *dto.Histogram) bool {
	t.Helper()
	before, now := uint64(0), uint64(0)
	for i, b := range is.GetBucket() {
		a := was.GetBucket()[i]
		assert.GreaterOrEqual(t, b.GetCumulativeCount()-now, a.GetCumulativeCount()-before, "%s le %g", name, b.GetUpperBound())
		before, now = a.GetCumulativeCount(), b.GetCumulativeCount()
	}
	assert.Equal(t, is.GetSampleCount(), now, name)
	if was.GetSampleCount() > 0 {
		mean := was.GetSampleSum() / float64(was.GetSampleCount())
		assert.InEpsilon(t, 1+mean, 1+is.GetSampleSum()/float64(is.GetSampleCount()), 0.02, name)
	}
	return is.GetSampleCount() > was.GetSampleCount()
}

// Each series of the engine is there once for every engine, and families are whole.
func TestABodyOfSeveralEngines(t *testing.T) {
	text := content(t, "v1-0.20.0", "metrics.txt")
	one, eight := parsed(t, text), parsed(t, loaded(t, "v1-0.20.0").Append(nil, State{Engines: 8, Model: "another/model"}))
	require.Len(t, eight, len(one))
	for name, family := range one {
		ofEngine := 0
		for _, m := range family.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "engine" {
					ofEngine++
				}
			}
		}
		assert.Len(t, eight[name].GetMetric(), len(family.GetMetric())+7*ofEngine, name)
		for _, m := range eight[name].GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "model_name" {
					assert.Equal(t, "another/model", l.GetValue())
				}
			}
		}
	}
}

// 3706 and 3839 are the counts of first tokens in both files, and 3001814 the prompt tokens of the second.
func TestALateServerHasHalfOfItsFirstTokensLater(t *testing.T) {
	const family = "vllm:time_to_first_token_seconds"
	sound := loaded(t, "v1-0.20.0")
	assert.Equal(t, 3706.0, sound.Value(family+"_count", 0))
	assert.Equal(t, 3839.0, sound.Value(family+"_count", 1))
	assert.Equal(t, 3001814.0, sound.Value("vllm:prompt_tokens_total", 1))
	within := func(steps float64) (in, all float64) {
		h := parsed(t, sound.Late(family, 5).Append(nil, State{Steps: steps}))[family].GetMetric()[0].GetHistogram()
		for _, b := range h.GetBucket() {
			if b.GetUpperBound() <= 2.5 {
				in = float64(b.GetCumulativeCount())
			}
		}
		return in, float64(h.GetSampleCount())
	}
	in0, all0 := within(0)
	in1, all1 := within(100)
	assert.InDelta(t, 0.5, (in1-in0)/(all1-all0), 0.01)
	assert.Equal(t, 100*(3839-3706.0), all1-all0)
}

func TestFamiliesAreLeftOutAndTheEndIsNot(t *testing.T) {
	tmpl, err := Load(filepath.Join(testdata, "rust-0.24.0"), "vllm:prompt_tokens")
	require.NoError(t, err)
	body := string(tmpl.Append(nil, State{Engines: 2}))
	assert.NotContains(t, body, "vllm:prompt_tokens")
	assert.NotContains(t, body, "# EOF", "who adds lines writes it")
	assert.Contains(t, body, `engine="1"`)
}

func TestBodiesOfDifferentServersAreNoTemplate(t *testing.T) {
	_, err := Between("a 1\nb 2", "a 1")
	require.ErrorContains(t, err, "different lines")
	_, err = Between("a 1", "b 1")
	require.ErrorContains(t, err, "more than values")
	_, err = Between("a one", "a one")
	require.Error(t, err)
}
