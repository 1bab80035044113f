package objective

import (
	"fmt"
	"slices"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
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
	thresholdRow  = derive.Row{Metric: "vllm.slo.threshold", Extra: []string{"objective", "metric"}}
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

// Evaluator computes the metrics of objectives from trackers. It reuses its memory between
// calls and is not safe for concurrent use.
type Evaluator struct {
	// Full is true while there is no room for another tracker. Then no series begins,
	// because it would have no second point.
	Full bool
	// Absent counts the values that could not be computed, by reason.
	Absent [derive.NumReasons]int
	// CountsDiffer is true once histograms of finished requests had different counts.
	CountsDiffer bool

	values []derive.Value
	views  []window.View
	one    window.Histogram
	parts  []Counts
}

// Evaluate returns the values of a resource at its newest batch, after Observe. The group
// of a value is the number of the model in the state. The result is valid until the next
// call.
func (e *Evaluator) Evaluate(p *Plan, s *State, r *window.Resource) []derive.Value {
	e.values = e.values[:0]
	e.views = r.Views(e.views, false)
	for _, g := range s.groups {
		g.views, g.pending = g.views[:0], false
	}
	for number := range r.PendingGroups() {
		if g := s.members[number]; g != nil {
			g.pending = true
		}
	}
	for i := range e.views {
		if g := s.members[e.views[i].Group().Number]; g != nil {
			g.views = append(g.views, &e.views[i])
		}
	}
	for _, g := range s.groups {
		if g.pending {
			e.values = append(e.values, derive.Value{Group: g.number, Pending: true})
		} else if len(g.views) > 0 {
			e.group(p, g, r.Time())
		}
	}
	return e.values
}

func (e *Evaluator) group(p *Plan, g *group, at int64) {
	w := writer{e, p, g}
	e.parts = e.parts[:0]
	joint, first := derive.OK, len(e.values)
	for i := range p.objectives {
		o := &p.objectives[i]
		if !o.Matches(g.model) {
			continue
		}
		recent, reason := e.recent(o, g.views)
		if reason == derive.Pending {
			// A part of the batch may still follow, so the series of the model neither
			// continue nor end.
			e.Absent[reason]++
			e.values = append(e.values[:first], derive.Value{Group: g.number, Pending: true})
			return
		}
		if o.Finished() {
			e.parts = append(e.parts, recent)
			joint = max(joint, reason)
		}
		if len(g.trackers) == 0 || g.trackers[i] == nil {
			e.Absent[derive.First]++
			if reason == derive.First && !e.Full {
				w.sums(o, Counts{}, at)
				w.settings(o)
			}
			continue
		}
		total, start := g.trackers[i].Totals()
		w.sums(o, total, start)
		w.settings(o)
		w.attainment(o, recent, reason)
		w.windows(o, g.trackers[i].Tracker, at)
	}
	if len(e.parts) > 1 {
		w.joint(joint)
	}
}

// recent counts the observations of an objective over the window of the processor, for all
// engines together.
func (e *Evaluator) recent(o *planned, engines []*window.View) (total Counts, reason derive.Reason) {
	reason = derive.Missing
	for i, v := range engines {
		e.one.Reset()
		one := derive.Because(v.AddTo(&e.one, o.input))
		if one == derive.OK {
			total.add(countsOf(&e.one, o.Threshold, derive.Untrusted(v, o.input)))
		}
		reason = reason.Together(one, i == 0)
	}
	return total, reason
}

// writer appends the values of one model.
type writer struct {
	*Evaluator
	plan  *Plan
	group *group
}

func (w *writer) add(row *derive.Row, extra derive.Extra, number float64, start int64) {
	if w.plan.enabled[row] {
		w.values = append(w.values, derive.Value{
			Row: row, Group: w.group.number, Extra: extra, Attributes: w.group.attributes, Start: start, Number: number,
		})
	}
}

// interval appends both ends, or counts the reason why they are absent. own are the values
// of the row's own attributes before the bound.
func (w *writer) interval(row *derive.Row, interval Interval, reason derive.Reason, own ...string) {
	var lower, upper derive.Extra
	copy(lower[:], own)
	copy(upper[:], own)
	lower[len(own)], upper[len(own)] = "lower", "upper"
	switch {
	case !w.plan.enabled[row]:
	case reason != derive.OK:
		w.Absent[reason]++
	default:
		w.add(row, lower, interval.Lower, 0)
		w.add(row, upper, interval.Upper, 0)
	}
}

// sums are counters, so they are emitted with every batch. That of the first batch is 0: a
// backend such as Prometheus computes an increase from two points, so it would lose what a
// series begins with.
func (w *writer) sums(o *planned, total Counts, start int64) {
	w.add(&validRow, derive.Extra{o.Name}, total.Valid, start)
	w.add(&goodRow, derive.Extra{o.Name}, total.Good, start)
	w.add(&undecidedRow, derive.Extra{o.Name}, total.Undecided, start)
}

// settings appends what the objective requires, so that rules need no copy of it. It is
// reported as long as the sums are: their burn cannot be computed without the target.
func (w *writer) settings(o *planned) {
	w.add(&targetRow, derive.Extra{o.Name}, o.Target, 0)
	w.add(&thresholdRow, derive.Extra{o.Name, o.Metric}, o.Threshold.Seconds(), 0)
}

func (w *writer) attainment(o *planned, recent Counts, reason derive.Reason) {
	attainment, known := recent.Attainment()
	if reason == derive.OK && !known {
		reason = derive.Idle
	}
	w.interval(&attainmentRow, attainment, reason, o.Name)
}

func (w *writer) windows(o *planned, t *Tracker, at int64) {
	for i, window := range o.burn {
		reading := t.Burn(i, at)
		burn, reason := burnRate(o, &reading)
		w.interval(&burnRow, burn, reason, o.Name, window)
		w.add(&coverageRow, derive.Extra{o.Name, window}, reading.Coverage, 0)
	}
	reading := t.Budget(at)
	burn, reason := burnRate(o, &reading)
	w.interval(&budgetRow, BudgetRemaining(burn), reason, o.Name)
	if !w.plan.budgetIsBurn() {
		w.add(&coverageRow, derive.Extra{o.Name, o.budget}, reading.Coverage, 0)
	}
}

func burnRate(o *planned, reading *Reading) (Interval, derive.Reason) {
	attainment, known := reading.Attainment()
	if !known {
		return Interval{}, derive.Idle
	}
	return BurnRate(attainment, o.Target), derive.OK
}

// joint appends the share of requests that met all objectives for finished requests. reason is why
// one of these cannot be counted.
func (w *writer) joint(reason derive.Reason) {
	var all Interval
	if reason == derive.OK {
		all, reason = JointAttainment(w.parts)
		w.CountsDiffer = w.CountsDiffer || reason == derive.Contradiction
	}
	w.interval(&jointRow, all, reason)
}
