package diagnose

import "math"

// reuseFell is the detail of prompts that are computed more and are not longer.
const reuseFell = "reuse_fell"

// settle decides what is told, given what the newest reading alone shows.
func (e *engine) settle(settings *Settings, s *State, raw Condition, at int64, felt *symptoms) {
	if raw != e.raw || e.rawSince == 0 {
		e.raw, e.rawSince = raw, at
	}
	bad := conditions[raw].Severity >= 2
	if bad != e.bad || e.badSince == 0 {
		e.bad, e.badSince = bad, at
	}
	before := e.told
	span := settings.span()
	switch {
	case !e.memory.any():
		// The first word; harm has to last all the same.
		if e.told.Condition = raw; bad && raw != Stalled {
			e.told.Condition = Unknown
		}
	case raw == e.told.Condition:
	case raw == Stalled, at-e.rawSince >= span, !bad && (e.told.Because == JustSeen || e.told.Because == FarApart):
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
		e.causes(felt)
	} else {
		e.told.Explained, e.told.Contributing = false, [NumCauses]bool{}
	}
	e.notices()
	e.told.Because = e.because()
	e.told.Severity = conditions[e.told.Condition].Severity
	if e.told.Notices != ([NumCauses]bool{}) {
		e.told.Severity = max(e.told.Severity, 1)
	}
	if !e.memory.any() || !e.told.same(&before) || e.told.Notices != before.Notices || e.told.Contributing != before.Contributing {
		first := !e.memory.any()
		e.memory.see(e)
		if !first || e.told.Severity > 0 {
			s.transitions = append(s.transitions, e.transition(before, felt))
		}
	}
}

// still tells whether an engine does no work in a condition. One that is not
// reachable may work all the same.
func still(c Condition) bool { return c == Stalled || c == Asleep || c == Starting }

func (e *engine) transition(before Verdict, felt *symptoms) Transition {
	t := Transition{At: e.last.at, Attributes: e.attributes, From: before, To: e.told, Signals: e.last.Signals, Usual: unknown(), Missed: felt.objective.share}
	for s := range NumSignals {
		t.Usual[s] = e.baseline.usual(s)
	}
	for c := range NumCauses {
		t.Details[c] = e.detail(c)
	}
	return t
}

// causes chooses the primary cause and those that contribute.
func (e *engine) causes(felt *symptoms) {
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
	case e.shares[largest] < e.explains()*stillHarm:
		e.told.Explained = false
	case !e.told.Explained, e.shares[largest] > overtakes*e.shares[e.told.Primary]:
		e.told.Primary, e.told.Explained = largest, true
	}
	for c := range NumCauses {
		least := contributes
		if e.told.Contributing[c] {
			least = stillContributes
		}
		e.told.Contributing[c] = e.shares[c] >= least && !(e.told.Explained && c == e.told.Primary)
	}
}

// explains is the least share of the harm that makes a cause the primary one. With
// nothing to compare with it has to be most of it. A pool compares nothing itself.
func (e *engine) explains() float64 {
	if e.described == nil && e.baseline != nil && !e.baseline.ready() {
		return explainsAlone
	}
	return explains
}

// notices are what is worth knowing and harms nobody.
func (e *engine) notices() {
	if !known(e.last.Signals[Running]) || e.last.elapsed == 0 {
		// A scrape that failed, or the first after a gap, says nothing about them.
		e.told.Notices[FrozenGauges] = e.told.Notices[FrozenGauges] && e.told.Condition == Idle
		e.told.Notices[WorkloadShift] = e.told.Notices[WorkloadShift] && e.told.Condition == Healthy
		return
	}
	e.told.Notices[FrozenGauges] = e.told.Condition == Idle && e.frozen(&e.last)
	grown := 0.0
	if e.told.Condition == Healthy && e.baseline.ready() && e.last.firstTokens >= leastObjectiveSeen {
		for _, s := range []Signal{ArrivalRate, PromptTokens, OutputTokens} {
			grown = max(grown, math.Abs(orZero(e.baseline.growth(&e.last, s)))/max(shifted, deviations*e.baseline.spread(s)))
		}
	}
	e.told.Notices[WorkloadShift] = grown >= 1 || (e.told.Notices[WorkloadShift] && grown >= stillHarm)
}

// detail says more about a cause.
func (e *engine) detail(c Cause) string {
	if e.described != nil {
		return e.described[c]
	}
	r, b := &e.last, e.baseline
	switch c {
	case DemandExceedsCapacity:
		queued := orZero(r.Signals[Waiting]) - orZero(r.Signals[Deferred])
		switch {
		case r.Signals[KVUtilization] > full || r.Signals[Preemptions] > preempting:
			return "kv"
		case queued >= 1 && b.Step.N > 0 && b.promptShare(r) > 0.5:
			return "tokens"
		case queued >= 1 && r.Signals[KVUtilization] <= full:
			return "seqs"
		}
		return "unknown"
	case PrefillHeavy:
		if prompt := orZero(b.growth(r, PromptTokens)); prompt >= orZero(b.growth(r, ComputedTokens))-prompt {
			return "prompts_grew"
		}
		return reuseFell
	case DecodeLoad:
		if orZero(b.growth(r, OutputTokens)) >= orZero(b.growth(r, ArrivalRate)) {
			return "longer_outputs"
		}
		return "more_sequences"
	}
	return ""
}
