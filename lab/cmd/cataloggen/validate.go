package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	namePattern    = regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)*$`)
	versionPattern = regexp.MustCompile(`^\d+\.\d+\.\d+$`)

	stabilities = []string{"development", "alpha", "beta", "stable"}
	components  = []string{componentReceiver, componentProcessor}
)

// The components that emit metrics.
const (
	componentReceiver  = "receiver"
	componentProcessor = "processor"
)

// validate returns every contradiction between the catalogue and its schema. The tests
// of internal/catalog check the naming rule, because they see the finished table.
func (d *document) validate() error {
	var errs []error
	used := map[string]bool{}
	for _, name := range sortedNames(d.Metrics) {
		m := d.Metrics[name]
		for _, problem := range d.problems(name, m) {
			errs = append(errs, fmt.Errorf("metric %s: %s", name, problem))
		}
		for _, a := range m.Attributes {
			used[a] = true
		}
	}
	for _, name := range sortedNames(d.Attributes) {
		a := d.Attributes[name]
		if a.Description == "" || (a.Type != "string" && a.Type != "int") {
			errs = append(errs, fmt.Errorf("attribute %s: needs a description and the type string or int", name))
		}
		if !used[name] {
			errs = append(errs, fmt.Errorf("attribute %s: no metric carries it", name))
		}
	}
	for i := 1; i < len(d.Groups); i++ {
		if len(d.Groups[i-1]) < len(d.Groups[i]) {
			errs = append(errs, fmt.Errorf("groups: %q is longer than %q and must stand before it", d.Groups[i], d.Groups[i-1]))
		}
	}
	for _, f := range d.InfoFamilies {
		for _, problem := range d.infoProblems(f) {
			errs = append(errs, fmt.Errorf("info family %s: %s", f.Family, problem))
		}
	}
	for _, label := range sortedNames(d.Conventions) {
		if attribute := d.Conventions[label]; attribute != "" && d.Attributes[attribute].Type == "" {
			errs = append(errs, fmt.Errorf("conventions: the label %q becomes the attribute %q, which is not declared", label, attribute))
		}
	}
	for _, problem := range d.gatewayProblems() {
		errs = append(errs, fmt.Errorf("gateway: %s", problem))
	}
	for _, problem := range d.acceleratorProblems() {
		errs = append(errs, fmt.Errorf("accelerators: %s", problem))
	}
	return errors.Join(errs...)
}

// gatewayProblems checks that the names, attributes and metrics in the rules for
// gateways exist.
func (d *document) gatewayProblems() []string {
	var problems []string
	for _, p := range d.Gateway.Prefixes {
		if p.Wire == "" || !strings.HasPrefix(p.Name, "inference_gateway.") || (p.Kind != "gateway" && p.Kind != "lora_syncer") {
			problems = append(problems, fmt.Sprintf("the prefix %q needs a name below inference_gateway and the kind gateway or lora_syncer", p.Wire))
		}
	}
	for _, label := range sortedNames(d.Gateway.Labels) {
		if _, declared := d.Attributes[d.Gateway.Labels[label]]; !declared {
			problems = append(problems, fmt.Sprintf("the label %q becomes the attribute %q, which is not declared", label, d.Gateway.Labels[label]))
		}
	}
	for _, label := range d.Gateway.AggregatedLabels {
		if _, declared := d.Attributes[label]; !declared {
			problems = append(problems, fmt.Sprintf("the aggregated label %q is not declared", label))
		}
	}
	for _, name := range d.Gateway.AdditiveGauges {
		if d.Metrics[name].Gauge == nil {
			problems = append(problems, fmt.Sprintf("%q is not a gauge", name))
		}
	}
	return problems
}

func (d *document) problems(name string, m metric) []string {
	var problems []string
	check := func(ok bool, problem string) {
		if !ok {
			problems = append(problems, problem)
		}
	}
	check(namePattern.MatchString(name), "the name must be lower-case words joined by dots and underscores")
	check(m.Enabled != nil, "enabled is missing")
	check(m.Preset == "" || m.Preset == "essential" && m.Enabled != nil && *m.Enabled, "preset can only be essential, and needs enabled: true")
	check(m.Description != "", "description is missing")
	check(m.Unit != "", "unit is missing")
	check(slices.Contains(stabilities, m.Stability), "stability must be one of development, alpha, beta, stable")
	check(slices.Contains(components, m.EmittedBy), "emitted_by must be receiver or processor")
	check(slices.ContainsFunc(d.Topics, func(t topic) bool { return t.ID == m.Topic }), "topic is not in topics at the beginning of metadata.yaml")
	problems = append(problems, m.kindProblems()...)
	problems = append(problems, d.derivationProblems(name, m)...)
	check(slices.IsSorted(m.Attributes), "attributes must be sorted")
	for _, a := range m.Attributes {
		_, declared := d.Attributes[a]
		check(declared, fmt.Sprintf("attribute %q is not declared under attributes in metadata.yaml", a))
	}
	if other := d.Metrics[m.HideZero]; m.HideZero != "" || m.ZeroShown != "" {
		check(other.received() && m.Histogram == nil && other.Histogram == nil && m.Summary == nil && other.Summary == nil,
			"hide_zero needs two gauges or sums of the receiver, or one")
	}
	for _, s := range m.Sources {
		check(s.Family != "", "a source has no family")
		for _, v := range []string{s.Since, s.Until} {
			check(v == "" || versionPattern.MatchString(v), fmt.Sprintf("%q is not a version like 0.9.2", v))
		}
		check(!s.Version || s.Since+s.Until != "", "a source that depends on the version needs since or until")
		check(!s.Fallback || s.Version, "fallback has a meaning only together with version")
	}
	for _, s := range m.Exporters {
		problems = append(problems, d.exportingProblems(m, s)...)
	}
	return problems
}

func (m metric) kindProblems() []string {
	kinds := 0
	for _, set := range []bool{m.Gauge != nil, m.Sum != nil, m.Histogram != nil, m.Summary != nil} {
		if set {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		return []string{"needs exactly one of gauge, sum, histogram, summary"}
	case m.Gauge != nil && *m.Gauge != measurements{ValueType: "double"}:
		return []string{"a gauge is written as {value_type: double}"}
	case m.Sum != nil && *m.Sum != measurements{ValueType: "double", Monotonic: true, AggregationTemporality: "cumulative"}:
		return []string{"a sum is written as {value_type: double, monotonic: true, aggregation_temporality: cumulative}"}
	case m.Histogram != nil && *m.Histogram != measurements{ValueType: "double", AggregationTemporality: "cumulative"}:
		return []string{"a histogram is written as {value_type: double, aggregation_temporality: cumulative}"}
	}
	return nil
}

// infoProblems checks that an info family and the metrics made from it name each
// other.
func (d *document) infoProblems(f infoFamily) []string {
	var problems []string
	if f.Description == "" {
		problems = append(problems, "description is missing")
	}
	named := func(label, metric string) {
		if !slices.ContainsFunc(d.Metrics[metric].Sources, func(s source) bool {
			return s.Family == f.Family && s.Label == label
		}) {
			problems = append(problems, fmt.Sprintf("metric %q does not name the label %q as a source", metric, label))
		}
	}
	for _, n := range f.Numbers {
		named(n.Label, n.Metric)
	}
	for _, l := range f.Lists {
		named(l.Label, l.Metric)
		if !slices.Contains(d.Metrics[l.Metric].Attributes, l.Attribute) {
			problems = append(problems, fmt.Sprintf("metric %q does not carry the attribute %q", l.Metric, l.Attribute))
		}
	}
	return problems
}
