package pooldiagnosis

import (
	"math"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

const (
	// unevenLoad and unevenWork are how many times as many requests, and as many arriving
	// tokens, degraded engines have to have as the others. A slow engine holds more
	// requests; no more arrive at it.
	unevenLoad, unevenWork = 2, 1.5
	// toImbalance is the share of an overload that is attributed to the routing. The rest
	// stays with the causes of the engines.
	toImbalance = 0.6
)

// balance attributes a part of the overload of some engines to the imbalance, where
// others have room: if the requests were spread evenly, the overload would be smaller.
func (p *pool) balance(s diagnose.Shares) diagnose.Shares {
	var harmed, others side
	roomy := 0.0
	for i := range p.members {
		switch m := &p.members[i]; m.Verdict.Condition {
		case diagnose.Degraded, diagnose.Critical:
			harmed.add(m)
		case diagnose.Healthy, diagnose.Idle:
			others.add(m)
			if m.roomy() {
				roomy++
			}
		}
	}
	verdict := p.report.Verdict()
	switch {
	case harmed.n == 0, others.n == 0, roomy < others.n/2:
		return s
	case verdict.Explained && verdict.Primary == diagnose.Imbalanced, verdict.Contributing[diagnose.Imbalanced]:
		// The queue that uneven routing has left outlives it.
	case harmed.load/harmed.n < unevenLoad*math.Max(others.load/others.n, 0.5):
		return s
	case harmed.work/harmed.n < unevenWork*others.work/others.n:
		// As many tokens arrive at the others: requests stay because the engine is slow.
		return s
	}
	for _, c := range []diagnose.Cause{diagnose.DemandExceedsCapacity, diagnose.KVPressure, diagnose.DecodeLoad, diagnose.PrefillHeavy} {
		s[diagnose.Imbalanced] += toImbalance * s[c]
		s[c] *= 1 - toImbalance
	}
	return s
}

// side is the degraded engines of a pool, or the others.
type side struct{ n, load, work float64 }

func (s *side) add(m *member) {
	s.n++
	s.load += m.load
	if m.Verdict.Condition == diagnose.Idle {
		// Nothing arrives, also where the engine does not report that.
		s.work += signal.OrZero(m.work)
		return
	}
	s.work += m.work
}
