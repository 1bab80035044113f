package slo

import (
	"fmt"
	"slices"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/objective"
)

// The rows of what is told. Each has its own attributes besides those of the
// model.
var (
	validRow      = derive.Row{Metric: "vllm.slo.valid", Extra: []string{"objective"}}
	goodRow       = derive.Row{Metric: "vllm.slo.good", Extra: []string{"objective"}}
	undecidedRow  = derive.Row{Metric: "vllm.slo.undecided", Extra: []string{"objective"}}
	attainmentRow = derive.Row{Metric: "vllm.slo.attainment", Extra: []string{"objective", "bound"}}
	burnRow       = derive.Row{Metric: "vllm.slo.burn_rate", Extra: []string{"objective", "window", "bound"}}
	coverageRow   = derive.Row{Metric: "vllm.slo.coverage", Extra: []string{"objective", "window"}}
	budgetRow     = derive.Row{Metric: "vllm.slo.error_budget_remaining", Extra: []string{"objective", "bound"}}
	jointRow      = derive.Row{Metric: "vllm.slo.joint_attainment", Extra: []string{"bound"}}
)

// rows are all of them, in the order in which they are told.
var rows = [...]*derive.Row{
	&validRow, &goodRow, &undecidedRow, &attainmentRow, &burnRow, &coverageRow, &budgetRow, &jointRow,
}

// Plan is what is measured and told; it is the same for all resources.
type Plan struct {
	objectives []planned
	windows    objective.Windows
	enabled    map[*derive.Row]bool
}

// planned is an objective with what its values are called.
type planned struct {
	objective.Objective
	input collect.Input
	// burn are its burn windows and budget its budget window, as values of the
	// attribute window.
	burn   []string
	budget string
}

// NewPlan plans to measure objectives over windows. Metrics for which enabled is
// false are not told. It fails where an objective is about a metric that no
// resource is asked for.
func NewPlan(objectives []objective.Objective, budget objective.Duration, burn []objective.Duration, enabled func(metric string) bool) (*Plan, error) {
	p := &Plan{windows: objective.Windows{Budget: time.Duration(budget)}, enabled: map[*derive.Row]bool{}}
	for _, window := range burn {
		p.windows.Burn = append(p.windows.Burn, time.Duration(window))
	}
	for _, row := range rows {
		p.enabled[row] = enabled(row.Metric)
	}
	for _, o := range objectives {
		in, known := collect.ByName(o.Metric)
		if !known || in.Define().Kind != collect.Distribution {
			return nil, fmt.Errorf("objective %q: nothing can be measured on the metric %q", o.Name, o.Metric)
		}
		one := planned{Objective: o, input: in, budget: budget.String()}
		for _, window := range burn {
			one.burn = append(one.burn, window.String())
		}
		p.objectives = append(p.objectives, one)
	}
	return p, nil
}

// Steps are the distributions whose steps are needed.
func (p *Plan) Steps() (steps [collect.NumInputs]bool) {
	for i := range p.objectives {
		steps[p.objectives[i].input] = true
	}
	return steps
}

// budgetIsBurn tells whether the budget window is a burn window as well.
func (p *Plan) budgetIsBurn() bool { return slices.Contains(p.windows.Burn, p.windows.Budget) }
