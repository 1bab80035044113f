package objective

import (
	"math"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
)

// Budgets calls visit for each model and objective with the share of the error budget that is left, and the burn rate over
// the shortest window; NaN where they are not known. Only what is spent for certain counts. at is in Unix nanoseconds.
func (s *State) Budgets(p *Plan, at int64, visit func(model, objective string, remaining, burn float64)) {
	for _, g := range s.groups {
		for i, t := range g.trackers {
			if t == nil {
				continue
			}
			o := &p.objectives[i]
			remaining, burn := math.NaN(), math.NaN()
			budget := t.Budget(at)
			if over, reason := burnRate(o, &budget); reason == derive.OK {
				remaining = BudgetRemaining(over).Upper
			}
			shortest := t.Burn(0, at)
			if over, reason := burnRate(o, &shortest); reason == derive.OK {
				burn = over.Lower
			}
			visit(g.model, o.Name, remaining, burn)
		}
	}
}
