package audit

import (
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// emittedMetric is a metric as it was emitted.
type emittedMetric struct {
	name, unit string
	kind       catalog.Kind
	points     map[string]*emittedPoint
	claimed    bool
}

// emittedPoint is a point as it was emitted.
type emittedPoint struct {
	start, time pcommon.Timestamp
	value       float64
	count       uint64
	sum         *float64
	bounds      []float64
	counts      []uint64
	quantiles   map[float64]float64
	exemplars   pmetric.ExemplarSlice
	claimed     bool
}

// flatten lists the emitted points by name and attributes. It records as violations what no
// scrape may contain, whatever the body has.
func flatten(rm pmetric.ResourceMetrics, r *Report) map[string]*emittedMetric {
	all := map[string]*emittedMetric{}
	for _, scope := range rm.ScopeMetrics().All() {
		for _, m := range scope.Metrics().All() {
			kind, ok := kindOfEmitted(m)
			if !ok {
				r.violate("%s: is a %s, which the receiver has no use for, or not cumulative and monotonic", m.Name(), m.Type())
				continue
			}
			to := all[m.Name()]
			if to == nil {
				to = &emittedMetric{name: m.Name(), unit: m.Unit(), kind: kind, points: map[string]*emittedPoint{}}
				all[m.Name()] = to
			} else {
				r.violate("%s: occurs twice in one scrape", m.Name())
			}
			if to.kind != kind || to.unit != m.Unit() {
				r.violate("%s: occurs twice with different kinds or units", m.Name())
			}
			if m.Description() == "" && names[m.Name()] {
				r.violate("%s: has no description", m.Name())
			}
			to.read(m, r)
			if len(to.points) == 0 {
				r.violate("%s: has no points", m.Name())
			}
		}
	}
	return all
}

func kindOfEmitted(m pmetric.Metric) (catalog.Kind, bool) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		return catalog.KindGauge, true
	case pmetric.MetricTypeSum:
		return catalog.KindSum, m.Sum().IsMonotonic() &&
			m.Sum().AggregationTemporality() == pmetric.AggregationTemporalityCumulative
	case pmetric.MetricTypeHistogram:
		return catalog.KindHistogram, m.Histogram().AggregationTemporality() == pmetric.AggregationTemporalityCumulative
	case pmetric.MetricTypeSummary:
		return catalog.KindSummary, true
	}
	return 0, false
}

// read adds the points of a metric.
func (e *emittedMetric) read(m pmetric.Metric, r *Report) {
	add := func(attributes pcommon.Map, flags pmetric.DataPointFlags, p *emittedPoint) {
		key := labelKey(labelsOf(attributes, e.name, r))
		if flags.NoRecordedValue() {
			r.violate("%s%s: ends, though the body is there", e.name, key)
		}
		if e.points[key] != nil {
			r.violate("%s%s: occurs twice in one scrape", e.name, key)
		}
		e.points[key] = p
		r.Points++
	}
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		for _, p := range m.Gauge().DataPoints().All() {
			add(p.Attributes(), p.Flags(), numberPoint(p))
		}
	case pmetric.MetricTypeSum:
		for _, p := range m.Sum().DataPoints().All() {
			add(p.Attributes(), p.Flags(), numberPoint(p))
		}
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			to := &emittedPoint{
				start: p.StartTimestamp(), time: p.Timestamp(), count: p.Count(), exemplars: p.Exemplars(),
				bounds: p.ExplicitBounds().AsRaw(), counts: p.BucketCounts().AsRaw(),
			}
			if p.HasSum() {
				sum := p.Sum()
				to.sum = &sum
			}
			if p.HasMin() || p.HasMax() {
				r.violate("%s: has a minimum or maximum, which no body contains", e.name)
			}
			add(p.Attributes(), p.Flags(), to)
		}
	case pmetric.MetricTypeSummary:
		for _, p := range m.Summary().DataPoints().All() {
			sum := p.Sum()
			to := &emittedPoint{
				start: p.StartTimestamp(), time: p.Timestamp(), count: p.Count(), sum: &sum,
				quantiles: map[float64]float64{}, exemplars: pmetric.NewExemplarSlice(),
			}
			for _, q := range p.QuantileValues().All() {
				to.quantiles[q.Quantile()] = q.Value()
			}
			add(p.Attributes(), p.Flags(), to)
		}
	}
}

func numberPoint(p pmetric.NumberDataPoint) *emittedPoint {
	to := &emittedPoint{start: p.StartTimestamp(), time: p.Timestamp(), value: p.DoubleValue(), exemplars: p.Exemplars()}
	if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
		to.value = float64(p.IntValue())
	}
	return to
}

// labelsOf returns a point's attributes, all of which are texts.
func labelsOf(attributes pcommon.Map, name string, r *Report) []label {
	var out []label
	for key, value := range attributes.All() {
		if value.Type() != pcommon.ValueTypeStr {
			r.violate("%s: the attribute %s is a %s, not a text", name, key, value.Type())
		}
		out = append(out, label{key, value.AsString()})
	}
	sortLabels(out)
	return out
}

// violate records one violation.
func (r *Report) violate(format string, args ...any) {
	r.Violations = append(r.Violations, fmt.Sprintf(format, args...))
}
