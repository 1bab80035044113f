package diagnose

import "math"

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
	span := settings.span()
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
	t := Transition{At: e.last.at, Attributes: e.attributes, From: before, To: e.told, Signals: e.last.Signals, Usual: unknown(), Missed: felt.objective.share}
	switch e.told.Condition {
	case Unreachable, Unknown, Starting:
		t.Failure = s.server.failure
	default:
	}
	for signal := range NumSignals {
		t.Usual[signal] = e.baseline.usual(signal)
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
	case e.shares[largest] < e.explains()*stillHarm:
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
			e.since[c] = e.last.at
		}
		// A cause that becomes the primary one, or was it, changes its role at once.
		role := primary || before.Explained && before.Primary == c
		if first || role || e.last.at-e.since[c] >= settings.span() {
			e.told.Contributing[c], e.since[c] = now, 0
		}
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

// notices are what is worth knowing and does no harm. Nothing new is said about them
// while the newest readings show harm that has not lasted yet, or nothing moves.
func (e *engine) notices() {
	if (e.bad || e.standing(&e.last)) && (e.told.Condition == Healthy || e.told.Condition == Idle) {
		return
	}
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
		prompt, computed := orZero(b.growth(r, PromptTokens)), orZero(b.growth(r, ComputedTokens))
		switch {
		case prompt >= quiet && prompt >= computed-prompt:
			return "prompts_grew"
		case computed-prompt >= quiet:
			return reuseFell
		}
		return ""
	case DecodeLoad:
		if orZero(b.growth(r, OutputTokens)) >= orZero(b.growth(r, ArrivalRate)) {
			return "longer_outputs"
		}
		return "more_sequences"
	}
	return ""
}
