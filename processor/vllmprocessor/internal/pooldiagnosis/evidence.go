package pooldiagnosis

import (
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

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
