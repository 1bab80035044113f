package diagnose

import (
	"math"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

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
