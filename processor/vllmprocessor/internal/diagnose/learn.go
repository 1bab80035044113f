package diagnose

import (
	"math"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/learn"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// learn takes a reading into the baseline where nothing is wrong. What looks wrong
// for less than the hold is learned later, as what varies.
func (e *engine) learn(settings *Settings, s *State, r *reading, felt *symptoms, raw Condition) {
	length := settings.Window
	switch {
	case e.told.Severity >= 2, felt.beyond && raw == Healthy && e.baseline.Ready():
		// In the second case an objective says that it is no harm. It is not what was
		// usual all the same.
		e.unlearned = e.unlearned[:0]
		e.relearn(settings, s, r, felt, raw)
		return
	case raw != Healthy && raw != Degraded:
		return
	case !e.baseline.Ready():
		if raw == Healthy {
			e.baseline.Learn(&r.Window, length)
		}
		return
	}
	e.next = nil
	if n := len(e.unlearned); n == 0 || r.At-e.unlearned[n-1].At >= int64(length) {
		e.unlearned = append(e.unlearned, *r)
	}
	for len(e.unlearned) > 0 && raw == Healthy && r.At-e.unlearned[0].At > int64(settings.Hold)*int64(length) {
		e.baseline.Learn(&e.unlearned[0].Window, length)
		e.unlearned = slices.Delete(e.unlearned, 0, 1)
	}
	if most := 2 * settings.Hold; len(e.unlearned) > most {
		e.unlearned = slices.Delete(e.unlearned, 0, len(e.unlearned)-most)
	}
}

// relearn takes a new level as the baseline when it has lasted long enough. Errors, dropped requests,
// missed objectives and restarts are never taken as usual. An engine that was beyond the defaults from the
// first has no other way to a baseline.
func (e *engine) relearn(settings *Settings, s *State, r *reading, felt *symptoms, raw Condition) {
	if raw != Degraded && raw != Healthy || raw == Degraded && !felt.any() || felt.errors || felt.dropped || felt.objective.name != "" {
		e.next = nil
		return
	}
	stable := func(s signal.Signal) bool {
		growth := e.next.Growth(&r.Window, s)
		return !signal.Known(growth) || math.Abs(growth) < math.Log(1.5)
	}
	if e.next == nil || !stable(signal.TimeToFirstToken) || !stable(signal.InterTokenLatency) {
		e.next, e.nextSince = learn.NewBaseline(), r.At
	}
	e.next.Learn(&r.Window, settings.Window)
	if r.At-e.nextSince < int64(settings.RelearnAfter) || !e.next.Ready() {
		return
	}
	before := e.told
	e.baseline, e.next = e.next, nil
	if before.Severity < 2 {
		return
	}
	e.told = Verdict{Condition: Healthy}
	e.raw, e.rawSince, e.bad, e.badSince, e.shares = Healthy, r.At, false, r.At, Shares{}
	e.memory.see(e)
	t := e.transition(s, before, &symptoms{})
	t.Relearned = true
	s.transitions = append(s.transitions, t)
}
