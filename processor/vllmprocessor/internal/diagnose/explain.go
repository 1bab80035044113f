package diagnose

import (
	"math"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// explain keeps the shares of the causes, smoothed over a window.
func (e *engine) explain(settings *Settings, r *reading, felt *symptoms, raw Condition) {
	if raw != Degraded && raw != Failing {
		if e.told.Severity < 2 {
			e.shares, e.sharesAt = Shares{}, 0
		}
		return
	}
	latency, weight := split(r, e.baseline, felt)
	if weight > 0 {
		latency = e.before(r, latency)
	}
	now := e.others(settings, r, felt, latency.Scale(weight), weight)
	if !now.known() {
		// Nothing can be made of such numbers, and what is smoothed would keep them.
		now = Shares{}
	}
	keep := 0.0
	if e.sharesAt > 0 {
		keep = math.Exp(-float64(r.At-e.sharesAt) / float64(settings.Window))
	}
	e.shares = e.shares.Scale(keep).Plus(now.Scale(1 - keep))
	e.sharesAt = r.At
	for c := range NumCauses {
		if !e.contradicted(settings, r, c) || e.workedOff(r, c) {
			continue
		}
		if c == CacheThrash && !e.contradicted(settings, r, PrefillHeavy) {
			// Prompts are computed again all the same; why is not known.
			e.shares[PrefillHeavy] += e.shares[CacheThrash]
		}
		e.shares[c] = 0
	}
}

// before gives what nothing explains that holds now to what held before: to the
// time that the engine did not work, or to the causes that were told, whose queue
// is still there. A KV cache that is full for no other reason is a cause itself.
func (e *engine) before(r *reading, s Shares) Shares {
	rest := 1.0
	for _, share := range s {
		rest -= share
	}
	switch {
	case rest <= 0:
	case e.resumed > 0 && r.At-e.resumed < int64(startingFor):
		s[Restarting] += rest
	case e.told.Explained:
		s = s.Plus(e.shares.whole().Scale(rest))
	case r.Signals[signal.KVUtilization] > full || r.Signals[signal.Preemptions] > preempting:
		s[KVPressure] += rest
	}
	return s
}

// others adds the causes that are no part of a latency to the shares of what is, of
// which there is so much. Together they are at most 1.
func (e *engine) others(settings *Settings, r *reading, felt *symptoms, s Shares, all float64) Shares {
	if felt.dropped {
		lost := weight(r.Signals[signal.DroppedRatio], harmfulErrors)
		s[RequestsDropped] += lost
		all += lost
	}
	// A request that was dropped may be an error at the front end as well.
	if wrong := max(signal.OrZero(r.Signals[signal.ErrorRatio])-signal.OrZero(r.Signals[signal.DroppedRatio]), signal.OrZero(r.Signals[signal.CorruptedRatio])); felt.errors && wrong > 0 {
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
	if e.restarts.again(settings, r) {
		s[Restarting]++
		all++
	}
	if e.detail(PrefillHeavy) == reuseFell && !e.contradicted(settings, r, CacheThrash) {
		// What is evicted had been of use: prompts do repeat.
		s[CacheThrash] += s[PrefillHeavy]
		s[PrefillHeavy] = 0
	}
	if length := r.Signals[signal.AcceptanceLength]; length < settings.SpeculationBreakEven {
		s[SpeculationWasteful] = max(s[SpeculationWasteful], contributes*all)
	}
	if since := max(r.restarted, e.resumed); since > 0 && r.At-since < int64(startingFor) {
		// A cold cache, and what has queued meanwhile: all of it seems to come at once.
		for _, c := range []Cause{PrefillHeavy, DemandExceedsCapacity, DecodeLoad, KVPressure} {
			s[Restarting] += s[c]
			s[c] = 0
		}
	}
	if all <= 0 {
		return Shares{}
	}
	return s.Scale(1 / all)
}
