// Package load measures what metrics cost a backend.
package load

import (
	"bytes"
	"compress/gzip"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Load is what some metrics cost.
type Load struct {
	// Points are those of OTLP, where a histogram is one.
	Points int
	// Series are those of Prometheus: each bucket, +Inf, the sum and the count of a histogram is one.
	Series int
	// Custom are Datadog's custom metrics: a distribution is five, and a summary two counts.
	Custom int
	// Raw are the bytes of a request of OTLP, Packed those with gzip.
	Raw, Packed int
}

// Of returns what metrics cost. Staleness markers count for their bytes only.
func Of(metrics pmetric.Metrics) (l Load) {
	add := func(flags pmetric.DataPointFlags, series, custom int) {
		if !flags.NoRecordedValue() {
			l.Points, l.Series, l.Custom = l.Points+1, l.Series+series, l.Custom+custom
		}
	}
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				switch m.Type() {
				case pmetric.MetricTypeHistogram:
					for _, p := range m.Histogram().DataPoints().All() {
						add(p.Flags(), p.ExplicitBounds().Len()+3, 5)
					}
				case pmetric.MetricTypeSummary:
					for _, p := range m.Summary().DataPoints().All() {
						add(p.Flags(), p.QuantileValues().Len()+2, 2)
					}
				case pmetric.MetricTypeGauge:
					for _, p := range m.Gauge().DataPoints().All() {
						add(p.Flags(), 1, 1)
					}
				case pmetric.MetricTypeSum:
					for _, p := range m.Sum().DataPoints().All() {
						add(p.Flags(), 1, 1)
					}
				}
			}
		}
	}
	wire, _ := (&pmetric.ProtoMarshaler{}).MarshalMetrics(metrics) // A message of our own.
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(wire)
	_ = z.Close()
	l.Raw, l.Packed = len(wire), packed.Len()
	return l
}
