package diagnose

import (
	"math"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// explain updates the shares of the causes, which are smoothed over a window.
func (e *engine) explain(settings *Settings, r *reading, found *symptoms, raw Condition) {
	if !raw.harms() {
		if !e.Reported.bad() {
			e.Shares, e.SharesAt = Shares{}, 0
		}
		return
	}
	if (raw == Degraded || raw == Critical) && (!found.suspect || e.Felt.usualSince > 0) && e.Reported.Harms() {
		// The newest reading shows no harm, so it has nothing to explain. Until it is certain that the
		// harm has ended, its causes stay what they were.
		e.SharesAt = r.At
		return
	}
	latency, weight := split(r, found)
	if weight > 0 {
		latency = e.attributeRest(r, latency)
	}
	now := e.others(settings, r, found, latency.Scale(weight), weight)
	if !signal.Known(now.total()) {
		// NaN would stay in the smoothed shares for ever.
		now = Shares{}
	}
	keep := 0.0
	if e.SharesAt > 0 {
		keep = math.Exp(-float64(r.At-e.SharesAt) / float64(settings.Window))
	}
	e.Shares = e.Shares.Scale(keep).Plus(now.Scale(1 - keep))
	e.SharesAt = r.At
	for c := range NumCauses {
		if !e.contradicted(settings, r, c) || e.workedOff(r, c) {
			continue
		}
		if c == CacheThrash && !e.contradicted(settings, r, PrefillHeavy) {
			// Prompts are computed again all the same, for an unknown reason.
			e.Shares[PrefillHeavy] += e.Shares[CacheThrash]
		}
		e.Shares[c] = 0
	}
}

// attributeRest attributes what nothing explains: to a standstill of the engine that has just
// ended, else to a KV cache that is full for no other reason. What is left has no cause: a cause
// that was reported before gets nothing without evidence of its own.
func (e *engine) attributeRest(r *reading, s Shares) Shares {
	rest := 1 - s.total()
	switch {
	case rest <= 0:
	case e.aftermath(r, e.resumedAt(r.At)):
		s[Restarting] += rest
	case cacheFull(r):
		s[KVPressure] += rest
	}
	return s
}

// resumedAt is when the engine began to work again after a standstill that is still reported, or after
// the last one; 0 without one.
func (e *engine) resumedAt(at int64) int64 {
	if still(e.Reported.Condition) {
		return at
	}
	return e.Resumed
}

// aftermath reports whether harm is an after-effect of a restart or a standstill that ended at a time: it is for a
// while, and then as long as the queue of the standstill, which was there when it ended, becomes shorter. What comes
// after the engine has served as usual again has another reason.
func (e *engine) aftermath(r *reading, since int64) bool {
	queued := e.Backlog.Since > 0 && e.Backlog.Since <= since
	passed := r.At - since
	return since > e.wellAt && (passed < int64(startingFor) || passed < int64(leavesFor) && queued && r.Signals[signal.FirstTokenRate] > r.Signals[signal.ArrivalRate])
}

// others adds the causes that are no part of a latency to the shares s of those that are;
// all is the weight of s. Together the shares are at most 1.
func (e *engine) others(settings *Settings, r *reading, found *symptoms, s Shares, all float64) Shares {
	if found.dropped {
		lost := weight(r.Signals[signal.DroppedRatio], harmfulErrors)
		s[RequestsDropped] += lost
		all += lost
	}
	// A request that was dropped may be an error at the front end as well.
	if wrong := max(signal.OrZero(r.Signals[signal.ErrorRatio])-signal.OrZero(r.Signals[signal.DroppedRatio]), signal.OrZero(r.Signals[signal.CorruptedRatio])); found.errors && wrong > 0 {
		cause := Erroring
		if r.Signals[signal.CorruptedRatio] >= signal.OrZero(r.Signals[signal.ErrorRatio]) {
			cause = CorruptedOutput
		}
		s[cause] += weight(wrong, harmfulErrors)
		all += weight(wrong, harmfulErrors)
	}
	if r.healthy == 0 {
		s[Erroring]++
		all++
	}
	if e.Restarts.again() {
		s[Restarting]++
		all++
	}
	if e.evidentDetail(PrefillHeavy) == reuseFell && !e.contradicted(settings, r, CacheThrash) {
		// Evicted blocks had been used: prompts do repeat.
		s.move(CacheThrash, PrefillHeavy)
	}
	if e.aftermath(r, max(r.restarted, e.resumedAt(r.At))) {
		// A cold cache and the queue of the meantime look like these causes.
		s.move(Restarting, PrefillHeavy, DemandExceedsCapacity, DecodeLoad, KVPressure)
		if r.At-e.resumedAt(r.At) < warmingUp*int64(settings.Window) {
			// The standstill is in the times of steps and of requests that it held up.
			s.move(Restarting, SlowSteps, FrontendBound)
		}
	}
	if all <= 0 {
		return Shares{}
	}
	s = s.Scale(1 / all)
	if r.Signals[signal.AcceptanceLength] < settings.SpeculationBreakEven && s[SpeculationWasteful] < contributes {
		// It is known by the configuration that it costs something, and not how much.
		s[SpeculationWasteful] = 0
		if total := s.total(); total > 1-contributes {
			s = s.Scale((1 - contributes) / total)
		}
		s[SpeculationWasteful] = contributes
	}
	return s
}

// reuseLost is the fall of the logarithm of the reuses per eviction that shows that prompts
// do not repeat any more: to a quarter. A window has few reuses while a cache thrashes, so
// single windows fall to a third by chance.
const reuseLost = 1.386

// contradicted reports whether the evidence that decides about a cause points away
// from it. A cause is smoothed over a window and lasts while what it left behind is
// worked off, so its share alone does not show that the cause is still there. A signal
// that the server lacks contradicts nothing, except where it is the only evidence.
func (e *engine) contradicted(settings *Settings, r *reading, c Cause) bool {
	b, s := e.baseline, &r.Signals
	// more and less compare with what is usual. Where that is not known they are false.
	more := func(of signal.Signal) bool { return b.Growth(&r.Window, of) > 0 }
	less := func(of signal.Signal, by float64) bool { return b.Growth(&r.Window, of) < -max(by, b.Spread(of)) }
	has := func(of signal.Signal) bool { return signal.Known(b.Growth(&r.Window, of)) }
	switch c {
	case DemandExceedsCapacity:
		// An engine without progress has another problem than demand. Where fewer
		// requests than usual arrive and fewer get a first token, demand is not the
		// cause: a queue that is worked off gives more first tokens than usual.
		return e.standing(r) || less(signal.ArrivalRate, quiet) && less(signal.FirstTokenRate, quiet)
	case PrefillHeavy:
		return e.standing(r) || has(signal.ComputedTokens) && b.Growth(&r.Window, signal.ComputedTokens) < quiet && !(b.Growth(&r.Window, signal.PromptTokens) >= quiet)
	case DecodeLoad:
		return e.standing(r) || has(signal.Running) && !more(signal.Running) && !more(signal.OutputTokens)
	case CacheThrash:
		// A cache that is too small evicts blocks before they are used again, so what is
		// evicted has been used less than usual, too. Where it has been used far less,
		// prompts do not repeat any more.
		return !(s[signal.KVBlockReuses] > thrashing) || less(signal.KVBlockReuses, reuseLost)
	case KVPressure:
		return signal.Known(s[signal.KVUtilization]) && !cacheFull(r) && !more(signal.KVUtilization) && !more(signal.KVPerToken) && !(s[signal.Preemptions] > 0)
	case SlowSteps:
		return (signal.Known(s[signal.StepFactor]) || signal.Known(s[signal.PrefillFactor])) && !(s[signal.StepFactor] > 1) && !(s[signal.PrefillFactor] > 1) && !(e.slowed > 0)
	case FrontendBound:
		return !(s[signal.FrontEnd] > math.Max(signal.OrZero(b.Usual(signal.FrontEnd)), 0))
	case SpeculationWasteful:
		return !(s[signal.AcceptanceLength] < settings.SpeculationBreakEven) && !(b.Growth(&r.Window, signal.AcceptanceLength) < 0)
	case AdmissionDeferred:
		return !(s[signal.Deferred] > math.Max(signal.OrZero(b.Usual(signal.Deferred)), 0))
	case KVTransferFailing:
		return !(s[signal.FailedTransfers] > 0)
	case CorruptedOutput:
		return !(s[signal.CorruptedRatio] > 0)
	case RequestsDropped:
		return !(r.dropped > 0)
	case Erroring:
		return !(s[signal.ErrorRatio] > 0) && r.healthy != 0
	}
	return false
}

// workedOff reports whether the engine works off the queue that a reported cause has
// left: the queue is longer than usual, and more requests than usual get a first token. The
// cause itself may have ended by then.
func (e *engine) workedOff(r *reading, c Cause) bool {
	switch c {
	case PrefillHeavy, DecodeLoad, SlowSteps, KVPressure:
	default:
		return false
	}
	b := e.baseline
	reported := e.Reported.Explained && e.Reported.Primary == c || e.Reported.Contributing[c]
	queue := b.Growth(&r.Window, signal.QueueWait) > quiet || b.Growth(&r.Window, signal.QueueTime) > quiet
	return reported && queue && !e.standing(r) && b.Growth(&r.Window, signal.FirstTokenRate) > 0
}

// standing reports whether an engine has requests and nothing of it has moved since
// the previous scrape. Whether it has stalled shows later.
func (e *engine) standing(r *reading) bool {
	return e.still != deserted && (r.runningNow > 0 || r.waitingNow > 0) && e.Progress.was[generatedTokens].known() && e.Progress.Scrapes > 0
}
