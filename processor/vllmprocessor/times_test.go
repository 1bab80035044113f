package vllmprocessor

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadata"
)

// timesOf is a payload of one server with n points of two metrics, each of the engine
// and at the millisecond that the functions return.
func timesOf(n int, engine, millisecond func(i int) int) pmetric.Metrics {
	metrics := pmetric.NewMetrics()
	rm := metrics.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "vllm")
	rm.Resource().Attributes().PutStr("service.instance.id", "a")
	to := rm.ScopeMetrics().AppendEmpty().Metrics()
	running, tokens := to.AppendEmpty(), to.AppendEmpty()
	running.SetName("vllm.num_requests.running")
	running.SetEmptyGauge()
	tokens.SetName("vllm.generation_tokens")
	tokens.SetEmptySum().SetIsMonotonic(true)
	tokens.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	for i := range n {
		for _, points := range []pmetric.NumberDataPointSlice{running.Gauge().DataPoints(), tokens.Sum().DataPoints()} {
			point := points.AppendEmpty()
			at := storyBegin.Add(time.Duration(millisecond(i)) * time.Millisecond)
			point.SetTimestamp(pcommon.NewTimestampFromTime(at))
			point.SetStartTimestamp(pcommon.NewTimestampFromTime(storyBegin.Add(-time.Hour)))
			point.SetDoubleValue(float64(millisecond(i) + 1))
			point.Attributes().PutStr("engine", strconv.Itoa(engine(i)))
			point.Attributes().PutStr("model_name", "m")
		}
	}
	return metrics
}

// A request with many times of a server that has many engines would say of each engine
// at each time how it is: 1000 engines and 3000 times are six million points.
func TestManyTimesInOneRequestAreNotMultipliedByTheEngines(t *testing.T) {
	core, logged := observer.New(zap.WarnLevel)
	settings := processortest.NewNopSettings(metadata.Type)
	settings.Logger = zap.New(core)
	p := create(t, configured(t, ""), settings)
	p.now = clock(storyBegin.Add(time.Hour))
	_, err := p.process(t.Context(), timesOf(1000, func(i int) int { return i }, func(int) int { return 0 }))
	require.NoError(t, err)
	const times = 600
	second := timesOf(times, func(int) int { return 0 }, func(i int) int { return i + 1 })

	began := time.Now()
	out, err := p.process(t.Context(), second)

	require.NoError(t, err)
	assert.Less(t, out.DataPointCount(), 2*times+leastTimes*1000*6, "points from %d", 2*times)
	assert.Less(t, time.Since(began), 30*time.Second)
	assert.Len(t, logged.FilterMessageSnippet("at many timestamps").All(), 1)
	newest := newestOf(out, "vllm.diagnosis.severity")
	assert.Equal(t, pcommon.NewTimestampFromTime(storyBegin.Add(times*time.Millisecond)), newest, "the newest time is derived")
}

// newestOf returns the newest time of a metric's points.
func newestOf(metrics pmetric.Metrics, name string) (newest pcommon.Timestamp) {
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, metric := range sm.Metrics().All() {
				if metric.Name() != name {
					continue
				}
				for _, point := range metric.Gauge().DataPoints().All() {
					newest = max(newest, point.Timestamp())
				}
			}
		}
	}
	return newest
}

// What a sender has kept while this collector was away arrives in one request. From one
// or a few engines everything is derived, and what the rates are is the same as when
// each time had arrived alone.
func TestTheTimesOfAFewEnginesInOneRequestAreAllDerived(t *testing.T) {
	const times = 240
	of := func(i int) int { return i % 8 }
	at := func(i int) int { return 15_000 * (i / 8) }
	together := create(t, configured(t, ""), processortest.NewNopSettings(metadata.Type))
	together.now = clock(storyBegin.Add(2 * time.Hour))
	all, err := together.process(t.Context(), timesOf(8*times, of, at))
	require.NoError(t, err)

	alone := create(t, configured(t, ""), processortest.NewNopSettings(metadata.Type))
	alone.now = clock(storyBegin.Add(2 * time.Hour))
	points := 0
	for scrape := range times {
		one, err := alone.process(t.Context(), timesOf(8, of, func(int) int { return 15_000 * scrape }))
		require.NoError(t, err)
		points += one.DataPointCount()
	}
	assert.Equal(t, points, all.DataPointCount())
}

// Objectives count each time, also where nothing else is derived of it.
func TestObjectivesCountEveryTimeOfARequest(t *testing.T) {
	config := configured(t, strings.TrimSpace(`
objectives:
  - {name: fast, metric: vllm.time_to_first_token, threshold: 500ms, target: 0.9}
`))
	build := func(engines int) float64 {
		p := create(t, config, processortest.NewNopSettings(metadata.Type))
		p.now = clock(storyBegin.Add(2 * time.Hour))
		metrics := pmetric.NewMetrics()
		for scrape := range 5000 {
			ttft(metrics, engines, scrape)
		}
		_, err := p.process(t.Context(), metrics)
		require.NoError(t, err)
		// The sums of the last time, which is derived in any case.
		again := pmetric.NewMetrics()
		ttft(again, engines, 5000)
		out, err := p.process(t.Context(), again)
		require.NoError(t, err)
		return sumOf(out, "vllm.slo.valid")
	}
	assert.InDelta(t, 5000, build(1), 0)
}

// ttft appends one scrape, in which each engine has given one more first token.
func ttft(metrics pmetric.Metrics, engines, scrape int) {
	rm := metrics.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "vllm")
	rm.Resource().Attributes().PutStr("service.instance.id", "a")
	metric := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	metric.SetName("vllm.time_to_first_token")
	histogram := metric.SetEmptyHistogram()
	histogram.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	for engine := range engines {
		point := histogram.DataPoints().AppendEmpty()
		point.SetTimestamp(pcommon.NewTimestampFromTime(storyBegin.Add(time.Duration(scrape) * time.Second)))
		point.SetStartTimestamp(pcommon.NewTimestampFromTime(storyBegin.Add(-time.Hour)))
		point.ExplicitBounds().FromRaw([]float64{0.5})
		point.BucketCounts().FromRaw([]uint64{uint64(scrape + 1), 0})
		point.SetCount(uint64(scrape + 1))
		point.SetSum(0.1 * float64(scrape+1))
		point.Attributes().PutStr("engine", strconv.Itoa(engine))
		point.Attributes().PutStr("model_name", "m")
	}
}

func sumOf(metrics pmetric.Metrics, name string) (total float64) {
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, metric := range sm.Metrics().All() {
				if metric.Name() == name && metric.Type() == pmetric.MetricTypeSum {
					for _, point := range metric.Sum().DataPoints().All() {
						total += point.DoubleValue()
					}
				}
			}
		}
	}
	return total
}

// What is not yet known to be taken is repeated with later requests, not within one.
func TestEndsAreOnceInARequest(t *testing.T) {
	sink := new(consumertest.MetricsSink)
	factory := NewFactory()
	p, err := factory.CreateMetrics(t.Context(), processortest.NewNopSettings(factory.Type()), factory.CreateDefaultConfig(), sink)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	defer func() { require.NoError(t, p.Shutdown(t.Context())) }()
	first := timesOf(100, func(i int) int { return i % 50 }, func(i int) int { return 15_000 * (i / 50) })
	require.NoError(t, p.ConsumeMetrics(t.Context(), first))
	sink.Reset()

	// Engine 1 ends at the first of 20 times, of which the others belong to engine 0.
	second := timesOf(20, func(i int) int { return min(1, max(0, 1-i)) }, func(i int) int { return 15_000 * (i + 2) })
	for _, metric := range second.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		ended := pmetric.DefaultDataPointFlags.WithNoRecordedValue(true)
		if metric.Type() == pmetric.MetricTypeSum {
			metric.Sum().DataPoints().At(0).SetFlags(ended)
		} else {
			metric.Gauge().DataPoints().At(0).SetFlags(ended)
		}
	}
	require.NoError(t, p.ConsumeMetrics(t.Context(), second))

	ends := map[string]int{}
	for _, rm := range sink.AllMetrics()[0].ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			if sm.Scope().Name() != metadata.ScopeName {
				continue
			}
			for _, metric := range sm.Metrics().All() {
				if metric.Type() != pmetric.MetricTypeGauge {
					continue
				}
				for _, point := range metric.Gauge().DataPoints().All() {
					if engine, _ := point.Attributes().Get("engine"); point.Flags().NoRecordedValue() && engine.AsString() == "1" {
						ends[metric.Name()+fmt.Sprint(point.Attributes().AsRaw())]++
					}
				}
			}
		}
	}
	require.NotEmpty(t, ends)
	for series, n := range ends {
		assert.Equal(t, 1, n, series)
	}
}
