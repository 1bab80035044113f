package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/pageparts"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/rulefile"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/rulestore"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/accuracy/stories"
)

// The page with how often each alert fires, and the name of the marks in it.
const alertsFile, alertsPart = "docs/alerts.md", "false alerts"

const (
	// everyRule is the time between two evaluations of the rules.
	everyRule = 15 * time.Second
	// aroundHarm is what is evaluated before the first report of harm and after the last one.
	aroundHarm = 3600.0
)

// alerting evaluates the alerts as they are shipped, with Prometheus's rule engine, on what was reported.
type alerting struct {
	// dir is a folder for the stores, file the group of rules with the alerts on single servers.
	dir, file string
	group     rulefile.Group
	alerts    []content.Alert
}

func newAlerting(dir string) (*alerting, error) {
	on := func(g content.Group) bool {
		return g.Set == content.Stable && slices.ContainsFunc(g.Alerts, func(a content.Alert) bool { return a.Name == "VLLMServerNotServing" })
	}
	groups := slices.DeleteFunc(content.Groups(), func(g content.Group) bool { return !on(g) })
	if len(groups) != 1 {
		return nil, fmt.Errorf("want one group with the alerts on servers, got %d", len(groups))
	}
	written, err := rulefile.Groups(groups, spelling.Suffixed)
	if err != nil {
		return nil, err
	}
	for i := range written[0].Rules {
		written[0].Rules[i].Annotations = nil // Messages take most of the time, and nobody reads them.
	}
	a := &alerting{dir: dir, file: filepath.Join(dir, "rules.yaml"), group: written[0], alerts: groups[0].Alerts}
	err = a.write()
	return a, err
}

// write writes the rules.
func (a *alerting) write() error {
	text, err := json.Marshal(map[string]any{"groups": []rulefile.Group{a.group}}) // JSON is YAML.
	if err != nil {
		return err
	}
	return os.WriteFile(a.file, text, 0o600)
}

// only keeps the rules of some alerts, which is faster.
func (a *alerting) only(alerts []content.Alert) error {
	a.group.Rules = slices.DeleteFunc(a.group.Rules, func(r rulefile.Rule) bool {
		return r.Alert != "" && !slices.ContainsFunc(alerts, func(one content.Alert) bool { return one.Name == r.Alert })
	})
	return a.write()
}

// fired is one time in which an alert fired, in seconds of the story.
type fired struct {
	alert    string
	from, to float64
}

// firings are those of a server up to the end of a story. In gaps nothing was scraped.
func (a *alerting) firings(ctx context.Context, said []judge.Said, gaps []judge.Fault, until float64) (out []fired, err error) {
	first, last := -1.0, 0.0
	for i, s := range said {
		if s.Severity < 2 {
			continue
		}
		if first < 0 {
			first = s.At
		}
		last = until
		if i+1 < len(said) {
			last = said[i+1].At
		}
	}
	if first < 0 {
		return nil, nil
	}
	dir, err := os.MkdirTemp(a.dir, "store-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	store, err := rulestore.Open(dir, rulestore.Suffixed, rulestore.Memory, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	from, to := max(0, first-aroundHarm), min(until, last+aroundHarm)
	begin, end := judge.Begin().Add(time.Duration(from)*time.Second), judge.Begin().Add(time.Duration(to)*time.Second)
	if _, err := store.Append(ctx, seriesOf(said, gaps, from, to)); err != nil {
		return nil, err
	}
	e, errs := rulestore.NewEvaluation(ctx, store, begin, everyRule, a.file)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if err := e.Until(ctx, end); err != nil {
		return nil, err
	}
	all, problems, _ := e.Finish(end)
	if len(problems) > 0 {
		return nil, errors.New(problems[0].String())
	}
	for _, f := range all {
		out = append(out, fired{f.Alert, f.From.Sub(judge.Begin()).Seconds(), f.To.Sub(judge.Begin()).Seconds()})
	}
	return out, nil
}

// seriesOf is what a Prometheus has of the reports: the severity, the condition and the cause.
func seriesOf(said []judge.Said, gaps []judge.Fault, from, to float64) []rulestore.Series {
	all := map[string]*rulestore.Series{}
	add := func(at, v float64, name string, more ...string) {
		key := name + strings.Join(more, " ")
		if all[key] == nil {
			all[key] = &rulestore.Series{Labels: labels.FromStrings(append([]string{
				model.MetricNameLabel, name, "job", "vllm", "instance", "vllm-0:8000", "model_name", "model", "engine", "0",
			}, more...)...)}
		}
		one := all[key]
		one.Times, one.Values = append(one.Times, judge.Begin().Add(time.Duration(at*float64(time.Second))).UnixMilli()), append(one.Values, v)
	}
	now := 0
	for at := from; at <= to; at += everyRule.Seconds() {
		for now+1 < len(said) && said[now+1].At <= at {
			now++
		}
		s := &said[now]
		if s.At > at || s.Severity < 0 || slices.ContainsFunc(gaps, func(f judge.Fault) bool { return f.Kind == judge.Missed && at >= f.At && at < f.Until }) {
			continue
		}
		add(at, float64(s.Severity), "vllm_diagnosis_severity")
		add(at, 1, "vllm_diagnosis_condition", "condition", s.Condition)
		if s.Cause != "" {
			add(at, 1, "vllm_diagnosis_cause", "cause", s.Cause, "role", "primary", "detail", s.Detail)
		}
	}
	var out []rulestore.Series
	for _, s := range all {
		out = append(out, *s)
	}
	return out
}

// measured are the alerts that fire by what is reported of a single server alone: those that do when it reports
// nothing but each severity for an hour.
func (a *alerting) measured(ctx context.Context) (out []content.Alert, err error) {
	all, err := a.firings(ctx, []judge.Said{{}, {At: 3600, Severity: 2}, {At: 7200}, {At: 10800, Severity: 3}, {At: 14400}}, nil, 18000)
	for i := range a.alerts {
		if slices.ContainsFunc(all, func(f fired) bool { return f.alert == a.alerts[i].Name }) {
			out = append(out, a.alerts[i])
		}
	}
	return out, err
}

// firingsOf counts, by alert, how often it fired in a healthy story: in the column fires all of them, in natural those
// where nothing but a natural slow-down excuses it, and in nothing where not even that does. Harm in any minute in which it
// was pending excuses it, but a page only great harm.
func firingsOf(s *Score, alerts []content.Alert, all []fired) map[string]*alarmRow {
	out := map[string]*alarmRow{}
	for i := range alerts {
		out[alerts[i].Name] = &alarmRow{hours: s.Healthy, slowed: s.hours()}
	}
	is := s.minutes(0, s.harmful(0))
	for _, f := range all {
		i := slices.IndexFunc(alerts, func(a content.Alert) bool { return a.Name == f.alert })
		if i < 0 {
			continue
		}
		one := out[f.alert]
		one[fires]++
		excused, slow := false, false
		first, last := int((f.from-alerts[i].For.Seconds())/window), int(f.from/window)
		for m := max(0, first); m <= min(last, len(is.excused)-1); m++ {
			excused = excused || is.excused[m] || is.great[m] && alerts[i].Severity == content.Page
			slow = slow || is.natural[m] && alerts[i].Severity != content.Page
		}
		switch {
		case excused:
		case slow:
			one[natural]++
		default:
			one[nothing]++
		}
	}
	return out
}

// fires is the column of all firings of an alert, which has no notices.
const fires = noticed

// alertCounts are, of each healthy story by its place among the records, how often each alert fires in it.
func alertCounts(ctx context.Context, workers int, records []Record) ([]content.Alert, []map[string]*alarmRow, error) {
	dir, err := os.MkdirTemp("", "alerts-*")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)
	a, err := newAlerting(dir)
	if err != nil {
		return nil, nil, err
	}
	alerts, err := a.measured(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := a.only(alerts); err != nil {
		return nil, nil, err
	}
	counts, errs := make([]map[string]*alarmRow, len(records)), make([]error, len(records))
	next := make(chan int)
	var group sync.WaitGroup
	for range max(1, workers) {
		group.Go(func() {
			for i := range next {
				r := &records[i]
				var all []fired
				all, errs[i] = a.firings(ctx, r.Said, r.Faults, r.Seconds)
				s := score(r)
				counts[i] = firingsOf(&s, alerts, all)
			}
		})
	}
	for i := range records {
		if records[i].Kind == stories.Healthy {
			next <- i
		}
	}
	close(next)
	group.Wait()
	return alerts, counts, errors.Join(errs...)
}

// ticketed adds to the records of healthy stories how many tickets the shipped alerts send.
func ticketed(ctx context.Context, workers int, records []Record) error {
	alerts, counts, err := alertCounts(ctx, workers, records)
	for i, of := range counts {
		n := 0.0
		for _, a := range alerts {
			if own := of[a.Name]; own != nil && a.Severity == content.Ticket {
				n += own[nothing] + own[natural]
			}
		}
		if of != nil {
			records[i].Tickets = &n
		}
	}
	return err
}

// alertsTable has a row for each alert.
func alertsTable(alerts []content.Alert, counts []map[string]*alarmRow) string {
	var out strings.Builder
	out.WriteString("|Alert|Severity|Nothing behind, in 10,000 h of a server|In natural slow-downs|Fleet of 100, nothing behind, a week|All in 10,000 h|\n|---|---|---|---|---|---|\n")
	var c Alarms
	for _, alert := range alerts {
		c = Alarms{}
		for _, of := range counts {
			if own := of[alert.Name]; own != nil {
				c.add(*own)
			}
		}
		fmt.Fprintf(&out, "|`%s`|%s|%s|%s|%s|%.0f|\n", alert.Name, alert.Severity, c.text(nothing), c.text(natural), c.weekText(nothing),
			10_000*c.sum[fires]/max(1, c.sum[slowed]))
	}
	fmt.Fprintf(&out, "\nOf %.0f hours played, %.0f had no harm by a fault or by too much traffic.\n", c.sum[slowed], c.sum[hours])
	return out.String()
}

// writeAlerts writes the table.
func writeAlerts(ctx context.Context, o *options, records []Record) error {
	alerts, counts, err := alertCounts(ctx, o.workers, records)
	if err != nil {
		return err
	}
	table := alertsTable(alerts, counts)
	fmt.Print(table)
	return pageparts.Rewrite(alertsFile, map[string]string{alertsPart: table})
}
