package runbook

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/pageparts"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

//go:embed introduction.txt
var introduction string

// index returns the list of all runbooks: alerts first, then conditions, the most severe
// first, then causes.
func index(alerts []*content.Alert) []byte {
	var b strings.Builder
	b.WriteString(generated)
	b.WriteString(introduction)
	for _, set := range []struct{ name, title string }{
		{"stable", "Alerts"}, {"wire", "Alerts on vLLM's own names"},
	} {
		var rows strings.Builder
		for _, a := range alerts {
			if a.Set == set.name || a.Set == "" && set.name == "stable" {
				fmt.Fprintf(&rows, "| [%s](%s.md) | %s |\n", a.Name, a.Name, a.Severity)
			}
		}
		if rows.Len() > 0 {
			fmt.Fprintf(&b, "\n## %s\n\n| Alert | Severity |\n|---|---|\n%s", set.title, &rows)
		}
	}
	b.WriteString("\n## Conditions\n\nThe most severe ones are first.\n\n| Condition | Severity | Meaning |\n|---|---|---|\n")
	bySeverity := slices.Clone(catalog.Conditions())
	slices.SortStableFunc(bySeverity, func(a, b catalog.Condition) int { return b.Severity - a.Severity })
	for _, c := range bySeverity {
		fmt.Fprintf(&b, "| [`%s`](%s.md) | %d | %s |\n", c.Name, c.Name, c.Severity, pageparts.Cell(c.Sentence))
	}
	for _, level := range []struct {
		level catalog.Level
		title string
	}{
		{catalog.LevelEngine, "Causes of an engine"}, {catalog.LevelPool, "Causes of a pool"}, {catalog.LevelNotice, "Notices"},
	} {
		fmt.Fprintf(&b, "\n## %s\n\n| Name | Meaning |\n|---|---|\n", level.title)
		for _, c := range catalog.Causes() {
			if c.Level == level.level {
				fmt.Fprintf(&b, "| [`%s`](%s.md) | %s |\n", c.Name, c.Name, pageparts.Cell(c.Sentence))
			}
		}
	}
	return []byte(b.String())
}
