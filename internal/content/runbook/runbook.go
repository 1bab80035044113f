// Package runbook writes the runbooks below docs/runbooks: one page for each alert,
// wholly generated from the model; one for each condition and each cause, of which the
// parts that other places say as well come from the catalogue, and the prose between
// them is written by hand; and the index.
package runbook

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/content"
	"github.com/otelcol-vllm/otelcol-vllm/internal/pageparts"
)

// Folder is where the runbooks are, below the root of the repository.
const Folder = "docs/runbooks"

// Files returns every generated page by its path below root. It reads the hand-written
// prose of the pages of conditions and causes from there.
func Files(root string, groups []content.Group) (map[string][]byte, error) {
	alerts := alertsOf(groups)
	files := map[string][]byte{Folder + "/README.md": index(alerts)}
	for _, a := range alerts {
		files[path(a.Name)] = alertPage(a)
	}
	for _, s := range statements() {
		page, err := os.ReadFile(filepath.Join(root, path(s.name)))
		if err != nil {
			return nil, fmt.Errorf("%w: the generated parts of this runbook have no place", err)
		}
		if files[path(s.name)], err = pageparts.Replace(page, s.parts(string(page), alerts)); err != nil {
			return nil, fmt.Errorf("%s: %w", path(s.name), err)
		}
	}
	return files, nil
}

func path(name string) string { return Folder + "/" + name + ".md" }

func alertsOf(groups []content.Group) []*content.Alert {
	var alerts []*content.Alert
	for i := range groups {
		for j := range groups[i].Alerts {
			alerts = append(alerts, &groups[i].Alerts[j])
		}
	}
	return alerts
}

// statement is what conditions and causes have in common.
type statement struct {
	name, sentence, meaning, notSeparable string
	// kind is the beginning of the meaning: what it is and of what.
	kind string
	// which are the engines or pools that have it: a word and a query.
	affected, query string
	signals         []string
	details         []catalog.Detail
	next            []catalog.Step
}

// statements are the conditions and the causes.
func statements() []statement {
	var all []statement
	for _, c := range catalog.Conditions() {
		all = append(all, statement{
			name: c.Name, sentence: c.Sentence, meaning: c.Meaning, notSeparable: c.NotSeparable,
			kind: fmt.Sprintf("A condition with severity %d.", c.Severity), affected: "engines",
			query:   fmt.Sprintf("vllm_diagnosis_condition{condition=%q} == 1", c.Name),
			signals: c.Signals, next: c.Next,
		})
	}
	for _, c := range catalog.Causes() {
		level := levels[c.Level]
		all = append(all, statement{
			name: c.Name, sentence: c.Sentence, meaning: c.Meaning, notSeparable: c.NotSeparable,
			kind: level.kind, affected: level.affected, query: fmt.Sprintf("%s{cause=%q} == 1", level.metric, c.Name),
			signals: c.Signals, details: c.Details, next: c.Next,
		})
	}
	return all
}

var levels = map[catalog.Level]struct{ kind, affected, metric string }{
	catalog.LevelEngine: {"A cause, reported for an engine.", "engines", "vllm_diagnosis_cause"},
	catalog.LevelPool:   {"A cause, reported for a pool.", "pools", "vllm_pool_diagnosis_cause"},
	catalog.LevelNotice: {"A notice, reported for an engine.", "engines", "vllm_diagnosis_cause"},
}

// The names of the parts of the page of a condition or a cause.
const (
	partMeaning   = "meaning"
	partDiagnosis = "diagnosis"
	partFlags     = "flags"
	partSame      = "same"
	partAlerts    = "alerts"
)

const navigation = "[All runbooks](README.md) · [What you see](symptoms.md) · [How the diagnosis judges](../diagnosis.md)\n\n"

func (s *statement) parts(page string, alerts []*content.Alert) map[string]string {
	var meaning strings.Builder
	fmt.Fprintf(&meaning, "%s> %s\n\n## Meaning\n\n%s %s", navigation, s.sentence, s.kind, s.meaning)
	if len(s.signals) > 0 {
		fmt.Fprintf(&meaning, " Judged by `%s`.", strings.Join(s.signals, "`, `"))
	}
	meaning.WriteString("\n\n")
	for _, d := range s.details {
		fmt.Fprintf(&meaning, "- `%s`: %s\n", d.Name, d.Sentence)
	}
	if len(s.details) > 0 {
		meaning.WriteString("\n")
	}
	fmt.Fprintf(&meaning, "Which %s have it:\n\n```promql\n%s\n```\n", s.affected, s.query)
	steps := make([]step, 0, len(s.next))
	for _, n := range s.next {
		steps = append(steps, step{n.Text, n.Queries, n.Board, n.Panel})
	}
	return map[string]string{
		partMeaning:   meaning.String(),
		partDiagnosis: diagnosisPart(steps),
		partFlags:     flagsPart(page),
		partSame:      "## What looks the same\n\n" + s.notSeparable + "\n",
		partAlerts:    s.alertsPart(alerts),
	}
}

// step is a step of an alert, a condition or a cause.
type step struct {
	text         string
	queries      []string
	board, panel string
}

const aboutQueries = "The queries are for all servers: add matchers, for example `{instance=\"...\"}`.\n\n"

func diagnosisPart(steps []step) string {
	var b strings.Builder
	b.WriteString("## Diagnosis\n\n")
	if slices.ContainsFunc(steps, func(s step) bool { return len(s.queries) > 0 }) {
		b.WriteString(aboutQueries)
	}
	for i, s := range steps {
		head := fmt.Sprintf("%d. ", i+1)
		indent := strings.Repeat(" ", len(head))
		b.WriteString(head + s.text)
		if s.panel != "" {
			fmt.Fprintf(&b, " Panel: *%s* of the dashboard *%s*.", s.panel, s.board)
		}
		b.WriteString("\n")
		for _, query := range s.queries {
			fmt.Fprintf(&b, "\n%s```promql\n", indent)
			for line := range strings.SplitSeq(strings.TrimSpace(query), "\n") {
				b.WriteString(strings.TrimRight(indent+line, " ") + "\n")
			}
			b.WriteString(indent + "```\n")
		}
		if len(s.queries) > 0 && i+1 < len(steps) {
			b.WriteString("\n")
		}
	}
	return b.String()
}

var flagName = regexp.MustCompile("`(--[a-z][a-z-]*)")

// flagsPart explains the flags that the page names outside of this part.
func flagsPart(page string) string {
	before, rest, _ := strings.Cut(page, "<!-- "+partFlags+": begin -->")
	_, after, _ := strings.Cut(rest, "<!-- "+partFlags+": end -->")
	var named []string
	for _, match := range flagName.FindAllStringSubmatch(before+after, -1) {
		named = append(named, match[1])
	}
	var b strings.Builder
	for _, f := range catalog.Flags() {
		if !slices.Contains(named, f.Name) {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("\n| Flag of vLLM | What it sets | Larger, or on | Smaller, or off |\n|---|---|---|---|\n")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Name, pageparts.Cell(f.Meaning), pageparts.Cell(f.Raise), pageparts.Cell(f.Lower))
	}
	if b.Len() > 0 {
		b.WriteString("\n")
	}
	return b.String()
}

// alertsPart links to the alerts that lead to the statement.
func (s *statement) alertsPart(alerts []*content.Alert) string {
	var links []string
	for _, a := range alerts {
		if leadsTo(a, s.name) {
			links = append(links, fmt.Sprintf("[%s](%s.md)", a.Name, a.Name))
		}
	}
	if len(links) == 0 {
		return "No alert names it.\n"
	}
	return "Alerts that lead here: " + strings.Join(links, ", ") + ".\n"
}

// leadsTo reports whether an alert's runbook names a condition or a cause, in backticks.
func leadsTo(a *content.Alert, name string) bool {
	return strings.Contains(prose(a), "`"+name+"`")
}

// prose is all text of an alert's runbook.
func prose(a *content.Alert) string {
	texts := slices.Concat([]string{a.Meaning, a.Impact}, a.Mitigation, []string{a.LooksTheSame, a.NotConclude, a.CannotFire})
	for _, s := range a.Diagnosis {
		texts = append(texts, s.Text)
	}
	return strings.Join(texts, "\n")
}
