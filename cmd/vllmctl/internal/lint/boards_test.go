package lint_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint"
)

// expectation is an expression with the findings that a person wants about it.
type expectation struct {
	why, unit, expr string
	alert           bool
	want            []string
}

// expectations reads a file of testdata/boards: paragraphs of "# why", "unit: UNIT" or not, the
// expression, which "alert:" can stand before, and a line "> severity code" for each finding. The first
// line says whose boards have such expressions.
func expectations(t *testing.T, path string) []expectation {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	paragraphs := strings.Split(strings.TrimSpace(string(text)), "\n\n")
	var all []expectation
	for _, paragraph := range paragraphs[1:] {
		var e expectation
		for line := range strings.Lines(paragraph) {
			line = strings.TrimSpace(line)
			switch {
			case strings.HasPrefix(line, "# "):
				e.why = line[2:]
			case strings.HasPrefix(line, "unit: "):
				e.unit = line[6:]
			case strings.HasPrefix(line, "> "):
				e.want = append(e.want, line[2:])
			default:
				require.Empty(t, e.expr, paragraph)
				e.expr, e.alert = strings.CutPrefix(line, "alert: ")
			}
		}
		require.NotEmpty(t, e.why, paragraph)
		all = append(all, e)
	}
	return all
}

// input is a file with the expression, as a panel or an alert has it.
func (e expectation) input() lint.Input {
	unit := map[string]string{"1": "percentunit", "%": "percent"}[e.unit]
	if unit == "" {
		unit = e.unit
	}
	content, _ := json.Marshal(map[string]any{"title": "Board", "panels": []any{map[string]any{
		"title": e.why, "type": "timeseries", "fieldConfig": map[string]any{"defaults": map[string]any{"unit": unit}},
		"targets": []any{map[string]any{"refId": "A", "expr": e.expr}},
	}}})
	if e.alert {
		content, _ = json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "g", "rules": []any{map[string]any{"alert": "A", "expr": e.expr}}}}})
	}
	return lint.Input{Name: "file.json", Content: content, Listed: true}
}

// What is right in public boards has no finding, and what is wrong has the one that says so.
func TestExpressionsLikeThoseOfPublicBoardsHaveTheFindingsThatAPersonWants(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "boards", "*.txt"))
	require.NoError(t, err)
	require.Len(t, files, 6)
	for _, path := range files {
		for _, e := range expectations(t, path) {
			report := lint.Check(t.Context(), []lint.Input{e.input()}, lint.Options{})
			assert.Empty(t, report.Files[0].Error)
			var got []string
			for _, f := range report.Files[0].Findings {
				got = append(got, fmt.Sprintf("%s %s", f.Severity, f.Code))
			}
			slices.Sort(got)
			assert.Equal(t, e.want, got, "%s: %s: %s\n%v", path, e.why, e.expr, report.Files[0].Findings)
		}
	}
}
