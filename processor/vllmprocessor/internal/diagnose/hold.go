package diagnose

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// sinceVersion is the detail of steps that are slower since another version runs.
const sinceVersion = "since_version"

// report decides what is reported, given the condition that the newest reading alone shows.
func (e *engine) report(settings *Settings, s *State, raw Condition, at int64, found *symptoms) {
	if raw != e.Raw || e.RawSince == 0 {
		e.Raw, e.RawSince = raw, at
	}
	if raw == Healthy && lasts(e.RawSince, at, servedAgain*settings.Window) {
		e.wellAt = at
	}
	if raw == Degraded || raw == Critical {
		e.Evident = e.decided(raw, found) && !found.errors && !found.dropped
	}
	if (raw == Healthy || raw.harms() && e.Reported.Condition == Stalled) && e.memory.any() && e.standing(&e.last) {
		// An engine that has requests and does not move may have stalled: it is not
		// reported as healthy. Only progress shows that a stall has ended.
		raw = e.Reported.Condition
	}
	bad := conditions[raw].Severity >= 2
	if bad != e.Bad || e.BadSince == 0 {
		e.Bad, e.BadSince = bad, at
	}
	before := e.Reported
	span := settings.HoldTime()
	switch {
	case !e.memory.any():
		// Also in the first report errors and dropped requests have to last for the hold.
		if e.Reported.Condition = raw; bad && raw != Stalled && !e.decided(raw, found) && !s.server.certain(raw) {
			e.Reported.Condition = Unknown
		}
	case raw == e.Reported.Condition:
	case raw == Idle && e.Reported.Condition == Healthy && at-e.RawSince >= span/2:
		// Half of the hold is enough for requests that come one by one.
		e.Reported.Condition = raw
	case raw == Stalled, raw == Draining, raw == Asleep, e.Reported.Condition == Asleep && e.last.awake > 0 && !bad, raw == Unknown && e.still == ambiguous, at-e.RawSince >= span, s.server.certain(raw), e.decided(raw, found),
		e.Reported.Condition == Unreachable && s.server.read && raw != Unknown && !(raw == Healthy && found.suspect),
		!bad && (e.Reported.Because == JustSeen || e.Reported.Because == FarApart || e.Reported.Because == StalledOrFrozen):
		e.Reported.Condition = raw
	case bad && at-e.BadSince >= span && conditions[e.Reported.Condition].Severity < 2:
		// The kind of harm changes, but there is harm all the time.
		e.Reported.Condition = Degraded
	case !bad && at-e.BadSince >= span && conditions[e.Reported.Condition].Severity >= 2:
		e.Reported.Condition = raw
	}
	switch {
	case still(before.Condition) && !still(e.Reported.Condition):
		e.Resumed = at
		if e.last.waitingNow > 1 {
			// The requests of the meantime are late already: that needs no more evidence.
			e.Harms[lateFirst] = evidence{Score: enoughEvidence, On: true}
		}
	case e.Reported.Condition == before.Condition && (e.Reported.Condition == Healthy || e.Reported.Condition == Idle):
		e.Resumed = 0
	}
	if e.hasCauses() {
		e.causes(settings, &before, found)
		e.memory.share(&e.Shares)
	} else {
		e.Reported.Explained, e.Reported.Contributing, e.since = false, [NumCauses]bool{}, [NumCauses]int64{}
	}
	e.notices()
	e.Reported.Because = e.because(s)
	changed, primary := e.refine(raw, at, span)
	e.Reported.Severity = e.Reported.severity()
	if e.asksForMore(settings, found) && !(before.Condition == Degraded && before.Severity >= 2) {
		e.Reported.Severity = 1
	}
	same := e.Reported.same(&before)
	if !e.memory.any() || !same || changed || e.Reported.Notices != before.Notices || e.Reported.Contributing != before.Contributing {
		first := !e.memory.any()
		e.memory.add(e)
		if first {
			before = e.follows
		}
		if !first || e.Reported.Severity > 0 || before.Severity >= 2 {
			t := e.transition(s, before, found)
			t.Refined = primary && same
			s.transitions = append(s.transitions, t)
		}
	}
}

// ofWork are the causes that users bring: more requests, longer ones, or others.
var ofWork = [NumCauses]bool{DemandExceedsCapacity: true, PrefillHeavy: true, DecodeLoad: true, CacheThrash: true, AdmissionDeferred: true}

// asksForMore reports whether an engine is slower only because of what its users ask for, while no objective is missed,
// no request is lost and they wait less than five times the usual. Nothing is wrong with the server, so this warns
// nobody. Where nobody waits for each answer, a queue is not harm either. It is never true of a pool: servers that are
// only asked for more do not harm one.
func (e *engine) asksForMore(settings *Settings, found *symptoms) bool {
	v := &e.Reported
	long := e.Felt.On || e.GivenUp.fromQueue(e.last.At)
	if e.described != nil || v.Condition != Degraded || v.Objective != "" || !v.Explained || found.errors || found.dropped || long && !settings.batch(e.served()) {
		return false
	}
	for c := range NumCauses {
		if (c == v.Primary || v.Contributing[c]) && !ofWork[c] {
			return false
		}
	}
	return true
}

// severity is that of the rest of the verdict.
func (v *Verdict) severity() int {
	severity := conditions[v.Condition].Severity
	if v.Because == NotRead {
		// It may be a server that is not expected to serve yet, so this is never a page.
		severity = 1
		if v.Condition == Unreachable {
			severity = conditions[Degraded].Severity
		}
	}
	if v.Because == StalledOrFrozen {
		// A warning. A page would be wrong for an empty engine until its next request, and
		// that can be days; nothing at all would be wrong for one that has stalled.
		severity = conditions[Degraded].Severity
	}
	if v.Notices != ([NumCauses]bool{}) {
		severity = max(severity, 1)
	}
	return severity
}

// decided reports whether the evidence of latencies has decided that an engine is degraded,
// or is not any more: it needs no hold. Errors and dropped requests have the hold in both
// directions.
func (e *engine) decided(raw Condition, found *symptoms) bool {
	return raw == Critical && found.great || raw == Failing && found.failsNow || raw == Degraded && (found.firstToken || found.tokenGap || found.objective.name != "") ||
		raw == Healthy && (e.Reported.Condition == Degraded || e.Reported.Condition == Critical) && e.Evident && !found.suspect
}

// still reports whether an engine does no work in a condition. An unreachable engine may
// work.
func still(c Condition) bool { return c == Stalled || c == Asleep || c == Starting }

func (e *engine) transition(s *State, before Verdict, found *symptoms) Transition {
	t := Transition{At: e.last.At, Since: e.sinceWith(s), Attributes: e.attributes, Pool: e.described != nil, From: before, To: e.Reported, Signals: e.last.Signals, Usual: signal.Unknown(), Missed: found.objective.share}
	switch e.Reported.Condition {
	case Unreachable, Unknown, Starting:
		t.Failure = s.server.failure
	default:
	}
	if e.hasCauses() {
		t.Shares = e.Shares
	}
	for s := range signal.Count {
		t.Usual[s] = e.baseline.Usual(s)
	}
	if to := e.Reported.Condition; to.harms() || to == Stalled || to == Healthy && (before.Harms() || before.Condition == Stalled) {
		said := []string{e.Felt.sentence(&e.last, &t.Usual), e.GivenUp.sentence(&e.last)}
		if to == Stalled {
			said = append(said, e.Canary.sentence(e.last.At))
		}
		said = append(said, e.sentThere())
		t.Felt = strings.Join(slices.DeleteFunc(said, func(s string) bool { return s == "" }), " ")
	}
	if e.Reported.Notices[ClientsGiveUp] {
		t.Felt = e.GivenUp.sentence(&e.last)
	}
	for c := range NumCauses {
		t.Details[c] = e.detail(c)
	}
	if found := &e.excess.now; t.Details[SlowSteps] == found.detail {
		t.GPU = found.sentence()
	}
	if t.Details[SlowSteps] == sinceVersion {
		t.Slower, t.Earlier, t.Version = math.Expm1(e.slowed), e.baseline.Earlier, e.baseline.Version
	}
	return t
}

// sinceWith is the time that a change says: of a lost server, that of the first scrape that failed.
func (e *engine) sinceWith(s *State) int64 {
	since := e.shownSince()
	if failing := s.server.contact.failingSince(); e.Reported.Condition == Unreachable && failing > 0 {
		since = min(since, failing)
	}
	return since
}

// shownSince is the time of the first reading that showed what is reported: of harm, that with which it began, also
// where its condition or its cause has changed since.
func (e *engine) shownSince() int64 {
	since := e.last.At
	switch stood := e.last.Signals[signal.Standstill]; {
	case e.Reported.Condition == Stalled && stood > 0:
		since -= int64(stood * float64(time.Second))
	case e.Bad && conditions[e.Reported.Condition].Severity >= 2:
		since = e.BadSince
		if e.Felt.clearSince > 0 {
			since = min(since, e.Felt.clearSince)
		}
	case e.Raw == e.Reported.Condition:
		since = e.RawSince
	}
	return min(since, e.last.At) // A clock may have been set back.
}

// causes chooses the primary cause and those that contribute.
func (e *engine) causes(settings *Settings, before *Verdict, found *symptoms) {
	if found.any() && e.last.elapsed > 0 {
		e.Reported.Reference, e.Reported.Objective = found.reference, found.objective.name
	}
	largest := Cause(0)
	for c := range NumCauses {
		if e.Shares[c] > e.Shares[largest] {
			largest = c
		}
	}
	switch {
	case e.Shares[largest] < e.explains() && !e.Reported.Explained:
	case e.Shares[largest] < e.explains()*StillHarm:
		e.Reported.Explained = false
	case !e.Reported.Explained, e.Shares[largest] > overtakes*e.Shares[e.Reported.Primary]:
		e.Reported.Primary, e.Reported.Explained = largest, true
	}
	// When harm is first reported, there is enough evidence of it and of its causes.
	first := !before.Harms()
	for c := range NumCauses {
		least := contributes
		if e.Reported.Contributing[c] {
			least = stillContributes
		}
		primary := e.Reported.Explained && c == e.Reported.Primary
		now := e.Shares[c] >= least && !primary
		if now == e.Reported.Contributing[c] {
			e.since[c] = 0
			continue
		}
		e.since[c] = cmp.Or(e.since[c], e.last.At)
		// A cause that becomes the primary one, or was it, changes its role at once.
		role := primary || before.Explained && before.Primary == c
		if first || role || e.last.At-e.since[c] >= settings.HoldTime() {
			e.Reported.Contributing[c], e.since[c] = now, 0
		}
	}
}

// hasCauses reports whether causes are reported: where users are harmed, and of a pool also where servers stand still.
func (e *engine) hasCauses() bool {
	return e.Reported.Harms() || e.described != nil && conditions[e.Reported.Condition].Severity >= 2
}

// explains is the least share of the harm that makes a cause the primary one. Without a
// baseline it has to be most of the harm. A pool compares nothing itself.
func (e *engine) explains() float64 {
	if e.explainsAny {
		return leastShare
	}
	if e.described == nil && e.baseline != nil && !e.baseline.Ready() {
		return explainsAlone
	}
	return explains
}

// notices updates the notices. They do not change while the newest readings show harm
// that has not lasted for the hold, or nothing moves.
func (e *engine) notices() {
	if (e.Bad || e.Felt.clearSince > 0 || e.standing(&e.last)) && (e.Reported.Condition == Healthy || e.Reported.Condition == Idle) {
		return
	}
	if !signal.Known(e.last.Signals[signal.Running]) || e.last.elapsed == 0 {
		// A failed scrape, or the first one after a gap, has no evidence for or against.
		e.Reported.Notices[FrozenGauges] = e.Reported.Notices[FrozenGauges] && e.Reported.Condition == Idle
		e.Reported.Notices[WorkloadShift] = e.Reported.Notices[WorkloadShift] && e.Reported.Condition == Healthy
		e.Reported.Notices[ClientsGiveUp] = e.Reported.Notices[ClientsGiveUp] && e.Reported.Condition == Healthy
		return
	}
	e.Reported.Notices[FrozenGauges] = e.Reported.Condition == Idle && e.frozen(&e.last)
	e.Reported.Notices[ClientsGiveUp] = e.GivenUp.On && e.Reported.Condition == Healthy
	grown := 0.0
	served := e.last.recent.firsts > 0 || e.last.runningNow > 0 // A window can have work that has ended.
	if served && e.Reported.Condition == Healthy && e.baseline.Ready() && e.last.FirstTokens >= leastObjectiveSeen {
		for _, s := range []signal.Signal{signal.ArrivalRate, signal.PromptTokens, signal.OutputTokens} {
			grown = max(grown, math.Abs(signal.OrZero(e.baseline.Growth(&e.last.Window, s)))/max(shifted, deviations*e.baseline.Spread(s)))
		}
	}
	e.Reported.Notices[WorkloadShift] = grown >= 1 || (e.Reported.Notices[WorkloadShift] && grown >= StillHarm)
}
