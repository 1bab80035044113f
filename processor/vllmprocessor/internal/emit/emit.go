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
	// Marks returns what the points of a group are marked with; nil: nothing is.
	Marks func(group int) Mark

	said map[series]saying
	// writes counts the calls.
	writes int64
	// marked are the marks of the groups at the newest time.
	marked   map[int]Mark
	markedOf int64
}

// Mark is what the diagnosis adds to the attributes of a series, and so a part of
// its identity; empty parts are left out.
type Mark struct{ Condition, Cause string }

// Put sets the attributes of a mark.
func (m Mark) Put(to pcommon.Map) {
	if m.Condition != "" {
		to.PutStr("vllm.diagnosis.condition", m.Condition)
	}
	if m.Cause != "" {
		to.PutStr("vllm.diagnosis.cause", m.Cause)
	}
}

// saying is when a series had a value last: at which time, and in which call.
type saying struct{ of, write int64 }

type series struct {
	row   *derive.Row
	group int
	extra string
	mark  Mark
}

// Attributes returns the attributes of a group by its number.
type Attributes func(group int) []collect.Attribute

// Write appends values to metrics. They hold for a time in nanoseconds, which is
// earlier than that of the batch where the batch only says what has ended: then
// no value is repeated. A series that was written before and has no value now
// ends with one point that says so, at the batch's time. One that was written at
// the same time already, by another part of the same batch, is left as it is. It
// returns the number of points and of ends.
func (m *Memory) Write(values []derive.Value, of, at int64, attributes Attributes, metrics pmetric.MetricSlice) (written, ends int) {
	if m.said == nil {
		m.said = make(map[series]saying, len(values))
	}
	m.writes++
	w := writer{metrics: metrics, at: pcommon.Timestamp(at)}
	for i := range values {
		v := &values[i]
		if v.Pending {
			w.pending = append(w.pending, series{row: v.Row, group: v.Group})
			continue
		}
		key := series{v.Row, v.Group, v.Extra, m.mark(v.Group, of)}
		said, known := m.said[key]
		switch {
		case known && said.of == of:
		case of != at:
			// What has become tellable by the end of something else is told with the
			// next values.
			continue
		default:
			w.point(v, key.mark)
			written++
		}
		m.said[key] = saying{of, m.writes}
	}
	var ended []series
	for key, said := range m.said {
		if said.write != m.writes && said.of != at && !w.isPending(key) {
			ended = append(ended, key)
		}
	}
	slices.SortFunc(ended, func(a, b series) int {
		return cmp.Or(cmp.Compare(a.group, b.group), strings.Compare(a.row.Metric, b.row.Metric), strings.Compare(a.extra, b.extra),
			strings.Compare(a.mark.Condition, b.mark.Condition), strings.Compare(a.mark.Cause, b.mark.Cause))
	})
	for _, key := range ended {
		delete(m.said, key)
		w.end(key, attributes(key.group))
	}
	return written, len(ended)
}

// mark returns the mark of a group at a time. The first part of a batch decides
// for all of it: a series does not change its identity within one time.
func (m *Memory) mark(group int, of int64) Mark {
	if m.Marks == nil {
		return Mark{}
	}
	if m.markedOf != of {
		clear(m.marked)
		m.markedOf = of
	}
	mark, known := m.marked[group]
	if !known {
		if m.marked == nil {
			m.marked = map[int]Mark{}
		}
		mark = m.Marks(group)
		m.marked[group] = mark
	}
	return mark
}

type writer struct {
	metrics pmetric.MetricSlice
	at      pcommon.Timestamp
	pending []series
	// index has the place of each row's metric.
	index map[*derive.Row]int
}

// isPending tells whether a series is neither written nor ended this time.
func (w *writer) isPending(key series) bool {
	for _, p := range w.pending {
		if p.group == key.group && (p.row == nil || p.row == key.row) {
			return true
		}
	}
	return false
}

// point writes a value into the metric of its row.
func (w *writer) point(v *derive.Value, mark Mark) {
	if w.index == nil {
		w.index = map[*derive.Row]int{}
	}
	at, known := w.index[v.Row]
	if !known {
		at = w.metrics.Len()
		w.index[v.Row] = at
		w.metric(v.Row)
	}
	point := points(w.metrics.At(at)).AppendEmpty()
	point.SetStartTimestamp(pcommon.Timestamp(v.Start))
	point.SetTimestamp(w.at)
	point.SetDoubleValue(v.Number)
	label(point.Attributes(), v.Attributes, v.Row, v.Extra)
	mark.Put(point.Attributes())
}

// end writes the end of a series. It is a metric of its own: the Prometheus
// exporter of the collector's contrib distribution reads no further in a metric
// after the first point without a value, and would keep the other series.
func (w *writer) end(key series, attributes []collect.Attribute) {
	point := points(w.metric(key.row)).AppendEmpty()
	point.SetTimestamp(w.at)
	point.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	label(point.Attributes(), attributes, key.row, key.extra)
	key.mark.Put(point.Attributes())
}

// metric adds the metric of a row, as the catalogue describes it.
func (w *writer) metric(row *derive.Row) pmetric.Metric {
	metric := w.metrics.AppendEmpty()
	described, _ := catalog.ByName(row.Metric)
	metric.SetName(described.Name)
	metric.SetDescription(described.Description)
	metric.SetUnit(described.Unit)
	if described.Kind == catalog.KindSum {
		sum := metric.SetEmptySum()
		sum.SetIsMonotonic(true)
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	} else {
		metric.SetEmptyGauge()
	}
	return metric
}

// points are those of a metric that metric has made.
func points(metric pmetric.Metric) pmetric.NumberDataPointSlice {
	if metric.Type() == pmetric.MetricTypeSum {
		return metric.Sum().DataPoints()
	}
	return metric.Gauge().DataPoints()
}

// label sets the attributes of a point. A row's own attribute without a value is
// left out.
func label(to pcommon.Map, attributes []collect.Attribute, row *derive.Row, extra string) {
	to.EnsureCapacity(len(attributes) + len(row.Extra))
	for _, a := range attributes {
		to.PutStr(a.Name, a.Value)
	}
	for _, name := range row.Extra {
		var value string
		value, extra, _ = strings.Cut(extra, "\x00")
		if value != "" {
			to.PutStr(name, value)
		}
	}
}
