// Package emit writes derived values as metrics beside the input that they come
// from, and ends the series that have no value any more. It is the last step of
// the way and, with collect, the only one that knows pdata.
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
// attributes are those of its group, for its end.
type saying struct {
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
	// Mark is nil where there is none.
	Mark *Mark
	// End is true for a point that says that its series has ended.
	End bool
}

// Write returns the points that say values. They hold for a time in nanoseconds,
// which is earlier than that of the batch where the batch only says what has
// ended: then no value is repeated. A series that was written before and has no
// value now ends with one point that says so; the ends come last. One that was
// written at the same time already, by another part of the same batch, is left as
// it is.
func (m *Memory) Write(values []derive.Value, of, at int64) []Point {
	if m.said == nil {
		m.said = make(map[series]saying, len(values))
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
		said, known := m.said[key]
		switch {
		case known && said.of == of:
		case of != at:
			// What has become tellable by the end of something else is told with the
			// next values.
			continue
		default:
			points = append(points, Point{Value: *v, Mark: key.mark.pointer()})
		}
		m.said[key] = saying{of, m.writes, v.Attributes}
	}
	return m.ends(points, pending, at)
}

// ends appends the ends of the series that the newest call has not written. Of a
// group or of a series of which a part may still come there is none.
func (m *Memory) ends(points []Point, pending map[series]bool, at int64) []Point {
	first := len(points)
	for key, said := range m.said {
		if said.write == m.writes || said.of == at || pending[series{group: key.group}] || pending[series{row: key.row, group: key.group}] {
			continue
		}
		delete(m.said, key)
		points = append(points, Point{
			Value: derive.Value{Row: key.row, Group: key.group.number, Rollup: key.group.rollup, Extra: key.extra, Attributes: said.attributes},
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

// Forget forgets all that was written, so that nothing of it ends.
func (m *Memory) Forget() { clear(m.said) }

// Live are the series that have a value which has not ended, by what a consumer knows
// them by: a group can have got another number since an earlier point.
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

// Live returns the series that live.
func (m *Memory) Live() Live {
	live := make(Live, len(m.said))
	for key, said := range m.said {
		live[identityOf(key.row, key.extra, key.mark, said.attributes)] = struct{}{}
	}
	return live
}

// Has reports whether the series of a point is one of them.
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

// pointer is nil for a mark without parts.
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

// mark returns the mark of a group at a time; roll-ups have none, because the
// conditions of their engines differ. The first part of a batch decides
// for all of it: a series does not change its identity within one time.
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

// Put appends points of one time to metrics.
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
	// index has the place of each row's metric.
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

// end writes the end of a series. It is a metric of its own: the Prometheus
// exporter of the collector's contrib distribution reads no further in a metric
// after the first point without a value, and would keep the other series. Because
// there can be many of them they have no description; name, unit and type are
// what the series is found by.
func (w *writer) end(p *Point) {
	w.metric(p.Row)
	point := points(w.metrics.At(w.metrics.Len() - 1)).AppendEmpty()
	point.SetTimestamp(w.at)
	point.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	label(point.Attributes(), p.Attributes, p.Row, p.Extra)
	p.mark().Put(point.Attributes())
}

// metric adds the metric of a row, as the catalogue describes it, but without the
// description.
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

// points are those of a metric that metric has made.
func points(metric pmetric.Metric) pmetric.NumberDataPointSlice {
	if metric.Type() == pmetric.MetricTypeSum {
		return metric.Sum().DataPoints()
	}
	return metric.Gauge().DataPoints()
}

// label sets the attributes of a point. A row's own attribute without a value is
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
