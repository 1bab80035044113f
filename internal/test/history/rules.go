package history

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/stretchr/testify/require"
)

// Firing is one time in which an alert fires. Times are since the begin of the story.
type Firing struct {
	Alert    string
	Labels   labels.Labels
	From, To time.Duration
	// Lasts is true if it still fires at the end; To is the end then.
	Lasts bool
}

// String returns the alert with its labels and its times.
func (f Firing) String() string {
	return fmt.Sprintf("%s %s from %s to %s", f.Alert, f.Labels, f.From, f.To)
}

// Rules evaluates rule files over the whole story with Prometheus's rule engine, and
// stores the results. Groups without an interval are evaluated every 15 s. A rule that
// cannot be evaluated, or a template that cannot be expanded, fails the test.
func (s *Store) Rules(tb testing.TB, begin, end time.Time, files ...string) []Firing {
	tb.Helper()
	return s.RulesEvery(tb, begin, end, 15*time.Second, files...)
}

// RulesEvery is Rules with another interval of groups that have none.
func (s *Store) RulesEvery(tb testing.TB, begin, end time.Time, step time.Duration, files ...string) []Firing {
	tb.Helper()
	manager := rules.NewManager(&rules.ManagerOptions{
		NameValidationScheme: model.UTF8Validation,
		QueryFunc:            rules.EngineQueryFunc(s.Engine, s.DB),
		NotifyFunc:           func(context.Context, string, ...*rules.Alert) {},
		Context:              tb.Context(), Appendable: s.DB, Queryable: s.DB, Logger: promslog.NewNopLogger(),
		Parser: parser.NewParser(parser.Options{}),
	})
	loaded, errs := manager.LoadGroups(step, labels.EmptyLabels(), "", nil, false, files...)
	require.Empty(tb, errs)
	var groups []*rules.Group
	for _, group := range loaded {
		groups = append(groups, group)
	}
	// In the order of their names, so that a run can be repeated.
	slices.SortFunc(groups, func(a, b *rules.Group) int { return strings.Compare(a.File()+a.Name(), b.File()+b.Name()) })
	for _, group := range groups {
		step = min(step, group.Interval())
		for _, rule := range group.AlertingRules() {
			rule.SetRestored(true)
		}
	}
	w := watch{open: map[*rules.AlertingRule]map[string]int{}}
	for at := begin; !at.After(end); at = at.Add(step) {
		for _, group := range groups {
			if at.Sub(begin)%group.Interval() != 0 {
				continue
			}
			group.Eval(tb.Context(), at)
			for _, rule := range group.Rules() {
				require.NoError(tb, rule.LastError(), "%s at %s", rule.Name(), at.Sub(begin))
			}
			for _, rule := range group.AlertingRules() {
				w.see(tb, rule, at.Sub(begin))
			}
		}
	}
	for _, open := range w.open {
		for _, i := range open {
			w.all[i].To, w.all[i].Lasts = end.Sub(begin), true
		}
	}
	return w.all
}

// watch follows which alerts fire.
type watch struct {
	all []Firing
	// open are the indexes of those that fire, by rule and labels. Two rules may have one
	// name.
	open map[*rules.AlertingRule]map[string]int
}

func (w *watch) see(tb testing.TB, rule *rules.AlertingRule, at time.Duration) {
	tb.Helper()
	open := w.open[rule]
	if open == nil {
		open = map[string]int{}
		w.open[rule] = open
	}
	fires := map[string]bool{}
	for _, alert := range rule.ActiveAlerts() {
		alert.Annotations.Range(func(l labels.Label) {
			require.NotContains(tb, l.Value, "error expanding template", rule.Name())
			require.NotContains(tb, l.Value, "<no value>", rule.Name())
		})
		if alert.State != rules.StateFiring {
			continue
		}
		key := alert.Labels.String()
		fires[key] = true
		if _, known := open[key]; !known {
			open[key] = len(w.all)
			w.all = append(w.all, Firing{Alert: rule.Name(), Labels: alert.Labels, From: at})
		}
	}
	for key, i := range open {
		if !fires[key] {
			w.all[i].To = at
			delete(open, key)
		}
	}
}
