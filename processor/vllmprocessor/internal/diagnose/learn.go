package diagnose

import (
	"math"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/learn"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// learn adds a reading to the baseline where nothing is wrong. Readings that look harmed
// for less than the hold are learned later, as usual variation.
func (e *engine) learn(settings *Settings, s *State, r *reading, found *symptoms, raw Condition) {
	length := settings.Window
	switch {
	case e.reported.Severity >= 2:
		e.unlearned = e.unlearned[:0]
		e.relearn(settings, s, r, found, raw)
		return
	case raw != Healthy && raw != Degraded || e.backlog.over:
		return
	case !e.baseline.Ready():
		if raw == Healthy && !found.suspect {
			e.baseline.Learn(&r.Window, length, true, true)
		}
		return
	}
	e.next = nil
	if n := len(e.unlearned); n == 0 || r.At-e.unlearned[n-1].At >= int64(length) {
		e.unlearned = append(e.unlearned, *r)
	}
	for len(e.unlearned) > 0 && raw == Healthy && !found.suspect && r.At-e.unlearned[0].At > int64(settings.Hold)*int64(length) {
		e.baseline.Learn(&e.unlearned[0].Window, length, e.changes[slowerSteps].score < suspicious, e.changes[slowerPrefills].score < suspicious)
		e.unlearned = slices.Delete(e.unlearned, 0, 1)
	}
	if most := 2 * settings.Hold; len(e.unlearned) > most {
		e.unlearned = slices.Delete(e.unlearned, 0, len(e.unlearned)-most)
	}
}

// suspicious is the score from which on what may be a change is not learned.
const suspicious = 2

// relearn makes a new level the baseline when it has been stable for long enough. Errors,
// dropped requests, missed objectives and restarts never become usual. An engine that was
// beyond the defaults from the start gets its baseline only here.
func (e *engine) relearn(settings *Settings, s *State, r *reading, found *symptoms, raw Condition) {
	if raw != Degraded && raw != Healthy || raw == Degraded && !found.any() || found.errors || found.dropped || found.objective.name != "" || e.backlog.over {
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
	e.next.Learn(&r.Window, settings.Window, true, true)
	if r.At-e.nextSince < int64(settings.RelearnAfter) || !e.next.Ready() {
		return
	}
	before := e.reported
	e.baseline, e.next = e.next, nil
	if before.Severity < 2 {
		return
	}
	e.reported = Verdict{Condition: Healthy}
	e.raw, e.rawSince, e.bad, e.badSince, e.shares = Healthy, r.At, false, r.At, Shares{}
	e.memory.add(e)
	t := e.transition(s, before, &symptoms{})
	t.Relearned = true
	s.transitions = append(s.transitions, t)
}
