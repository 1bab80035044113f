package emit

import (
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
)

// writing is one call of Write. Most batches have the values of the batch before in the
// same order, so the next series is likely the one after the last.
type writing struct {
	// number is that of the call.
	number int64
	live   []*Series
	// hint is the place in live after the series that was found last.
	hint int
	// count is how many of the first series of live were written in their order. order is
	// the series in the order of this call, once it is another one: changed.
	count   int
	order   []*Series
	changed bool
	// created are the series that are not in live, and last is the newest that was written.
	created []*Series
	last    *Series
	// index has all series, once one was not found by comparing a few.
	index map[key]*Series
	// places has the place in live of each series, once one of many was replaced.
	places map[*Series]int
}

// key is what identifies a series within a resource.
type key struct {
	row    *derive.Row
	group  int
	rollup bool
	extra  derive.Extra
}

func (s *Series) key() key { return key{s.Row, s.Group, s.Rollup, s.Extra} }

// near is how many series are compared one by one. A value that appears or is absent
// moves the others by a place.
const near = 64

// find returns the series of a value; nil for a new one.
func (w *writing) find(v *derive.Value) *Series {
	if w.index != nil {
		return w.index[key{v.Row, v.Group, v.Rollup, v.Extra}]
	}
	n := len(w.live)
	for i := range min(n, near) {
		at := (w.hint + i) % n
		if w.live[at].is(v) {
			w.hint = at + 1
			return w.live[at]
		}
	}
	if n <= near && len(w.created) <= near {
		if i := slices.IndexFunc(w.created, func(s *Series) bool { return s.is(v) }); i >= 0 {
			return w.created[i]
		}
		return nil
	}
	w.index = make(map[key]*Series, n+len(w.created))
	for _, all := range [...][]*Series{w.live, w.created} {
		for _, s := range all {
			w.index[s.key()] = s
		}
	}
	return w.index[key{v.Row, v.Group, v.Rollup, v.Extra}]
}

// renew returns the series for a value: a new one for a new series, and for one whose
// attributes are others than before.
func (w *writing) renew(s *Series, v *derive.Value) *Series {
	if s != nil && (identical(s.Attributes, v.Attributes) || slices.Equal(s.Attributes, v.Attributes)) {
		return s
	}
	renewed := newSeries(v, w.last)
	if s == nil {
		w.created = append(w.created, renewed)
	} else {
		// Points have the one before, so it stays as it is.
		renewed.of, renewed.write = s.of, s.write
		w.replace(s, renewed)
	}
	if w.index != nil {
		w.index[renewed.key()] = renewed
	}
	return renewed
}

// wrote records that a series has a value in this call.
func (w *writing) wrote(s *Series) {
	w.last = s
	if s.write == w.number {
		return
	}
	s.write = w.number
	if !w.changed && w.count < len(w.live) && w.live[w.count] == s {
		w.count++
		return
	}
	w.change()
	w.order = append(w.order, s)
}

// change begins a new order.
func (w *writing) change() {
	if !w.changed {
		w.order = append(make([]*Series, 0, len(w.live)+1), w.live[:w.count]...)
		w.changed = true
	}
}

// replace puts a series in the place of another one.
func (w *writing) replace(s, renewed *Series) {
	if at := w.place(s); at >= 0 {
		w.live[at] = renewed
		if w.places != nil {
			w.places[renewed] = at
		}
	}
	if w.index == nil {
		swap(w.created, s, renewed)
	}
	if s.write == w.number {
		// The call has several values of the series, with different attributes.
		swap(w.order, s, renewed)
	}
}

// place returns the place of a series in live; -1 for one that is not there. All series of
// a resource can be replaced in one call.
func (w *writing) place(s *Series) int {
	if len(w.live) <= near {
		return slices.Index(w.live, s)
	}
	if w.places == nil {
		w.places = make(map[*Series]int, len(w.live))
		for i, one := range w.live {
			w.places[one] = i
		}
	}
	if at, known := w.places[s]; known {
		return at
	}
	return -1
}

func swap(all []*Series, s, renewed *Series) {
	if i := slices.Index(all, s); i >= 0 {
		all[i] = renewed
	}
}
