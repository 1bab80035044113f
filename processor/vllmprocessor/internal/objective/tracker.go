package objective

import (
	"slices"
	"time"
)

// Windows are the spans over which a Tracker can be read.
type Windows struct {
	// Burn are the windows of the burn rates.
	Burn []time.Duration
	// Budget is the window of the error budget.
	Budget time.Duration
}

// Tracker counts the observations of one objective on one resource and model. It is not
// safe for concurrent use. Its memory is fixed: about 4 kB for the budget window and for
// each burn window.
//
// It makes two approximations:
//
//   - A step counts whole at its end, because the times of its observations are unknown.
//     So a window begins with the first step that ends inside it.
//   - The old edge of a window is at a slot. A reading of a window w is exact for a window
//     that is longer by less than w/120. Reading.Since is its real edge.
type Tracker struct {
	metric    string
	threshold Duration

	start int64
	total Counts
	// seenUntil is the end of the newest step. Time before it is not counted twice where
	// steps overlap, as those of several engines do.
	seenUntil int64
	// behind is the number of consecutive steps that ended long before that.
	behind int
	// rings are those of the burn windows, then that of the budget.
	rings []ring
}

// NewTracker returns a tracker that begins at the start of its first step.
func NewTracker(o *Objective, windows Windows, start int64) *Tracker {
	t := &Tracker{metric: o.Metric, threshold: o.Threshold, start: start, rings: make([]ring, 0, len(windows.Burn)+1)}
	for _, window := range windows.Burn {
		t.rings = append(t.rings, newRing(window))
	}
	t.rings = append(t.rings, newRing(windows.Budget))
	return t
}

// Outcome is the outcome of adding a step.
type Outcome uint8

// The outcomes of Add.
const (
	// Added: the step was counted.
	Added Outcome = iota
	// Late: the step ended before even the budget window began.
	Late
	// ClockSetBack: several consecutive steps ended long before earlier ones, so the
	// clock was set back. Everything after the step was dropped, and the step counted.
	ClockSetBack
	// Unsound: the times or counts are impossible. The step was not counted.
	Unsound
)

// String returns the outcome as the value of an attribute.
func (o Outcome) String() string {
	return [...]string{"added", "late", "clock_set_back", "unsound"}[o]
}

// stepsToBelieve is the number of consecutive steps from long ago that prove that the clock
// was set back. A single one is only late.
const stepsToBelieve = 3

// Add records the observations in (from, to]. Steps may be late and may overlap: each
// counts in the windows that contain its end. A step far in the future moves all windows
// there, so the caller must refuse it. Add does not allocate.
func (t *Tracker) Add(from, to int64, c Counts) Outcome {
	if to <= from || !c.sound() {
		return Unsound
	}
	outcome := Added
	// Further back than the shortest window.
	if slices.ContainsFunc(t.rings, func(r ring) bool { return to < t.seenUntil-r.window }) {
		t.behind++
		if t.behind >= stepsToBelieve {
			t.forget(from)
			t.behind = 0
			outcome = ClockSetBack
		}
	} else {
		t.behind = 0
	}
	counted := false
	for i := range t.rings {
		counted = t.rings[i].count(to, c) || counted
	}
	if !counted {
		return Late
	}
	t.total.add(c)
	if to > t.seenUntil {
		from = max(from, t.seenUntil)
		for i := range t.rings {
			t.rings[i].see(from, to)
		}
		t.seenUntil = to
	}
	return outcome
}

func (t *Tracker) forget(after int64) {
	for i := range t.rings {
		t.rings[i].forget(after)
	}
	t.seenUntil = min(t.seenUntil, after)
}

// Totals returns the counts since the start, a monotonic sum, and the start. The sum
// restarts from 0 with the collector; the windows continue.
func (t *Tracker) Totals() (total Counts, start int64) { return t.total, t.start }

// Reading is the content of a window.
type Reading struct {
	Counts
	// Since is the real beginning of the window, less than a 120th of it before its edge.
	Since int64
	// Coverage is the observed share of the time since then, 0 to 1. Gaps and the time
	// before the start are not observed.
	Coverage float64
}

// Burn reads the burn window with an index in Windows.Burn, as of a time.
func (t *Tracker) Burn(window int, at int64) Reading { return t.rings[window].over(at) }

// Budget reads the budget window as of a time.
func (t *Tracker) Budget(at int64) Reading { return t.rings[len(t.rings)-1].over(at) }

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
	r.empty(keep+1, r.newest)
	// Older slots get the emptied places.
	r.newest = min(r.newest, keep)
}

// empty empties the slots with these numbers, as far as they exist.
func (r *ring) empty(first, last int64) {
	for i := max(first, r.newest-ringSlots+1); i <= min(last, r.newest); i++ {
		*r.at(i) = slot{}
	}
}

// drop empties the slots that have left the window before a time.
func (r *ring) drop(now int64) {
	r.empty(r.newest-ringSlots+1, floorDiv(now-r.window, r.width)-1)
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
