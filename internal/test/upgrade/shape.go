package upgrade

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// shapes are what backends, dashboards and alerts depend on: for each server its resource's keys
// and for each metric its kind, unit and keys. Values and times are not in them.
type shapes map[string]map[string]bool

// add adds what a batch has. server names the server of a resource; "" leaves a resource out.
func (s shapes) add(metrics pmetric.Metrics, server func(pcommon.Map) string) {
	for _, rm := range metrics.ResourceMetrics().All() {
		name := server(rm.Resource().Attributes())
		if name == "" {
			continue
		}
		line := func(format string, args ...any) {
			text := fmt.Sprintf(format, args...)
			if s[text] == nil {
				s[text] = map[string]bool{}
			}
			s[text][name] = true
		}
		for key := range rm.Resource().Attributes().All() {
			line("resource %s", key)
		}
		line("schema %t", rm.SchemaUrl() != "")
		for _, scope := range rm.ScopeMetrics().All() {
			line("scope %s", scope.Scope().Name())
			for key := range scope.Scope().Attributes().All() {
				line("scope %s attribute %s", scope.Scope().Name(), key)
			}
			for _, m := range scope.Metrics().All() {
				kind, points := kindOf(m)
				for _, attributes := range points {
					keys := slices.Sorted(maps.Keys(attributes.AsRaw()))
					line("metric %s %s %q %s", m.Name(), kind, m.Unit(), strings.Join(keys, ","))
				}
			}
		}
	}
}

// kindOf returns the kind with temporality and monotonicity, and the attributes of the points
// that have a value.
func kindOf(m pmetric.Metric) (kind string, points []pcommon.Map) {
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		for _, p := range m.Gauge().DataPoints().All() {
			if !p.Flags().NoRecordedValue() {
				points = append(points, p.Attributes())
			}
		}
		return "gauge", points
	case pmetric.MetricTypeSum:
		for _, p := range m.Sum().DataPoints().All() {
			if !p.Flags().NoRecordedValue() {
				points = append(points, p.Attributes())
			}
		}
		kind = "sum"
		if m.Sum().IsMonotonic() {
			kind = "monotonic_sum"
		}
		return kind + "/" + strings.ToLower(m.Sum().AggregationTemporality().String()), points
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			if !p.Flags().NoRecordedValue() {
				points = append(points, p.Attributes())
			}
		}
		return "histogram/" + strings.ToLower(m.Histogram().AggregationTemporality().String()), points
	case pmetric.MetricTypeSummary:
		for _, p := range m.Summary().DataPoints().All() {
			if !p.Flags().NoRecordedValue() {
				points = append(points, p.Attributes())
			}
		}
	}
	return strings.ToLower(m.Type().String()), points
}

// String writes one line for each shape, with the servers that have it.
func (s shapes) String() string {
	var text strings.Builder
	for _, line := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintf(&text, "%s | %s\n", line, strings.Join(slices.Sorted(maps.Keys(s[line])), " "))
	}
	return text.String()
}

// parseShapes reads what String wrote.
func parseShapes(text string) (shapes, error) {
	all := shapes{}
	for line := range strings.Lines(text) {
		shape, servers, found := strings.Cut(strings.TrimSuffix(line, "\n"), " | ")
		if !found {
			return nil, fmt.Errorf("a line without servers: %q", line)
		}
		all[shape] = map[string]bool{}
		for server := range strings.FieldsSeq(servers) {
			all[shape][server] = true
		}
	}
	return all, nil
}
