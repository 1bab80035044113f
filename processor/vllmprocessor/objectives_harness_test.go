package vllmprocessor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/objective"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadata"
)

// noon is on no slot of any window.
var noon = time.Date(2026, 3, 1, 12, 0, 7, 0, time.UTC)

const (
	firstToken = "vllm.time_to_first_token"
	wholeTime  = "vllm.e2e_request_latency"
	perToken   = "vllm.request.time_per_output_token"
)

// bucketsOf are a server's.
var bucketsOf = map[string][]float64{
	firstToken: {0.1, 0.5, 1, 2.5, 5, 10},
	wholeTime:  {1, 5, 10, 15, 30},
	perToken:   {0.01, 0.05, 0.1},
}

// oneRequest is what happened to one request: when it was observed, and how long
// each thing took.
type oneRequest struct {
	at   time.Time
	took map[string]float64
}

// engineLog is all that happened in the life of one engine.
type engineLog struct {
	born     time.Time
	requests []oneRequest
}

// serve adds a request.
func (e *engineLog) serve(at time.Time, took map[string]float64) {
	e.requests = append(e.requests, oneRequest{at, took})
}

// firstTokenTook adds a request of which only the time to its first token counts.
func (e *engineLog) firstTokenTook(at time.Time, seconds ...float64) {
	for _, s := range seconds {
		e.serve(at, map[string]float64{firstToken: s})
	}
}

// body is what a server with these engines shows at a time. The histograms are
// those in names.
func body(instance, model string, at time.Time, names []string, engines map[string]*engineLog) pmetric.Metrics {
	metrics := pmetric.NewMetrics()
	rm := metrics.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "vllm")
	rm.Resource().Attributes().PutStr("service.instance.id", instance)
	scope := rm.ScopeMetrics().AppendEmpty()
	running := scope.Metrics().AppendEmpty()
	running.SetName("vllm.num_requests.running")
	gauge := running.SetEmptyGauge()
	for _, name := range names {
		metric := scope.Metrics().AppendEmpty()
		metric.SetName(name)
		histogram := metric.SetEmptyHistogram()
		histogram.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		for _, number := range slices.Sorted(maps.Keys(engines)) {
			bounds := bucketsOf[name]
			point := histogram.DataPoints().AppendEmpty()
			point.Attributes().PutStr("engine", number)
			point.Attributes().PutStr("model_name", model)
			point.SetTimestamp(pcommon.NewTimestampFromTime(at))
			point.SetStartTimestamp(pcommon.NewTimestampFromTime(engines[number].born))
			point.ExplicitBounds().FromRaw(bounds)
			counts := make([]uint64, len(bounds)+1)
			for _, request := range engines[number].requests {
				took, has := request.took[name]
				if !has || request.at.After(at) {
					continue
				}
				place := 0
				for place < len(bounds) && took > bounds[place] {
					place++
				}
				counts[place]++
				point.SetCount(point.Count() + 1)
				point.SetSum(point.Sum() + took)
			}
			point.BucketCounts().FromRaw(counts)
		}
	}
	for _, number := range slices.Sorted(maps.Keys(engines)) {
		point := gauge.DataPoints().AppendEmpty()
		point.Attributes().PutStr("engine", number)
		point.Attributes().PutStr("model_name", model)
		point.SetTimestamp(pcommon.NewTimestampFromTime(at))
	}
	return metrics
}

// promise is an objective.
func promise(name, metric string, threshold time.Duration, target float64, models ...string) objective.Objective {
	return objective.Objective{Name: name, Metric: metric, Threshold: objective.Duration(threshold), Target: target, Models: models}
}

// budgetsKey is where a storage has the objectives.
const budgetsKey = "objectives.1"

// within is a configuration with objectives and nothing else that is kept.
func within(objectives ...objective.Objective) *Config {
	config := createDefaultConfig().(*Config)
	config.Diagnosis.Enabled = false
	config.Objectives = objectives
	return config
}

// instance is a processor with a clock that the test moves.
type instance struct {
	*vllmProcessor
	t    testing.TB
	logs *observer.ObservedLogs
	own  *componenttest.Telemetry
	at   time.Time
}

func newInstance(tb testing.TB, config *Config, shared *archive.Shared) *instance {
	tb.Helper()
	core, logs := observer.New(zapcore.InfoLevel)
	settings := processortest.NewNopSettings(metadata.Type)
	settings.ID = component.NewIDWithName(metadata.Type, "one")
	own := componenttest.NewTelemetry()
	tb.Cleanup(func() { _ = own.Shutdown(context.Background()) })
	settings.TelemetrySettings = own.NewTelemetrySettings()
	settings.Logger = zap.New(core)
	p, err := newProcessor(config, settings, consumertest.NewNop(), shared, realClock{})
	require.NoError(tb, err)
	i := &instance{vllmProcessor: p, t: tb, logs: logs, own: own, at: noon}
	p.now = func() time.Time { return i.at }
	return i
}

// run starts an instance of its own and stops it with the test.
func run(t *testing.T, config *Config) *instance {
	t.Helper()
	i := newInstance(t, config, &archive.Shared{})
	i.begin(componenttest.NewNopHost())
	t.Cleanup(func() { i.end() })
	return i
}

func (i *instance) begin(host component.Host) {
	i.t.Helper()
	require.NoError(i.t, i.vllmProcessor.start(context.Background(), host))
}

func (i *instance) end() {
	require.NoError(i.t, i.vllmProcessor.shutdown(context.Background()))
}

// take passes metrics through and returns what was reported about objectives.
func (i *instance) take(metrics pmetric.Metrics) emittedObjectives {
	i.t.Helper()
	out, err := i.process(context.Background(), metrics)
	require.NoError(i.t, err)
	return listen(out)
}

// counted is the value of one of the processor's own metrics, by its reason.
func (i *instance) counted(name, reason string) (n int64) {
	i.t.Helper()
	metric, err := i.own.GetMetric(name)
	require.NoError(i.t, err)
	for _, point := range metric.Data.(metricdata.Sum[int64]).DataPoints {
		if value, has := point.Attributes.Value("reason"); !has || value.AsString() == reason {
			n += point.Value
		}
	}
	return n
}

// sentences are what was logged at a level, without what is about the configuration only:
// many tests have a target of 0.9 because of its round numbers.
func (i *instance) sentences(level zapcore.Level) (logged []string) {
	for _, entry := range i.logs.FilterLevelExact(level).All() {
		if !strings.Contains(entry.Message, "can never fire") {
			logged = append(logged, entry.Message)
		}
	}
	return logged
}

// begins checks what is reported with the first batch of a server: that nothing was counted,
// and what is required.
func (i *instance) begins(got emittedObjectives, target, threshold float64) {
	i.t.Helper()
	const labels = "{model_name=m,objective=ttft}"
	assert.Equal(i.t, map[string]float64{
		"valid" + labels: 0, "good" + labels: 0, "undecided" + labels: 0, "target" + labels: target,
		"threshold{metric=vllm.time_to_first_token,model_name=m,objective=ttft}": threshold,
	}, got.values)
	assert.Equal(i.t, map[string]time.Time{"valid" + labels: i.at, "good" + labels: i.at, "undecided" + labels: i.at}, got.starts)
}

// emittedObjectives is what was emitted about objectives, as name{attributes}.
type emittedObjectives struct {
	values map[string]float64
	starts map[string]time.Time
	ended  []string
}

func listen(metrics pmetric.Metrics) emittedObjectives {
	all := emittedObjectives{map[string]float64{}, map[string]time.Time{}, nil}
	for i := range metrics.ResourceMetrics().Len() {
		scopes := metrics.ResourceMetrics().At(i).ScopeMetrics()
		for j := range scopes.Len() {
			for k := range scopes.At(j).Metrics().Len() {
				all.hear(scopes.At(j).Metrics().At(k))
			}
		}
	}
	return all
}

func (all *emittedObjectives) hear(metric pmetric.Metric) {
	name, ours := strings.CutPrefix(metric.Name(), "vllm.slo.")
	if !ours {
		return
	}
	var points pmetric.NumberDataPointSlice
	if metric.Type() == pmetric.MetricTypeSum {
		points = metric.Sum().DataPoints()
	} else {
		points = metric.Gauge().DataPoints()
	}
	for i := range points.Len() {
		point := points.At(i)
		var attributes []string
		for key, value := range point.Attributes().All() {
			attributes = append(attributes, key+"="+value.AsString())
		}
		slices.Sort(attributes)
		series := fmt.Sprintf("%s{%s}", name, strings.Join(attributes, ","))
		if point.Flags().NoRecordedValue() {
			all.ended = append(all.ended, series)
			continue
		}
		all.values[series] = point.DoubleValue()
		if point.StartTimestamp() != 0 {
			all.starts[series] = point.StartTimestamp().AsTime()
		}
	}
}

// markGone makes every point say that its series has ended.
func markGone(metrics pmetric.Metrics) {
	gone := pmetric.DefaultDataPointFlags.WithNoRecordedValue(true)
	all := metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
	for i := range all.Len() {
		if all.At(i).Type() == pmetric.MetricTypeGauge {
			for j := range all.At(i).Gauge().DataPoints().Len() {
				all.At(i).Gauge().DataPoints().At(j).SetFlags(gone)
			}
			continue
		}
		for j := range all.At(i).Histogram().DataPoints().Len() {
			all.At(i).Histogram().DataPoints().At(j).SetFlags(gone)
		}
	}
}
