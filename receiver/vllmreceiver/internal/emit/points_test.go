package emit

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

var inf = math.Inf(1)

func TestEachKindHasItsOwnPoint(t *testing.T) {
	r := newRig(t, Settings{ScopeName: "scope", SchemaURL: "url"})
	plan := planOf(
		metricOf(catalog.KindHistogram, "h", pointWith("0", buckets())),
		metricOf(catalog.KindGauge, "g", pointWith("1", value(5)), normalize.Point{Constant: 7}),
		counter("c", 6),
		metricOf(catalog.KindSummary, "s", pointWith("0", exposition.Series{
			Value: none, Sum: 3, Count: 4, Created: none, Quantiles: []exposition.Quantile{{Quantile: 0.5, Slot: 5}},
		})),
	)
	out := pmetric.NewMetrics()
	report := r.target.Emit(scrapeAt(15, plan, 3, 4, 9, 12.5, 9, 2.5, 80), Own{}, out)
	assert.Equal(t, Report{Points: 5}, report)
	assert.Equal(t, "url", out.ResourceMetrics().At(0).SchemaUrl())
	scope := out.ResourceMetrics().At(0).ScopeMetrics().At(0).Scope()
	assert.Equal(t, "scope", scope.Name()+scope.Version(), "an upgrade renames no series")
	metrics := metricsOf(t, out)
	require.Equal(t, 4, metrics.Len())
	for i, name := range []string{"h", "g", "c", "s"} {
		m := metrics.At(i)
		assert.Equal(t, name+" u d", m.Name()+" "+m.Unit()+" "+m.Description())
	}

	h := metrics.At(0).Histogram()
	assert.Equal(t, pmetric.AggregationTemporalityCumulative, h.AggregationTemporality())
	hp := h.DataPoints().At(0)
	assert.Equal(t, []float64{1, 2}, hp.ExplicitBounds().AsRaw())
	assert.Equal(t, []uint64{3, 1, 5}, hp.BucketCounts().AsRaw())
	assert.Equal(t, uint64(9), hp.Count())
	assert.InDelta(t, 12.5, hp.Sum(), 0)
	assert.Equal(t, seconds(15), hp.Timestamp())
	assert.Equal(t, map[string]any{"engine": "0"}, hp.Attributes().AsRaw())

	g := metrics.At(1).Gauge().DataPoints()
	assert.InDelta(t, 2.5, g.At(0).DoubleValue(), 0)
	assert.Equal(t, seconds(15), g.At(0).Timestamp())
	assert.Zero(t, g.At(0).StartTimestamp())
	assert.Equal(t, map[string]any{"engine": "1"}, g.At(0).Attributes().AsRaw())
	assert.InDelta(t, 7, g.At(1).DoubleValue(), 0)

	c := metrics.At(2).Sum()
	assert.True(t, c.IsMonotonic())
	assert.Equal(t, pmetric.AggregationTemporalityCumulative, c.AggregationTemporality())
	assert.InDelta(t, 80, c.DataPoints().At(0).DoubleValue(), 0)
	assert.Equal(t, map[string]any{"engine": "0"}, c.DataPoints().At(0).Attributes().AsRaw())

	s := metrics.At(3).Summary().DataPoints().At(0)
	assert.Equal(t, uint64(9), s.Count())
	assert.InDelta(t, 12.5, s.Sum(), 0)
	require.Equal(t, 1, s.QuantileValues().Len())
	assert.InDelta(t, 0.5, s.QuantileValues().At(0).Quantile(), 0)
	assert.InDelta(t, 2.5, s.QuantileValues().At(0).Value(), 0)
	assert.Equal(t, map[string]any{"engine": "0"}, s.Attributes().AsRaw())
	// All began at an unknown time, which is the first point's own time.
	assert.Equal(t, seconds(15), hp.StartTimestamp())
	assert.Equal(t, seconds(15), c.DataPoints().At(0).StartTimestamp())
	assert.Equal(t, seconds(15), s.StartTimestamp())
}

// Two parts with different bounds add up in the bounds that both have.
func TestPartsAddUpInTheirCommonBounds(t *testing.T) {
	one, other := buckets(), exposition.Series{
		Value: none, Sum: none, Count: 8, Created: none,
		Buckets: []exposition.Bucket{{UpperBound: 0.5, Slot: 5}, {UpperBound: 2, Slot: 6}, {UpperBound: inf, Slot: 7}},
	}
	point := pointWith("0", one)
	point.Parts = append(point.Parts, other)
	point.Bounds = []float64{2}
	r := newRig(t, Settings{})
	metrics := r.scrape(0, planOf(metricOf(catalog.KindHistogram, "h", point)), 3, 4, 9, 12.5, 9, 10, 20, 30, 30)
	p := metrics.At(0).Histogram().DataPoints().At(0)
	assert.Equal(t, []float64{2}, p.ExplicitBounds().AsRaw())
	assert.Equal(t, []uint64{24, 15}, p.BucketCounts().AsRaw())
	assert.Equal(t, uint64(39), p.Count())
	assert.False(t, p.HasSum(), "one part has no sum")
}

// A point that cannot be emitted is counted by its reason, and its series ends once.
func TestInvalidValuesAreDroppedAndEndTheirSeries(t *testing.T) {
	nan := math.NaN()
	histogram := metricOf(catalog.KindHistogram, "m", pointWith("0", buckets()))
	sentinelGauge := metricOf(catalog.KindGauge, "m", pointWith("0", value(0)))
	sentinelGauge.Sentinel = true
	summary := metricOf(catalog.KindSummary, "m", pointWith("0", exposition.Series{Value: none, Sum: none, Count: 0, Created: none}))
	fine := []float64{1, 2, 3, 4, 3}
	for name, tc := range map[string]struct {
		metric normalize.Metric
		bad    []float64
		want   normalize.Reason
	}{
		"a counter that is NaN":    {counter("m", 0), []float64{nan}, normalize.ReasonCounterNaN},
		"a counter below zero":     {counter("m", 0), []float64{-3}, normalize.ReasonCounterNegative},
		"a gauge of -1":            {sentinelGauge, []float64{-1}, normalize.ReasonSentinel},
		"a bucket that is NaN":     {histogram, []float64{1, nan, 3, 4, 3}, normalize.ReasonBucketNaN},
		"buckets that decrease":    {histogram, []float64{2, 1, 3, 4, 3}, normalize.ReasonBucketDecrease},
		"a negative bucket":        {histogram, []float64{-1, 2, 3, 4, 3}, normalize.ReasonBucketDecrease},
		"a count below a bucket":   {histogram, []float64{1, 2, 3, 4, 2}, normalize.ReasonCountBelowBucket},
		"a count above the bucket": {histogram, []float64{1, 2, 3, 4, 4}, normalize.ReasonCountAboveBucket},
		"a fractional bucket":      {histogram, []float64{1, 1.5, 3, 4, 3}, normalize.ReasonBadCount},
		"a fractional count":       {histogram, []float64{1, 2, 3.5, 4, 3.5}, normalize.ReasonBadCount},
		"a count that is NaN":      {histogram, []float64{1, 2, 3, 4, nan}, normalize.ReasonBadCount},
		"a count beyond 2^53":      {histogram, []float64{1, 2, 1 << 54, 4, 1 << 54}, normalize.ReasonBadCount},
		"a negative summary count": {summary, []float64{-1}, normalize.ReasonBadCount},
	} {
		t.Run(name, func(t *testing.T) {
			r, plan := newRig(t, Settings{}), planOf(tc.metric)
			assert.Empty(t, ends(r.scrape(0, plan, fine...)))
			require.Equal(t, 1, r.report.Points)
			metrics := r.scrape(15, plan, tc.bad...)
			assert.Equal(t, []string{"m 0"}, ends(metrics))
			assert.Equal(t, 1, metrics.Len())
			want := Report{}
			want.Dropped[tc.want] = 1
			assert.Equal(t, want, r.report)
			assert.Zero(t, r.scrape(30, plan, tc.bad...).Len(), "it ends once")
			assert.Empty(t, ends(r.scrape(45, plan, fine...)))
			assert.Equal(t, 1, r.report.Points)
		})
	}
}

func TestCountsUpToTwoToThe53AreExact(t *testing.T) {
	for value, want := range map[float64]bool{0: true, 1: true, 1 << 53: true, 1<<53 + 2: false, -1: false, 0.5: false, inf: false} {
		assert.Equal(t, want, isWhole(value), value)
	}
	assert.False(t, isWhole(math.NaN()))
}

// A gauge of -1 is a value where the metric has no sentinel.
func TestMinusOneIsAValueWithoutASentinel(t *testing.T) {
	r := newRig(t, Settings{})
	metrics := r.scrape(0, planOf(metricOf(catalog.KindGauge, "m", pointWith("0", value(0)))), -1)
	assert.InDelta(t, -1, metrics.At(0).Gauge().DataPoints().At(0).DoubleValue(), 0)
}

func TestTheSeriesLimitAdmitsTheFirstAndKeepsThem(t *testing.T) {
	r := newRig(t, Settings{MaxSeries: 2})
	three := planOf(metricOf(catalog.KindSum, "c", pointWith("0", value(0)), pointWith("1", value(1)), pointWith("2", value(2))))
	metrics := r.scrape(0, three, 1, 2, 3)
	require.Equal(t, 2, metrics.At(0).Sum().DataPoints().Len())
	assert.Equal(t, 2, r.report.Points)
	assert.Equal(t, 1, r.report.Dropped[normalize.ReasonSeriesLimit])
	// In another order the same two stay.
	turned := planOf(metricOf(catalog.KindSum, "c", pointWith("2", value(2)), pointWith("1", value(1)), pointWith("0", value(0))))
	metrics = r.scrape(15, turned, 1, 2, 3)
	assert.Empty(t, ends(metrics))
	engine, _ := metrics.At(0).Sum().DataPoints().At(0).Attributes().Get("engine")
	assert.Equal(t, "1", engine.Str())
	// One leaves, and the third takes its place. Its start is unknown: it was there before.
	two := planOf(metricOf(catalog.KindSum, "c", pointWith("2", value(2)), pointWith("1", value(1))))
	metrics = r.scrape(30, two, 1, 2, 3)
	assert.Equal(t, []string{"c 0"}, ends(metrics))
	points := metrics.At(0).Sum().DataPoints()
	require.Equal(t, 2, points.Len())
	assert.Equal(t, seconds(30), points.At(0).StartTimestamp())
	assert.Equal(t, seconds(0), points.At(1).StartTimestamp())
	assert.Zero(t, r.report.Dropped[normalize.ReasonSeriesLimit])
}

func TestVanishedSeriesContinueWithTheirOldStart(t *testing.T) {
	r := newRig(t, Settings{MaxSeries: 10})
	// Not vLLM's own counter: its fall is not a restart of the process.
	plugin := counter("b", 1)
	plugin.Engine = false
	both, one := planOf(counter("a", 0), plugin), planOf(counter("a", 0))
	assert.Equal(t, []float64{0, 0}, r.starts(scrapeAt(0, both, 1, 5)))
	assert.Equal(t, []string{"b 0"}, ends(r.scrape(15, one, 1)))
	assert.Equal(t, []float64{0, 0}, r.starts(scrapeAt(30, both, 1, 5)), "b continues")
	r.scrape(45, one, 1)
	assert.Equal(t, []float64{0, 45}, r.starts(scrapeAt(60, both, 1, 4)), "b began again: it is less than before")
	r.scrape(75, one, 1)
	assert.Empty(t, ends(r.scrape(90, both, 1, math.NaN())), "it has ended already")
}

// adapterPlan has adapters x, y and z. The newest of two label sets is in force: set 0 has
// x and y, set 1 has z.
func adapterPlan() *normalize.Plan {
	point := func(name string, sets ...int) normalize.Point {
		return normalize.Point{Attributes: []exposition.Label{{Name: "engine", Value: name}}, Constant: 1, AdapterSets: sets}
	}
	plan := planOf(metricOf(catalog.KindGauge, "lora", point("x", 0), point("y", 0), point("z", 1)))
	plan.Adapters = []normalize.AdapterSet{{Slot: 0}, {Slot: 1}}
	return plan
}

func engines(metrics pmetric.MetricSlice) (out []string) {
	for _, series := range seriesOf(metrics, false) {
		_, engine, _ := strings.Cut(series, " ")
		out = append(out, engine)
	}
	return out
}

func TestTheNewestAdapterSetIsInForce(t *testing.T) {
	r, plan := newRig(t, Settings{}), adapterPlan()
	assert.Equal(t, []string{"x", "y"}, engines(r.scrape(0, plan, unix(-1), unix(-2))))
	metrics := r.scrape(15, plan, unix(-1), unix(10))
	assert.Equal(t, []string{"z"}, engines(metrics))
	assert.Equal(t, []string{"lora x", "lora y"}, ends(metrics))
	assert.Equal(t, []string{"z"}, engines(r.scrape(30, plan, unix(10), unix(10))), "of equal times the later line")
	assert.Equal(t, []string{"z"}, engines(r.scrape(45, plan, math.NaN(), unix(10))), "NaN is older than anything")
	assert.Equal(t, []string{"x", "y"}, engines(r.scrape(60, plan, 2*unix(50), unix(40))), "two API servers add up their times")
	assert.Equal(t, []string{"x", "y"}, engines(r.scrape(75, plan, 1, 0)), "other programs write 0 or 1")
	two := adapterPlan()
	two.Adapters[1].Process = 1
	assert.Equal(t, []string{"x", "y", "z"}, engines(r.scrape(90, two, unix(1), unix(2))), "each process has its newest")
}

func TestTheAdapterLimitKeepsThoseThatHaveAPoint(t *testing.T) {
	r, plan := newRig(t, Settings{MaxAdapters: 1}), adapterPlan()
	assert.Equal(t, []string{"x"}, engines(r.scrape(0, plan, unix(0), unix(-1))))
	assert.Equal(t, 1, r.report.Dropped[normalize.ReasonAdapterLimit])
	assert.Equal(t, []string{"x"}, engines(r.scrape(15, plan, unix(0), unix(-1))))
	assert.Equal(t, 1, r.report.Dropped[normalize.ReasonAdapterLimit])
	assert.Equal(t, []string{"z"}, engines(r.scrape(30, plan, unix(0), unix(20))), "x ended, so there is room")
	assert.Zero(t, r.report.Dropped[normalize.ReasonAdapterLimit])
	open := newRig(t, Settings{MaxAdapters: 2})
	assert.Equal(t, []string{"x", "y"}, engines(open.scrape(0, plan, unix(0), unix(-1))))
	assert.Zero(t, open.report.Dropped[normalize.ReasonAdapterLimit])
}

func TestExemplarsHaveTheirTraceContext(t *testing.T) {
	r := newRig(t, Settings{})
	plan := planOf(metricOf(catalog.KindHistogram, "h", pointWith("0", buckets())), counter("c", 5), counter("other", 6),
		metricOf(catalog.KindGauge, "g", pointWith("0", value(7))))
	const trace, span = "0102030405060708090a0b0c0d0e0f10", "0102030405060708"
	s := scrapeAt(20, plan, 1, 2, 3, 4, 3, 6, 7, 8)
	s.Snapshot.Exemplars = []exposition.Exemplar{
		{Slot: 1, Value: 1.5, Timestamp: int64(unix(10)) * 1000, HasTimestamp: true, Labels: []exposition.Label{
			{Name: "trace_id", Value: trace}, {Name: "span_id", Value: span}, {Name: "user", Value: "u"},
		}},
		{Slot: 5, Value: 2.5, Labels: []exposition.Label{{Name: "trace_id", Value: "0102"}, {Name: "span_id", Value: "no hex at all.."}}},
		{Slot: 7, Value: 3.5, Labels: []exposition.Label{{Name: "trace_id", Value: "zz" + trace[2:]}, {Name: "span_id", Value: "zz" + span[2:]}}},
	}
	metrics := r.emit(s)
	require.Equal(t, 1, metrics.At(0).Histogram().DataPoints().At(0).Exemplars().Len())
	e := metrics.At(0).Histogram().DataPoints().At(0).Exemplars().At(0)
	assert.Equal(t, trace, e.TraceID().String())
	assert.Equal(t, span, e.SpanID().String())
	assert.Equal(t, map[string]any{"user": "u"}, e.FilteredAttributes().AsRaw())
	assert.InDelta(t, 1.5, e.DoubleValue(), 0)
	assert.Equal(t, seconds(10), e.Timestamp())
	require.Equal(t, 1, metrics.At(1).Sum().DataPoints().At(0).Exemplars().Len())
	e = metrics.At(1).Sum().DataPoints().At(0).Exemplars().At(0)
	assert.True(t, e.TraceID().IsEmpty())
	assert.Equal(t, map[string]any{"trace_id": "0102", "span_id": "no hex at all.."}, e.FilteredAttributes().AsRaw())
	assert.Equal(t, seconds(20), e.Timestamp(), "without a time of its own it has that of the scrape")
	assert.Zero(t, metrics.At(2).Sum().DataPoints().At(0).Exemplars().Len())
	e = metrics.At(3).Gauge().DataPoints().At(0).Exemplars().At(0)
	assert.True(t, e.TraceID().IsEmpty())
	assert.True(t, e.SpanID().IsEmpty())
	assert.Equal(t, 2, e.FilteredAttributes().Len())
}

// A picker has series for each client, and each of their buckets can have an exemplar.
func TestSeriesThatAreAddedUpHaveOneExemplarForEachBucket(t *testing.T) {
	r := newRig(t, Settings{})
	second := exposition.Series{
		Value: none, Sum: 8, Count: 9, Created: none,
		Buckets: []exposition.Bucket{{UpperBound: 1, Slot: 5}, {UpperBound: 2, Slot: 6}, {UpperBound: inf, Slot: 7}},
	}
	point := pointWith("0", buckets())
	point.Parts = append(point.Parts, second)
	plan := planOf(metricOf(catalog.KindHistogram, "h", point))
	s := scrapeAt(20, plan, 1, 2, 3, 4, 3, 1, 2, 3, 4, 3)
	known := []exposition.Label{{Name: "trace_id", Value: "a"}}
	for i, slot := range []int{0, 1, 5, 6} {
		at := []int64{11, 13, 12, 11}[i]
		s.Snapshot.Exemplars = append(s.Snapshot.Exemplars, exposition.Exemplar{Slot: slot, Value: float64(slot), Timestamp: at * 1000, HasTimestamp: true, Labels: known})
	}
	var kept []float64
	for _, e := range r.emit(s).At(0).Histogram().DataPoints().At(0).Exemplars().All() {
		kept = append(kept, e.DoubleValue())
	}
	assert.Equal(t, []float64{5, 1}, kept, "the newer of each bucket")
}

// A time that cannot be, in milliseconds, would pass for one far away or stop those that follow.
func TestExemplarsThatSayNothingOrAreFromAnImpossibleTimeAreLeftOut(t *testing.T) {
	soon := midnight.Add(4 * time.Minute).UnixMilli()
	for at, want := range map[int64]bool{
		1: true, soon: true, soon + 120_000: false, 0: false, -5000: false, 9e15: false, math.MaxInt64: false, math.MinInt64: false,
	} {
		r := newRig(t, Settings{})
		s := scrapeAt(0, planOf(counter("c", 0)), 1)
		s.Snapshot.Exemplars = []exposition.Exemplar{{Timestamp: at, HasTimestamp: true, Labels: []exposition.Label{{Name: "user", Value: "u"}}}}
		found := r.emit(s).At(0).Sum().DataPoints().At(0).Exemplars()
		require.Equal(t, want, found.Len() == 1, "%d", at)
		if want {
			assert.Equal(t, at, found.At(0).Timestamp().AsTime().UnixMilli())
		}
		s.Snapshot.Exemplars[0] = exposition.Exemplar{} // also one whose labels are too long
		assert.Zero(t, r.emit(s).At(0).Sum().DataPoints().At(0).Exemplars().Len())
	}
}

// An end names what identifies its series, and all series that a backend makes of it.
func TestEndsOfEachKind(t *testing.T) {
	r := newRig(t, Settings{})
	plan := planOf(
		metricOf(catalog.KindHistogram, "h", pointWith("0", buckets())),
		metricOf(catalog.KindGauge, "g", pointWith("1", value(5))),
		counter("c", 5),
		metricOf(catalog.KindSummary, "s", pointWith("0", exposition.Series{
			Value: none, Sum: 3, Count: 4, Created: none, Quantiles: []exposition.Quantile{{Quantile: 0.5, Slot: 5}},
		})),
	)
	r.scrape(0, plan, 1, 2, 3, 4, 3, 6)
	out := pmetric.NewMetrics()
	r.target.Fail(midnight.Add(15e9), Own{}, out)
	metrics := metricsOf(t, out)
	assert.Equal(t, []string{"h 0", "g 1", "c 0", "s 0"}, ends(metrics))
	require.Equal(t, 4, metrics.Len())
	times := func(start, at pcommon.Timestamp) {
		assert.Equal(t, seconds(0), start)
		assert.Equal(t, seconds(15), at)
	}
	h := metrics.At(0).Histogram().DataPoints().At(0)
	times(h.StartTimestamp(), h.Timestamp())
	assert.Equal(t, []float64{1, 2}, h.ExplicitBounds().AsRaw())
	assert.Equal(t, []uint64{0, 0, 0}, h.BucketCounts().AsRaw())
	assert.True(t, h.HasSum())
	g := metrics.At(1).Gauge().DataPoints().At(0)
	assert.Equal(t, seconds(15), g.Timestamp())
	c := metrics.At(2).Sum().DataPoints().At(0)
	times(c.StartTimestamp(), c.Timestamp())
	s := metrics.At(3).Summary().DataPoints().At(0)
	times(s.StartTimestamp(), s.Timestamp())
	require.Equal(t, 1, s.QuantileValues().Len())
	assert.InDelta(t, 0.5, s.QuantileValues().At(0).Quantile(), 0)
	assert.Equal(t, "u", metrics.At(0).Unit())
	assert.Empty(t, metrics.At(0).Description())
	// They have ended.
	out = pmetric.NewMetrics()
	r.target.End(midnight.Add(30e9), out)
	assert.Zero(t, out.ResourceMetrics().Len())
	// The next scrape continues.
	assert.Equal(t, seconds(0), r.scrape(45, plan, 1, 2, 3, 4, 3, 6).At(2).Sum().DataPoints().At(0).StartTimestamp())
	// A histogram whose parts have no sum ends without one.
	noSum := buckets()
	noSum.Sum = none
	other := newRig(t, Settings{})
	other.scrape(0, planOf(metricOf(catalog.KindHistogram, "h", pointWith("0", noSum))), 1, 2, 3, 4, 3)
	out = pmetric.NewMetrics()
	other.target.End(midnight.Add(15e9), out)
	assert.False(t, metricsOf(t, out).At(0).Histogram().DataPoints().At(0).HasSum())
}
