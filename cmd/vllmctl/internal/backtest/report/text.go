package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/dustin/go-humanize"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/incident"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/promapi"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/rulestore"
)

// Text writes the report for a terminal. With all, conditions that ask for nothing are
// listed as well.
func Text(w io.Writer, r *Report, all bool) error {
	t := &text{report: r, all: all}
	t.head()
	quiet := 0
	for i := range r.Targets {
		if len(r.Targets) > mostQuiet && !all && t.quiet(&r.Targets[i]) {
			quiet++
			continue
		}
		t.target(&r.Targets[i])
	}
	if quiet > 0 {
		t.line("\n%s without anything to report; --all lists them", plural(quiet, "server"))
	}
	if len(r.Pools) > 0 {
		t.line("\nPools")
		t.episodes(r.Pools)
	}
	t.firings("Alerts that would have fired", r.Alerts, len(r.Rules) > 0, len(r.Unevaluated()) > 0)
	for _, p := range r.RuleProblems {
		what := "cannot be evaluated"
		if p.Annotation {
			what = "has an annotation that cannot be expanded"
		}
		t.line("  %s: %s", what, promapi.Printable(p.String()))
	}
	t.firings("Own alerts that fired", r.Own, true, false)
	t.incidents()
	t.summary()
	_, err := io.WriteString(w, plain(t.out.String()))
	return err
}

// plain replaces what could change a terminal or the direction of a line, whichever text of
// the history it is in.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
}

type text struct {
	out    strings.Builder
	report *Report
	all    bool
}

func (t *text) line(format string, args ...any) { fmt.Fprintf(&t.out, format+"\n", args...) }

// at writes a time: with its date, since a history has several days.
func (t *text) at(at time.Time) string { return at.In(t.report.Zone).Format("2006-01-02 15:04:05") }

func (t *text) head() {
	r := t.report
	t.line("History of %s", promapi.Printable(r.Server))
	t.line("from %s to %s %s, %s, after %s of warm-up", t.at(r.From), t.at(r.To), r.From.In(r.Zone).Format("MST"), short(r.To.Sub(r.From)), short(seconds(r.Warmup)))
	for _, n := range r.Notes {
		t.line("Note: %s", n)
	}
}

// mostFirings is how many firings of one alert are listed.
const mostFirings = 20

// firings lists alerts. failed is true where some rules could not be evaluated.
func (t *text) firings(title string, all []rulestore.Firing, asked, failed bool) {
	if !asked {
		return
	}
	t.line("\n%s", title)
	switch {
	case len(all) > 0:
	case failed:
		t.line("  unknown, because rules failed")
		return
	default:
		t.line("  none")
		return
	}
	listed := map[string]int{}
	for i := range all {
		f := &all[i]
		listed[f.Alert]++
		if listed[f.Alert] > mostFirings {
			continue
		}
		lasts := ""
		if f.Lasts {
			lasts = ", and still at the end"
		}
		t.line("  %s  %s%s  for %s%s", t.at(f.From), promapi.Printable(f.Alert), promapi.Printable(labelText(f)), short(f.To.Sub(f.From)), lasts)
	}
	for _, name := range slices.Sorted(maps.Keys(listed)) {
		if n := listed[name] - mostFirings; n > 0 {
			t.line("  %s fired %d more times; --json lists all", promapi.Printable(name), n)
		}
	}
}

// labelText writes the labels that tell firings apart.
func labelText(f *rulestore.Firing) string {
	var parts []string
	for name, value := range f.Labels.Map() {
		switch name {
		case "alertname", "job", "runbook_url":
		default:
			parts = append(parts, name+"="+value)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	slices.Sort(parts)
	return " {" + strings.Join(parts, ", ") + "}"
}

func (t *text) incidents() {
	r := t.report
	if !r.Compared {
		return
	}
	t.line("\nIncidents")
	for i := range r.Incidents {
		one := &r.Incidents[i]
		t.line("  %s  %s  for %s", t.at(one.From), promapi.Printable(one.Name), short(one.To.Sub(one.From)))
		if one.Outside {
			t.line("      is not in the period")
			continue
		}
		if one.Diagnosis == nil {
			t.line("      MISSED by the diagnosis")
		} else {
			t.line("      diagnosis: %s: %s, %s", promapi.Printable(one.Diagnosis.Subject), promapi.Printable(one.Diagnosis.By), when(one.Diagnosis))
		}
		switch {
		case one.Right == nil:
		case *one.Right:
			t.line("      cause: right, %s", one.Cause)
		default:
			t.line("      cause: WRONG, mostly %s; the file says %s", one.Reported, one.Cause)
		}
		for k := range one.Alerts {
			t.line("      would-be alert: %s, %s", promapi.Printable(one.Alerts[k].By), when(&one.Alerts[k]))
		}
		if one.MissedByRules {
			t.line("      MISSED by the rules")
		}
		for k := range one.Own {
			t.line("      own alert: %s, %s", promapi.Printable(one.Own[k].By), when(&one.Own[k]))
		}
		if one.Ahead != nil {
			if *one.Ahead >= 0 {
				t.line("      the diagnosis was %s before the first own alert", short(seconds(*one.Ahead)))
			} else {
				t.line("      the diagnosis was %s after the first own alert", short(seconds(-*one.Ahead)))
			}
		}
	}
	if len(r.FalseAlarms) > 0 {
		t.line("\nFalse alarms: outside of all incidents")
	}
	for _, a := range r.FalseAlarms[:min(mostFalse, len(r.FalseAlarms))] {
		by := "diagnosis"
		if a.Rule {
			by = "would-be page"
		}
		t.line("  %s  %s: %s  %s  for %s", t.at(a.From), by, promapi.Printable(a.By), promapi.Printable(a.Subject), short(a.To.Sub(a.From)))
	}
	if n := len(r.FalseAlarms) - mostFalse; n > 0 {
		t.line("  and %d more; --json lists them all", n)
	}
}

// mostFalse is how many false alarms are listed.
const mostFalse = 200

// when says when something was first reported of an incident.
func when(s *incident.Seen) string {
	if s.Already {
		return "since " + short(seconds(s.Lead)) + " before the incident"
	}
	return lead(s.Lead)
}

// lead says how long before or after the start of an incident something was.
func lead(s float64) string {
	switch {
	case s == 0:
		return "at the start"
	case s > 0:
		return short(seconds(s)) + " before the start"
	}
	return short(seconds(-s)) + " after the start"
}

func (t *text) summary() {
	r, s := t.report, &t.report.Summary
	t.line("\nSummary")
	t.line("  %s, %s engine hours, %s hours without data, %s, %d of them failed", plural(len(r.Targets), "server"), hours(s.EngineHours), hours(s.GapHours), plural(s.Scrapes, "scrape"), s.Failed)
	for _, part := range []struct {
		title string
		of    map[string]float64
	}{{"conditions", s.Hours}, {"causes", s.CauseHours}} {
		names := slices.SortedFunc(maps.Keys(part.of), func(a, b string) int {
			return cmp.Or(cmp.Compare(part.of[b], part.of[a]), strings.Compare(a, b))
		})
		parts := make([]string, len(names))
		for i, name := range names {
			parts[i] = name + " " + hours(part.of[name]) + " h"
		}
		if len(parts) > 0 {
			t.line("  %s: %s", part.title, strings.Join(parts, ", "))
		}
	}
	t.line("  the diagnosis raised %s, %d of them with severity 3", plural(s.Alarms, "alarm"), s.Severe)
	if len(r.Rules) > 0 {
		t.line("  the rules would have paged %s%s", times(s.Pages), weekly(r))
	}
	t.line("  your own alerts fired %s", times(s.OwnAlerts))
	if r.Compared {
		t.line("  %s: %d missed by the diagnosis%s; cause right in %d, wrong in %d; %s", plural(s.Incidents, "incident"), s.Missed, byRules(r), s.RightCause, s.WrongCause, plural(s.FalseAlarms, "false alarm"))
		if s.LeadMedian != nil {
			t.line("  median: the diagnosis reports an incident %s", lead(*s.LeadMedian))
		}
		if s.AheadMedian != nil {
			t.line("  median: %s than the first own alert", sooner(*s.AheadMedian))
		}
	}
	t.line("  read: %s samples, %s in %s, %s", humanize.Comma(r.Read.Samples), humanize.IBytes(uint64(r.Read.Bytes)), plural(r.Read.Requests, "request"), short(seconds(r.Read.Seconds)))
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return humanize.Comma(int64(n)) + " times"
}

// weekly is the number of pages in a week, where the period is long enough to say it.
func weekly(r *Report) string {
	if r.To.Sub(r.From) < 24*time.Hour {
		return ""
	}
	return fmt.Sprintf(", %.1f times a week", r.Summary.PagesPerWeek)
}

func byRules(r *Report) string {
	if len(r.Rules) == 0 {
		return ""
	}
	return fmt.Sprintf(", %d by the rules", r.Summary.MissedByRules)
}

func sooner(s float64) string {
	if s >= 0 {
		return short(seconds(s)) + " sooner"
	}
	return short(seconds(-s)) + " later"
}

func plural(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return humanize.Comma(int64(n)) + " " + of + "s"
}

func hours(h float64) string {
	if h < 10 {
		return fmt.Sprintf("%.1f", h)
	}
	return fmt.Sprintf("%.0f", h)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// short writes a duration with its two greatest units: 2h5m, 3m20s, 15s, 4d2h.
func short(d time.Duration) string {
	if d >= time.Minute {
		d = d.Round(time.Second)
	}
	switch {
	case d < 0:
		return "-" + short(-d)
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Hour:
		text := d.Round(time.Second).String()
		return strings.TrimSuffix(text, "m0s") + map[bool]string{true: "m"}[strings.HasSuffix(text, "m0s")]
	case d < 24*time.Hour:
		d = d.Round(time.Minute)
		if d%time.Hour == 0 {
			return fmt.Sprintf("%dh", d/time.Hour)
		}
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	d = d.Round(time.Hour)
	if d%(24*time.Hour) == 0 {
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
	return fmt.Sprintf("%dd%dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}
