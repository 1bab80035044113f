package pools

import "github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose"

// Present goes through the pools of the last evaluation: each as it is reported, with its number of engines, and why.
func (p *Diagnosis) Present(visit func(now diagnose.Present, engines int, explain func() diagnose.Transition)) {
	for _, one := range p.all {
		if one == nil || one.empty() {
			continue
		}
		visit(one.report.Present(), len(one.members), func() diagnose.Transition {
			t := one.report.Explain()
			t.Usual, t.Felt = one.usual(), one.sentence()
			return t
		})
	}
}
