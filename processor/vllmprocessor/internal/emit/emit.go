// Package emit writes derived values as metrics next to their input, and ends the series
// that no longer have a value. It is the last step of the processor. Only emit and
// collect use pdata.
package emit

import (
	"cmp"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// Memory has the derived series of one resource that were written and have not ended.
type Memory struct {
	// live are the series in the order in which they were written last.
	live []*Series
	// writes counts the calls.
	writes int64
}

// Series is a derived series. What identifies it does not change, so points share it.
type Series struct {
	// Row is the metric.
	Row *derive.Row
	// Extra is the values of the row's own attributes.
	Extra derive.Extra
	*Place

	metric *catalog.Metric
	// of is the time of the last value in Unix nanoseconds, and write the number of the
	// call that wrote it.
	of, write int64
}

// Place is what the series of a group have in common.
type Place struct {
	// Group is the number of the engine and model, or of the roll-up.
	Group int
	// Rollup is true where Group is the number of a roll-up over several engines.
	Rollup bool
	// Attributes are those of the engine and model.
	Attributes []input.Attribute
}

// Point is a point to write: a value, or the end of a series.
type Point struct {
	*Series
	// Number is the value.
	Number float64
	// Start is when the counting began, in Unix nanoseconds; only for a sum.
	Start int64
	// End is true for a point that ends its series.
	End bool
}

// newSeries returns the series of a value. beside is another series, whose place is shared
// where it is the same; nil without one.
func newSeries(v *derive.Value, beside *Series) *Series {
	s := &Series{Row: v.Row, Extra: v.Extra}
	s.metric, _ = catalog.ByName(v.Row.Metric)
	if beside != nil && beside.in(v) && identical(beside.Attributes, v.Attributes) {
		s.Place = beside.Place
	} else {
		s.Place = &Place{Group: v.Group, Rollup: v.Rollup, Attributes: v.Attributes}
	}
	return s
}

// in reports whether a value belongs to the group of a series.
func (s *Series) in(v *derive.Value) bool { return s.Group == v.Group && s.Rollup == v.Rollup }

// is reports whether a value is one of the series.
func (s *Series) is(v *derive.Value) bool {
	return s.Row == v.Row && s.in(v) && s.Extra == v.Extra
}

// identical reports whether two lists share their memory.
func identical(a, b []input.Attribute) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// Write returns the points for values. of is the time of the values and at the time of
// the batch, in Unix nanoseconds. In a batch that only ends series, of is the earlier
// one; then no value is repeated. A series that was written before and has no value now
// gets one point that ends it. The ends are last. A series that another part of the same
// batch has written is not written again.
func (m *Memory) Write(values []derive.Value, of, at int64) []Point {
	m.writes++
	points := make([]Point, 0, len(values))
	w := writing{live: m.live, number: m.writes}
	var pending []*derive.Value
	for i := range values {
		v := &values[i]
		if v.Pending {
			pending = append(pending, v)
			continue
		}
		s := w.find(v)
		if known := s != nil && s.of == of; !known && of != at {
			// A value that only an end has made known is written with the next batch.
			continue
		} else if s = w.renew(s, v); !known {
			points = append(points, Point{Series: s, Number: v.Number, Start: v.Start})
		}
		s.of = of
		w.wrote(s)
	}
	if !w.changed && w.count == len(w.live) {
		return points
	}
	w.change()
	return m.ends(points, &w, pending, at)
}

// ends appends the ends of the series that the newest call has not written. A pending
// group or metric does not end.
func (m *Memory) ends(points []Point, w *writing, of []*derive.Value, at int64) []Point {
	first := len(points)
	pending := make(map[pendingKey]bool, len(of))
	for _, v := range of {
		pending[pendingKey{v.Row, v.Group, v.Rollup}] = true
	}
	for _, s := range m.live {
		switch {
		case s.write == m.writes:
		case s.of == at || pending[pendingKey{nil, s.Group, s.Rollup}] || pending[pendingKey{s.Row, s.Group, s.Rollup}]:
			w.order = append(w.order, s)
		default:
			points = append(points, Point{Series: s, End: true})
		}
	}
	m.live = w.order
	slices.SortFunc(points[first:], func(a, b Point) int {
		return cmp.Or(compareGroups(a.Place, b.Place), strings.Compare(a.Row.Metric, b.Row.Metric), slices.Compare(a.Extra[:], b.Extra[:]))
	})
	return points
}

// pendingKey is a metric of a group that is pending, or without a row all of its metrics.
type pendingKey struct {
	row    *derive.Row
	group  int
	rollup bool
}

// compareGroups puts roll-ups, the newest first, before the engines.
func compareGroups(a, b *Place) int {
	switch {
	case a.Rollup && b.Rollup:
		return cmp.Compare(b.Group, a.Group)
	case a.Rollup:
		return -1
	case b.Rollup:
		return 1
	}
	return cmp.Compare(a.Group, b.Group)
}

// Forget drops all series without ending them.
func (m *Memory) Forget() { m.live = nil }

// Ends is the number of ends among points.
func Ends(points []Point) (n int) {
	for i := range points {
		if points[i].End {
			n++
		}
	}
	return n
}
