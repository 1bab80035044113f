package emit

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/message"
	"github.com/otelcol-vllm/otelcol-vllm/internal/wording"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

var (
	rate     = &derive.Row{Metric: "vllm.prompt_throughput"}
	valid    = &derive.Row{Metric: "vllm.slo.valid", Extra: []string{"objective"}}
	quantile = &derive.Row{Metric: "vllm.time_to_first_token_quantile_bound", Extra: []string{"quantile", "bound"}}
	engine0  = []input.Attribute{{Name: "engine", Value: "0"}, {Name: "model_name", Value: "m"}}
	engine1  = []input.Attribute{{Name: "engine", Value: "1"}, {Name: "model_name", Value: "m"}}
)

// pointOf is the point of a value.
func pointOf(v derive.Value) Point {
	return Point{Series: newSeries(&v, nil), Number: v.Number, Start: v.Start}
}

// ended is the same as an end.
func ended(p Point) Point {
	p.End = true
	return p
}

func metricsOf(points ...Point) pmetric.MetricSlice {
	metrics := pmetric.NewMetricSlice()
	put(points, 1000, metrics)
	return metrics
}

// ends is the number of ends among points.
func ends(points []Point) (n int) {
	for i := range points {
		if points[i].End {
			n++
		}
	}
	return n
}

func described(t *testing.T, name string) *catalog.Metric {
	t.Helper()
	metric, known := catalog.ByName(name)
	require.True(t, known)
	return metric
}

func TestTheValuesOfOneMetricStandTogether(t *testing.T) {
	metrics := metricsOf(
		pointOf(derive.Value{Row: rate, Attributes: engine0, Number: 1}),
		pointOf(derive.Value{Row: quantile, Attributes: engine0, Extra: derive.Extra{"0.5", "lower"}, Number: 2}),
		pointOf(derive.Value{Row: rate, Attributes: engine1, Number: 3}),
	)
	require.Equal(t, 2, metrics.Len())
	first := metrics.At(0)
	assert.Equal(t, "vllm.prompt_throughput", first.Name())
	assert.Equal(t, described(t, "vllm.prompt_throughput").Unit, first.Unit())
	assert.Equal(t, described(t, "vllm.prompt_throughput").Description, first.Description())
	require.Equal(t, pmetric.MetricTypeGauge, first.Type())
	require.Equal(t, 2, first.Gauge().DataPoints().Len())
	for i, want := range []struct {
		engine string
		value  float64
	}{{"0", 1}, {"1", 3}} {
		point := first.Gauge().DataPoints().At(i)
		assert.Equal(t, want.value, point.DoubleValue())
		assert.EqualValues(t, 1000, point.Timestamp())
		assert.Zero(t, point.StartTimestamp())
		assert.Equal(t, map[string]any{"engine": want.engine, "model_name": "m"}, point.Attributes().AsRaw())
	}
	assert.Equal(t, map[string]any{"engine": "0", "model_name": "m", "quantile": "0.5", "bound": "lower"},
		metrics.At(1).Gauge().DataPoints().At(0).Attributes().AsRaw())
}

func TestASumIsCumulativeAndHasAStart(t *testing.T) {
	metrics := metricsOf(pointOf(derive.Value{Row: valid, Attributes: engine0, Extra: derive.Extra{"ttft"}, Start: 400, Number: 7}))
	require.Equal(t, 1, metrics.Len())
	require.Equal(t, pmetric.MetricTypeSum, metrics.At(0).Type())
	sum := metrics.At(0).Sum()
	assert.True(t, sum.IsMonotonic())
	assert.Equal(t, pmetric.AggregationTemporalityCumulative, sum.AggregationTemporality())
	point := sum.DataPoints().At(0)
	assert.EqualValues(t, 400, point.StartTimestamp())
	assert.EqualValues(t, 1000, point.Timestamp())
	assert.Equal(t, 7.0, point.DoubleValue())
	assert.Equal(t, "ttft", point.Attributes().AsRaw()["objective"])
}

// The Prometheus exporter reads no further in a metric after a point without a value.
func TestEachEndIsAMetricOfItsOwn(t *testing.T) {
	metrics := metricsOf(
		pointOf(derive.Value{Row: rate, Attributes: engine0, Number: 1}),
		ended(pointOf(derive.Value{Row: rate, Attributes: engine1})),
		ended(pointOf(derive.Value{Row: valid, Attributes: engine1, Extra: derive.Extra{"ttft"}})),
		pointOf(derive.Value{Row: rate, Attributes: engine0, Number: 1}),
	)
	require.Equal(t, 3, metrics.Len())
	assert.Equal(t, 2, metrics.At(0).Gauge().DataPoints().Len())
	end := metrics.At(1)
	assert.Empty(t, end.Description())
	assert.Equal(t, "vllm.prompt_throughput", end.Name())
	require.Equal(t, 1, end.Gauge().DataPoints().Len())
	point := end.Gauge().DataPoints().At(0)
	assert.True(t, point.Flags().NoRecordedValue())
	assert.EqualValues(t, 1000, point.Timestamp())
	assert.Equal(t, pmetric.NumberDataPointValueTypeEmpty, point.ValueType())
	assert.Equal(t, map[string]any{"engine": "1", "model_name": "m"}, point.Attributes().AsRaw())
	point = metrics.At(2).Sum().DataPoints().At(0)
	assert.Equal(t, map[string]any{"engine": "1", "model_name": "m", "objective": "ttft"}, point.Attributes().AsRaw())
}

func TestAnAttributeWithoutAValueIsLeftOut(t *testing.T) {
	metrics := metricsOf(pointOf(derive.Value{Row: quantile, Extra: derive.Extra{"0.5"}}))
	points := metrics.At(0).Gauge().DataPoints()
	assert.Equal(t, map[string]any{"quantile": "0.5"}, points.At(0).Attributes().AsRaw())
}

func value(group int, number float64) derive.Value {
	return derive.Value{Row: rate, Group: group, Attributes: engine0, Number: number}
}

func TestAValueIsWrittenOncePerTime(t *testing.T) {
	var m Memory
	assert.Len(t, m.Write([]derive.Value{value(0, 1)}, 10, 10), 1)
	assert.Empty(t, m.Write([]derive.Value{value(0, 2)}, 10, 10))
	assert.Len(t, m.Write([]derive.Value{value(0, 2)}, 20, 20), 1)
	// The batch only has ends: its values hold for an earlier time and are not repeated.
	assert.Empty(t, m.Write([]derive.Value{value(0, 2), value(1, 3)}, 20, 30))
	points := m.Write(nil, 20, 31)
	require.Len(t, points, 1)
	assert.True(t, points[0].End)
	assert.Equal(t, engine0, points[0].Attributes)
	assert.Empty(t, m.Write(nil, 40, 40), "a series ends once")
}

// Nothing ends at the time at which another part of the batch has written it.
func TestAnotherPartOfTheBatchEndsNothing(t *testing.T) {
	var m Memory
	m.Write([]derive.Value{value(0, 1)}, 10, 10)
	assert.Empty(t, m.Write([]derive.Value{}, 10, 10))
	assert.Equal(t, 1, ends(m.Write(nil, 20, 20)))
}

func TestWhatIsPendingDoesNotEnd(t *testing.T) {
	for name, c := range map[string]struct {
		pending derive.Value
		ends    int
	}{
		"the group":           {derive.Value{Group: 0, Pending: true}, 1},
		"a metric of it":      {derive.Value{Row: rate, Group: 0, Pending: true}, 2},
		"another metric":      {derive.Value{Row: quantile, Group: 0, Pending: true}, 3},
		"nothing of a group":  {derive.Value{Group: 7, Pending: true}, 3},
		"the group's roll-up": {derive.Value{Group: 1, Pending: true}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var m Memory
			m.Write([]derive.Value{value(0, 1), {Row: valid, Extra: derive.Extra{"a"}, Attributes: engine0}, value(1, 1)}, 10, 10)
			assert.Equal(t, c.ends, ends(m.Write([]derive.Value{c.pending}, 20, 20)))
		})
	}
}

func TestTheEndsAreInOrder(t *testing.T) {
	var m Memory
	var values []derive.Value
	for _, group := range []int{3, 1, 2} {
		for _, extra := range []string{"c", "a", "b"} {
			values = append(values, derive.Value{Row: valid, Group: group, Extra: derive.Extra{extra}})
		}
		values = append(values, value(group, 1))
	}
	m.Write(values, 10, 10)
	points := m.Write(nil, 20, 20)
	require.Len(t, points, 12)
	for i := range points {
		assert.Equal(t, i/4+1, points[i].Group)
		if i%4 == 0 {
			assert.Equal(t, rate, points[i].Row)
		} else {
			assert.Equal(t, string(rune('a'+i%4-1)), points[i].Extra[0])
		}
	}
}

func TestWhatIsForgottenDoesNotEnd(t *testing.T) {
	var m Memory
	m.Write([]derive.Value{value(0, 1)}, 10, 10)
	m.Forget()
	assert.Empty(t, m.Write(nil, 20, 20))
}

// What is said about a change goes with the values of its metric, also where the batch is sent again, and not with ends.
func TestWhatIsSaidGoesWithItsMetric(t *testing.T) {
	attributes := pcommon.NewMap()
	attributes.PutStr("engine", "0")
	said := []message.Message{{Attributes: attributes, Words: wording.Words{Sentence: "Slow."}}}
	o, m := NewOutput(1000, 1), &Memory{}
	o.Say("vllm.prompt_throughput", said) // There is nothing to go with.
	o.Append(m, []derive.Value{{Row: rate, Attributes: engine1}}, 900)
	o.Append(m, []derive.Value{{Row: rate, Attributes: engine0}, {Row: valid, Attributes: engine0, Extra: derive.Extra{"ttft"}}}, 1000)
	o.Say("vllm.prompt_throughput", said)
	for range 2 {
		with := 0
		for _, metric := range o.write().ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
			for _, read := range message.Read(metric.Metadata()) {
				with++
				assert.Equal(t, "vllm.prompt_throughput", metric.Name())
				assert.EqualValues(t, 1000, read.At)
				assert.False(t, metric.Gauge().DataPoints().At(0).Flags().NoRecordedValue())
			}
		}
		assert.Equal(t, 1, with)
	}
}
