package objective

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"time"
)

// The format of a saved state: the metric and a zero, and then as uvarints the threshold, the end of the newest
// step, and the number of rings. For each ring: its window, the number of its newest slot, and for each slot that
// is not empty its age in slots, its seen time and its three counts; ringSlots ends a ring. The archive has a checksum of it; its
// form must change with the format and with slotsPerWindow.

const (
	// maxStateSize is the most bytes of a saved state. A full state with a budget window and
	// two burn windows takes about 6 kB.
	maxStateSize = 64 << 10
	// maxMetric bounds the name of its metric, in bytes.
	maxMetric = 1 << 10
	maxRings  = maxBurnWindows + 1
)

// Encode returns the windows of the tracker for Restore. The sums since the start are not
// included: they restart from 0.
func (t *Tracker) Encode() []byte {
	data := append([]byte(t.metric), 0)
	put := func(n uint64) { data = binary.AppendUvarint(data, n) }
	put(uint64(t.threshold))
	put(uint64(t.seenUntil))
	put(uint64(len(t.rings)))
	for i := range t.rings {
		r := &t.rings[i]
		put(uint64(r.window))
		put(uint64(r.newest))
		for age := range int64(ringSlots) {
			s := r.at(r.newest - age)
			if *s == (slot{}) {
				continue
			}
			put(uint64(age))
			put(uint64(s.seen))
			for _, n := range [...]float64{s.Valid, s.Good, s.Undecided} {
				// The low bits of the mantissa of a whole number are 0, so its reverse is short.
				put(bits.ReverseBytes64(math.Float64bits(n)))
			}
		}
		put(ringSlots)
	}
	return data
}

var errDamaged = errors.New("damaged")

// decodeState reads the output of Encode. It rejects negative counts, numbers out of range
// and states larger than the largest possible one.
func decodeState(data []byte) (*Tracker, error) {
	metric, rest, _ := bytes.Cut(data, []byte{0})
	damaged := len(data) > maxStateSize || len(metric) > maxMetric
	// After the first number that is missing or out of range all others are.
	next := func(least, most int64) int64 {
		n, size := binary.Uvarint(rest)
		if damaged = damaged || size <= 0 || n < uint64(least) || n > uint64(most); damaged {
			return least
		}
		rest = rest[size:]
		return int64(n)
	}
	count := func() float64 {
		n, size := binary.Uvarint(rest)
		if damaged = damaged || size <= 0; damaged {
			return 0
		}
		rest = rest[size:]
		return math.Float64frombits(bits.ReverseBytes64(n))
	}
	t := &Tracker{metric: string(metric), threshold: Duration(next(0, math.MaxInt64)), seenUntil: next(0, math.MaxInt64)}
	for range next(1, maxRings) {
		r := newRing(time.Duration(next(int64(minWindow), int64(maxWindow))))
		r.newest = next(0, math.MaxInt64/r.width-1)
		for age := next(0, ringSlots); age < ringSlots && !damaged; age = next(age+1, ringSlots) {
			s := slot{seen: next(0, int64(maxWindow)), Counts: Counts{Valid: count(), Good: count(), Undecided: count()}}
			damaged = damaged || !s.sound()
			*r.at(r.newest - age) = s
		}
		t.rings = append(t.rings, r)
	}
	if damaged || len(rest) > 0 {
		return nil, errDamaged
	}
	return t, nil
}
