package realruns

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"regexp"
	"sort"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/pageparts"
)

// Result is a replayed recording.
type Result struct {
	Run     string `json:"run"`
	Model   string `json:"model,omitempty"`
	Version string `json:"vllm,omitempty"`
	What    string `json:"what,omitempty"`
	Note    string `json:"note,omitempty"`
	Why     string `json:"why,omitempty"`
	// Seconds is the length of the recording; Scrapes and Failed are numbers of scrapes.
	Seconds float64 `json:"seconds"`
	Scrapes int     `json:"scrapes"`
	Failed  int     `json:"failed_scrapes"`
	// Latencies is where the latencies come from.
	Latencies Source `json:"latencies"`
	// Reported has the minutes of each report, the longest first.
	Reported []Minutes `json:"reported"`
	// Changes are the reports in the order of their times, each when it began.
	Changes    []Change `json:"changes"`
	FirstAlarm *Change  `json:"first_alarm,omitempty"`
	AllClears  []Change `json:"all_clears,omitempty"`
	Last       *Change  `json:"last,omitempty"`
	// Judged is empty where nothing is known about the truth, or nothing happened.
	Judged       []Judged `json:"judged,omitempty"`
	FalseMinutes float64  `json:"false_alarm_minutes"`
	Known        bool     `json:"truth_known"`
}

// Minutes is how long something was reported.
type Minutes struct {
	Report  string  `json:"report"`
	Minutes float64 `json:"minutes"`
}

// Change is a report when it began.
type Change struct {
	At       float64  `json:"at_s"`
	Severity int      `json:"severity"`
	Report   string   `json:"report"`
	Others   []string `json:"contributing,omitempty"`
}

// Replay plays a recording and sums up what was reported.
func Replay(ctx context.Context, r *Recording, settings Settings) (*Result, error) {
	reports, err := Play(ctx, r, settings)
	if err != nil {
		return nil, err
	}
	source := settings.Source
	if len(r.Requests) == 0 {
		source = Gauges
	}
	out := &Result{
		Run: r.Name, Model: r.Model, Version: r.Version, What: r.Label, Note: r.Note, Seconds: r.End(), Latencies: source,
	}
	truth, known := truths[r.Name]
	if known {
		if out.What == "" {
			out.What = truth.What
		}
		out.Known, out.Why = true, truth.Why
		out.Judged = truth.Judge(reports, r.End())
		out.FalseMinutes = truth.FalseMinutes(reports, settings.Interval.Seconds())
	}
	out.sum(reports, settings.Interval.Minutes())
	return out, nil
}

func (out *Result) sum(reports []Reported, minutes float64) {
	total := map[string]float64{}
	var before *Reported
	for i := range reports {
		r := &reports[i]
		out.Scrapes++
		if !r.Answered {
			out.Failed++
		}
		total[r.Text()] += minutes
		now := Change{At: r.At, Severity: r.Severity, Report: r.Text(), Others: r.Contributing}
		if before == nil || before.Text() != r.Text() || strings.Join(before.Contributing, " ") != strings.Join(r.Contributing, " ") {
			out.Changes = append(out.Changes, now)
		}
		if r.Alarms() && out.FirstAlarm == nil {
			out.FirstAlarm = &now
		}
		if before != nil && before.Alarms() && !r.Alarms() {
			out.AllClears = append(out.AllClears, now)
		}
		before = r
		out.Last = &now
	}
	for report, n := range total {
		out.Reported = append(out.Reported, Minutes{report, math.Round(n*100) / 100})
	}
	sort.Slice(out.Reported, func(i, j int) bool {
		a, b := &out.Reported[i], &out.Reported[j]
		return a.Minutes > b.Minutes || a.Minutes == b.Minutes && a.Report < b.Report
	})
}

// verdict is the judgement of the whole recording.
func (out *Result) verdict() string {
	if !out.Known {
		return ""
	}
	var parts []string
	for i := range out.Judged {
		j := &out.Judged[i]
		text := j.text()
		if len(out.Judged) > 1 {
			text = fmt.Sprintf("%.0f to %.0f s: %s", j.From, j.Until, text)
		}
		if j.Kept > 0 && j.Outcome != Silent {
			text += fmt.Sprintf(", kept for %.0f s after the end", j.Kept)
		}
		parts = append(parts, text)
	}
	for _, c := range out.AllClears {
		for i := range out.Judged {
			if j := &out.Judged[i]; c.At > j.From && c.At < j.Until {
				parts = append(parts, fmt.Sprintf("**false all-clear** at %.0f s", c.At))
			}
		}
	}
	if out.FalseMinutes > 0 {
		parts = append(parts, fmt.Sprintf("**%s** for %s minutes", FalseAlarm, decimal(out.FalseMinutes)))
	}
	if len(parts) == 0 {
		return "right"
	}
	return strings.Join(parts, "; ")
}

// outcomes are the verdict without its times.
func (out *Result) outcomes() string {
	var parts []string
	for i := range out.Judged {
		parts = append(parts, string(out.Judged[i].Outcome))
	}
	if strings.Contains(out.verdict(), "all-clear") {
		parts = append(parts, "false all-clear")
	}
	if out.FalseMinutes > 0 {
		parts = append(parts, string(FalseAlarm))
	}
	if len(parts) == 0 {
		return string(Right)
	}
	return strings.Join(parts, ", ")
}

func decimal(v float64) string { return strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0") }

// longest is how many reports of a recording the table has.
const longest = 4

func (out *Result) reported() string {
	var parts []string
	rest := 0.0
	for i, m := range out.Reported {
		if i < longest {
			parts = append(parts, fmt.Sprintf("%s %s", m.Report, decimal(m.Minutes)))
		} else {
			rest += m.Minutes
		}
	}
	if rest > 0 {
		parts = append(parts, "others "+decimal(rest))
	}
	return strings.Join(parts, "; ")
}

func (out *Result) alarm() string {
	if out.FirstAlarm == nil {
		return "none"
	}
	return fmt.Sprintf("%.0f s, %s", out.FirstAlarm.At, out.FirstAlarm.Report)
}

func (out *Result) clears() string {
	var parts []string
	for _, c := range out.AllClears {
		parts = append(parts, fmt.Sprintf("%.0f s", c.At))
	}
	return strings.Join(parts, ", ")
}

// stretches are the parts of a verdict that the table leaves out.
var stretches = regexp.MustCompile(`\d+ to \d+ s: |, kept for \d+ s after the end`)

// Table is the part of the page about accuracy.
func Table(results []*Result) string {
	var b strings.Builder
	b.WriteString("| run | what happened | verdict |\n|---|---|---|\n")
	for _, r := range results {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", pageparts.Cell(r.Run), pageparts.Cell(r.What), stretches.ReplaceAllString(r.verdict(), ""))
	}
	return b.String()
}

// WriteText prints a result for people.
func (out *Result) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", out.Run, out.What)
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(&b, "  %-12s %s\n", name, text)
		}
	}
	line("note", out.Note)
	line("truth", out.Why)
	line("scrapes", fmt.Sprintf("%d in %.0f s, %d failed; latencies from the %s", out.Scrapes, out.Seconds, out.Failed, out.Latencies))
	for _, c := range out.Changes {
		text := c.Report
		if len(c.Others) > 0 {
			text += " (also " + strings.Join(c.Others, ", ") + ")"
		}
		line(fmt.Sprintf("%.0f s", c.At), text)
	}
	line("minutes", out.reported())
	line("first alarm", out.alarm())
	line("all-clear", out.clears())
	line("verdict", strings.ReplaceAll(out.verdict(), "**", ""))
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteJSON prints a result as one line.
func (out *Result) WriteJSON(w io.Writer) error { return json.NewEncoder(w).Encode(out) }
