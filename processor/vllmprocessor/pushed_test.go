package vllmprocessor

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadata"
)

// pushing is a logger inside a server that pushes by an SDK of OpenTelemetry, as those of
// vllm#30258 and vllm#35469 do.
type pushing struct {
	t          *testing.T
	reader     *sdk.ManualReader
	attributes metric.MeasurementOption
	record     func(firstToken, latency float64)
}

// pushes returns a server with the views of its SDK, whose histograms have a unit. Names in seconds are
// those of the wire with a dot, names in milliseconds as torchtitan has them.
func pushes(t *testing.T, unit string, views ...sdk.View) *pushing {
	t.Helper()
	p := &pushing{t: t, reader: sdk.NewManualReader(), attributes: metric.WithAttributes(attribute.String("model_name", "m"), attribute.String("engine", "0"))}
	provider := sdk.NewMeterProvider(sdk.WithReader(p.reader), sdk.WithView(views...))
	meter := provider.Meter("vllm")
	running, err := meter.Int64UpDownCounter("vllm.num_requests_running", metric.WithUnit("requests"))
	require.NoError(t, err)
	waiting, err := meter.Int64UpDownCounter("vllm.num_requests_waiting", metric.WithUnit("requests"))
	require.NoError(t, err)
	usage, err := meter.Float64Gauge("vllm.kv_cache_usage_perc")
	require.NoError(t, err)
	prompts, err := meter.Int64Counter("vllm.prompt_tokens", metric.WithUnit("tokens"))
	require.NoError(t, err)
	success, err := meter.Int64Counter("vllm.request_success", metric.WithUnit("requests"))
	require.NoError(t, err)
	suffix, scale := "_seconds", 1.0
	if unit == "ms" {
		suffix, scale = "", 1000
	}
	firstTokens, err := meter.Float64Histogram("vllm.time_to_first_token"+suffix, metric.WithUnit(unit))
	require.NoError(t, err)
	latencies, err := meter.Float64Histogram("vllm.e2e_request_latency"+suffix, metric.WithUnit(unit))
	require.NoError(t, err)
	ctx := context.Background()
	running.Add(ctx, 5, p.attributes)
	waiting.Add(ctx, 2, p.attributes)
	waiting.Add(ctx, -1, p.attributes)
	p.record = func(firstToken, latency float64) {
		usage.Record(ctx, 0.25, p.attributes)
		prompts.Add(ctx, 100, p.attributes)
		success.Add(ctx, 1, p.attributes, metric.WithAttributes(attribute.String("finished_reason", "stop")))
		firstTokens.Record(ctx, firstToken*scale, p.attributes)
		latencies.Record(ctx, latency*scale, p.attributes)
	}
	return p
}

// push is what the SDK has collected, as the processor gets it from an OTLP receiver.
func (p *pushing) push(at time.Time) pmetric.Metrics {
	p.t.Helper()
	var collected metricdata.ResourceMetrics
	require.NoError(p.t, p.reader.Collect(p.t.Context(), &collected))
	metrics := pmetric.NewMetrics()
	rm := metrics.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "vllm")
	rm.Resource().Attributes().PutStr("service.instance.id", "pushing")
	to := rm.ScopeMetrics().AppendEmpty()
	to.Scope().SetName(collected.ScopeMetrics[0].Scope.Name)
	for _, m := range collected.ScopeMetrics[0].Metrics {
		out := to.Metrics().AppendEmpty()
		out.SetName(m.Name)
		out.SetUnit(m.Unit)
		switch data := m.Data.(type) {
		case metricdata.Gauge[float64]:
			numbers(data.DataPoints, at, out.SetEmptyGauge().DataPoints())
		case metricdata.Sum[int64]:
			sum := out.SetEmptySum()
			sum.SetIsMonotonic(data.IsMonotonic)
			require.Equal(p.t, metricdata.CumulativeTemporality, data.Temporality)
			sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			numbers(data.DataPoints, at, sum.DataPoints())
		case metricdata.Histogram[float64]:
			out.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			for _, from := range data.DataPoints {
				point := out.Histogram().DataPoints().AppendEmpty()
				identified(from.Attributes, point.Attributes())
				point.SetStartTimestamp(pcommon.NewTimestampFromTime(noon))
				point.SetTimestamp(pcommon.NewTimestampFromTime(at))
				point.SetCount(from.Count)
				point.SetSum(from.Sum)
				point.ExplicitBounds().FromRaw(from.Bounds)
				point.BucketCounts().FromRaw(from.BucketCounts)
			}
		default:
			p.t.Fatalf("%s is %T", m.Name, m.Data)
		}
	}
	wire, err := pmetricotlp.NewExportRequestFromMetrics(metrics).MarshalProto()
	require.NoError(p.t, err)
	request := pmetricotlp.NewExportRequest()
	require.NoError(p.t, request.UnmarshalProto(wire))
	return request.Metrics()
}

func numbers[N int64 | float64](points []metricdata.DataPoint[N], at time.Time, to pmetric.NumberDataPointSlice) {
	for _, from := range points {
		point := to.AppendEmpty()
		identified(from.Attributes, point.Attributes())
		point.SetStartTimestamp(pcommon.NewTimestampFromTime(noon))
		point.SetTimestamp(pcommon.NewTimestampFromTime(at))
		point.SetDoubleValue(float64(from.Value))
	}
}

func identified(from attribute.Set, to pcommon.Map) {
	for _, a := range from.ToSlice() {
		to.PutStr(string(a.Key), a.Value.AsString())
	}
}

// derives pushes for two minutes, in each 15 s three requests, and returns the last derived values by
// name and the attributes quantile and bound.
func (r *rig) derives(p *pushing) map[string]float64 {
	r.t.Helper()
	out := map[string]float64{}
	for i := range 9 {
		p.record(0.1, 2)
		p.record(0.2, 3)
		p.record(0.6, 7)
		at := noon.Add(time.Duration(i) * 15 * time.Second)
		r.processor.now = func() time.Time { return at }
		metrics, err := r.processor.process(r.t.Context(), p.push(at))
		require.NoError(r.t, err)
		clear(out)
		for _, sm := range metrics.ResourceMetrics().At(0).ScopeMetrics().All() {
			if sm.Scope().Name() != metadata.ScopeName {
				continue
			}
			for _, m := range sm.Metrics().All() {
				if m.Type() != pmetric.MetricTypeGauge {
					continue
				}
				for _, point := range m.Gauge().DataPoints().All() {
					key := m.Name()
					for _, name := range []string{"quantile", "bound", "condition"} {
						if value, has := point.Attributes().Get(name); has {
							key += " " + value.AsString()
						}
					}
					if !point.Flags().NoRecordedValue() {
						out[key] = point.DoubleValue()
					}
				}
			}
		}
	}
	return out
}

const everyQuantile = `
metrics:
  vllm.time_to_first_token_mean: {enabled: true}
  vllm.e2e_request_latency_mean: {enabled: true}
  vllm.time_to_first_token_quantile_bound: {enabled: true}
  vllm.e2e_request_latency_quantile_bound: {enabled: true}
`

// Of seconds in buckets that begin with 0 to 5 there are means, and the reason why there is no more.
func TestOfDefaultBucketsInSecondsOnlyMeansAreDerived(t *testing.T) {
	r := newRig(t, everyQuantile+"objectives:\n  - {name: fast, metric: vllm.time_to_first_token, threshold: 500ms, target: 0.9}\n")
	got := r.derives(pushes(t, "s"))
	assert.InDelta(t, (0.1+0.2+0.6)/3, got["vllm.time_to_first_token_mean"], 1e-9)
	assert.InDelta(t, (2.0+3+7)/3, got["vllm.e2e_request_latency_mean"], 1e-9)
	assert.InDelta(t, 3*100/15.0, got["vllm.prompt_throughput"], 1e-9)
	assert.InDelta(t, 3/15.0, got["vllm.request_throughput"], 1e-9)
	assert.InDelta(t, 1, got["vllm.diagnosis.condition healthy"], 0)
	for name := range got {
		assert.NotContains(t, name, "_quantile")
	}
	assert.InDelta(t, 0, got["vllm.slo.attainment lower"], 0)
	assert.InDelta(t, 1, got["vllm.slo.attainment upper"], 0)

	var about []string
	for _, message := range r.messages() {
		if strings.Contains(message, "buckets") {
			about = append(about, message)
		}
	}
	require.Len(t, about, 2)
	assert.Equal(t, "info: a server pushes its latencies in seconds with the default buckets of an OpenTelemetry SDK, which begin with 0 to 5. "+
		"Rates, means and the diagnosis are derived; percentiles and objectives of latencies are not. "+
		"In the server's SDK, set a view with buckets for seconds, or let the vllm receiver scrape the server", about[0])
	assert.Contains(t, about[1], "has no buckets, so it is unknown which requests took at most 500ms")
	assert.Equal(t, "pushing", r.logs.FilterMessageSnippet("default buckets").All()[0].ContextMap()["service.instance.id"])
}

// The running and waiting requests of a pushing server are levels, though they are sums.
func TestBucketsOfAPushingServerAreUsed(t *testing.T) {
	view := sdk.NewView(sdk.Instrument{Kind: sdk.InstrumentKindHistogram},
		sdk.Stream{Aggregation: sdk.AggregationExplicitBucketHistogram{Boundaries: []float64{0.1, 0.25, 0.5, 1, 2.5, 5, 10}}})
	for name, server := range map[string]*pushing{"a view": pushes(t, "s", view), "milliseconds": pushes(t, "ms")} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, everyQuantile)
			got := r.derives(server)
			assert.InDelta(t, 0.3, got["vllm.time_to_first_token_mean"], 1e-9)
			assert.InDelta(t, 4, got["vllm.e2e_request_latency_mean"], 1e-9)
			// Of 0.1, 0.2 and 0.6 s the median is 0.2, and of 2, 3 and 7 s it is 3.
			assert.InDelta(t, 0.1, got["vllm.time_to_first_token_quantile_bound 0.5 lower"], 1e-9)
			assert.InDelta(t, 0.25, got["vllm.time_to_first_token_quantile_bound 0.5 upper"], 1e-9)
			assert.InDelta(t, 2.5, got["vllm.e2e_request_latency_quantile_bound 0.5 lower"], 1e-9)
			assert.InDelta(t, 5, got["vllm.e2e_request_latency_quantile_bound 0.5 upper"], 1e-9)
			for _, message := range r.messages() {
				assert.NotContains(t, message, "buckets")
			}
		})
	}
}

// Many servers do not fill the log.
func TestTheLineAboutDefaultBucketsIsBounded(t *testing.T) {
	r := newRig(t, "diagnosis: {enabled: false}")
	server := pushes(t, "s")
	server.record(1, 1)
	for i := range 3 {
		at := noon.Add(time.Duration(i) * 15 * time.Second)
		r.processor.now = func() time.Time { return at }
		metrics := server.push(at)
		for j := range 30 {
			metrics.ResourceMetrics().At(0).CopyTo(metrics.ResourceMetrics().AppendEmpty())
			metrics.ResourceMetrics().At(j+1).Resource().Attributes().PutStr("service.instance.id", fmt.Sprint(j))
		}
		_, err := r.processor.process(t.Context(), metrics)
		require.NoError(t, err)
	}
	lines := r.logs.FilterMessageSnippet("default buckets of an").All()
	require.Len(t, lines, maxDefaultBounds)
	for i, line := range lines {
		assert.Equal(t, i == maxDefaultBounds-1, strings.HasSuffix(line.Message, "Further servers with the same buckets are not logged"))
	}
}
