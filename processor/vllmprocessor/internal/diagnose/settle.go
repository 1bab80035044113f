package diagnose

import (
	"math"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// reuseFell is the detail of prompts that are computed more and are not longer.
const reuseFell = "reuse_fell"

// settle decides what is told, given what the newest reading alone shows.
func (e *engine) settle(settings *Settings, s *State, raw Condition, at int64, felt *symptoms) {
	if raw != e.raw || e.rawSince == 0 {
		e.raw, e.rawSince = raw, at
	}
	if raw == Healthy && e.memory.any() && e.standing(&e.last) {
		// An engine that has requests and does not move may have stalled: it is not
		// reported to serve as it should.
		raw = e.told.Condition
	}
	bad := conditions[raw].Severity >= 2
	if bad != e.bad || e.badSince == 0 {
		e.bad, e.badSince = bad, at
	}
	before := e.told
	span := settings.HoldTime()
	switch {
	case !e.memory.any():
		// The first word; harm has to last all the same.
		if e.told.Condition = raw; bad && raw != Stalled && !s.server.certain(raw) && !(raw == Unreachable && e.lost) {
			e.told.Condition = Unknown
		}
	case raw == e.told.Condition:
	case raw == Stalled, raw == Draining, at-e.rawSince >= span, s.server.certain(raw), !bad && (e.told.Because == JustSeen || e.told.Because == FarApart):
		e.told.Condition = raw
	case bad && at-e.badSince >= span && conditions[e.told.Condition].Severity < 2:
		// It is one harm and then another, but harm all the time.
		e.told.Condition = Degraded
	case !bad && at-e.badSince >= span && conditions[e.told.Condition].Severity >= 2:
		e.told.Condition = raw
	}
	switch {
	case still(before.Condition) && !still(e.told.Condition):
		e.resumed = at
	case e.told.Condition == before.Condition && (e.told.Condition == Healthy || e.told.Condition == Idle):
		e.resumed = 0
	}
	if e.told.Condition == Degraded || e.told.Condition == Failing {
		e.causes(settings, &before, felt)
	} else {
		e.told.Explained, e.told.Contributing, e.since = false, [NumCauses]bool{}, [NumCauses]int64{}
	}
	e.notices()
	e.told.Because = e.because(s)
	e.told.Severity = conditions[e.told.Condition].Severity
	if e.told.Notices != ([NumCauses]bool{}) {
		e.told.Severity = max(e.told.Severity, 1)
	}
	if !e.memory.any() || !e.told.same(&before) || e.told.Notices != before.Notices || e.told.Contributing != before.Contributing {
		first := !e.memory.any()
		e.memory.see(e)
		if first {
			before = e.follows
		}
		if !first || e.told.Severity > 0 || before.Severity >= 2 {
			s.transitions = append(s.transitions, e.transition(s, before, felt))
		}
	}
}

// still tells whether an engine does no work in a condition. One that is not
// reachable may work all the same.
func still(c Condition) bool { return c == Stalled || c == Asleep || c == Starting }

func (e *engine) transition(s *State, before Verdict, felt *symptoms) Transition {
	t := Transition{At: e.last.At, Attributes: e.attributes, From: before, To: e.told, Signals: e.last.Signals, Usual: signal.Unknown(), Missed: felt.objective.share}
	switch e.told.Condition {
	case Unreachable, Unknown, Starting:
		t.Failure = s.server.failure
	default:
	}
	for s := range signal.Count {
		t.Usual[s] = e.baseline.Usual(s)
	}
	for c := range NumCauses {
		t.Details[c] = e.detail(c)
	}
	return t
}

// causes chooses the primary cause and those that contribute.
func (e *engine) causes(settings *Settings, before *Verdict, felt *symptoms) {
	if felt.any() {
		e.told.Reference, e.told.Objective = felt.reference, felt.objective.name
	}
	largest := Cause(0)
	for c := range NumCauses {
		if e.shares[c] > e.shares[largest] {
			largest = c
		}
	}
	switch {
	case e.shares[largest] < e.explains() && !e.told.Explained:
	case e.shares[largest] < e.explains()*StillHarm:
		e.told.Explained = false
	case !e.told.Explained, e.shares[largest] > overtakes*e.shares[e.told.Primary]:
		e.told.Primary, e.told.Explained = largest, true
	}
	// The harm has lasted as long as the hold when it is told, and so have its causes.
	first := before.Condition != Degraded && before.Condition != Failing
	for c := range NumCauses {
		least := contributes
		if e.told.Contributing[c] {
			least = stillContributes
		}
		primary := e.told.Explained && c == e.told.Primary
		now := e.shares[c] >= least && !primary
		if now == e.told.Contributing[c] {
			e.since[c] = 0
			continue
		}
		if e.since[c] == 0 {
			e.since[c] = e.last.At
		}
		// A cause that becomes the primary one, or was it, changes its role at once.
		role := primary || before.Explained && before.Primary == c
		if first || role || e.last.At-e.since[c] >= settings.HoldTime() {
			e.told.Contributing[c], e.since[c] = now, 0
		}
	}
}

// explains is the least share of the harm that makes a cause the primary one. With
// nothing to compare with it has to be most of it. A pool compares nothing itself.
func (e *engine) explains() float64 {
	if e.described == nil && e.baseline != nil && !e.baseline.Ready() {
		return explainsAlone
	}
	return explains
}

// notices are what is worth knowing and does no harm. Nothing new is said about them
// while the newest readings show harm that has not lasted yet, or nothing moves.
func (e *engine) notices() {
	if (e.bad || e.standing(&e.last)) && (e.told.Condition == Healthy || e.told.Condition == Idle) {
		return
	}
	if !signal.Known(e.last.Signals[signal.Running]) || e.last.elapsed == 0 {
		// A scrape that failed, or the first after a gap, says nothing about them.
		e.told.Notices[FrozenGauges] = e.told.Notices[FrozenGauges] && e.told.Condition == Idle
		e.told.Notices[WorkloadShift] = e.told.Notices[WorkloadShift] && e.told.Condition == Healthy
		return
	}
	e.told.Notices[FrozenGauges] = e.told.Condition == Idle && e.frozen(&e.last)
	grown := 0.0
	if e.told.Condition == Healthy && e.baseline.Ready() && e.last.FirstTokens >= leastObjectiveSeen {
		for _, s := range []signal.Signal{signal.ArrivalRate, signal.PromptTokens, signal.OutputTokens} {
			grown = max(grown, math.Abs(signal.OrZero(e.baseline.Growth(&e.last.Window, s)))/max(shifted, deviations*e.baseline.Spread(s)))
		}
	}
	e.told.Notices[WorkloadShift] = grown >= 1 || (e.told.Notices[WorkloadShift] && grown >= StillHarm)
}

// detail says more about a cause.
func (e *engine) detail(c Cause) string {
	if e.described != nil {
		return e.described[c]
	}
	r, b := &e.last, e.baseline
	switch c {
	case DemandExceedsCapacity:
		queued := signal.OrZero(r.Signals[signal.Waiting]) - signal.OrZero(r.Signals[signal.Deferred])
		switch {
		case r.Signals[signal.KVUtilization] > full || r.Signals[signal.Preemptions] > preempting:
			return "kv"
		case queued >= 1 && b.Step.N > 0 && b.PromptShare(&r.Window) > 0.5:
			return "tokens"
		case queued >= 1 && r.Signals[signal.KVUtilization] <= full:
			return "seqs"
		}
		return "unknown"
	case PrefillHeavy:
		prompt, computed := signal.OrZero(b.Growth(&r.Window, signal.PromptTokens)), signal.OrZero(b.Growth(&r.Window, signal.ComputedTokens))
		switch {
		case prompt >= quiet && prompt >= computed-prompt:
			return "prompts_grew"
		case computed-prompt >= quiet:
			return reuseFell
		}
		return ""
	case DecodeLoad:
		if signal.OrZero(b.Growth(&r.Window, signal.OutputTokens)) >= signal.OrZero(b.Growth(&r.Window, signal.ArrivalRate)) {
			return "longer_outputs"
		}
		return "more_sequences"
	}
	return ""
}
