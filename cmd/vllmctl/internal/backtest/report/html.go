package report

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/incident"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/promapi"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/replay"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/rulestore"
)

var (
	//go:embed page.html
	pageText string
	//go:embed page.css
	style string
	// page escapes all text of the history. It has no script and loads nothing.
	page = template.Must(template.New("page").Parse(pageText))
)

// HTML writes the report as one page that needs nothing else: no script, no network.
func HTML(w io.Writer, r *Report) error {
	sum := sha256.Sum256([]byte(style))
	p := &htmlPage{
		report: r, StyleHash: template.HTMLAttr("sha256-" + base64.StdEncoding.EncodeToString(sum[:])), Style: template.CSS(style), //nolint:gosec // Both are of the program.
		Server: promapi.Printable(r.Server), From: clock(r.From, r), To: clock(r.To, r), Zone: r.From.In(r.Zone).Format("MST"),
		Length: short(r.To.Sub(r.From)), Warmup: short(seconds(r.Warmup)), Notes: r.Notes, Compared: r.Compared, Legend: legend,
		Read: fmt.Sprintf("%s samples (%s) in %s and %s", humanize.Comma(r.Read.Samples), humanize.IBytes(uint64(r.Read.Bytes)),
			plural(r.Read.Requests, "request"), short(seconds(r.Read.Seconds))),
	}
	p.numbers()
	p.incidents()
	p.sections()
	p.tables()
	var out strings.Builder
	if err := page.Execute(&out, p); err != nil {
		return err
	}
	_, err := io.WriteString(w, plain(out.String()))
	return err
}

type htmlPage struct {
	report *Report
	// rows and bars count those of all sections.
	rows, bars int

	StyleHash                                template.HTMLAttr
	Style                                    template.CSS
	Server, From, To, Zone                   string
	Length, Warmup, Conditions, Causes, Read string
	Notes                                    []string
	Numbers                                  []number
	Legend                                   []legendEntry
	Compared                                 bool
	Incidents                                []incidentRow
	FalseAlarms                              []alarmRow
	MoreFalseAlarms                          int
	Sections                                 []section
	AlertTables                              []alertTable
}

type number struct {
	Name, Value string
	Bad         bool
}

type legendEntry struct{ Class, Text string }

var legend = []legendEntry{
	{"healthy", "healthy, starting, asleep or draining"},
	{"idle", "idle"},
	{"s1", "unknown"},
	{"s2", "degraded (severity 2)"},
	{"s3", "critical, failing, stalled or unreachable (severity 3)"},
	{"page", "would-be page"},
	{"ticket", "other would-be alert"},
	{"own", "own alert"},
	{"incident", "incident"},
	{"missed", "missed incident"},
}

type incidentRow struct {
	ID, From, Name, For, Targets, Diagnosis, Reported, Cause string
	Outside, Missed, MissedByRules, Right, Wrong             bool
	Alerts, Own                                              []string
}

type alarmRow struct{ From, By, Subject, For string }

type section struct {
	ID, Name, About string
	Height          int
	Ticks           []tick
	Lanes           []lane
	Rows            []row
	More, Missing   int
}

type row struct{ ID, From, For, Verdict, Sentence, Evidence string }

type alertTable struct {
	ID, Title string
	Rows      []alertRow
	More      int
}

type alertRow struct{ ID, From, For, Alert, Summary, Labels string }

// clock writes a time.
func clock(t time.Time, r *Report) string { return t.In(r.Zone).Format("2006-01-02 15:04:05") }

func (p *htmlPage) numbers() {
	r, s := p.report, &p.report.Summary
	add := func(name, value string, bad bool) { p.Numbers = append(p.Numbers, number{name, value, bad}) }
	add("Servers", humanize.Comma(int64(len(r.Targets))), false)
	add("Hours of engines", hours(s.EngineHours), false)
	add("Hours without data", hours(s.GapHours), false)
	add("Alarms of the diagnosis", strconv.Itoa(s.Alarms), false)
	if len(r.Rules) > 0 {
		add("Would-be pages", strconv.Itoa(s.Pages), false)
		if weekly(r) != "" {
			add("Would-be pages a week", fmt.Sprintf("%.1f", s.PagesPerWeek), false)
		}
	}
	add("Own alerts", strconv.Itoa(s.OwnAlerts), false)
	if r.Compared {
		add("Incidents", strconv.Itoa(s.Incidents), false)
		add("Missed by the diagnosis", strconv.Itoa(s.Missed), s.Missed > 0)
		if len(r.Rules) > 0 {
			add("Missed by the rules", strconv.Itoa(s.MissedByRules), s.MissedByRules > 0)
		}
		add("False alarms", strconv.Itoa(s.FalseAlarms), s.FalseAlarms > 0)
		if s.RightCause+s.WrongCause > 0 {
			add("Right cause", fmt.Sprintf("%d of %d", s.RightCause, s.RightCause+s.WrongCause), s.WrongCause > 0)
		}
		if s.LeadMedian != nil {
			add("Median: first report", lead(*s.LeadMedian), false)
		}
		if s.AheadMedian != nil {
			add("Median: against own alerts", sooner(*s.AheadMedian), false)
		}
	}
	p.Conditions, p.Causes = shares(s.Hours), shares(s.CauseHours)
}

func shares(of map[string]float64) string {
	names := slices.SortedFunc(maps.Keys(of), func(a, b string) int { return cmp.Or(cmp.Compare(of[b], of[a]), strings.Compare(a, b)) })
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = name + " " + hours(of[name]) + " h"
	}
	return strings.Join(parts, ", ")
}

func (p *htmlPage) incidents() {
	r := p.report
	for i := range r.Incidents {
		one := &r.Incidents[i]
		to := incidentRow{
			ID: fmt.Sprint("i", i), From: clock(one.From, r), Name: one.Name, For: short(one.To.Sub(one.From)), Targets: strings.Join(one.Targets, " "),
			Outside: one.Outside, Missed: one.Missed, MissedByRules: one.MissedByRules, Reported: one.Reported, Cause: one.Cause,
		}
		if one.Right != nil {
			to.Right, to.Wrong = *one.Right, !*one.Right
		}
		if d := one.Diagnosis; d != nil {
			to.Diagnosis = d.Subject + ": " + d.By + ", " + when(d)
			if one.Ahead != nil {
				to.Diagnosis += ", " + sooner(*one.Ahead) + " than the first own alert"
			}
		}
		for k := range one.Alerts {
			to.Alerts = append(to.Alerts, one.Alerts[k].By+", "+when(&one.Alerts[k]))
		}
		for k := range one.Own {
			to.Own = append(to.Own, one.Own[k].By+", "+when(&one.Own[k]))
		}
		p.Incidents = append(p.Incidents, to)
	}
	p.MoreFalseAlarms = max(0, len(r.FalseAlarms)-mostRows)
	for _, a := range r.FalseAlarms[:min(mostRows, len(r.FalseAlarms))] {
		by := "diagnosis: " + a.By
		if a.Rule {
			by = "would-be page: " + a.By
		}
		p.FalseAlarms = append(p.FalseAlarms, alarmRow{clock(a.From, r), by, a.Subject, short(a.To.Sub(a.From))})
	}
}

// The bounds of the page: browsers become slow with more.
const (
	mostRows = 300
	mostBars = 1500
	// Those of the whole page, whatever the number of servers is.
	mostPageRows = 10_000
	mostPageBars = 30_000
)

func (p *htmlPage) sections() {
	r := p.report
	for i := range r.Targets {
		t := &r.Targets[i]
		about := t.Names + ", " + plural(t.Coverage.Scrapes, "scrape")
		if t.Coverage.Interval > 0 {
			about += " every " + short(seconds(t.Coverage.Interval))
		}
		if t.Coverage.Failed > 0 {
			about += fmt.Sprintf(", %d failed", t.Coverage.Failed)
		}
		if t.Coverage.Gaps > 0 {
			about += ", without any for " + short(seconds(t.Coverage.Gaps))
		}
		p.section(fmt.Sprint("t", i), t.Name, about, t.Episodes, t)
	}
	if len(r.Pools) > 0 {
		p.section("pools", "Pools", "all servers of a model together", r.Pools, nil)
	}
}

func (p *htmlPage) section(id, name, about string, episodes []replay.Episode, t *Target) {
	r := p.report
	s := section{ID: id, Name: name, About: about, Ticks: ticks(r)}
	engines := map[string][]int{}
	for i := range episodes {
		if p.report.within(&episodes[i]) > 0 || !episodes[i].To.Before(r.From) {
			engines[episodes[i].Subject.Engine] = append(engines[episodes[i].Subject.Engine], i)
		}
	}
	listed := map[int]bool{}
	for _, engine := range slices.SortedFunc(maps.Keys(engines), func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) }) {
		conditions, causes := lane{Name: "condition"}, lane{Name: "cause"}
		if engine != "" {
			conditions.Name, causes.Name = "condition "+engine, "cause "+engine
		}
		for _, i := range engines[engine] {
			e := &episodes[i]
			rowID := fmt.Sprintf("%s-%d", id, i)
			if e.Severity >= incident.Serious && len(s.Rows) < mostRows && p.rows < mostPageRows {
				listed[i] = true
				p.rows++
				s.Rows = append(s.Rows, p.row(rowID, e))
			} else if e.Severity >= incident.Serious {
				s.More++
			}
			if !listed[i] {
				rowID = id
			}
			title := incident.Verdict(e) + ", " + clock(e.From, r) + ", for " + short(e.To.Sub(e.From))
			p.add(&conditions, e.From, e.To, class(e), title, e.Condition, rowID)
			if e.Cause != "" {
				p.add(&causes, e.From, e.To, class(e), title, e.Cause, rowID)
			}
		}
		s.Lanes = append(s.Lanes, conditions, causes)
	}
	s.Lanes = append(s.Lanes, p.alertLanes(t)...)
	y := 18
	for i := range s.Lanes {
		l := &s.Lanes[i]
		y += l.layOut(y)
		s.Missing += l.missing
	}
	s.Height = y
	p.Sections = append(p.Sections, s)
}

func (p *htmlPage) row(id string, e *replay.Episode) row {
	verdict := incident.Verdict(e)
	if e.Subject.Engine != "" {
		verdict = "engine " + e.Subject.Engine + ": " + verdict
	}
	return row{id, clock(e.From, p.report), short(e.To.Sub(e.From)), verdict, e.Sentence, strings.Join(e.Evidence, "; ")}
}

// alertLanes are the lanes of alerts and incidents that concern a target; nil is all.
func (p *htmlPage) alertLanes(t *Target) []lane {
	r := p.report
	concerns := func(f *rulestore.Firing) bool {
		named := false
		for _, label := range []string{"instance", "exported_instance", "pod", "k8s_pod_name"} {
			if v := f.Labels.Get(label); v != "" {
				named = true
				if t != nil && (v == t.Name || slices.Contains(slices.Collect(maps.Values(t.Labels)), v)) {
					return true
				}
			}
		}
		return !named || t == nil
	}
	var out []lane
	if len(r.Rules) > 0 {
		l := lane{Name: "would-be alerts"}
		for i := range r.Alerts {
			if f := &r.Alerts[i]; concerns(f) {
				kind := "ticket"
				if incident.Page(f) {
					kind = "page"
				}
				p.add(&l, f.From, f.To, kind, f.Alert+", "+clock(f.From, r)+", for "+short(f.To.Sub(f.From)), f.Alert, rowOf("a", i, "would-be"))
			}
		}
		out = append(out, l)
	}
	own := lane{Name: "own alerts"}
	for i := range r.Own {
		if f := &r.Own[i]; concerns(f) {
			p.add(&own, f.From, f.To, "own", f.Alert+", "+clock(f.From, r)+", for "+short(f.To.Sub(f.From)), f.Alert, rowOf("o", i, "own"))
		}
	}
	out = append(out, own)
	if r.Compared {
		l := lane{Name: "incidents"}
		for i := range r.Incidents {
			one := &r.Incidents[i]
			if t != nil && !one.Concerns(append(slices.Collect(maps.Values(t.Labels)), t.Name)...) {
				continue
			}
			kind := "incident"
			if one.Missed {
				kind = "missed"
			}
			p.add(&l, one.From, one.To, kind, one.Name+", "+clock(one.From, r)+", for "+short(one.To.Sub(one.From)), one.Name, fmt.Sprint("i", i))
		}
		out = append(out, l)
	}
	return out
}

// rowOf is the line of an alert, or its table where it has none.
func rowOf(prefix string, i int, table string) string {
	if i < mostRows {
		return fmt.Sprint(prefix, i)
	}
	return table
}

func (p *htmlPage) tables() {
	r := p.report
	if len(r.Rules) > 0 {
		p.AlertTables = append(p.AlertTables, p.table("would-be", "Alerts that would have fired", "a", r.Alerts))
	}
	p.AlertTables = append(p.AlertTables, p.table("own", "Own alerts that fired", "o", r.Own))
}

func (p *htmlPage) table(id, title, prefix string, all []rulestore.Firing) alertTable {
	t := alertTable{ID: id, Title: title, More: max(0, len(all)-mostRows)}
	for i := range all[:min(mostRows, len(all))] {
		f := &all[i]
		t.Rows = append(t.Rows, alertRow{
			fmt.Sprint(prefix, i), clock(f.From, p.report), short(f.To.Sub(f.From)), f.Alert, f.Summary, strings.Trim(labelText(f), " {}"),
		})
	}
	return t
}
