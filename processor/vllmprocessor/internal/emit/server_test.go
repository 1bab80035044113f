package emit_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// points are the written values by metric and attributes; ended for an end.
type points map[string]float64

const ended = -1e99

// server is the state of one resource, over a window of a minute.
type server struct {
	t         *testing.T
	resource  *window.Resource
	settings  derive.Settings
	evaluator derive.Evaluator
	memory    emit.Memory
	report    window.Report
	room      int
	version   string
	times     map[string]int64
}

// newServer derives the named metrics only.
func newServer(t *testing.T, metrics ...string) *server {
	t.Helper()
	s := &server{
		t: t, room: math.MaxInt, times: map[string]int64{},
		resource: window.NewResource(window.Settings{Window: time.Minute, MaxStaleness: 5 * time.Minute}),
		settings: derive.Settings{Quantiles: []derive.Quantile{derive.NewQuantile(0.5)}},
	}
	for _, row := range derive.Rows() {
		wanted := false
		for _, name := range metrics {
			wanted = wanted || row.Metric == name
		}
		s.settings.Enabled = append(s.settings.Enabled, wanted)
	}
	return s
}

// sample is a point of an engine; of the front end without one.
type sample struct {
	input.Sample
	engine string
}

func number(engine string, in input.Metric, label string, value float64) sample {
	return sample{input.Sample{Input: in, Label: input.Label(label), Value: value}, engine}
}

func distribution(engine string, in input.Metric, sum float64, bounds []float64, counts ...float64) sample {
	s := sample{input.Sample{Input: in, Bounds: bounds, Counts: counts, Sum: sum, HasSum: true}, engine}
	for _, n := range counts {
		s.Count += n
	}
	return s
}

func (s sample) gone() sample                 { s.Gone = true; return s }
func (s sample) delta() sample                { s.Delta = true; return s }
func (s sample) since(seconds float64) sample { s.Start = nanoseconds(seconds); return s }

func nanoseconds(seconds float64) int64 {
	return 1_700_000_000_000_000_000 + int64(math.Round(seconds*1e9))
}

// at sends a batch and returns what is written for it.
func (s *server) at(seconds float64, samples ...sample) points {
	s.t.Helper()
	batch := &input.Batch{Time: nanoseconds(seconds), Evidence: input.Evidence{Version: s.version}}
	groups := map[string]int{}
	for _, each := range samples {
		key := each.engine
		if each.Input == input.CacheConfigTokens || each.Input == input.KVCacheBlocks || each.Input == input.KVCacheBlockSize {
			key += "!"
		}
		if _, known := groups[key]; !known {
			groups[key] = len(batch.Groups)
			group := input.Group{Key: key}
			if each.engine != "" {
				group.Attributes = append(group.Attributes, input.Attribute{Name: "engine", Value: each.engine})
				if !strings.HasSuffix(key, "!") {
					group.Attributes = append(group.Attributes, input.Attribute{Name: "model_name", Value: "m"})
				}
			}
			batch.Groups = append(batch.Groups, group)
		}
		each.Group = groups[key]
		batch.Samples = append(batch.Samples, each.Sample)
	}
	s.report = s.resource.Observe(batch, s.room)
	out := points{}
	if !s.report.Changed {
		return out
	}
	written := emit.NewOutput(batch.Time, 0)
	written.Append(&s.memory, s.evaluator.Evaluate(&s.settings, s.resource), s.resource.Time())
	metrics := pmetric.NewMetrics()
	scopes := metrics.ResourceMetrics().AppendEmpty().ScopeMetrics()
	new(emit.History).Put(written, nil, metrics, &input.Batch{Ends: -1})
	if scopes.Len() == 0 {
		return out
	}
	for _, metric := range scopes.At(0).Metrics().All() {
		all := metric.Gauge().DataPoints()
		for j := range all.Len() {
			var attributes []string
			for name, value := range all.At(j).Attributes().All() {
				if name != "model_name" {
					attributes = append(attributes, name+"="+value.AsString())
				}
			}
			key := strings.TrimPrefix(metric.Name(), "vllm.") + "{" + strings.Join(attributes, ",") + "}"
			out[key] = all.At(j).DoubleValue()
			if all.At(j).Flags().NoRecordedValue() {
				out[key] = ended
			}
			require.Less(s.t, s.times[key], batch.Time, "%s is written twice at one time", key)
			s.times[key] = batch.Time
		}
	}
	return out
}
