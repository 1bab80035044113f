package pools

import (
	"math"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// sums are the signals of a pool that add up. means are weighted with another signal: a mean over requests with
// their rate, one over tokens with theirs.
var (
	sums  = []signal.Signal{signal.Running, signal.Waiting, signal.ArrivalRate, signal.FirstTokenRate, signal.GenerationRate}
	means = []struct{ of, by signal.Signal }{
		{signal.TimeToFirstToken, signal.FirstTokenRate},
		{signal.InterTokenLatency, signal.GenerationRate},
		{signal.QueueWait, signal.ArrivalRate},
		{signal.ErrorRatio, signal.ArrivalRate},
		{signal.DroppedRatio, signal.ArrivalRate},
	}
)

// signals are sums and means over the members that can be read, as evidence. What a member lacks adds nothing.
func (p *pool) signals() signal.Values {
	s := p.over(func(m *member, s signal.Signal) float64 { return m.Signals[s] })
	kv, measured := 0.0, 0.0
	for i := range p.members {
		if m := &p.members[i]; m.Verdict.Condition != diagnose.Unreachable && signal.Known(m.kv) {
			kv += m.kv
			measured++
		}
	}
	s[signal.KVUtilization] = kv / measured // NaN without any.
	s[signal.GatewayDelay] = p.delay.Gateway
	return s
}

// usual is what is usual for the signals, by what is usual for the members that can be read. A sum is known where
// it is known for all of them.
func (p *pool) usual() signal.Values {
	usual := p.over(func(m *member, s signal.Signal) float64 { return m.Usual(s) })
	usual[signal.GatewayDelay] = p.usualDelay.usual()
	for i := range p.members {
		for _, s := range sums {
			if m := &p.members[i]; m.Verdict.Condition != diagnose.Unreachable && !signal.Known(m.Usual(s)) {
				usual[s] = math.NaN()
			}
		}
	}
	return usual
}

// over adds up what the members that can be read have of the signals of a pool.
func (p *pool) over(of func(m *member, s signal.Signal) float64) signal.Values {
	total, weights := signal.Unknown(), signal.Values{}
	add := func(s signal.Signal, x, weight float64) {
		if signal.Known(x * weight) {
			total[s], weights[s] = signal.OrZero(total[s])+x*weight, weights[s]+weight
		}
	}
	for i := range p.members {
		m := &p.members[i]
		if m.Verdict.Condition == diagnose.Unreachable {
			continue
		}
		for _, s := range sums {
			add(s, of(m, s), 1)
		}
		for _, mean := range means {
			add(mean.of, of(m, mean.of), of(m, mean.by))
		}
	}
	for _, mean := range means {
		total[mean.of] /= weights[mean.of]
	}
	return total
}
