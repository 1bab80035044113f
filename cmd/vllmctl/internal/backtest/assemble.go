package backtest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/history"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/incident"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/promapi"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/replay"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/report"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/rulestore"
)

// Assemble makes the report of an outcome. Incidents are compared where compared is true,
// with a margin around them.
func Assemble(o *Options, out *Outcome, incidents []incident.Incident, compared bool, margin time.Duration) *report.Report {
	r := &report.Report{
		Version: 1, Server: o.Address, From: o.Period.From, To: o.Period.To, Warmup: o.Warmup.Seconds(),
		Notes: notes(o, out), Targets: []report.Target{}, Pools: []replay.Episode{}, Rules: []string{}, Own: []rulestore.Firing{},
		Alerts: []rulestore.Firing{}, RuleProblems: []rulestore.Problem{}, Incidents: []incident.Result{}, FalseAlarms: []incident.Alarm{},
		Compared: compared, Zone: time.UTC,
	}
	story := &incident.Story{Margin: margin, Names: map[string][]string{}}
	story.Period.From, story.Period.To = o.Period.From, o.Period.To
	for i := range out.Results {
		one := &out.Results[i]
		for j := range one.Episodes {
			one.Episodes[j].Warmup = !one.Episodes[j].To.After(o.Period.From)
		}
		story.Episodes = append(story.Episodes, one.Episodes...)
		if one.Target == nil {
			r.Pools = append(r.Pools, one.Episodes...)
			continue
		}
		if one.Episodes == nil {
			one.Episodes = []replay.Episode{}
		}
		r.Targets = append(r.Targets, report.Target{
			Name: one.Target.Name, Names: one.Target.Form.String(), Labels: one.Target.Labels.Map(),
			Coverage: one.Coverage, Episodes: one.Episodes, Dropped: one.Dropped,
		})
		for _, label := range []string{"instance", "exported_instance", "pod", "k8s_pod_name", "k8s.pod.name"} {
			if v := one.Target.Labels.Get(label); v != "" {
				story.Names[one.Target.Name] = append(story.Names[one.Target.Name], v)
				if v != one.Target.Name {
					story.Names[v] = append(story.Names[v], one.Target.Name)
				}
			}
		}
	}
	slices.SortFunc(r.Targets, func(a, b report.Target) int { return strings.Compare(a.Name, b.Name) })
	slices.SortStableFunc(story.Episodes, func(a, b replay.Episode) int {
		return cmp.Or(a.From.Compare(b.From), strings.Compare(a.Subject.String(), b.Subject.String()))
	})
	within := func(all []rulestore.Firing) []rulestore.Firing {
		return slices.DeleteFunc(all, func(f rulestore.Firing) bool { return !f.To.After(o.Period.From) })
	}
	r.Own = append(r.Own, within(out.Alerts)...)
	if o.Rules != nil {
		found := o.Rules.Finish(o.Period.To)
		r.Rules = append(r.Rules, found.Files...)
		r.Alerts = append(r.Alerts, within(found.Firings)...)
		r.RuleProblems = append(r.RuleProblems, found.Problems...)
		r.Notes = append(r.Notes, found.Notes...)
		if n := len(r.Unevaluated()); n > 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("%d of the rules failed, so alerts may be missing", n))
		}
		story.Ruled = true
	}
	story.Pages, story.Own = r.Alerts, r.Own
	if compared {
		r.Notes = append(r.Notes, unknownTargets(incidents, r.Targets, story)...)
		results, alarms := incident.Compare(incidents, story)
		r.Incidents = append(r.Incidents, results...)
		r.FalseAlarms = append(r.FalseAlarms, alarms...)
	}
	r.Summarize()
	return r
}

// notes are what the reader must know about an outcome.
func notes(o *Options, out *Outcome) []string {
	all := []string{}
	add := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if o.Warmup < leastWarmup {
		add("baselines are learned from the warm-up on, %s before --from; in the first hours, changes can be reported late or with another cause", o.Warmup)
	}
	if n := out.Found.Overflow; n > 0 {
		add("%d targets exceed --max-targets and are skipped; select with --match", n)
	}
	if n := len(out.Found.Copies); n > 0 {
		add("%d targets are skipped: redundant Prometheus servers wrote the same series, and the first one is judged", n)
	}
	if n := out.Found.Both; n > 0 {
		add("%d servers have series with vLLM's own names and with the receiver's; the naming with more days is judged", n)
	}
	raw, ours := 0, 0
	snapped := 0
	for i := range out.Results {
		one := &out.Results[i]
		switch {
		case one.Target == nil:
		case one.Target.Form == history.Ours:
			ours++
		default:
			raw++
		}
		if one.Coverage.Snapped {
			snapped++
		}
	}
	if raw > 0 && o.Version == "" {
		add("the history lacks the version of vLLM; --vllm-version decides where a metric changed its meaning")
	}
	if raw > 0 {
		add("the history lacks /health and the reasons of failed scrapes")
	}
	if ours > 0 {
		add("the series of the receiver have no start timestamps; restarts are found by falling counters")
	}
	if snapped > 0 {
		add("%d targets have different timestamps within a scrape, as after deduplication; samples less than half an interval apart were joined", snapped)
	}
	if out.AlertsDropped > 0 {
		add("%d samples of ALERTS are skipped: too many alerts", out.AlertsDropped)
	}
	return all
}

// leastWarmup is the warm-up from which on the baselines are as in the middle of a history.
const leastWarmup = time.Hour

// mostUnknown is how many incidents with unknown targets are named.
const mostUnknown = 10

// unknownTargets are notes about incidents of targets that the history does not have. They
// are missed whatever the diagnosis says, most often because of a mistake in the file.
func unknownTargets(incidents []incident.Incident, targets []report.Target, story *incident.Story) []string {
	var out []string
	unknown := 0
	for i := range incidents {
		one := &incidents[i]
		if slices.ContainsFunc(targets, func(t report.Target) bool { return one.Concerns(append(story.Names[t.Name], t.Name)...) }) {
			continue
		}
		unknown++
		if unknown <= mostUnknown {
			out = append(out, promapi.Printable(fmt.Sprintf("the history has none of the targets of the incident %q: %s", one.Name, strings.Join(one.Targets, ", "))))
		}
	}
	if unknown > mostUnknown {
		out = append(out, fmt.Sprintf("the history has no target of %d more incidents", unknown-mostUnknown))
	}
	return out
}
