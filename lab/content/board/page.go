package board

import (
	"fmt"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
)

// Parts returns the generated parts of the pages about dashboards.
func Parts() map[string]map[string]string {
	return map[string]map[string]string{"docs/reference/dashboards.md": {"boards": table(), "panels": panels()}}
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
