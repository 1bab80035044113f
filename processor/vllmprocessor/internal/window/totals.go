package window

import (
	"math"
	"slices"
)

// totals stores the running totals of a series at the newest batches. A total has one
// number, or those of a distribution: its buckets and then its sum.
//
// Most distributions count less than four thousand million observations. Then their
// buckets are stored as integers, which takes half the memory and is exact. At the first
// number for which this is not so, all are stored as they are.
type totals struct {
	stride int
	// values are all numbers of each place, or only the last one where the others are in
	// counts.
	values []float64
	counts []uint32
}

// narrowest is the least numbers of a total that are stored as integers.
const narrowest = 4

func newTotals(stride int) totals { return totals{stride: stride} }

func (t *totals) places() int64 {
	if t.counts != nil {
		return int64(len(t.values))
	}
	return int64(len(t.values) / t.stride)
}

// oldest is the oldest batch that is stored where newest is the newest.
func (t *totals) oldest(newest int64) int64 { return newest - t.places() + 1 }

// buffer is room for the numbers of a total.
type buffer [48]float64

// at returns the total at a batch, which may be in the memory of into. It is valid until
// the next change of the totals, and must not be changed. The caller makes sure that the
// batch is stored.
func (t *totals) at(seq int64, into []float64) []float64 {
	place := int(seq % t.places())
	if t.counts == nil {
		return t.values[place*t.stride : (place+1)*t.stride : (place+1)*t.stride]
	}
	if len(into) < t.stride {
		into = make([]float64, t.stride)
	}
	into = into[:t.stride]
	n := t.stride - 1
	for i, count := range t.counts[place*n : (place+1)*n] {
		into[i] = float64(count)
	}
	into[n] = t.values[place]
	return into
}

// number returns the only number of the total at a batch, or that of the first bucket.
func (t *totals) number(seq int64) float64 {
	place := int(seq % t.places())
	if t.counts == nil {
		return t.values[place*t.stride]
	}
	return float64(t.counts[place*(t.stride-1)])
}

// set stores the total at a batch.
func (t *totals) set(seq int64, numbers []float64) {
	place := int(seq % t.places())
	if t.counts != nil {
		n := t.stride - 1
		if t.narrow(t.counts[place*n:(place+1)*n], numbers[:n]) {
			t.values[place] = numbers[n]
			return
		}
		t.widen()
	}
	copy(t.values[place*t.stride:(place+1)*t.stride], numbers)
}

// narrow stores numbers as integers. It returns false where one of them is none.
func (*totals) narrow(to []uint32, numbers []float64) bool {
	for i, number := range numbers {
		if number < 0 || number > math.MaxUint32 || number != math.Trunc(number) {
			return false
		}
		to[i] = uint32(number)
	}
	return true
}

// widen stores all numbers as they are.
func (t *totals) widen() {
	wide := totals{stride: t.stride, values: make([]float64, len(t.values)*t.stride)}
	var b buffer
	for place := range t.places() {
		copy(wide.values[int(place)*t.stride:], t.at(place, b[:]))
	}
	*t = wide
}

// reserve makes room for keep totals, including the one after newest.
func (t *totals) reserve(newest, keep int64) {
	places := t.places()
	if places >= keep && places > 0 {
		return
	}
	size := int(max(sizeFor(keep), places))
	grown := totals{stride: t.stride}
	if t.counts != nil || places == 0 && t.stride >= narrowest {
		grown.values, grown.counts = make([]float64, size), make([]uint32, size*(t.stride-1))
	} else {
		grown.values = make([]float64, size*t.stride)
	}
	if places > 0 {
		var b buffer
		for seq := max(t.oldest(newest), 0); seq <= newest; seq++ {
			grown.set(seq, t.at(seq, b[:]))
		}
	}
	*t = grown
}

// fill stores the total at a batch for those after it, up to and without another batch.
func (t *totals) fill(from, to int64) {
	missing := max(from+1, to-t.places()+1)
	if missing >= to {
		return
	}
	var b buffer
	// The place of the first total may be among those that are filled.
	last := slices.Clone(t.at(from, b[:]))
	for ; missing < to; missing++ {
		t.set(missing, last)
	}
}
