// Package emit writes derived values as metrics next to their input, and ends the series that no
// longer have a value. It keeps what was written for the newest batches of a server until a consumer
// has accepted it: a batch that is sent again gets the same values, and the end of a series is
// repeated until it has arrived. It is the last step of the processor. Only emit and collect use pdata.
package emit

import (
	"cmp"
	"slices"
	"strings"
	"sync"

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

func (s *Series) in(v *derive.Value) bool { return s.Group == v.Group && s.Rollup == v.Rollup }

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
	w := writings.Get().(*writing)
	defer writings.Put(w)
	if cap(w.order) > mostSpare {
		w.order = nil
	}
	*w = writing{order: w.order[:0]}
	before := len(m.live)
	var pending []*derive.Value
	for i := range values {
		v := &values[i]
		if v.Pending {
			pending = append(pending, v)
			continue
		}
		place := w.find(m.live, v)
		known := place >= 0 && m.live[place].of == of
		if !known && of != at {
			// A value that only an end has made known is written with the next batch.
			continue
		}
		place = m.renew(place, v, w)
		s := m.live[place]
		if !known {
			points = append(points, Point{Series: s, Number: v.Number, Start: v.Start})
		}
		s.of = of
		if s.write != m.writes {
			s.write = m.writes
			w.order = append(w.order, place)
		}
		w.hint = place + 1
	}
	if len(m.live) == before && len(w.order) == before && slices.IsSorted(w.order) {
		return points
	}
	return m.ends(points, w.order, pending, at)
}

// renew makes a series for a value that has none, whose place is then -1, or had other attributes
// before, and returns its place.
func (m *Memory) renew(place int, v *derive.Value, w *writing) int {
	if place < 0 {
		place = len(m.live)
		m.live = append(m.live, newSeries(v, m.beside(w)))
		if w.index != nil {
			w.index[m.live[place].key()] = place
		}
		return place
	}
	s := m.live[place]
	if !identical(s.Attributes, v.Attributes) && !slices.Equal(s.Attributes, v.Attributes) {
		// Points have the one before, so it stays as it is.
		renewed := newSeries(v, m.beside(w))
		renewed.of, renewed.write = s.of, s.write
		m.live[place] = renewed
	}
	return place
}

// beside is the series that was written last; nil without one.
func (m *Memory) beside(w *writing) *Series {
	if len(w.order) == 0 {
		return nil
	}
	return m.live[w.order[len(w.order)-1]]
}

// ends puts the series in the order of the newest call, of which order has the places, and appends
// the ends of those that it has not written. A pending group or metric does not end.
func (m *Memory) ends(points []Point, order []int, of []*derive.Value, at int64) []Point {
	first := len(points)
	pending := make(map[pendingKey]bool, len(of))
	for _, v := range of {
		pending[pendingKey{v.Row, v.Group, v.Rollup}] = true
	}
	live := make([]*Series, 0, len(m.live))
	for _, place := range order {
		live = append(live, m.live[place])
	}
	for _, s := range m.live {
		switch {
		case s.write == m.writes:
		case s.of == at || pending[pendingKey{nil, s.Group, s.Rollup}] || pending[pendingKey{s.Row, s.Group, s.Rollup}]:
			live = append(live, s)
		default:
			points = append(points, Point{Series: s, End: true})
		}
	}
	m.live = live
	slices.SortFunc(points[first:], func(a, b Point) int {
		return cmp.Or(cmp.Compare(a.order(), b.order()), strings.Compare(a.Row.Metric, b.Row.Metric), slices.Compare(a.Extra[:], b.Extra[:]))
	})
	return points
}

// pendingKey is a metric of a group that is pending, or without a row all of its metrics.
type pendingKey struct {
	row    *derive.Row
	group  int
	rollup bool
}

// order puts roll-ups, the newest first, before the engines.
func (p *Place) order() int {
	if p.Rollup {
		return -1 - p.Group
	}
	return p.Group
}

// Forget drops all series without ending them.
func (m *Memory) Forget() { m.live = nil }

// writing is one call of Write. Most batches have the values of the batch before in the
// same order, so the next series is likely the one after the last.
type writing struct {
	// hint is the place in the list of series after the one that was written last.
	hint int
	// order has the places of the series of this call.
	order []int
	// index has the places of all series, once one was not found by comparing a few.
	index map[key]int
}

// writings are for reuse.
var writings = sync.Pool{New: func() any { return &writing{} }}

const (
	// near is how many series are compared one by one. A value that appears or is absent
	// moves the others by a place.
	near = 64
	// mostSpare bounds what is kept for the next calls.
	mostSpare = 4096
)

// key is what identifies a series within a resource.
type key struct {
	row    *derive.Row
	group  int
	rollup bool
	extra  derive.Extra
}

func (s *Series) key() key { return key{s.Row, s.Group, s.Rollup, s.Extra} }

// find returns the place of the series of a value; -1 for a new one.
func (w *writing) find(live []*Series, v *derive.Value) int {
	n := len(live)
	if w.index == nil {
		for i := range min(n, near) {
			if at := (w.hint + i) % n; live[at].is(v) {
				return at
			}
		}
		if n <= near {
			return -1
		}
		w.index = make(map[key]int, n)
		for at, s := range live {
			w.index[s.key()] = at
		}
	}
	if at, known := w.index[key{v.Row, v.Group, v.Rollup, v.Extra}]; known {
		return at
	}
	return -1
}
