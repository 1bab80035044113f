package objective

import "slices"

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
		"the saved state is older than the budget window, so the budget starts anew",
		"the objective has another metric than when its state was saved, so its budget starts anew",
		"the objective has another threshold than when its state was saved, so its budget starts anew",
		"the saved state cannot be read, so the budget starts anew",
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
