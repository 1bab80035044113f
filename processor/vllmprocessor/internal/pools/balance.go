package pools

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
	verdict := &p.report.Reported
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

// signals are sums and means over the members that can be read, as evidence.
func (p *pool) signals() signal.Values {
	s := signal.Unknown()
	var running, waiting, kv, arrivals, readable, measured float64
	for i := range p.members {
		m := &p.members[i]
		if m.Verdict.Condition == diagnose.Unreachable {
			continue
		}
		readable++
		running += m.load - m.waiting
		waiting += m.waiting
		arrivals += signal.OrZero(m.Signals[signal.ArrivalRate])
		if signal.Known(m.kv) {
			kv += m.kv
			measured++
		}
	}
	if readable > 0 {
		s[signal.Running], s[signal.Waiting], s[signal.ArrivalRate] = running, waiting, arrivals
	}
	if measured > 0 {
		s[signal.KVUtilization] = kv / measured
	}
	return s
}

// details are those of the engine that each cause harms most: a pool has no baseline of
// its own.
func (p *pool) details() (details [diagnose.NumCauses]string) {
	var most [diagnose.NumCauses]float64
	for i := range p.members {
		m := &p.members[i]
		if !m.Harmed() {
			continue
		}
		for c := range diagnose.NumCauses {
			if by := m.Shares[c] * m.weight(); by > most[c] {
				most[c], details[c] = by, m.Details[c]
			}
		}
	}
	return details
}

// reference is what most of the pool's harmed requests were compared with.
func (p *pool) reference() diagnose.Reference {
	var by [diagnose.Objectives + 1]float64
	for i := range p.members {
		if m := &p.members[i]; m.Harmed() {
			by[m.Verdict.Reference] += m.weight()
		}
	}
	most := diagnose.Defaults
	for r := range by {
		if by[r] > by[most] {
			most = diagnose.Reference(r)
		}
	}
	return most
}
