package board

import (
	"fmt"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// Parts returns the generated parts of the pages about dashboards.
func Parts() map[string]map[string]string {
	return map[string]map[string]string{
		"docs/reference/dashboards.md": {"boards": table(), "panels": panels()},
		"docs/start/clouds.md":         {"essential": essential()},
	}
}

// essential says what has data where the processor has the preset of that name.
func essential() string {
	var b strings.Builder
	b.WriteString("| Shipped | With data of the preset `essential` |\n|---|---|\n")
	rest := ""
	for _, group := range content.Groups() {
		for _, a := range group.Alerts {
			if a.Set == content.Stable && !isEssential(a.Expr) {
				rest += ", not " + a.Name
			}
		}
	}
	fmt.Fprintf(&b, "| [alerts](../alerts.md) | all%s |\n", strings.Replace(rest, ", not", " but", 1))
	for _, board := range content.Boards() {
		if board.Set == content.Wire {
			continue // It is for a Prometheus that scrapes vLLM itself.
		}
		has, all := 0, 0
		for _, row := range board.Rows {
			for _, p := range row.Panels {
				all++
				if !slices.ContainsFunc(p.Queries, func(q content.Query) bool { return !q.AsThreshold && !isEssential(q.Expr) }) {
					has++
				}
			}
		}
		fmt.Fprintf(&b, "| [`%s`](../reference/dashboards.md#%s) | %d of %d panels |\n", board.UID, board.UID, has, all)
	}
	return b.String()
}

// isEssential reports whether the preset essential has all that a query reads.
func isEssential(expr string) bool {
	used := Metrics(content.Panel{Queries: []content.Query{{Expr: expr}}})
	return !slices.ContainsFunc(used, func(m *catalog.Metric) bool { return !m.In(catalog.Essential) })
}

func table() string {
	var b strings.Builder
	b.WriteString("| Board | Question |\n|---|---|\n")
	for _, board := range content.Boards() {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", board.UID, board.UID, board.Question)
	}
	return b.String()
}

func panels() string {
	var b strings.Builder
	for _, board := range content.Boards() {
		fmt.Fprintf(&b, "\n### %s\n\n", board.UID)
		for _, row := range board.Rows {
			var titles []string
			for _, p := range row.Panels {
				titles = append(titles, p.Title)
			}
			fmt.Fprintf(&b, "- **%s**: %s\n", Title(row), strings.Join(titles, "; "))
		}
	}
	b.WriteString("\n")
	return b.String()
}
