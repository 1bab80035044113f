package runbook

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

//go:embed introduction.txt
var introduction string

// index returns the list of all runbooks: alerts first, then conditions, the most severe
// first, then causes. Their meanings are on the pages about alerts and the diagnosis.
func index(alerts []*content.Alert) []byte {
	var b strings.Builder
	b.WriteString(generated + introduction)
	section := func(title string, links []string) {
		if len(links) > 0 {
			fmt.Fprintf(&b, "\n## %s\n\n%s\n", title, strings.Join(links, "\n"))
		}
	}
	for _, set := range []struct{ name, title string }{{"stable", "Alerts"}, {"wire", "Alerts on vLLM's own names"}} {
		var links []string
		for _, a := range alerts {
			if a.Set == set.name || a.Set == "" && set.name == "stable" {
				links = append(links, fmt.Sprintf("- [%s](%s.md): %s", a.Name, a.Name, a.Severity))
			}
		}
		section(set.title, links)
	}
	var links []string
	bySeverity := slices.Clone(catalog.Conditions())
	slices.SortStableFunc(bySeverity, func(a, b catalog.Condition) int { return b.Severity - a.Severity })
	for _, c := range bySeverity {
		links = append(links, fmt.Sprintf("- [`%s`](%s.md): severity %d", c.Name, c.Name, c.Severity))
	}
	section("Conditions", links)
	for _, level := range []struct {
		level catalog.Level
		title string
	}{
		{catalog.LevelEngine, "Causes of an engine"}, {catalog.LevelPool, "Causes of a pool"}, {catalog.LevelNotice, "Notices"},
	} {
		links = nil
		for _, c := range catalog.Causes() {
			if c.Level == level.level {
				links = append(links, fmt.Sprintf("- [`%s`](%s.md)", c.Name, c.Name))
			}
		}
		section(level.title, links)
	}
	return []byte(b.String())
}
