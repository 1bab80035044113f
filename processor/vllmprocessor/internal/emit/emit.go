// Package emit writes derived values as metrics next to their input, and ends the series
// that no longer have a value. It is the last step of the processor. Only emit and
// collect use pdata.
package emit

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
)

// Memory has the derived series of one resource that were written and have not ended.
type Memory struct {
	// Marks returns the mark of the points of a group. Without it no point is marked.
	Marks func(group int) Mark

	written map[series]written
	// writes counts the calls.
	writes int64
	// marked are the marks of the groups at the time markedOf, in Unix nanoseconds.
	marked   map[int]Mark
	markedOf int64
}

// Mark is the attributes that the diagnosis adds to a series. They are a part of its
// identity. Empty ones are left out.
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

// written is the last value of a series: its time in Unix nanoseconds and the number of
// the call. attributes are those of its group, for its end.
type written struct {
	of, write  int64
	attributes []collect.Attribute
}

type series struct {
	row   *derive.Row
	group group
	extra derive.Extra
	mark  Mark
}

// group is an engine and model, or a roll-up over engines.
type group struct {
	number int
	rollup bool
}

func groupOf(v *derive.Value) group { return group{v.Group, v.Rollup} }

// Point is a point to write: a value, or the end of a series.
type Point struct {
	derive.Value
	// Mark is nil for a point without a mark.
	Mark *Mark
	// End is true for a point that ends its series.
	End bool
}

// Write returns the points for values. of is the time of the values and at the time of
// the batch, in Unix nanoseconds. In a batch that only ends series, of is the earlier
// one; then no value is repeated. A series that was written before and has no value now
// gets one point that ends it. The ends are last. A series that another part of the same
// batch has written is not written again.
func (m *Memory) Write(values []derive.Value, of, at int64) []Point {
	if m.written == nil {
		m.written = make(map[series]written, len(values))
	}
	m.writes++
	points := make([]Point, 0, len(values))
	var pending map[series]bool
	for i := range values {
		v := &values[i]
		if v.Pending {
			if pending == nil {
				pending = map[series]bool{}
			}
			pending[series{row: v.Row, group: groupOf(v)}] = true
			continue
		}
		key := series{v.Row, groupOf(v), v.Extra, m.mark(groupOf(v), of)}
		last, known := m.written[key]
		switch {
		case known && last.of == of:
		case of != at:
			// A value that only an end has made known is written with the next batch.
			continue
		default:
			points = append(points, Point{Value: *v, Mark: key.mark.pointer()})
		}
		m.written[key] = written{of, m.writes, v.Attributes}
	}
	return m.ends(points, pending, at)
}

// ends appends the ends of the series that the newest call has not written. A pending
// group or metric does not end.
func (m *Memory) ends(points []Point, pending map[series]bool, at int64) []Point {
	first := len(points)
	for key, last := range m.written {
		if last.write == m.writes || last.of == at || pending[series{group: key.group}] || pending[series{row: key.row, group: key.group}] {
			continue
		}
		delete(m.written, key)
		points = append(points, Point{
			Value: derive.Value{Row: key.row, Group: key.group.number, Rollup: key.group.rollup, Extra: key.extra, Attributes: last.attributes},
			Mark:  key.mark.pointer(), End: true,
		})
	}
	slices.SortFunc(points[first:], func(a, b Point) int {
		return cmp.Or(compareGroups(groupOf(&a.Value), groupOf(&b.Value)), strings.Compare(a.Row.Metric, b.Row.Metric), slices.Compare(a.Extra[:], b.Extra[:]),
			strings.Compare(a.mark().Condition, b.mark().Condition), strings.Compare(a.mark().Cause, b.mark().Cause))
	})
	return points
}

// compareGroups puts roll-ups, the newest first, before the engines.
func compareGroups(a, b group) int {
	switch {
	case a.rollup && b.rollup:
		return cmp.Compare(b.number, a.number)
	case a.rollup:
		return -1
	case b.rollup:
		return 1
	}
	return cmp.Compare(a.number, b.number)
}

// Forget drops all series without ending them.
func (m *Memory) Forget() { clear(m.written) }

// Live is the series that have not ended, by the identity that a consumer sees. The
// number of a group is not a part of it, because a group can get another number.
type Live map[identity]struct{}

type identity struct {
	row        *derive.Row
	extra      derive.Extra
	mark       Mark
	attributes uint64
}

var attributesSeed = maphash.MakeSeed()

func identityOf(row *derive.Row, extra derive.Extra, mark Mark, attributes []collect.Attribute) identity {
	sum := uint64(len(attributes))
	for i := range attributes {
		sum = sum*31 + maphash.Comparable(attributesSeed, attributes[i])
	}
	return identity{row, extra, mark, sum}
}

// Live returns the series that have not ended.
func (m *Memory) Live() Live {
	live := make(Live, len(m.written))
	for key, last := range m.written {
		live[identityOf(key.row, key.extra, key.mark, last.attributes)] = struct{}{}
	}
	return live
}

// Has reports whether the series of a point has not ended.
func (l Live) Has(p *Point) bool {
	_, has := l[identityOf(p.Row, p.Extra, p.mark(), p.Attributes)]
	return has
}

func (p *Point) mark() Mark {
	if p.Mark == nil {
		return Mark{}
	}
	return *p.Mark
}

// pointer returns nil for an empty mark.
func (m Mark) pointer() *Mark {
	if m == (Mark{}) {
		return nil
	}
	return &m
}

// Ends is the number of ends among points.
func Ends(points []Point) (n int) {
	for i := range points {
		if points[i].End {
			n++
		}
	}
	return n
}

// mark returns the mark of a group at a time. A roll-up has no mark, because the
// conditions of its engines differ. The first part of a batch decides for the whole
// batch: a series must not change its identity within one time.
func (m *Memory) mark(of group, at int64) Mark {
	if m.Marks == nil || of.rollup {
		return Mark{}
	}
	if m.markedOf != at {
		clear(m.marked)
		m.markedOf = at
	}
	mark, known := m.marked[of.number]
	if !known {
		if m.marked == nil {
			m.marked = map[int]Mark{}
		}
		mark = m.Marks(of.number)
		m.marked[of.number] = mark
	}
	return mark
}

// Put appends points to metrics. at is their time in Unix nanoseconds.
func Put(all []Point, at int64, metrics pmetric.MetricSlice) {
	w := writer{metrics: metrics, at: pcommon.Timestamp(at)}
	for i := range all {
		if p := &all[i]; p.End {
			w.end(p)
		} else {
			w.value(p)
		}
	}
}

type writer struct {
	metrics pmetric.MetricSlice
	at      pcommon.Timestamp
	// index is the place of the metric of each row.
	index map[*derive.Row]int
}

// value writes a value into the metric of its row.
func (w *writer) value(p *Point) {
	if w.index == nil {
		w.index = map[*derive.Row]int{}
	}
	at, known := w.index[p.Row]
	if !known {
		at = w.metrics.Len()
		w.index[p.Row] = at
		description := w.metric(p.Row).Description
		w.metrics.At(at).SetDescription(description)
	}
	point := points(w.metrics.At(at)).AppendEmpty()
	point.SetStartTimestamp(pcommon.Timestamp(p.Start))
	point.SetTimestamp(w.at)
	point.SetDoubleValue(p.Number)
	label(point.Attributes(), p.Attributes, p.Row, p.Extra)
	p.mark().Put(point.Attributes())
}

// end writes the end of a series as a metric of its own. The Prometheus exporter of the
// collector's contrib distribution stops reading a metric at the first point without a
// value, so other ends in the same metric would be lost. There can be many ends, so they
// have no description. Name, unit and type identify the series.
func (w *writer) end(p *Point) {
	w.metric(p.Row)
	point := points(w.metrics.At(w.metrics.Len() - 1)).AppendEmpty()
	point.SetTimestamp(w.at)
	point.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	label(point.Attributes(), p.Attributes, p.Row, p.Extra)
	p.mark().Put(point.Attributes())
}

// metric appends the metric of a row as in the catalogue, without the description.
func (w *writer) metric(row *derive.Row) *catalog.Metric {
	metric := w.metrics.AppendEmpty()
	described, _ := catalog.ByName(row.Metric)
	metric.SetName(described.Name)
	metric.SetUnit(described.Unit)
	if described.Kind == catalog.KindSum {
		sum := metric.SetEmptySum()
		sum.SetIsMonotonic(true)
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	} else {
		metric.SetEmptyGauge()
	}
	return described
}

// points returns the points of a metric that writer.metric has created.
func points(metric pmetric.Metric) pmetric.NumberDataPointSlice {
	if metric.Type() == pmetric.MetricTypeSum {
		return metric.Sum().DataPoints()
	}
	return metric.Gauge().DataPoints()
}

// label sets the attributes of a point. Own attributes of the row without a value are
// left out.
func label(to pcommon.Map, attributes []collect.Attribute, row *derive.Row, extra derive.Extra) {
	to.EnsureCapacity(len(attributes) + len(row.Extra))
	for _, a := range attributes {
		to.PutStr(a.Name, a.Value)
	}
	for i, name := range row.Extra {
		if extra[i] != "" {
			to.PutStr(name, extra[i])
		}
	}
}
