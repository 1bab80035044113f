package lint_test

import (
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

// scenarios returns the folders, each with one mistake that public rules or dashboards had,
// written anew.
func scenarios(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob(filepath.Join("testdata", "scenarios", "*"))
	require.NoError(t, err)
	require.NotEmpty(t, all)
	return all
}

// wanted are the lines "line severity code" of a scenario, which were written by hand, and the
// first line, which says whose mistake it is.
func wanted(t *testing.T, folder string) (lines []string, defect string) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(folder, "want.txt"))
	require.NoError(t, err)
	for line := range strings.SplitSeq(strings.TrimSpace(string(content)), "\n") {
		if rest, is := strings.CutPrefix(line, "# "); is {
			defect = rest
			continue
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines, defect
}

func TestEachKnownMistakeOfPublicRulesAndDashboardsIsFound(t *testing.T) {
	for _, folder := range scenarios(t) {
		t.Run(filepath.Base(folder), func(t *testing.T) {
			want, defect := wanted(t, folder)
			assert.NotEmpty(t, defect)
			report := lint.Check(t.Context(), lint.Collect(t.Context(), []string{folder}, nil), lint.Options{})
			require.Len(t, report.Files, 1)
			var got []string
			for _, f := range report.Files[0].Findings {
				got = append(got, fmt.Sprintf("%d %s %s", f.Line, f.Severity, f.Code))
			}
			slices.Sort(got)
			assert.Empty(t, report.Files[0].Error)
			assert.Equal(t, want, got, "%v", report.Files[0].Findings)
		})
	}
}
