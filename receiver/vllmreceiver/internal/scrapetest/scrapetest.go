// Package scrapetest writes points as text, for the tests of the receiver.
package scrapetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// FirstScrape is the time of the first scrape in tests: the text has times since then. It lies
// after the start times in the project's own bodies and in the captures.
var FirstScrape = time.Date(2027, time.January, 1, 0, 0, 0, 0, time.UTC)

// Render writes metrics as one line for each point, so that a golden file reads
// as a table and its diff as a list of what changed.
func Render(metrics pmetric.Metrics) string {
	var b strings.Builder
	for _, rm := range metrics.ResourceMetrics().All() {
		fmt.Fprintf(&b, "resource %s\n", Attributes(rm.Resource().Attributes()))
		for _, sm := range rm.ScopeMetrics().All() {
			fmt.Fprintf(&b, "scope %s\n", strings.TrimSpace(sm.Scope().Name()+" "+sm.Scope().Version()))
			for _, m := range sm.Metrics().All() {
				for _, line := range RenderMetric(m) {
					fmt.Fprintf(&b, "%s %s %s %s\n", m.Name(), KindOf(m), m.Unit(), line)
				}
			}
		}
	}
	return b.String()
}

// KindOf returns the kind of a metric.
func KindOf(m pmetric.Metric) string {
	kind := strings.ToLower(m.Type().String())
	switch m.Type() {
	case pmetric.MetricTypeSum:
		if m.Sum().IsMonotonic() {
			kind = "counter"
		}
		if m.Sum().AggregationTemporality() != pmetric.AggregationTemporalityCumulative {
			kind += "?"
		}
	case pmetric.MetricTypeHistogram:
		if m.Histogram().AggregationTemporality() != pmetric.AggregationTemporalityCumulative {
			kind += "?"
		}
	}
	return kind
}

// RenderMetric returns a line for each point.
func RenderMetric(m pmetric.Metric) []string {
	var out []string
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		for _, p := range m.Gauge().DataPoints().All() {
			out = append(out, renderNumber(p))
		}
	case pmetric.MetricTypeSum:
		for _, p := range m.Sum().DataPoints().All() {
			out = append(out, renderNumber(p))
		}
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			line := Attributes(p.Attributes()) + times(p.StartTimestamp(), p.Timestamp())
			if p.Flags().NoRecordedValue() {
				out = append(out, line+" end")
				continue
			}
			line += fmt.Sprintf(" count=%d", p.Count())
			if p.HasSum() {
				line += fmt.Sprintf(" sum=%v", p.Sum())
			}
			buckets := make([]string, p.BucketCounts().Len())
			for i, count := range p.BucketCounts().All() {
				if i < p.ExplicitBounds().Len() {
					buckets[i] = fmt.Sprintf(" %v:%d", p.ExplicitBounds().At(i), count)
				} else {
					buckets[i] = fmt.Sprintf(" inf:%d", count)
				}
			}
			out = append(out, line+strings.Join(buckets, "")+exemplars(p.Exemplars()))
		}
	case pmetric.MetricTypeSummary:
		for _, p := range m.Summary().DataPoints().All() {
			line := Attributes(p.Attributes()) + times(p.StartTimestamp(), p.Timestamp())
			if p.Flags().NoRecordedValue() {
				out = append(out, line+" end")
				continue
			}
			quantiles := make([]string, p.QuantileValues().Len())
			for i, q := range p.QuantileValues().All() {
				quantiles[i] = fmt.Sprintf(" q%v:%v", q.Quantile(), q.Value())
			}
			out = append(out, line+fmt.Sprintf(" count=%d sum=%v", p.Count(), p.Sum())+strings.Join(quantiles, ""))
		}
	}
	return out
}

func renderNumber(p pmetric.NumberDataPoint) string {
	line := Attributes(p.Attributes()) + times(p.StartTimestamp(), p.Timestamp())
	if p.Flags().NoRecordedValue() {
		return line + " end"
	}
	return line + fmt.Sprintf(" %v", p.DoubleValue()) + exemplars(p.Exemplars())
}

func exemplars(es pmetric.ExemplarSlice) string {
	var b strings.Builder
	for _, e := range es.All() {
		fmt.Fprintf(&b, " exemplar=%v%s", e.DoubleValue(), Attributes(e.FilteredAttributes()))
		if !e.TraceID().IsEmpty() {
			b.WriteString(" trace=" + e.TraceID().String())
		}
	}
	return b.String()
}

// Attributes returns attributes in their order.
func Attributes(m pcommon.Map) string {
	var out []string
	for name, value := range m.All() {
		out = append(out, fmt.Sprintf("%s=%q", name, value.AsString()))
	}
	slices.Sort(out)
	return "{" + strings.Join(out, ",") + "}"
}

// times writes a start time as an absolute time and the scrape's as seconds
// since the first.
func times(start, at pcommon.Timestamp) string {
	line := fmt.Sprintf(" @%v", at.AsTime().Sub(FirstScrape).Seconds())
	if start != 0 {
		line = " from " + start.AsTime().Format("2006-01-02T15:04:05.000000") + line
	}
	return line
}

// Points returns the rendered points of one metric, without its name.
func Points(metrics pmetric.Metrics, name string) []string {
	var out []string
	for line := range strings.SplitSeq(Render(metrics), "\n") {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			out = append(out, rest)
		}
	}
	return out
}
