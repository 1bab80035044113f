package diagnose

import (
	"math"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// explain updates the shares of the causes, which are smoothed over a window.
func (e *engine) explain(settings *Settings, r *reading, found *symptoms, raw Condition) {
	if !raw.harms() {
		if e.Reported.Severity < 2 {
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
	case e.resumedAt(r.At) > 0 && r.At-e.resumedAt(r.At) < int64(startingFor):
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
	if e.Restarts.again(settings, r) {
		s[Restarting]++
		all++
	}
	if e.evidentDetail(PrefillHeavy) == reuseFell && !e.contradicted(settings, r, CacheThrash) {
		// Evicted blocks had been used: prompts do repeat.
		s[CacheThrash] += s[PrefillHeavy]
		s[PrefillHeavy] = 0
	}
	if since := max(r.restarted, e.resumedAt(r.At)); since > 0 && r.At-since < int64(startingFor) {
		// A cold cache and the queue of the meantime look like these causes.
		for _, c := range []Cause{PrefillHeavy, DemandExceedsCapacity, DecodeLoad, KVPressure} {
			s[Restarting] += s[c]
			s[c] = 0
		}
		if r.At-e.resumedAt(r.At) < warmingUp*int64(settings.Window) {
			// The standstill is in the times of steps and of requests that it held up.
			for _, c := range []Cause{SlowSteps, FrontendBound} {
				s[Restarting] += s[c]
				s[c] = 0
			}
		}
	}
	if all <= 0 {
		return Shares{}
	}
	s = s.Scale(1 / all)
	if r.Signals[signal.AcceptanceLength] < settings.SpeculationBreakEven && s[SpeculationWasteful] < contributes {
		// It is known by the configuration that it costs something, and not how much.
		s[SpeculationWasteful] = 0
		s = s.atMost(1 - contributes)
		s[SpeculationWasteful] = contributes
	}
	return s
}
