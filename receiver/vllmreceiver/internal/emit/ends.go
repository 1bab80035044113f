package emit

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

var noRecordedValue = pmetric.DefaultDataPointFlags.WithNoRecordedValue(true)

// endedSeries is a series that needs a no-recorded-value point.
type endedSeries struct {
	metric *normalize.Metric
	point  *normalize.Point
	start  pcommon.Timestamp
}

// endPoints ends every series of the plan that is live.
func (t *Target) endPoints(now pcommon.Timestamp, metrics pmetric.MetricSlice, report *Report) {
	if t.plan != nil {
		for metric, point := range t.plan.All() {
			if st := &t.states[point.Index]; st.live {
				st.live = false
				t.ended = append(t.ended, endedSeries{metric, point, st.start})
			}
		}
	}
	t.emitEnded(now, metrics, report)
}

// emitEnded appends one no-recorded-value point for each ended series, each in its own
// metric: the Prometheus exporter (contrib v0.161, accumulator.go) stops reading a metric
// at its first such point, and other series in the same metric would stay on its page for
// minutes. These metrics have no description, because it would be sent with each of them
// and does not identify a series.
func (t *Target) emitEnded(now pcommon.Timestamp, metrics pmetric.MetricSlice, report *Report) {
	for _, e := range t.ended {
		t.appendEnd(emptyMetric(e.metric, 1, metrics), e, now)
	}
	report.Ended += len(t.ended)
	// Free the memory: usually far fewer series end.
	t.ended = nil
}

// appendEnd appends the point that ends a series. It keeps the bounds of a
// histogram and the quantiles of a summary: to a Prometheus backend each of them
// is a series, and only those that the point names are marked as stale.
func (t *Target) appendEnd(to pmetric.Metric, e endedSeries, now pcommon.Timestamp) {
	switch e.metric.Kind {
	case catalog.KindGauge:
		point := to.Gauge().DataPoints().AppendEmpty()
		point.SetTimestamp(now)
		point.SetFlags(noRecordedValue)
		putAttributes(point.Attributes(), e.point.Attributes)
	case catalog.KindSum:
		point := to.Sum().DataPoints().AppendEmpty()
		point.SetStartTimestamp(min(e.start, now))
		point.SetTimestamp(now)
		point.SetFlags(noRecordedValue)
		putAttributes(point.Attributes(), e.point.Attributes)
	case catalog.KindHistogram:
		point := to.Histogram().DataPoints().AppendEmpty()
		point.SetStartTimestamp(min(e.start, now))
		point.SetTimestamp(now)
		point.SetFlags(noRecordedValue)
		if hasSum(e.point) {
			point.SetSum(0)
		}
		t.scratch.setBounds(e.point)
		point.ExplicitBounds().FromRaw(t.scratch.bounds)
		point.BucketCounts().FromRaw(t.scratch.counts)
		putAttributes(point.Attributes(), e.point.Attributes)
	case catalog.KindSummary:
		point := to.Summary().DataPoints().AppendEmpty()
		point.SetStartTimestamp(min(e.start, now))
		point.SetTimestamp(now)
		point.SetFlags(noRecordedValue)
		for _, q := range e.point.Parts[0].Quantiles {
			point.QuantileValues().AppendEmpty().SetQuantile(q.Quantile)
		}
		putAttributes(point.Attributes(), e.point.Attributes)
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
