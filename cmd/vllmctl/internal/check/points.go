package check

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// metricsOf yields all metrics of a batch.
func metricsOf(batch pmetric.Metrics) iter.Seq[pmetric.Metric] {
	return func(yield func(pmetric.Metric) bool) {
		for _, resource := range batch.ResourceMetrics().All() {
			for _, scope := range resource.ScopeMetrics().All() {
				for _, m := range scope.Metrics().All() {
					if !yield(m) {
						return
					}
				}
			}
		}
	}
}

// point is one cumulative point: a counter, or the count of a histogram.
type point struct {
	attributes pcommon.Map
	start      pcommon.Timestamp
	value      float64
}

// counts yields the cumulative points of a metric that have a value.
func counts(m pmetric.Metric) iter.Seq[point] {
	return func(yield func(point) bool) {
		switch m.Type() {
		case pmetric.MetricTypeSum:
			for _, p := range m.Sum().DataPoints().All() {
				if value := number(p); !p.Flags().NoRecordedValue() && !yield(point{p.Attributes(), p.StartTimestamp(), value}) {
					return
				}
			}
		case pmetric.MetricTypeHistogram:
			for _, p := range m.Histogram().DataPoints().All() {
				if !p.Flags().NoRecordedValue() && !yield(point{p.Attributes(), p.StartTimestamp(), float64(p.Count())}) {
					return
				}
			}
		}
	}
}

func number(p pmetric.NumberDataPoint) float64 {
	if p.ValueType() == pmetric.NumberDataPointValueTypeInt {
		return float64(p.IntValue())
	}
	return p.DoubleValue()
}

// attribute is the value of an attribute; empty without it.
func attribute(attributes pcommon.Map, name string) string {
	if value, ok := attributes.Get(name); ok {
		return value.AsString()
	}
	return ""
}

// series counts the points of each metric that have a value.
func series(batch pmetric.Metrics) map[string]int {
	out := map[string]int{}
	for m := range metricsOf(batch) {
		n := 0
		switch m.Type() {
		case pmetric.MetricTypeGauge:
			for _, p := range m.Gauge().DataPoints().All() {
				if !p.Flags().NoRecordedValue() {
					n++
				}
			}
		case pmetric.MetricTypeSummary:
			n = m.Summary().DataPoints().Len()
		default:
			for range counts(m) {
				n++
			}
		}
		if n > 0 {
			out[m.Name()] += n
		}
	}
	return out
}

// total adds up the cumulative points of a metric.
func total(batch pmetric.Metrics, name string) float64 {
	sum := 0.0
	for m := range metricsOf(batch) {
		if m.Name() == name {
			for p := range counts(m) {
				sum += p.value
			}
		}
	}
	return sum
}

// byAttribute adds up the cumulative points of a metric by the value of an attribute.
func byAttribute(batch pmetric.Metrics, name, by string) map[string]float64 {
	out := map[string]float64{}
	for m := range metricsOf(batch) {
		if m.Name() != name {
			continue
		}
		for p := range counts(m) {
			out[attribute(p.attributes, by)] += p.value
		}
	}
	return out
}

// cumulative has the points of a batch by metric and attributes.
func cumulative(batch pmetric.Metrics) map[string]point {
	out := map[string]point{}
	for m := range metricsOf(batch) {
		for p := range counts(m) {
			out[m.Name()+keyOf(p.attributes)] = p
		}
	}
	return out
}

// keyOf writes attributes in order.
func keyOf(attributes pcommon.Map) string {
	var parts []string
	for name, value := range attributes.All() {
		parts = append(parts, fmt.Sprintf("%s=%q", name, value.AsString()))
	}
	if len(parts) == 0 {
		return ""
	}
	slices.Sort(parts)
	return "{" + strings.Join(parts, ", ") + "}"
}

// fallen lists the counters that are lower in the second batch, by name.
func fallen(first, second pmetric.Metrics) []string {
	before, names := cumulative(first), map[string]bool{}
	for key, p := range cumulative(second) {
		if earlier, ok := before[key]; ok && p.value < earlier.value {
			name, _, _ := strings.Cut(key, "{")
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// moved lists the counters of an engine or a gateway that are higher in the second batch.
func moved(first, second pmetric.Metrics) []string {
	before, names := cumulative(first), map[string]bool{}
	for key, p := range cumulative(second) {
		name, _, _ := strings.Cut(key, "{")
		if earlier, ok := before[key]; ok && p.value > earlier.value && catalog.IsServers(name) {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
