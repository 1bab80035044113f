package objective

import "errors"

// Restored says what became of a saved state.
type Restored uint8

// The outcomes of Restore. The windows continue after the first three.
const (
	// RestoredAll is the usual case.
	RestoredAll Restored = iota
	// RestoredWindows: the budget window or the burn windows are others now. What
	// was saved for another budget window went over into the new one, as far back
	// as that reaches; a new burn window begins empty.
	RestoredWindows
	// RestoredUntilNow: the state is from later than now, so the clock was set
	// back. What lies in the future was left out.
	RestoredUntilNow
	// RestoredNothing: the state is older than the budget window.
	RestoredNothing
	// RestoredOtherMetric and RestoredOtherThreshold: what the state counted as
	// good is not what is good now.
	RestoredOtherMetric
	RestoredOtherThreshold
	// RestoredOtherVersion: another version of the program saved it.
	RestoredOtherVersion
	// RestoredDamaged: it is not a state that was saved, or not all of it.
	RestoredDamaged
)

// String is a sentence for the log.
func (r Restored) String() string {
	return [...]string{
		"the saved windows continue",
		"the saved windows continue as far as the windows configured now allow",
		"the saved windows continue without what they held for later than now: the clock was set back",
		"the saved state is older than the budget window, so the budget starts anew",
		"the objective has another metric than when its state was saved, so its budget starts anew",
		"the objective has another threshold than when its state was saved, so its budget starts anew",
		"the saved state was written by another version, so the budget starts anew",
		"the saved state cannot be read, so the budget starts anew",
	}[r]
}

// Restore continues the windows of a saved state in a tracker that has counted
// nothing yet. The time between the state's last step and the next one was not
// seen. A new target needs no mention: the counts are the same.
func (t *Tracker) Restore(state []byte, now int64) Restored {
	old, err := decodeState(state)
	switch {
	case errors.Is(err, errVersion):
		return RestoredOtherVersion
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

// after tells whether anything is from later than now.
func (s *saved) after(now int64) bool {
	for i := range s.rings {
		if s.rings[i].newest > s.rings[i].number(now) {
			return true
		}
	}
	return s.seenUntil > now
}

func (s *saved) forget(after int64) {
	for i := range s.rings {
		s.rings[i].forget(after)
	}
	s.seenUntil = min(s.seenUntil, after)
}

// holds tells whether a window still holds something now.
func (s *saved) holds(now int64) bool {
	for i := range s.rings {
		if reading := s.rings[i].over(now); reading.Coverage > 0 || reading.Valid > 0 {
			return true
		}
	}
	return false
}

// adopt takes over the saved rings. It is true where the windows are the same.
func (t *Tracker) adopt(old *saved) bool {
	same := len(old.rings) == len(t.rings)
	oldBurn, oldBudget := old.rings[:len(old.rings)-1], &old.rings[len(old.rings)-1]
	burn, budget := t.rings[:len(t.rings)-1], &t.rings[len(t.rings)-1]
	for i := range burn {
		found := false
		for j := range oldBurn {
			if oldBurn[j].window == burn[i].window {
				burn[i], found = oldBurn[j], true
			}
		}
		same = same && found
	}
	if oldBudget.window == budget.window {
		*budget = *oldBudget
		return same
	}
	budget.refill(oldBudget, old.seenUntil)
	return false
}

// refill moves the slots of a ring with another window into this one, each whole
// at its end. So the old edge is off by up to one slot of the other ring as well,
// until what was moved has left the window.
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

// Thin leaves out of a saved state what its windows have moved past. A state that
// waits for its server to come back shrinks with them; one that cannot be read is
// returned as it is.
func Thin(state []byte, now int64) []byte {
	old, err := decodeState(state)
	if err != nil {
		return state
	}
	for i := range old.rings {
		old.rings[i].drop(now)
	}
	t := Tracker{metric: old.metric, threshold: old.threshold, seenUntil: old.seenUntil, rings: old.rings}
	return t.Encode()
}

// StateAge returns the time of the newest step in a saved state, so that states
// which nobody has asked for can be removed when they are old; false where it
// cannot be read.
func StateAge(state []byte) (newest int64, ok bool) {
	s, err := decodeState(state)
	if err != nil {
		return 0, false
	}
	return s.seenUntil, true
}
