package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/format"
	"regexp"
	"slices"
	"strings"
)

// decisionList is internal/catalog/decisions.yaml, whose head explains the keys.
type decisionList struct {
	Groups    map[string][]string `yaml:"groups"`
	Decisions []decision          `yaml:"decisions"`
}

type decision struct {
	Of       []string `yaml:"of"`
	Defects  []string `yaml:"defects"`
	Decision string   `yaml:"decision"`
	How      string   `yaml:"how"`
	Test     string   `yaml:"test"`
}

// What can be decided about a defect, and the rules of the diagnosis that no metric shows.
var (
	decisionWords = []string{"unaffected", "corrected", "bounded", "withheld"}
	ruleNames     = []string{"rule:restart", "rule:idle", "rule:stall", "rule:learned"}

	testPattern = regexp.MustCompile(`^[a-z][a-z0-9_/]* Test[A-Za-z0-9_]+(/\S+)?$`)
)

// signalPrefix is what a signal of the diagnosis begins with as a subject.
const signalPrefix = "signal:"

// parseDecisions decodes the decisions and replaces the names of groups by their members.
// Unknown keys are errors.
func parseDecisions(content []byte, k *knowledge) (*decisionList, error) {
	var l decisionList
	if err := decode(content, &l); err != nil {
		return nil, err
	}
	problems := l.expandGroups(k.subjects())
	l.decideAs(k)
	return &l, errors.Join(append(append(problems, l.problems(k)...), k.doneProblems(&l)...)...)
}

// expandGroups replaces the names of groups by their members.
func (l *decisionList) expandGroups(subjects []string) []error {
	used := map[string]bool{}
	for i := range l.Decisions {
		row := &l.Decisions[i]
		var expanded []string
		for _, name := range row.Of {
			if members, is := l.Groups[name]; is {
				used[name] = true
				expanded = append(expanded, members...)
			} else {
				expanded = append(expanded, name)
			}
		}
		row.Of = expanded
	}
	var problems []error
	for _, name := range sortedNames(l.Groups) {
		if !used[name] {
			problems = append(problems, fmt.Errorf("group %s: no decision uses it", name))
		}
		if slices.Contains(subjects, name) {
			problems = append(problems, fmt.Errorf("group %s: a subject has this name", name))
		}
	}
	return problems
}

// decideAs decides the defects of a metric with decided_as as the first of these metrics does. A row
// of its own in the file has precedence.
func (l *decisionList) decideAs(k *knowledge) {
	decided := map[pair]bool{}
	for _, row := range l.Decisions {
		for _, p := range k.meeting(row) {
			decided[p] = true
		}
	}
	for _, subject := range sortedNames(k.catalogue.Metrics) {
		for _, other := range k.catalogue.Metrics[subject].DecidedAs {
			for _, row := range slices.Clone(l.Decisions) {
				if !slices.Contains(row.Of, other) {
					continue
				}
				row.Of = []string{subject}
				row.Defects = slices.DeleteFunc(slices.Clone(row.Defects), func(id string) bool {
					return decided[pair{subject, id}] || !slices.Contains(k.meeting(row), pair{subject, id})
				})
				for _, id := range row.Defects {
					decided[pair{subject, id}] = true
				}
				if len(row.Defects) > 0 {
					l.Decisions = append(l.Decisions, row)
				}
			}
		}
	}
}

// problems returns every contradiction between the decisions, the defects and the
// catalogue. That every pair is decided is for a test, so that the files can be
// generated while decisions are still missing.
func (l *decisionList) problems(k *knowledge) []error {
	var problems []error
	subjects := k.subjects()
	decided := map[pair]int{}
	for i, row := range l.Decisions {
		report := func(ok bool, format string, args ...any) {
			if !ok {
				problems = append(problems, fmt.Errorf("decision %d (%s): %s", i+1, row.name(), fmt.Sprintf(format, args...)))
			}
		}
		report(len(row.Of) > 0 && len(row.Defects) > 0, "needs subjects and defects")
		report(slices.Contains(decisionWords, row.Decision), "decision %q must be one of %s", row.Decision, strings.Join(decisionWords, ", "))
		report(sentence(row.How), "how must be a whole sentence")
		report(testPattern.MatchString(row.Test), "test %q must be a package below the root and a test in it, as in \"internal/catalog TestName/subtest\"", row.Test)
		twice, is := repeated(row.Defects)
		report(!is, "the defect %s is there twice", twice)
		for _, id := range row.Defects {
			report(k.defects.has(id), "there is no defect %q", id)
		}
		for _, subject := range row.Of {
			report(slices.Contains(subjects, subject), "%q is not a derived metric, signal, rule or group", subject)
		}
		met := k.meeting(row)
		for _, subject := range row.Of {
			report(!slices.Contains(subjects, subject) || slices.ContainsFunc(met, func(p pair) bool { return p.subject == subject }),
				"%s is computed from nothing that these defects concern", subject)
		}
		for _, id := range row.Defects {
			report(!k.defects.has(id) || slices.ContainsFunc(met, func(p pair) bool { return p.defect == id }),
				"%s concerns nothing that these subjects are computed from", id)
		}
		for _, p := range met {
			before, twice := decided[p]
			report(!twice, "%s and %s are decided by decision %d already", p.subject, p.defect, before)
			decided[p] = i + 1
		}
	}
	return problems
}

// name tells a row apart from the others in a message.
func (row *decision) name() string {
	return strings.Join(row.Of[:min(len(row.Of), 1)], "") + ", " + strings.Join(row.Defects[:min(len(row.Defects), 1)], "")
}

// readByPrograms reports whether the diagnosis looks a subject up while it runs.
func readByPrograms(subject string) bool {
	return strings.HasPrefix(subject, signalPrefix) || subject == "rule:learned"
}

// goDecisions returns the source of internal/catalog/decisions_generated.go: of the decisions only
// what programs read.
func goDecisions(l *decisionList) ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("// Code generated by cataloggen. DO NOT EDIT.\n\npackage catalog\n\nvar decisions = []Decision{\n")
	for _, row := range l.Decisions {
		of := slices.DeleteFunc(slices.Clone(row.Of), func(subject string) bool { return !readByPrograms(subject) })
		if len(of) == 0 {
			continue
		}
		var ids []string
		for _, id := range row.Defects {
			ids = append(ids, (&defect{ID: id}).constant())
		}
		fmt.Fprintf(&b, "{Of: %s, Defects: []DefectID{%s}, Verdict: %q},\n", stringSlice(of), strings.Join(ids, ", "), row.Decision)
	}
	b.WriteString("}\n")
	return format.Source(b.Bytes())
}
