package main

import (
	"fmt"
	"slices"
	"strings"
)

// derivationProblems checks that every derived metric has a formula and inputs, that
// the inputs lead back to the receiver, and that no other metric has them.
func (d *document) derivationProblems(name string, m metric) []string {
	var problems []string
	check := func(ok bool, problem string) {
		if !ok {
			problems = append(problems, problem)
		}
	}
	check(!m.AlsoDerived || m.received(), "also_derived is for metrics that the receiver emits")
	if !m.derived() {
		check(m.Formula == "" && len(m.DerivedFrom) == 0 && m.Needs == "" && m.BlindSpots == "" && len(m.DecidedAs) == 0,
			"formula, derived_from, needs, blind_spots and decided_as are for what the processor derives")
		return problems
	}
	check(m.Formula != "", "formula is missing")
	check(!strings.Contains(strings.TrimSpace(m.Formula), "\n"), "formula must be one line")
	check(len(m.DerivedFrom) > 0, "derived_from is missing")
	check(slices.IsSorted(m.DerivedFrom), "derived_from must be sorted")
	for _, other := range m.DecidedAs {
		check(other != name && d.Metrics[other].derived() && len(d.Metrics[other].DecidedAs) == 0,
			fmt.Sprintf("decided_as %q must be another derived metric, of which decisions.yaml has rows", other))
	}
	for _, from := range m.DerivedFrom {
		problems = append(problems, d.inputProblems(name, from)...)
	}
	if m.EmittedBy == componentProcessor {
		check(len(m.Sources) == 0 && m.Exception == "" && !m.Sentinel && m.HideZero == "",
			"sources, exception, sentinel and hide_zero are for what is read from the wire")
		check(m.Gauge != nil || m.Sum != nil, "the processor emits gauges and sums only")
	}
	return problems
}

// inputProblems allows as inputs the receiver's metrics and the processor's own
// counters. Those counters may only be derived from the receiver's metrics, so no
// metric is derived from itself.
func (d *document) inputProblems(name, from string) []string {
	input, known := d.Metrics[from]
	switch {
	case !known:
		return []string{fmt.Sprintf("derived_from %q is not a metric", from)}
	case from == name:
		return []string{"derived_from names the metric itself"}
	case input.received():
		return nil
	case input.Sum == nil:
		return []string{fmt.Sprintf("derived_from %q is neither the receiver's nor a counter of the processor", from)}
	case d.Metrics[name].Sum != nil:
		return []string{fmt.Sprintf("derived_from %q: a counter is derived from the receiver's metrics only", from)}
	}
	return nil
}
