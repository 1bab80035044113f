package objective

import "time"

const (
	// slotsPerWindow is the resolution of a window. Its old edge is exact to a 120th of
	// the window: 30 s of an hour, 6 h of 30 days.
	slotsPerWindow = 120
	// ringSlots is one more, for the slot at the edge.
	ringSlots = slotsPerWindow + 1
)

// slot is the observations in one 120th of a window.
type slot struct {
	Counts
	// seen is the observed part of the slot's time, in nanoseconds.
	seen int64
}

// ring is a sliding window in slots at fixed places of the timeline. Slot number i is the
// time (i*width, (i+1)*width] in Unix nanoseconds.
type ring struct {
	window, width int64
	// newest is the number of the newest slot. Slots after newest-ringSlots exist;
	// number i is at slots[i mod ringSlots].
	newest int64
	slots  []slot
}

func newRing(window time.Duration) ring {
	// Rounded up, so that the slots always cover the window.
	width := (int64(window) + slotsPerWindow - 1) / slotsPerWindow
	return ring{window: int64(window), width: width, slots: make([]slot, ringSlots)}
}

// number returns the slot of a step that ended at a time.
func (r *ring) number(at int64) int64 { return floorDiv(at-1, r.width) }

func (r *ring) at(number int64) *slot {
	i := number % ringSlots
	if i < 0 {
		i += ringSlots
	}
	return &r.slots[i]
}

// advance makes a slot the newest, unless a newer one exists.
func (r *ring) advance(number int64) {
	if number <= r.newest {
		return
	}
	for i := max(r.newest+1, number-ringSlots+1); i <= number; i++ {
		*r.at(i) = slot{}
	}
	r.newest = number
}

// count adds observations to the slot in which their step ended. It returns false where
// that slot has left the window.
func (r *ring) count(to int64, c Counts) bool {
	number := r.number(to)
	r.advance(number)
	if number <= r.newest-ringSlots {
		return false
	}
	r.at(number).add(c)
	return true
}

// see marks the time (from, to] as observed.
func (r *ring) see(from, to int64) {
	last := r.number(to)
	r.advance(last)
	// A step may begin long before the window.
	first := max(floorDiv(from, r.width), r.newest-ringSlots+1)
	for i := first; i <= last; i++ {
		r.at(i).seen += min(to, (i+1)*r.width) - max(from, i*r.width)
	}
}

// over sums the slots that overlap the window before a time.
func (r *ring) over(at int64) Reading {
	first, last := floorDiv(at-r.window, r.width), r.number(at)
	reading := Reading{Since: first * r.width}
	seen := int64(0)
	for i := max(first, r.newest-ringSlots+1); i <= min(last, r.newest); i++ {
		s := r.at(i)
		reading.add(s.Counts)
		seen += s.seen
	}
	reading.Coverage = min(float64(seen)/float64(at-reading.Since), 1)
	return reading
}

// forget empties the slots that begin at or after a time.
func (r *ring) forget(after int64) {
	keep := r.number(after)
	if r.newest <= keep {
		return
	}
	for i := max(keep+1, r.newest-ringSlots+1); i <= r.newest; i++ {
		*r.at(i) = slot{}
	}
	// Older slots get the emptied places.
	r.newest = keep
}

// drop empties the slots that have left the window before a time.
func (r *ring) drop(now int64) {
	first := floorDiv(now-r.window, r.width)
	for i := r.newest - ringSlots + 1; i <= min(first-1, r.newest); i++ {
		*r.at(i) = slot{}
	}
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
