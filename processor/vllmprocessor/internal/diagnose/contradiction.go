package diagnose

import "math"

// reuseLost is the fall of the logarithm of the reuses per eviction that says that prompts
// do not repeat any more: to a quarter. A window has few reuses while a cache thrashes, so
// that single windows fall to a third by chance.
const reuseLost = 1.386

// contradicted reports whether the evidence that decides about a cause points away
// from it. A cause is smoothed over a window and lasts while what it left behind is
// worked off, so its share alone does not show that the cause is still there. A signal
// that the server lacks contradicts nothing, except where it is the only evidence.
func (e *engine) contradicted(settings *Settings, r *reading, c Cause) bool {
	b, s := e.baseline, &r.Signals
	// more and less compare with what is usual. Where that is not known they are false.
	more := func(signal Signal) bool { return b.growth(r, signal) > 0 }
	less := func(signal Signal, by float64) bool { return b.growth(r, signal) < -max(by, b.spread(signal)) }
	has := func(signal Signal) bool { return known(b.growth(r, signal)) }
	switch c {
	case DemandExceedsCapacity:
		// An engine that makes no progress has no demand that is too high for it. Where
		// less than usual comes, and less than usual gets its first token, it is not
		// the demand: a queue that is worked off gives more first tokens than usual.
		return e.standing(r) || less(ArrivalRate, quiet) && less(FirstTokenRate, quiet)
	case PrefillHeavy:
		return e.standing(r) || has(ComputedTokens) && b.growth(r, ComputedTokens) < quiet && !(b.growth(r, PromptTokens) >= quiet)
	case DecodeLoad:
		return e.standing(r) || has(Running) && !more(Running) && !more(OutputTokens)
	case CacheThrash:
		// A cache that is too small evicts blocks before they are used again, so what is
		// evicted has been used less than usual, too. Where it has been used far less,
		// prompts do not repeat any more.
		return !(s[KVBlockReuses] > thrashing) || less(KVBlockReuses, reuseLost)
	case KVPressure:
		full := s[KVUtilization] > full || s[Preemptions] > preempting
		return known(s[KVUtilization]) && !full && !more(KVUtilization) && !more(KVPerToken) && !(s[Preemptions] > 0)
	case SlowSteps:
		return (known(s[StepFactor]) || known(s[PrefillFactor])) && !(s[StepFactor] > 1) && !(s[PrefillFactor] > 1)
	case FrontendBound:
		return !(s[FrontEnd] > math.Max(orZero(b.usual(FrontEnd)), 0))
	case SpeculationWasteful:
		return !(s[AcceptanceLength] < settings.SpeculationBreakEven) && !(b.growth(r, AcceptanceLength) < 0)
	case AdmissionDeferred:
		return !(s[Deferred] > math.Max(orZero(b.usual(Deferred)), 0))
	case KVTransferFailing:
		return !(s[FailedTransfers] > 0)
	case CorruptedOutput:
		return !(s[CorruptedRatio] > 0)
	case RequestsDropped:
		return !(r.dropped > 0)
	case Erroring:
		return !(s[ErrorRatio] > 0) && r.healthy != 0
	}
	return false
}

// workedOff reports whether the engine works off what a reported cause has left in its
// queue: it has more in its queue than usual, and gives more first tokens than usual. The
// cause itself may be over by then.
func (e *engine) workedOff(r *reading, c Cause) bool {
	switch c {
	case PrefillHeavy, DecodeLoad, SlowSteps, KVPressure:
	default:
		return false
	}
	b := e.baseline
	reported := e.told.Explained && e.told.Primary == c || e.told.Contributing[c]
	queue := b.growth(r, QueueWait) > quiet || b.growth(r, QueueTime) > quiet
	return reported && queue && !e.standing(r) && b.growth(r, FirstTokenRate) > 0
}

// standing reports whether an engine has requests and nothing of it has moved since
// the previous scrape. Whether it has stalled shows later.
func (e *engine) standing(r *reading) bool {
	return (r.runningNow > 0 || r.waitingNow > 0) && known(e.progress.was[0]) && e.progress.scrapes > 0
}
