package main

import (
	"fmt"
	"strings"
)

// guideParts returns the generated parts of docs/diagnosis.md.
func (g *diagnosis) guideParts() map[string]string {
	return map[string]string{"conditions": g.conditionTable(), "causes": g.causeTable(), "signals": g.signalTable()}
}

func (g *diagnosis) conditionTable() string {
	var b strings.Builder
	b.WriteString("| Condition | Severity | Meaning |\n|---|---|---|\n")
	for _, c := range g.Conditions {
		fmt.Fprintf(&b, "| [`%s`](runbooks/%s.md) | %d | %s |\n", c.Name, c.Name, *c.Severity, cell(c.Sentence))
	}
	return b.String()
}

func (g *diagnosis) causeTable() string {
	var b strings.Builder
	b.WriteString("| Cause | Applies to | Meaning | Details |\n|---|---|---|---|\n")
	for _, c := range g.Causes {
		var details []string
		for _, detail := range c.Details {
			details = append(details, detail.Name)
		}
		fmt.Fprintf(&b, "| [`%s`](runbooks/%s.md) | %s | %s | %s |\n", c.Name, c.Name, c.Level, cell(c.Sentence), codeList(details))
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
