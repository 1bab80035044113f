// Package emit writes derived values as metrics beside the input that they come
// from, and ends the series that have no value any more. It is the last step of
// the way and, with collect, the only one that knows pdata.
package emit

import (
	"cmp"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
)

// Memory is what the derived series of one resource said last.
type Memory struct {
	// said has the time at which each series was written last.
	said map[series]int64
}

type series struct {
	row, group int
	extra      string
}

// Attributes returns the attributes of a group by its number.
type Attributes func(group int) []collect.Attribute

// Write appends the values to metrics, at a time in nanoseconds. A series that
// was written before and has no value now ends with one point that says so; one
// that was written at the same time already, by another part of the same batch,
// is left as it is. It returns the number of points and of ends.
func (m *Memory) Write(values []derive.Value, at int64, attributes Attributes, metrics pmetric.MetricSlice) (points, ends int) {
	if m.said == nil {
		m.said = make(map[series]int64, len(values))
	}
	w := writer{metrics: metrics, at: pcommon.Timestamp(at)}
	for i := range values {
		v := &values[i]
		key := series{v.Row, v.Group, v.Extra}
		if v.Pending {
			w.pending = append(w.pending, key)
			continue
		}
		if said, known := m.said[key]; known && said == at {
			continue
		}
		m.said[key] = at
		w.point(v)
		points++
	}
	var ended []series
	for key, said := range m.said {
		if said != at && !w.isPending(key) {
			ended = append(ended, key)
		}
	}
	slices.SortFunc(ended, func(a, b series) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.row, b.row), strings.Compare(a.extra, b.extra))
	})
	for _, key := range ended {
		delete(m.said, key)
		w.end(key, attributes(key.group))
	}
	return points, len(ended)
}

type writer struct {
	metrics pmetric.MetricSlice
	at      pcommon.Timestamp
	pending []series
	// index has for each row the place of its metric, plus one.
	index []int
}

// isPending tells whether a series is neither written nor ended this time.
func (w *writer) isPending(key series) bool {
	for _, p := range w.pending {
		if p.group == key.group && (p.row == derive.AllRows || p.row == key.row) {
			return true
		}
	}
	return false
}

// point writes a value into the metric of its row.
func (w *writer) point(v *derive.Value) {
	if w.index == nil {
		w.index = make([]int, len(derive.Rows()))
	}
	if w.index[v.Row] == 0 {
		w.metric(v.Row)
		w.index[v.Row] = w.metrics.Len()
	}
	point := w.metrics.At(w.index[v.Row] - 1).Gauge().DataPoints().AppendEmpty()
	point.SetTimestamp(w.at)
	point.SetDoubleValue(v.Number)
	label(point.Attributes(), v.Attributes, v.Row, v.Extra)
}

// end writes the end of a series. It is a metric of its own: the Prometheus
// exporter of the collector's contrib distribution reads no further in a metric
// after the first point without a value, and would keep the other series.
func (w *writer) end(key series, attributes []collect.Attribute) {
	point := w.metric(key.row).Gauge().DataPoints().AppendEmpty()
	point.SetTimestamp(w.at)
	point.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	label(point.Attributes(), attributes, key.row, key.extra)
}

func (w *writer) metric(row int) pmetric.Metric {
	metric := w.metrics.AppendEmpty()
	described, _ := catalog.ByName(derive.Rows()[row].Metric)
	metric.SetName(described.Name)
	metric.SetDescription(described.Description)
	metric.SetUnit(described.Unit)
	metric.SetEmptyGauge()
	return metric
}

// label sets the attributes of a point. A row's own attribute without a value is
// left out.
func label(to pcommon.Map, attributes []collect.Attribute, row int, extra string) {
	names := derive.Rows()[row].Extra
	to.EnsureCapacity(len(attributes) + len(names))
	for _, a := range attributes {
		to.PutStr(a.Name, a.Value)
	}
	for _, name := range names {
		var value string
		value, extra, _ = strings.Cut(extra, "\x00")
		if value != "" {
			to.PutStr(name, value)
		}
	}
}
