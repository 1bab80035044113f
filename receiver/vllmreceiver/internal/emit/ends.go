package emit

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

var noRecordedValue = pmetric.DefaultDataPointFlags.WithNoRecordedValue(true)

// knownSeries is a series of a plan with what is remembered of it.
type knownSeries struct {
	state
	metric *normalize.Metric
	point  *normalize.Point
}

// endSeries ends a series, if it is live.
func (t *Target) endSeries(metric *normalize.Metric, point *normalize.Point, st *state) {
	if st.live {
		st.live = false
		t.ended = append(t.ended, knownSeries{*st, metric, point})
	}
}

// endPoints ends every series of the plan that is live.
func (t *Target) endPoints(now pcommon.Timestamp, metrics pmetric.MetricSlice) {
	if t.plan != nil {
		for metric, point := range t.plan.All() {
			t.endSeries(metric, point, &t.states[point.Index])
		}
	}
	t.emitEnded(now, metrics)
}

// emitEnded appends one no-recorded-value point for each ended series, each in its own
// metric: the Prometheus exporter (contrib v0.161, accumulator.go) stops reading a metric
// at its first such point, and other series in the same metric would stay on its page for
// minutes. These metrics have no description, because it would be sent with each of them
// and does not identify a series.
func (t *Target) emitEnded(now pcommon.Timestamp, metrics pmetric.MetricSlice) {
	for _, e := range t.ended {
		t.appendEnd(emptyMetric(e.metric, 1, metrics), e, now)
	}
	// Free the memory: usually far fewer series end.
	t.ended = nil
}

// appendEnd appends the point that ends a series. It keeps the bounds of a
// histogram and the quantiles of a summary: to a Prometheus backend each of them
// is a series, and only those that the point names are marked as stale.
func (t *Target) appendEnd(to pmetric.Metric, e knownSeries, now pcommon.Timestamp) {
	switch e.metric.Kind {
	case catalog.KindGauge:
		endPoint(to.Gauge().DataPoints().AppendEmpty(), e, now)
	case catalog.KindSum:
		endPoint(to.Sum().DataPoints().AppendEmpty(), e, now)
	case catalog.KindHistogram:
		point := to.Histogram().DataPoints().AppendEmpty()
		endPoint(point, e, now)
		if hasSum(e.point) {
			point.SetSum(0)
		}
		t.scratch.setBounds(e.point)
		point.ExplicitBounds().FromRaw(t.scratch.bounds)
		point.BucketCounts().FromRaw(t.scratch.counts)
	case catalog.KindSummary:
		point := to.Summary().DataPoints().AppendEmpty()
		endPoint(point, e, now)
		for _, q := range e.point.Parts[0].Quantiles {
			point.QuantileValues().AppendEmpty().SetQuantile(q.Quantile)
		}
	}
}

// dataPoint is a point of any kind.
type dataPoint interface {
	SetStartTimestamp(pcommon.Timestamp)
	SetTimestamp(pcommon.Timestamp)
	SetFlags(pmetric.DataPointFlags)
	Attributes() pcommon.Map
}

// endPoint fills in what ends of all kinds have.
func endPoint[P dataPoint](to P, e knownSeries, now pcommon.Timestamp) {
	identify(to, e.point, e.start, now)
	to.SetFlags(noRecordedValue)
}

// identify sets the times and the attributes of a point. The start is not after the point's own
// time, even if the clock was set back; that of a gauge is 0, which is none.
func identify[P dataPoint](to P, point *normalize.Point, start, now pcommon.Timestamp) {
	to.SetStartTimestamp(min(start, now))
	to.SetTimestamp(now)
	attributes := to.Attributes()
	attributes.EnsureCapacity(len(point.Attributes))
	for i := range point.Attributes {
		attributes.PutStr(point.Attributes[i].Name, point.Attributes[i].Value)
	}
}

// hasSum reports whether the points of a histogram have a sum.
func hasSum(point *normalize.Point) bool {
	for i := range point.Parts {
		if point.Parts[i].Sum == exposition.NoSlot {
			return false
		}
	}
	return true
}
