package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

var (
	statementName = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	quoted        = regexp.MustCompile("`([^`]*)`")
	setting       = regexp.MustCompile(`^diagnosis::[a-z_]+$`)
	vllmFlag      = regexp.MustCompile(`^--[a-z][a-z-]*$`)
	levels        = []string{"engine", "pool", "notice"}
)

// validate returns every contradiction between the diagnosis and its schema or the
// catalogue.
func (g *diagnosis) validate(d *document) []error {
	var errs []error
	report := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	signals := g.signalNames()
	report(slices.IsSorted(signals), "signals must be sorted by name")
	for _, s := range g.Signals {
		report(statementName.MatchString(s.Name) && s.Unit != "" && s.Meaning != "", "signal %q: needs a name in lower case, a unit and a meaning", s.Name)
		_, taken := d.Metrics[s.Name]
		report(!taken, "signal %q: a metric has this name", s.Name)
		report(len(s.From) > 0 && slices.IsSorted(s.From), "signal %q: from must be a sorted list", s.Name)
		for _, from := range s.From {
			_, isMetric := d.Metrics[from]
			report(isMetric || slices.Contains(signals, from), "signal %q: from: %q is neither a metric nor a signal", s.Name, from)
			report(from != s.Name, "signal %q: from names the signal itself", s.Name)
		}
	}
	for _, c := range g.Conditions {
		report(c.Severity != nil && *c.Severity >= 0 && *c.Severity <= 3, "condition %s: severity must be 0, 1, 2 or 3", c.Name)
	}
	for i, c := range g.Causes {
		report(slices.Contains(levels, c.Level), "cause %s: level must be engine, pool or notice", c.Name)
		if i > 0 {
			before := g.Causes[i-1]
			order := slices.Index(levels, before.Level) - slices.Index(levels, c.Level)
			report(order < 0 || order == 0 && before.Name < c.Name, "cause %s must stand before %s", c.Name, before.Name)
		}
		report(slices.IsSortedFunc(c.Details, func(a, b diagnosisDetail) int { return strings.Compare(a.Name, b.Name) }),
			"cause %s: details must be sorted by name", c.Name)
		for _, detail := range c.Details {
			report(statementName.MatchString(detail.Name) && sentence(detail.Sentence),
				"cause %s: the detail %q needs a name in lower case and a whole sentence", c.Name, detail.Name)
		}
	}
	names := append(g.conditionNames(), g.causeNames()...)
	for i, s := range g.statements() {
		report(!slices.Contains(names[:i], s.Name), "%s: the name is taken", s.Name)
		for _, problem := range g.statementProblems(s, d) {
			errs = append(errs, fmt.Errorf("%s: %s", s.Name, problem))
		}
	}
	for _, s := range g.statements() {
		for _, problem := range g.quotedProblems(s.NotSeparable, d) {
			errs = append(errs, fmt.Errorf("%s: not_separable: %s", s.Name, problem))
		}
	}
	report(slices.IsSortedFunc(g.Flags, func(a, b diagnosisFlag) int { return strings.Compare(a.Name, b.Name) }), "flags must be sorted by name")
	for _, f := range g.Flags {
		report(vllmFlag.MatchString(f.Name), "flag %q: the name must be that of a flag of vLLM", f.Name)
		report(sentence(f.Values) && sentence(f.Meaning) && sentence(f.Raise) && (f.Lower == "" || sentence(f.Lower)), "flag %s: values, meaning, raise and lower must be whole sentences", f.Name)
	}
	return append(errs, g.setValues(d)...)
}

// sentence reports whether a text begins and ends as whole sentences do.
func sentence(text string) bool {
	return text != "" && strings.ToUpper(text[:1]) == text[:1] && strings.HasSuffix(text, ".") && !strings.Contains(text, "\n")
}

func (g *diagnosis) statementProblems(s statement, d *document) []string {
	var problems []string
	check := func(ok bool, problem string) {
		if !ok {
			problems = append(problems, problem)
		}
	}
	check(statementName.MatchString(s.Name), "the name must be lower-case words joined by underscores")
	check(sentence(s.Meaning), "meaning must be a whole sentence")
	check(sentence(s.Sentence), "sentence must be a whole sentence")
	for i, signal := range s.Signals {
		check(!slices.Contains(s.Signals[:i], signal), fmt.Sprintf("the signal %q is there twice", signal))
		check(slices.Contains(g.signalNames(), signal), fmt.Sprintf("the signal %q is not declared", signal))
	}
	check(len(s.Next) > 0, "next is missing")
	check(sentence(s.NotSeparable), "not_separable is missing or no whole sentence")
	for _, step := range s.Next {
		check(sentence(step.Text), fmt.Sprintf("the step %q is not a whole sentence", step.Text))
		check((step.Board == "") == (step.Panel == ""), fmt.Sprintf("the step %q needs both board and panel, or none", step.Text))
		problems = append(problems, g.quotedProblems(step.Text, d)...)
	}
	return problems
}

// quotedProblems checks that every name in backticks exists, so that a reader can
// paste it.
func (g *diagnosis) quotedProblems(text string, d *document) []string {
	var problems []string
	for _, match := range quoted.FindAllStringSubmatch(text, -1) {
		word := match[1]
		_, isMetric := d.Metrics[word]
		_, isAttribute := d.Attributes[word]
		ours := slices.Concat(g.conditionNames(), g.causeNames(), g.signalNames())
		if !isMetric && !isAttribute && !slices.Contains(ours, word) && !setting.MatchString(word) && !vllmFlag.MatchString(word) {
			problems = append(problems, fmt.Sprintf("`%s` is neither a metric, an attribute, a name of the diagnosis, a setting nor a flag", word))
		}
	}
	return problems
}

// setValues gives the attributes of the catalogue that are names of the diagnosis their values.
func (g *diagnosis) setValues(d *document) (errs []error) {
	for name, values := range map[string][]string{
		"condition": g.conditionNames(), "cause": g.causeNames(), "detail": g.detailNames(), "signal": g.signalNames(),
	} {
		a := d.Attributes[name]
		if len(a.Enum) > 0 {
			errs = append(errs, fmt.Errorf("metadata.yaml: remove enum of the attribute %s: its values are those of diagnosis.yaml", name))
		}
		slices.Sort(values)
		a.Enum = values
		d.Attributes[name] = a
	}
	return errs
}
