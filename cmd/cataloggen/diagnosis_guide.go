package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// What a generated part of docs/diagnosis.md stands between; %s is its name:
// conditions, causes, signals, or that of a condition or a cause.
const (
	guideBegin = "<!-- %s: begin -->\n"
	guideEnd   = "<!-- %s: end -->"
)

// guideWith returns docs/diagnosis.md with its generated parts anew. There must
// be a heading for every condition and every cause, because alerts and log lines
// lead to it, and its prose may only name metrics that exist.
func (g *diagnosis) guideWith(d *document, guide []byte) ([]byte, error) {
	parts := map[string]string{
		"conditions": g.conditionTable(), "causes": g.causeTable(), "signals": g.signalTable(),
	}
	for _, c := range g.Conditions {
		parts[c.Name] = statementPart(c.statement, fmt.Sprintf("Severity %d. ", *c.Severity), "")
	}
	for _, c := range g.Causes {
		parts[c.Name] = statementPart(c.statement, "", detailPart(c.Details)) + "\n" +
			"**What looks the same:** " + c.NotSeparable + "\n"
	}
	for _, s := range g.statements() {
		if !bytes.Contains(guide, []byte("\n### "+s.Name+"\n")) {
			return nil, fmt.Errorf("docs/diagnosis.md: the heading %q is missing: write what to see, to check and to do below it", "### "+s.Name)
		}
	}
	var err error
	for _, name := range sortedNames(parts) {
		if guide, err = replacePart(guide, name, parts[name]); err != nil {
			return nil, fmt.Errorf("docs/diagnosis.md: %w", err)
		}
	}
	return guide, unknownMetrics(d, guide)
}

func replacePart(guide []byte, name, part string) ([]byte, error) {
	begin, end := fmt.Sprintf(guideBegin, name), fmt.Sprintf(guideEnd, name)
	head, rest, begins := bytes.Cut(guide, []byte(begin))
	_, tail, ends := bytes.Cut(rest, []byte(end))
	if !begins || !ends {
		return nil, fmt.Errorf("the marks around the part %q are missing", name)
	}
	return slices.Concat(head, []byte(begin), []byte(part), []byte(end), tail), nil
}

// unknownMetrics reports names in backticks that look like a metric and are none.
func unknownMetrics(d *document, guide []byte) error {
	for _, match := range quoted.FindAllStringSubmatch(string(guide), -1) {
		word := match[1]
		_, known := d.Metrics[word]
		if !known && namePattern.MatchString(word) &&
			(strings.HasPrefix(word, "vllm.") || strings.HasPrefix(word, "inference_gateway.")) {
			return fmt.Errorf("docs/diagnosis.md: %q is not a metric of the catalogue", word)
		}
	}
	return nil
}

func statementPart(s statement, before, after string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "> %s\n\n%s%s", s.Sentence, before, s.Meaning)
	if len(s.Signals) > 0 {
		fmt.Fprintf(&b, " Judged by %s.", codeList(s.Signals))
	}
	b.WriteString("\n")
	b.WriteString(after)
	b.WriteString("\n**What to check next:**\n\n")
	for i, step := range s.Next {
		fmt.Fprintf(&b, "%d. %s\n", i+1, step)
	}
	return b.String()
}

func detailPart(details []diagnosisDetail) string {
	if len(details) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n")
	for _, detail := range details {
		fmt.Fprintf(&b, "- `%s`: %s\n", detail.Name, detail.Sentence)
	}
	return b.String()
}

func (g *diagnosis) conditionTable() string {
	var b strings.Builder
	b.WriteString("| Condition | Severity | What it says |\n|---|---|---|\n")
	for _, c := range g.Conditions {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %d | %s |\n", c.Name, anchor(c.Name), *c.Severity, cell(c.Sentence))
	}
	return b.String()
}

func (g *diagnosis) causeTable() string {
	var b strings.Builder
	b.WriteString("| Cause | Of | What it says | Details |\n|---|---|---|---|\n")
	for _, c := range g.Causes {
		var details []string
		for _, detail := range c.Details {
			details = append(details, detail.Name)
		}
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s | %s |\n", c.Name, anchor(c.Name), c.Level, cell(c.Sentence), codeList(details))
	}
	return b.String()
}

func (g *diagnosis) signalTable() string {
	var b strings.Builder
	b.WriteString("| Signal | Unit | Meaning |\n|---|---|---|\n")
	for _, s := range g.Signals {
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", s.Name, s.Unit, cell(s.Meaning))
	}
	return b.String()
}
