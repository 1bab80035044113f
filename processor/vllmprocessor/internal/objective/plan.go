package objective

import (
	"fmt"
	"slices"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// The rows of the emitted metrics. Each has own attributes besides those of the model.
var (
	validRow      = derive.Row{Metric: "vllm.slo.valid", Extra: []string{"objective"}}
	goodRow       = derive.Row{Metric: "vllm.slo.good", Extra: []string{"objective"}}
	undecidedRow  = derive.Row{Metric: "vllm.slo.undecided", Extra: []string{"objective"}}
	attainmentRow = derive.Row{Metric: "vllm.slo.attainment", Extra: []string{"objective", "bound"}}
	burnRow       = derive.Row{Metric: "vllm.slo.burn_rate", Extra: []string{"objective", "window", "bound"}}
	coverageRow   = derive.Row{Metric: "vllm.slo.coverage", Extra: []string{"objective", "window"}}
	budgetRow     = derive.Row{Metric: "vllm.slo.error_budget_remaining", Extra: []string{"objective", "bound"}}
	jointRow      = derive.Row{Metric: "vllm.slo.joint_attainment", Extra: []string{"bound"}}
	targetRow     = derive.Row{Metric: "vllm.slo.target", Extra: []string{"objective"}}
	thresholdRow  = derive.Row{Metric: "vllm.slo.threshold", Extra: []string{"objective"}}
)

// rows are all of them in the order of their emission.
var rows = [...]*derive.Row{
	&validRow, &goodRow, &undecidedRow, &attainmentRow, &burnRow, &coverageRow, &budgetRow, &jointRow,
	&targetRow, &thresholdRow,
}

// Plan is the configured objectives, windows and metrics. It is the same for all
// resources.
type Plan struct {
	objectives []planned
	windows    Windows
	enabled    map[*derive.Row]bool
}

// planned is an objective with its input and the names of its windows.
type planned struct {
	Objective
	input input.Metric
	// burn are its burn windows and budget its budget window, as values of the
	// attribute window.
	burn   []string
	budget string
}

// NewPlan returns the plan for objectives and windows. Metrics for which enabled returns
// false are not emitted. It fails where the metric of an objective is not a histogram
// that the processor reads.
func NewPlan(objectives []Objective, budget Duration, burn []Duration, enabled func(metric string) bool) (*Plan, error) {
	p := &Plan{windows: Windows{Budget: time.Duration(budget)}, enabled: map[*derive.Row]bool{}}
	for _, window := range burn {
		p.windows.Burn = append(p.windows.Burn, time.Duration(window))
	}
	for _, row := range rows {
		p.enabled[row] = enabled(row.Metric)
	}
	for _, o := range objectives {
		in, known := input.ByName(o.Metric)
		if !known || in.Define().Kind != input.Distribution {
			return nil, fmt.Errorf("objective %q: the metric %q is not a histogram of latencies that the processor reads", o.Name, o.Metric)
		}
		one := planned{Objective: o, input: in, budget: budget.String()}
		for _, window := range burn {
			one.burn = append(one.burn, window.String())
		}
		p.objectives = append(p.objectives, one)
	}
	return p, nil
}

// Steps returns the distributions whose steps are needed.
func (p *Plan) Steps() (steps [input.NumMetrics]bool) {
	for i := range p.objectives {
		steps[p.objectives[i].input] = true
	}
	return steps
}

func (p *Plan) budgetIsBurn() bool { return slices.Contains(p.windows.Burn, p.windows.Budget) }
