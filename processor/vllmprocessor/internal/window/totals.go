package window

import (
	"math"
	"slices"
)

// totals stores the running totals of a series at the newest batches. A total has one
// number, or those of a distribution: its buckets and then its sum.
//
// Within a window most buckets count less than 65,536 observations. Then a total stores by
// how much they are above a base, with two buckets in a word; this takes a quarter of the
// memory and is exact. With more observations a bucket takes a word. At the first number
// that is not an integer of 32 bits, all are stored as they are.
type totals struct {
	stride int
	form   form
	// values are all numbers of each place, or only the last one where the others are in
	// words.
	values []float64
	// words are, in the form halves, the base and then the buckets of each place.
	words []uint32
}

// form is how the buckets are stored.
type form uint8

const (
	floats form = iota
	words
	// baseless is the form halves before the first total, which becomes the base.
	baseless
	halves
)

// narrowest is the least numbers of a total that are stored as integers.
const narrowest = 4

func (t *totals) places() int64 {
	if t.form != floats {
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
	return t.stored(int(seq%t.places()), into)
}

func (t *totals) stored(place int, into []float64) []float64 {
	if t.form == floats {
		return t.values[place*t.stride : (place+1)*t.stride : (place+1)*t.stride]
	}
	if len(into) < t.stride {
		into = make([]float64, t.stride)
	}
	into = into[:t.stride]
	n := t.stride - 1
	if t.form == words {
		for i, count := range t.words[place*n : (place+1)*n] {
			into[i] = float64(count)
		}
	} else {
		bases := t.words[:n]
		for i, two := range t.above(place) {
			into[2*i] = float64(bases[2*i] + two&math.MaxUint16)
			if 2*i+1 < n {
				into[2*i+1] = float64(bases[2*i+1] + two>>16)
			}
		}
	}
	into[n] = t.values[place]
	return into
}

// above returns the buckets of a place in the form halves.
func (t *totals) above(place int) []uint32 {
	n := t.stride - 1
	return t.words[n+place*((n+1)/2):][:(n+1)/2]
}

// number returns the only number of the total at a batch, or that of the first bucket.
func (t *totals) number(seq int64) float64 {
	place := int(seq % t.places())
	if t.form != floats {
		return t.stored(place, nil)[0]
	}
	return t.values[place*t.stride]
}

func (t *totals) set(seq int64, numbers []float64) {
	place := int(seq % t.places())
	for !t.put(place, numbers) {
		t.widen(place, numbers)
	}
}

// put stores a total at a place. It returns false where it has no room in the form.
func (t *totals) put(place int, numbers []float64) bool {
	n := t.stride - 1
	switch t.form {
	case floats:
		copy(t.values[place*t.stride:(place+1)*t.stride], numbers)
		return true
	case words:
		if !integers(t.words[place*n:(place+1)*n], numbers[:n]) {
			return false
		}
	case baseless:
		if !integers(t.words[:n], numbers[:n]) {
			return false
		}
		t.form = halves
	case halves:
		above := t.above(place)
		for i, base := range t.words[:n] {
			over := numbers[i] - float64(base)
			if !(over >= 0 && over <= math.MaxUint16 && numbers[i] <= math.MaxUint32) || over != math.Trunc(over) {
				return false
			}
			shift := i % 2 * 16
			above[i/2] = above[i/2]&^(math.MaxUint16<<shift) | uint32(over)<<shift
		}
	}
	t.values[place] = numbers[n]
	return true
}

// integers stores numbers as integers. It returns false where one of them is none.
func integers(to []uint32, numbers []float64) bool {
	for i, number := range numbers {
		if !(number >= 0 && number <= math.MaxUint32) || number != math.Trunc(number) {
			return false
		}
		to[i] = uint32(number)
	}
	return true
}

// widen finds the narrowest form for the stored totals and another one at a place.
func (t *totals) widen(place int, numbers []float64) {
	next := totals{stride: t.stride, form: floats}
	if base, fits := t.base(place, numbers); fits {
		next.form = halves
		next.allocate(int(t.places()))
		copy(next.words, base)
	} else {
		if t.form != words && integers(make([]uint32, t.stride-1), numbers[:t.stride-1]) {
			next.form = words
		}
		next.allocate(int(t.places()))
	}
	var b buffer
	for other := range int(t.places()) {
		if other != place {
			next.put(other, t.stored(other, b[:]))
		}
	}
	*t = next
}

// spread is the most that two totals of a bucket may differ by when the base changes. As
// much is then free, so that the base stays for at least as many batches as are stored.
const spread = math.MaxUint16 / 2

// base returns the least number of each bucket, over the stored totals and another one at a
// place. It returns false where there is none or one of the buckets has grown by too much.
func (t *totals) base(place int, numbers []float64) (least []uint32, fits bool) {
	n := t.stride - 1
	least = make([]uint32, n)
	if t.form != halves || !integers(least, numbers[:n]) {
		return nil, false
	}
	greatest := slices.Clone(least)
	var b buffer
	for other := range int(t.places()) {
		if other == place {
			continue
		}
		for i, number := range t.stored(other, b[:])[:n] {
			least[i], greatest[i] = min(least[i], uint32(number)), max(greatest[i], uint32(number))
			if greatest[i]-least[i] > spread {
				return nil, false
			}
		}
	}
	return least, true
}

func (t *totals) allocate(places int) {
	n := t.stride - 1
	switch t.form {
	case floats:
		t.values = make([]float64, places*t.stride)
		return
	case words:
		t.words = make([]uint32, places*n)
	default:
		t.words = make([]uint32, n+places*((n+1)/2))
	}
	t.values = make([]float64, places)
}

// reserve makes room for keep totals, including the one after newest.
func (t *totals) reserve(newest, keep int64) {
	places := t.places()
	if places >= keep && places > 0 {
		return
	}
	grown := totals{stride: t.stride}
	if t.form != floats || places == 0 && t.stride >= narrowest {
		grown.form = baseless
	}
	grown.allocate(int(max(sizeFor(keep), places)))
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
