package rulestore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
)

// Firing is one time in which an alert fired, or would have fired.
type Firing struct {
	// Alert is the name of the alert.
	Alert string `json:"alert"`
	// Labels are its labels, as an object of texts.
	Labels labels.Labels `json:"labels"`
	// From is when it started to fire.
	From time.Time `json:"from"`
	// To is when it ended.
	To time.Time `json:"to"`
	// Lasts is true if it still fires at the end of the period.
	Lasts bool `json:"lasts,omitempty"`
	// Summary is the annotation summary at its start.
	Summary string `json:"summary,omitempty"`
}

// CompareFirings orders firings by their starts.
func CompareFirings(a, b Firing) int {
	if d := a.From.Compare(b.From); d != 0 {
		return d
	}
	if d := strings.Compare(a.Alert, b.Alert); d != 0 {
		return d
	}
	return labels.Compare(a.Labels, b.Labels)
}

// Problem is a rule that could not be evaluated, or an annotation that could not be expanded.
type Problem struct {
	// Rule is the name of the rule.
	Rule string `json:"rule"`
	// At is when it happened first.
	At time.Time `json:"at"`
	// Text is what was wrong then.
	Text string `json:"text"`
	// Times is how often it happened.
	Times int `json:"times"`
	// Annotation is true if only an annotation failed, and the rule worked.
	Annotation bool `json:"annotation,omitempty"`
}

// Evaluation evaluates rule files over a store as time goes on.
type Evaluation struct {
	store  *Store
	groups []*rules.Group
	step   time.Duration
	next   time.Time
	begin  time.Time

	all []Firing
	// open are the indexes of those that fire, by rule and labels. Two rules may have one
	// name.
	open     map[*rules.AlertingRule]map[string]int
	problems map[problemOf]*Problem
	dropped  int
}

// problemOf is what a problem is about: a rule, or an annotation of it.
type problemOf struct {
	rule       string
	annotation bool
}

// maxFirings is how many firings are kept.
const maxFirings = 50_000

// NewEvaluation loads rule files. Groups without an interval are evaluated at each step. The
// results are stored as Prometheus stores them. It returns what is wrong with the files.
func NewEvaluation(ctx context.Context, s *Store, begin time.Time, step time.Duration, files ...string) (*Evaluation, []error) {
	manager := rules.NewManager(&rules.ManagerOptions{
		NameValidationScheme: model.UTF8Validation,
		QueryFunc:            rules.EngineQueryFunc(s.Engine, s.DB),
		NotifyFunc:           func(context.Context, string, ...*rules.Alert) {},
		Context:              ctx, Appendable: s.DB, Queryable: s.DB, Logger: promslog.NewNopLogger(),
		Parser: parser.NewParser(parser.Options{}),
	})
	loaded, errs := manager.LoadGroups(step, labels.EmptyLabels(), "", nil, false, files...)
	if len(errs) > 0 {
		return nil, errs
	}
	e := &Evaluation{store: s, step: step, begin: begin, next: begin, open: map[*rules.AlertingRule]map[string]int{}, problems: map[problemOf]*Problem{}}
	for _, group := range loaded {
		e.groups = append(e.groups, group)
	}
	// In the order of their names, so that a run can be repeated.
	slices.SortFunc(e.groups, func(a, b *rules.Group) int { return strings.Compare(a.File()+a.Name(), b.File()+b.Name()) })
	for _, group := range e.groups {
		e.step = common(e.step, group.Interval())
		for _, rule := range group.AlertingRules() {
			rule.SetRestored(true)
		}
	}
	return e, nil
}

// common is the longest time of which both are multiples.
func common(a, b time.Duration) time.Duration {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

// Until evaluates every rule at its times, up to and including a time.
func (e *Evaluation) Until(ctx context.Context, end time.Time) error {
	for ; !e.next.After(end); e.next = e.next.Add(e.step) {
		if err := ctx.Err(); err != nil {
			return err
		}
		for _, group := range e.groups {
			if e.next.Sub(e.begin)%group.Interval() != 0 {
				continue
			}
			group.Eval(ctx, e.next)
			for _, rule := range group.Rules() {
				if err := rule.LastError(); err != nil && ctx.Err() == nil {
					e.problem(problemOf{rule.Name(), false}, err.Error())
				}
			}
			for _, rule := range group.AlertingRules() {
				e.see(rule)
			}
		}
	}
	return nil
}

func (e *Evaluation) see(rule *rules.AlertingRule) {
	open := e.open[rule]
	if open == nil {
		open = map[string]int{}
		e.open[rule] = open
	}
	fires := map[string]bool{}
	for _, alert := range rule.ActiveAlerts() {
		alert.Annotations.Range(func(l labels.Label) {
			if strings.Contains(l.Value, "error expanding template") || strings.Contains(l.Value, "<no value>") {
				e.problem(problemOf{rule.Name(), true}, "annotation "+l.Name+": "+l.Value)
			}
		})
		if alert.State != rules.StateFiring {
			continue
		}
		key := alert.Labels.String()
		fires[key] = true
		if _, known := open[key]; known {
			continue
		}
		if len(e.all) >= maxFirings {
			e.dropped++
			continue
		}
		open[key] = len(e.all)
		e.all = append(e.all, Firing{Alert: rule.Name(), Labels: alert.Labels, From: e.next, Summary: alert.Annotations.Get("summary")})
	}
	for key, i := range open {
		if !fires[key] {
			e.all[i].To = e.next
			delete(open, key)
		}
	}
}

// problem counts a problem. Of each rule the first text is kept.
func (e *Evaluation) problem(of problemOf, text string) {
	if known := e.problems[of]; known != nil {
		known.Times++
		return
	}
	e.problems[of] = &Problem{Rule: of.rule, At: e.next, Text: text, Times: 1, Annotation: of.annotation}
}

// Finish returns all firings up to an end, in the order of their starts, and the problems.
// dropped is the number of firings above the limit.
func (e *Evaluation) Finish(end time.Time) (all []Firing, problems []Problem, dropped int) {
	for _, open := range e.open {
		for _, i := range open {
			e.all[i].To, e.all[i].Lasts = end, true
		}
	}
	for _, p := range e.problems {
		problems = append(problems, *p)
	}
	slices.SortFunc(problems, func(a, b Problem) int {
		return cmp.Or(strings.Compare(a.Rule, b.Rule), strings.Compare(a.Text, b.Text))
	})
	all = slices.Clone(e.all)
	slices.SortStableFunc(all, CompareFirings)
	return all, problems, e.dropped
}

// String returns the problem as one sentence.
func (p Problem) String() string {
	return fmt.Sprintf("%s: %s (%d times, first at %s)", p.Rule, p.Text, p.Times, p.At.UTC().Format(time.RFC3339))
}
