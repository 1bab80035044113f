package objective

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
	"slices"
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

// Restored is the outcome of restoring a saved state.
type Restored uint8

// The outcomes of Restore. With the first three the windows continue.
const (
	// RestoredAll is the usual case.
	RestoredAll Restored = iota
	// RestoredWindows: the configured windows have changed. The counts of the old budget
	// window were moved to the new one, as far back as it reaches. A new burn window
	// begins empty.
	RestoredWindows
	// RestoredUntilNow: the clock was set back, and the state has counts for times after
	// now. These were dropped.
	RestoredUntilNow
	// RestoredNothing: the state is older than the budget window.
	RestoredNothing
	// RestoredOtherMetric and RestoredOtherThreshold: the state counted other
	// observations as good.
	RestoredOtherMetric
	RestoredOtherThreshold
	// RestoredDamaged: the bytes are not a complete state.
	RestoredDamaged
)

// String is a sentence for the log.
func (r Restored) String() string {
	return [...]string{
		"the saved windows continue",
		"the saved windows continue as far as the windows configured now allow",
		"the clock was set back: the saved windows continue without what was counted after the present time",
		"the saved state is older than the budget window, so the budget starts again",
		"the objective has another metric than when its state was saved, so its budget starts again",
		"the objective has another threshold than when its state was saved, so its budget starts again",
		"the saved state cannot be read, so the budget starts again",
	}[r]
}

// Restore continues the windows of a saved state in a tracker without counts. The time
// between the last step of the state and the next one counts as not observed. Another
// target changes nothing, because the counts are the same.
func (t *Tracker) Restore(state []byte, now int64) Restored {
	old, err := decodeState(state)
	switch {
	case err != nil:
		return RestoredDamaged
	case old.metric != t.metric:
		return RestoredOtherMetric
	case old.threshold != t.threshold:
		return RestoredOtherThreshold
	}
	outcome := RestoredAll
	if old.after(now) {
		outcome = RestoredUntilNow
		old.forget(now)
	}
	if !old.holds(now) {
		return RestoredNothing
	}
	if !t.adopt(old) && outcome == RestoredAll {
		outcome = RestoredWindows
	}
	t.seenUntil = old.seenUntil
	return outcome
}

// after reports whether the windows have anything later than now.
func (t *Tracker) after(now int64) bool {
	return t.seenUntil > now || slices.ContainsFunc(t.rings, func(r ring) bool { return r.newest > r.number(now) })
}

// holds reports whether a window has anything now.
func (t *Tracker) holds(now int64) bool {
	return slices.ContainsFunc(t.rings, func(r ring) bool {
		reading := r.over(now)
		return reading.Coverage > 0 || reading.Valid > 0
	})
}

// adopt uses the rings of a saved state. It reports whether the windows are the same.
func (t *Tracker) adopt(old *Tracker) bool {
	same := len(old.rings) == len(t.rings)
	last, oldLast := len(t.rings)-1, len(old.rings)-1
	for i := range t.rings[:last] {
		at := slices.IndexFunc(old.rings[:oldLast], func(r ring) bool { return r.window == t.rings[i].window })
		if at >= 0 {
			t.rings[i] = old.rings[at]
		}
		same = same && at >= 0
	}
	if old.rings[oldLast].window == t.rings[last].window {
		t.rings[last] = old.rings[oldLast]
		return same
	}
	t.rings[last].refill(&old.rings[oldLast], old.seenUntil)
	return false
}

// refill moves the slots of a ring with another window into this one, each at its end. So
// the old edge of the window is inexact by up to one slot of the other ring, until the
// moved slots have left the window.
func (r *ring) refill(from *ring, until int64) {
	for number := from.newest - ringSlots + 1; number <= from.newest; number++ {
		s := from.at(number)
		if *s == (slot{}) {
			continue
		}
		end := min((number+1)*from.width, until)
		if r.count(end, s.Counts) {
			r.at(r.number(end)).seen += s.seen
		}
	}
}

// Thin removes the slots that have left the windows from a saved state, so that a state
// whose server is away becomes smaller. A state that cannot be read is returned
// unchanged.
func Thin(state []byte, now int64) []byte {
	old, err := decodeState(state)
	if err != nil {
		return state
	}
	for i := range old.rings {
		old.rings[i].drop(now)
	}
	return old.Encode()
}

// StateAge returns the time of the newest step in a saved state, so that old unused states
// can be removed; false where the state cannot be read.
func StateAge(state []byte) (newest int64, ok bool) {
	s, err := decodeState(state)
	if err != nil {
		return 0, false
	}
	return s.seenUntil, true
}
