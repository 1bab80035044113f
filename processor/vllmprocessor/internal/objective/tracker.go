package objective

import (
	"time"
	"unsafe"
)

// Windows are the spans over which a Tracker can be read.
type Windows struct {
	// Burn are the windows of the burn rates.
	Burn []time.Duration
	// Budget is the window of the error budget.
	Budget time.Duration
}

// Tracker counts how one objective fares on one server or group. It is for one
// goroutine at a time. Its memory is fixed: about 4 kB for the budget window and
// as much for each burn window.
//
// Two approximations are made, and no others:
//
//   - A step counts whole at its end: when within a step its observations came,
//     nobody knows. A window therefore begins with the first step that ends
//     inside it.
//   - The old edge of a window lies on a slot: what is read as a window w is
//     exact for a window that is longer, by less than w/120. Reading.Since is
//     its edge.
type Tracker struct {
	metric    string
	threshold Duration

	start int64
	total Counts
	// seenUntil is the end of the newest step. Times before it are not seen twice
	// where steps overlap, as those of several servers do.
	seenUntil int64
	// behind is how many steps in a row ended long before that.
	behind int
	// rings are those of the burn windows, then that of the budget.
	rings []ring
}

// NewTracker returns a tracker that begins at a time: that of the sample which
// the first step starts from.
func NewTracker(o *Objective, windows Windows, start int64) *Tracker {
	t := &Tracker{metric: o.Metric, threshold: o.Threshold, start: start, rings: make([]ring, 0, len(windows.Burn)+1)}
	for _, window := range windows.Burn {
		t.rings = append(t.rings, newRing(window))
	}
	t.rings = append(t.rings, newRing(windows.Budget))
	return t
}

// Outcome says what became of a step.
type Outcome uint8

// The outcomes of Add.
const (
	// Added is the usual case.
	Added Outcome = iota
	// Late: the step ended before even the budget window began.
	Late
	// ClockSetBack: steps keep ending long before those known already, so the
	// clock was set back. What lay after the step was forgotten, the step counted.
	ClockSetBack
	// Unsound: the times or counts cannot be; the step was left out.
	Unsound
)

// String names the outcome, for an attribute.
func (o Outcome) String() string {
	return [...]string{"added", "late", "clock_set_back", "unsound"}[o]
}

// stepsToBelieve is after how many steps in a row from long ago the clock is
// believed to be set back; a single one is a straggler.
const stepsToBelieve = 3

// Add records what was observed in (from, to]. Steps may come late and may
// overlap: each counts in those windows that still hold its end. A step from far
// in the future moves all windows there, so whoever has a clock should refuse
// it. Add allocates nothing.
func (t *Tracker) Add(from, to int64, c Counts) Outcome {
	if to <= from || !c.sound() {
		return Unsound
	}
	outcome := Added
	if t.longAgo(to) {
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

// longAgo tells whether a time lies further back than the shortest window.
func (t *Tracker) longAgo(at int64) bool {
	shortest := t.rings[0].window
	for i := range t.rings {
		shortest = min(shortest, t.rings[i].window)
	}
	return at < t.seenUntil-shortest
}

// forget leaves out what lies after a time.
func (t *Tracker) forget(after int64) {
	for i := range t.rings {
		t.rings[i].forget(after)
	}
	t.seenUntil = min(t.seenUntil, after)
}

// Totals returns all counts since the start and the start: a monotonic sum. It
// begins at 0 after a restart of the collector, when the windows do not.
func (t *Tracker) Totals() (total Counts, start int64) { return t.total, t.start }

// Reading is what a window held.
type Reading struct {
	Counts
	// Window is the window's length.
	Window time.Duration
	// Since is where it really began; less than Window/120 before its edge.
	Since int64
	// Coverage is the share of the time since then in which was observed, 0 to 1.
	// Gaps, and the time before the start, are not seen.
	Coverage float64
}

// Burn reads the burn window with an index in Windows.Burn, as of a time.
func (t *Tracker) Burn(window int, at int64) Reading { return t.rings[window].over(at) }

// Budget reads the budget window as of a time.
func (t *Tracker) Budget(at int64) Reading { return t.rings[len(t.rings)-1].over(at) }

// Size is the memory of the tracker in bytes.
func (t *Tracker) Size() int {
	size := int(unsafe.Sizeof(*t))
	for i := range t.rings {
		size += t.rings[i].size()
	}
	return size
}
