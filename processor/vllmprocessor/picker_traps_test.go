package vllmprocessor

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadata"
)

// pickerPage is a page with counters only, one a line: "food 100" are scheduled requests of
// a model and "food NotFound 3" are errors. A line without a model begins with "-".
func pickerPage(t *testing.T, second int, lines ...string) pmetric.Metrics {
	t.Helper()
	page := map[string]string{}
	for _, line := range lines {
		words := strings.Fields(line)
		model := strings.TrimPrefix(words[0], "-")
		name, labels := "inference_objective_request_total", fmt.Sprintf(`model_name=%q,target_model_name=%q`, model, model)
		if len(words) == 3 {
			name, labels = "inference_objective_request_error_total", labels+fmt.Sprintf(`,error_code=%q`, words[1])
		} else {
			labels += `,priority="0"`
		}
		page[name] += fmt.Sprintf("%s{%s} %s\n", name, labels, words[len(words)-1])
	}
	body := ""
	for name, series := range page {
		body += "# TYPE " + name + " counter\n" + series
	}
	return wirePoints(t, []byte(body), noon.Add(time.Duration(second)*time.Second))
}

// shares are the values of two metrics in a short form: the ratios of errors by model, and
// that of the whole picker under "all".
func shares(derived map[string]float64, metric string) map[string]float64 {
	short := map[string]float64{}
	for series, value := range derived {
		attributes, is := strings.CutPrefix(series, epp+metric+"{")
		if !is {
			continue
		}
		model, _, _ := strings.Cut(strings.TrimPrefix(attributes, "model_name="), ",")
		if attributes == "}" {
			model = "all"
		}
		short[model] = value
	}
	return short
}

// The numbers are worked out by hand from the two pages.
func TestTheShareOfErrorsOfAPicker(t *testing.T) {
	t.Parallel()
	type values = map[string]float64
	for name, test := range map[string]struct {
		before, after []string
		errors, shed  values
		rate          values // times 10 s
	}{
		"no error, and no counter of errors": {
			[]string{"food 10"}, []string{"food 20"}, values{"food": 0, "all": 0}, values{"food": 0, "all": 0}, values{"food": 10},
		},
		"refused requests are not among the requests": {
			[]string{"food 10", "food ResourceExhausted 5"},
			[]string{"food 16", "food ResourceExhausted 9"},
			values{"food": 0.4, "all": 0.4},
			values{"food": 0.4, "all": 0.4},
			values{"food": 10},
		},
		"everything is refused": {
			[]string{"food 10"}, []string{"food 10", "food ResourceExhausted 7"}, values{"food": 1, "all": 1}, values{"food": 1, "all": 1}, values{"food": 7},
		},
		"everything was refused since the start": {
			[]string{"food NotFound 2"}, []string{"food NotFound 6"}, values{"food": 1, "all": 1}, values{"food": 0, "all": 0}, values{"food": 4},
		},
		"a server's error is in both": {
			[]string{"food 10", "food ModelServerError 1"},
			[]string{"food 20", "food ModelServerError 6"},
			values{"food": 0.5, "all": 0.5},
			values{"food": 0, "all": 0},
			values{"food": 10},
		},
		"the errors of requests before the window": {
			[]string{"food 10", "food ModelServerError 1"},
			[]string{"food 12", "food ModelServerError 6"},
			values{"food": 1, "all": 1},
			values{"food": 0, "all": 0},
			values{"food": 5},
		},
		"refused before the model was known": {
			[]string{"food 10", "- BadRequest 1"},
			[]string{"food 16", "- BadRequest 5"},
			values{"food": 0, "all": 0.4},
			values{"food": 0, "all": 0},
			values{"food": 6, "all": 4},
		},
		"a model appears": {
			[]string{"food 10"},
			[]string{"food 10", "new 3", "new Internal 1"},
			values{"new": 0.25, "all": 0.25},
			values{"new": 0, "all": 0},
			values{"food": 0, "new": 4},
		},
		"no traffic": {
			[]string{"food 10", "food Internal 3"}, []string{"food 10", "food Internal 3"}, values{}, values{}, values{"food": 0},
		},
		// The target b has grown past its old value, so only a shows the restart.
		"a restart": {
			[]string{"a 100", "b 3"},
			[]string{"a 5", "b 4", "b Unknown 1"},
			values{"a": 0, "b": 0.2, "all": 0.1},
			values{"a": 0, "b": 0, "all": 0},
			values{"a": 5, "b": 5},
		},
		"after a restart everything is refused": {
			[]string{"a 100", "a Unknown 8"}, []string{"a Unknown 4"}, nil, nil, nil, // pending: the requests may follow
		},
	} {
		derived := derivePicker(t, []pmetric.Metrics{pickerPage(t, 0, test.before...), pickerPage(t, 10, test.after...)}, nil)
		assert.Empty(t, derived[0], name)
		if test.errors == nil {
			assert.Empty(t, derived[1], name)
			derived = derivePicker(t, []pmetric.Metrics{
				pickerPage(t, 0, test.before...), pickerPage(t, 10, test.after...), pickerPage(t, 20, "a Unknown 6"),
			}, nil)
			assert.Equal(t, values{"a": 1, "all": 1}, shares(derived[2], "request.error_ratio"), name)
			continue
		}
		assert.Equal(t, test.errors, shares(derived[1], "request.error_ratio"), name)
		assert.Equal(t, test.shed, shares(derived[1], "request.shed_ratio"), name)
		rates := shares(derived[1], "request_rate")
		for model := range rates {
			rates[model] *= 10
		}
		assert.InDeltaMapValues(t, test.rate, rates, 1e-9, name)
		assert.Len(t, rates, len(test.rate), name)
	}
}

// Where a page arrives in parts, a part of the models is never reported as the whole.
func TestAPartOfAPageIsNotTheWholePicker(t *testing.T) {
	t.Parallel()
	derived := derivePicker(t, []pmetric.Metrics{
		pickerPage(t, 0, "a 10", "a Internal 1", "b 10"),
		pickerPage(t, 10, "a 20", "a Internal 6"),
		pickerPage(t, 10, "b 25"),
	}, nil)
	assert.Equal(t, map[string]float64{"a": 1. / 3}, shares(derived[1], "request.error_ratio"))
	assert.Equal(t, map[string]float64{"b": 0, "all": 1. / 6}, shares(derived[2], "request.error_ratio"))
}

// From a picker nothing is derived that belongs to a vLLM server, neither values nor a
// diagnosis of an engine.
func TestAPickerIsNotAServer(t *testing.T) {
	t.Parallel()
	w := newPickerWorld(1)
	p, sink := startWith(t, nil)
	for i := range 9 {
		require.NoError(t, p.ConsumeMetrics(t.Context(), wirePoints(t, w.body("llm-d", i), noon.Add(w.scrapes[i]))))
	}
	require.NoError(t, p.Shutdown(t.Context()))
	var names []string
	for _, sm := range sink.AllMetrics()[8].ResourceMetrics().At(0).ScopeMetrics().All() {
		for _, m := range sm.Metrics().All() {
			if sm.Scope().Name() == metadata.ScopeName {
				names = append(names, strings.TrimPrefix(m.Name(), epp))
			}
		}
	}
	slices.Sort(names)
	assert.Equal(t, []string{
		"flow_control.queue.duration_mean", "flow_control.queue.duration_quantile",
		"request.duration_mean", "request.duration_quantile", "request.error_ratio", "request.input_tokens_mean",
		"request.output_tokens_mean", "request.shed_ratio", "request.time_to_first_token_mean",
		"request.time_to_first_token_quantile", "request_rate",
	}, slices.Compact(names))
}

// What a picker costs a backend, as the README states it.
func TestTheCostOfAPickerInSeries(t *testing.T) {
	t.Parallel()
	readme := readReadme(t)
	for release, want := range map[string]struct {
		row  string
		each int
	}{
		"1.0":   {"without flow control and time to first token, as Gateway API Inference Extension 1.0", 9},
		"llm-d": {"with both, as llm-d-router", 17},
	} {
		assert.Contains(t, readme, fmt.Sprintf("| %s | %d |", want.row, want.each))
		w := newPickerWorld(3)
		var batches []pmetric.Metrics
		for i, at := range w.scrapes[:24] {
			batches = append(batches, wirePoints(t, w.body(release, i), noon.Add(at)))
		}
		models, series := map[string]bool{}, map[string]bool{}
		for i, derived := range derivePicker(t, batches, nil) {
			for key := range derived {
				series[key] = true
			}
			for _, model := range []string{"food|food-1", "food|food-2", "llama|llama", "late|late-1"} {
				models[model] = models[model] || w.known(release, i)[model]
			}
		}
		// Each model has all of them, the whole picker has no rate, and one rate is of
		// requests without a model.
		assert.Len(t, models, 4)
		assert.Len(t, series, 4*want.each+(want.each-1)+1, release)
	}
}

// The Prometheus receiver with relabelling, and processors, give each point attributes such
// as the pod. They distinguish pickers that share a resource, and the whole of each has them.
func TestAWholePickerHasTheAttributesOfAllItsPoints(t *testing.T) {
	t.Parallel()
	in := func(pod string, page pmetric.Metrics) pmetric.Metrics {
		for _, m := range page.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			for _, p := range m.Sum().DataPoints().All() {
				p.Attributes().PutStr("pod", pod)
			}
		}
		return page
	}
	both := func(one, two pmetric.Metrics) pmetric.Metrics {
		two.ResourceMetrics().MoveAndAppendTo(one.ResourceMetrics())
		return one
	}
	p, sink := startWith(t, nil)
	require.NoError(t, p.ConsumeMetrics(t.Context(), both(
		in("a", pickerPage(t, 0, "food 10", "- BadRequest 1")), in("b", pickerPage(t, 0, "food 10", "- BadRequest 1")))))
	require.NoError(t, p.ConsumeMetrics(t.Context(), both(
		in("a", pickerPage(t, 10, "food 16", "- BadRequest 5")), in("b", pickerPage(t, 10, "food 20", "- BadRequest 1")))))
	require.NoError(t, p.Shutdown(t.Context()))
	got := map[string]float64{}
	for _, rm := range sink.AllMetrics()[1].ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() == epp+"request.error_ratio" {
					for _, point := range m.Gauge().DataPoints().All() {
						got[fmt.Sprint(point.Attributes().AsRaw())] = point.DoubleValue()
					}
				}
			}
		}
	}
	assert.Equal(t, map[string]float64{
		"map[model_name:food pod:a target_model_name:food]": 0, "map[model_name:food pod:b target_model_name:food]": 0,
		"map[pod:a]": 0.4, "map[pod:b]": 0,
	}, got)
}
