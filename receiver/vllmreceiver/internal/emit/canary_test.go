package emit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// canaryLines are the points about canaries that are not of the histogram, and the histogram.
func canaryLines(t *testing.T, out pmetric.Metrics) (lines []string, histogram *pmetric.Metric) {
	t.Helper()
	rest := pmetric.NewMetricSlice()
	for _, m := range metricsOf(t, out).All() {
		if m.Name() == MetricCanaryDuration {
			assert.Nil(t, histogram, "there is one")
			histogram = &m
		} else if m.Name() == MetricCanarySuccess || m.Name() == MetricCanaryUnanswered {
			m.CopyTo(rest.AppendEmpty())
		}
	}
	return ownLines(rest), histogram
}

func TestCanariesHavePoints(t *testing.T) {
	target := New(ownSettings())
	emit := func(at float64, canary *Canary) ([]string, *pmetric.Metric) {
		out := pmetric.NewMetrics()
		target.Emit(scrapeAt(at, planOf()), Own{Up: true, Canary: canary}, out)
		return canaryLines(t, out)
	}
	seconds := func(s float64) *float64 { return &s }
	lines, histogram := emit(0, nil)
	assert.Empty(t, lines)
	assert.Nil(t, histogram)
	lines, histogram = emit(15, &Canary{Outcome: "timeout"})
	assert.Equal(t, []string{"vllm.canary.success 0 timeout"}, lines)
	assert.Nil(t, histogram, "nothing was answered")
	answered := CanaryDurations{Start: midnight.Add(-5 * time.Second)}
	answered.Add(100 * time.Millisecond)
	lines, histogram = emit(30, &Canary{Outcome: "ok", Unanswered: seconds(0), Durations: answered})
	assert.Equal(t, []string{"vllm.canary.success end timeout", "vllm.canary.success 1 ok", "vllm.canary.unanswered 0"}, lines)
	require.NotNil(t, histogram)
	lines, histogram = emit(45, &Canary{Outcome: "timeout", Unanswered: seconds(30), Durations: answered})
	assert.Equal(t, []string{"vllm.canary.success end ok", "vllm.canary.success 0 timeout", "vllm.canary.unanswered 30"}, lines)
	require.NotNil(t, histogram)

	// The server process is another one, of which nothing is known: everything ends, once.
	lines, histogram = emit(60, &Canary{})
	assert.Equal(t, []string{"vllm.canary.success end timeout", "vllm.canary.unanswered end"}, lines)
	require.NotNil(t, histogram)
	end := histogram.Histogram().DataPoints().At(0)
	assert.True(t, end.Flags().NoRecordedValue())
	assert.Equal(t, 22, end.ExplicitBounds().Len())
	assert.Equal(t, midnight.Add(-5*time.Second), end.StartTimestamp().AsTime())
	lines, histogram = emit(75, &Canary{})
	assert.Empty(t, lines)
	assert.Nil(t, histogram)
}

func TestTheDurationsOfCanaries(t *testing.T) {
	durations := CanaryDurations{Start: midnight.Add(-time.Minute)}
	// A value that equals a bound is below it.
	for _, took := range []float64{0.0005, 0.001, 0.0011, 1, 2560, 2561} {
		durations.Add(time.Duration(took * float64(time.Second)))
	}
	target, out := New(ownSettings()), pmetric.NewMetrics()
	target.Emit(scrapeAt(0, planOf()), Own{Canary: &Canary{Durations: durations}}, out)
	_, m := canaryLines(t, out)
	require.NotNil(t, m)
	assert.Equal(t, "u d", m.Unit()+" "+m.Description())
	assert.Equal(t, pmetric.AggregationTemporalityCumulative, m.Histogram().AggregationTemporality())
	p := m.Histogram().DataPoints().At(0)
	assert.Equal(t, midnight.Add(-time.Minute), p.StartTimestamp().AsTime())
	assert.Equal(t, midnight, p.Timestamp().AsTime())
	assert.EqualValues(t, 6, p.Count())
	assert.InDelta(t, 5122.0026, p.Sum(), 1e-6)
	assert.Equal(t, []float64{
		0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
	}, p.ExplicitBounds().AsRaw())
	assert.Equal(t, []uint64{2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1}, p.BucketCounts().AsRaw())
}

// With the target all its series end, and none that is switched off.
func TestTheMetricsOfCanariesEndAndCanBeOff(t *testing.T) {
	answered := CanaryDurations{Start: midnight}
	answered.Add(time.Second)
	zero := 0.0
	canary := &Canary{Outcome: "ok", Unanswered: &zero, Durations: answered}
	target := New(ownSettings())
	target.Emit(scrapeAt(0, planOf()), Own{Canary: canary}, pmetric.NewMetrics())
	out := pmetric.NewMetrics()
	target.End(midnight.Add(time.Second), out)
	lines, histogram := canaryLines(t, out)
	assert.ElementsMatch(t, []string{"vllm.canary.unanswered end", "vllm.canary.success end ok"}, lines)
	require.NotNil(t, histogram)
	assert.True(t, histogram.Histogram().DataPoints().At(0).Flags().NoRecordedValue())
	out = pmetric.NewMetrics()
	target.End(midnight.Add(2*time.Second), out)
	assert.Zero(t, out.DataPointCount())

	off := New(Settings{})
	out = pmetric.NewMetrics()
	off.Emit(scrapeAt(0, planOf()), Own{Canary: canary}, out)
	off.End(midnight.Add(time.Second), out)
	assert.Zero(t, out.DataPointCount())
}
