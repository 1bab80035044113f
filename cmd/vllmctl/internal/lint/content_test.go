package lint_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/querylint"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
	"github.com/otelcol-vllm/otelcol-vllm/lab/content/shipped"
)

// written is a folder with the rules and dashboards in the given spellings.
func written(t *testing.T, spellings ...spelling.Spelling) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, shipped.WriteIn(dir, spellings...))
	return dir
}

func everything(t *testing.T) []lint.Input {
	t.Helper()
	root := filepath.Join("..", "..", "..", "..")
	all := lint.Collect(t.Context(), []string{filepath.Join(root, "content"), filepath.Join(root, "examples"), written(t, shipped.Others...)}, nil)
	require.Greater(t, len(all), 50)
	// The templates of the charts are no YAML before Helm has rendered them.
	return slices.DeleteFunc(all, func(in lint.Input) bool {
		return strings.Contains(filepath.ToSlash(in.Name), "/helm/") && strings.Contains(filepath.ToSlash(in.Name), "/templates/")
	})
}

// noFinding fails for each finding.
func noFinding(t *testing.T, report *lint.Report) {
	t.Helper()
	for i := range report.Files {
		f := &report.Files[i]
		assert.Empty(t, f.Error, f.Name)
		for _, x := range f.Findings {
			assert.Fail(t, f.Name, "%d:%d %s: %s [%s]", x.Line, x.Column, x.Path, x.Message, x.Code)
		}
	}
}

// What the project ships has no finding, in every spelling and format, together and alone, and
// --fix would change nothing.
func TestTheContentOfTheProjectHasNoFinding(t *testing.T) {
	race.SkipSequential(t)
	all := everything(t)
	report := lint.Check(t.Context(), all, lint.Options{})
	noFinding(t, report)
	assert.Greater(t, report.Summary.Expressions, 1500)
	report.Plan(t.Context(), lint.Options{})
	for i := range report.Files {
		assert.Nil(t, report.Files[i].After, report.Files[i].Name)
		assert.Empty(t, report.Files[i].Ignored, report.Files[i].Name)
	}
	for _, one := range all {
		noFinding(t, lint.Check(t.Context(), []lint.Input{one}, lint.Options{}))
	}
	// All versions that have what the rules on vLLM's own names read.
	noFinding(t, lint.Check(t.Context(), lint.Collect(t.Context(), []string{written(t, spelling.Wire)}, nil), lint.Options{Version: "0.20.0"}))
}

func TestRightRulesAndDashboardsHaveNoFinding(t *testing.T) {
	report := lint.Check(t.Context(), lint.Collect(t.Context(), []string{filepath.Join("testdata", "correct")}, nil), lint.Options{})
	noFinding(t, report)
	// 3 records, 12 alerts, 3 variables, an annotation and 10 queries; one query is not for Prometheus.
	assert.Equal(t, 29, report.Summary.Expressions)
}

// The content on vLLM's own names can be moved to the stable ones, and is right then.
func TestTheContentOnVLLMsNamesMovesToTheStableNames(t *testing.T) {
	wire := written(t, spelling.Wire)
	of := []string{filepath.Join(wire, "rules"), filepath.Join(wire, "grafana"), filepath.Join(wire, "perses")}
	for _, to := range []querylint.Spelling{querylint.Suffixed, querylint.Unsuffixed, querylint.Dotted} {
		o := lint.Options{Stable: to}
		report := lint.Check(t.Context(), lint.Collect(t.Context(), of, nil), o)
		report.Plan(t.Context(), o)
		var moved []lint.Input
		for i := range report.Files {
			f := &report.Files[i]
			if f.Skipped != "" {
				continue
			}
			require.NotNil(t, f.After, "%s: %s", f.Name, f.NotFixed)
			moved = append(moved, lint.Input{Name: f.Name, Content: f.After, Listed: true})
		}
		require.Len(t, moved, 3)
		after := lint.Check(t.Context(), moved, o)
		for i := range after.Files {
			for _, x := range after.Files[i].Findings {
				assert.NotEqual(t, querylint.Error, x.Severity, "%s: %s: %s", to, x.Path, x.Message)
				assert.False(t, x.Fixable, "%s: %s: %s", to, x.Path, x.Message)
			}
		}
	}
}
