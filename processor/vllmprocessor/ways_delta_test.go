package vllmprocessor

import (
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// deltas turns counters and histograms into deltas by the rules of contrib's
// cumulativetodelta processor as it was read at v0.161 (initial_value auto): the
// first point of a series is left out unless the series began while the
// collector ran, a delta starts at the time of the point before it, and what
// fell is left out. Zeros are sent only where zeros is true.
func deltas(input []pmetric.Metrics, zeros bool) []pmetric.Metrics {
	d := differences{began: firstTime(input), numbers: map[string]pmetric.NumberDataPoint{}, histograms: map[string]pmetric.HistogramDataPoint{}}
	return everyMetric(input, func(m pmetric.Metric) {
		switch m.Type() {
		case pmetric.MetricTypeSum:
			if !m.Sum().IsMonotonic() {
				return
			}
			m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
			m.Sum().DataPoints().RemoveIf(func(p pmetric.NumberDataPoint) bool {
				return !d.number(m.Name(), p) || (!zeros && p.DoubleValue() == 0)
			})
		case pmetric.MetricTypeHistogram:
			m.Histogram().SetAggregationTemporality(pmetric.AggregationTemporalityDelta)
			m.Histogram().DataPoints().RemoveIf(func(p pmetric.HistogramDataPoint) bool {
				return !d.histogram(m.Name(), p) || (!zeros && p.Count() == 0)
			})
		}
	})
}

type differences struct {
	began      pcommon.Timestamp
	numbers    map[string]pmetric.NumberDataPoint
	histograms map[string]pmetric.HistogramDataPoint
}

func (d *differences) number(name string, p pmetric.NumberDataPoint) bool {
	key := seriesKey(name, p.Attributes())
	now := pmetric.NewNumberDataPoint()
	p.CopyTo(now)
	before, known := d.numbers[key]
	d.numbers[key] = now
	if !known {
		return p.StartTimestamp() >= d.began && p.StartTimestamp() != p.Timestamp()
	}
	p.SetStartTimestamp(before.Timestamp())
	p.SetDoubleValue(now.DoubleValue() - before.DoubleValue())
	return p.DoubleValue() >= 0
}

func (d *differences) histogram(name string, p pmetric.HistogramDataPoint) bool {
	key := seriesKey(name, p.Attributes())
	now := pmetric.NewHistogramDataPoint()
	p.CopyTo(now)
	before, known := d.histograms[key]
	d.histograms[key] = now
	if !known {
		return p.StartTimestamp() >= d.began && p.StartTimestamp() != p.Timestamp()
	}
	if now.Count() < before.Count() {
		return false
	}
	p.SetStartTimestamp(before.Timestamp())
	p.SetCount(now.Count() - before.Count())
	p.SetSum(now.Sum() - before.Sum())
	for i := range p.BucketCounts().Len() {
		p.BucketCounts().SetAt(i, now.BucketCounts().At(i)-before.BucketCounts().At(i))
	}
	return true
}

// firstTime is the time of the first point.
func firstTime(input []pmetric.Metrics) pcommon.Timestamp {
	var first pcommon.Timestamp
	everyPoint(input[0], func(p timed) { first = p.Timestamp() })
	return first
}

func seriesKey(name string, attributes pcommon.Map) string {
	var parts []string
	for k, v := range attributes.All() {
		parts = append(parts, fmt.Sprintf("%q=%q", k, v.AsString()))
	}
	slices.Sort(parts)
	return name + strings.Join(parts, ",")
}
