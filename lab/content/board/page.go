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
		"docs/start/clouds.md":         {"presets": presets()},
	}
}

// presets says what has data where receiver and processor have a preset.
func presets() string {
	var b strings.Builder
	b.WriteString("| Shipped | `essential` | `standard` |\n|---|---|---|\n| [alerts](../alerts.md) |")
	for _, preset := range []catalog.Preset{catalog.Essential, catalog.Standard} {
		var rest []string
		for _, group := range content.Groups() {
			for _, a := range group.Alerts {
				if a.Set == content.Stable && !has(preset, a.Expr) {
					rest = append(rest, a.Name)
				}
			}
		}
		b.WriteString(" all")
		if len(rest) > 0 {
			b.WriteString(" but " + strings.Join(rest, ", "))
		}
		b.WriteString(" |")
	}
	b.WriteByte('\n')
	for _, board := range content.Boards() {
		if board.Set == content.Wire {
			continue // It is for a Prometheus that scrapes vLLM itself.
		}
		var all, essential, standard int
		for _, row := range board.Rows {
			for _, p := range row.Panels {
				all++
				if shows(catalog.Essential, p) {
					essential++
				}
				if shows(catalog.Standard, p) {
					standard++
				}
			}
		}
		fmt.Fprintf(&b, "| [`%s`](../reference/dashboards.md#%s), %d panels | %d | %d |\n", board.UID, board.UID, all, essential, standard)
	}
	return b.String()
}

// shows reports whether a preset has all that a panel shows.
func shows(preset catalog.Preset, p content.Panel) bool {
	return !slices.ContainsFunc(p.Queries, func(q content.Query) bool { return !q.AsThreshold && !has(preset, q.Expr) })
}

// has reports whether a preset has all that a query reads.
func has(preset catalog.Preset, expr string) bool {
	used := Metrics(content.Panel{Queries: []content.Query{{Expr: expr}}})
	return !slices.ContainsFunc(used, func(m *catalog.Metric) bool { return !m.In(preset) })
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
