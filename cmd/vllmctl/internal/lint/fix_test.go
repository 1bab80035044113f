package lint_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/lint"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/querylint"
)

// check checks one text.
func check(t *testing.T, name, text string, o lint.Options) *lint.Report {
	t.Helper()
	report := lint.Check(t.Context(), []lint.Input{{Name: name, Content: []byte(text), Listed: true}}, o)
	require.Len(t, report.Files, 1)
	return report
}

const old = `groups:
- name: a
  rules:
  # The gauge of older servers.
  - alert: Full
    expr: 'vllm:gpu_cache_usage_perc{job="x"}   >   0.95'
    for: 5m
  - record: llm:preempted
    expr: >-
      sum(
      rate(vllm:num_preemptions[5m]))
  - alert: "Reasons"
    expr: "rate(vllm:request_success_total{finish_reason=\"error\"}[5m]) > 1 and rate(vllm:time_to_first_token_seconds_bucket{le=\"1.0\"}[5m]) > 0"   # two
    for: 5m
`

// The wanted text was written by hand.
const repaired = `groups:
- name: a
  rules:
  # The gauge of older servers.
  - alert: Full
    expr: 'vllm:kv_cache_usage_perc{job="x"}   >   0.95'
    for: 5m
  - record: llm:preempted
    expr: >-
      sum(
      rate(vllm:num_preemptions_total[5m]))
  - alert: "Reasons"
    expr: "rate(vllm:request_success_total{finished_reason=\"error\"}[5m]) > 1 and rate(vllm:time_to_first_token_seconds_bucket{le=~\"1(\\\\.0)?\"}[5m]) > 0"   # two
    for: 5m
`

func TestFixWritesOnlyWhatIsCertain(t *testing.T) {
	for name, convert := range map[string]func(string) string{
		"as it is": func(s string) string { return s },
		"CRLF":     func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") },
		"BOM":      func(s string) string { return "\xef\xbb\xbf" + s },
		"no end":   func(s string) string { return strings.TrimRight(s, "\n") },
	} {
		t.Run(name, func(t *testing.T) {
			report := check(t, "rules.yaml", convert(old), lint.Options{})
			report.Plan(t.Context(), lint.Options{})
			f := &report.Files[0]
			assert.Empty(t, f.NotFixed)
			assert.Equal(t, convert(repaired), string(f.After))
			again := check(t, "rules.yaml", string(f.After), lint.Options{})
			again.Plan(t.Context(), lint.Options{})
			assert.Nil(t, again.Files[0].After, "a second time there is nothing to do")
			assert.Zero(t, again.Summary.Fixable)
		})
	}
}

// Of every scenario: the new file differs from the old one only in the places of findings
// that are fixable, and a second run changes nothing.
func TestFixChangesOnlyThePlacesOfFindings(t *testing.T) {
	fixed := 0
	for _, folder := range scenarios(t) {
		for _, o := range []lint.Options{{}, {Stable: querylint.Suffixed}, {Version: "0.20.0"}} {
			report := lint.Check(t.Context(), lint.Collect(t.Context(), []string{folder}, nil), o)
			report.Plan(t.Context(), o)
			f := &report.Files[0]
			assert.Empty(t, f.NotFixed, folder)
			if f.After == nil {
				continue
			}
			fixed++
			before, after := strings.Split(string(f.Before), "\n"), strings.Split(string(f.After), "\n")
			require.Len(t, after, len(before), folder)
			allowed := map[int]bool{}
			for _, x := range f.Findings {
				for line := x.Line; x.Fixable && line <= x.EndLine; line++ {
					allowed[line] = true
				}
			}
			for i := range before {
				if before[i] != after[i] {
					assert.True(t, allowed[i+1], "%s:%d", folder, i+1)
				}
			}
			again := check(t, f.Name, string(f.After), o)
			again.Plan(t.Context(), o)
			assert.Nil(t, again.Files[0].After, "%s: %s", folder, f.After)
		}
	}
	assert.Greater(t, fixed, 30)
}

// "patch" is the judge of the diff.
func TestTheDiffIsWhatPatchReads(t *testing.T) {
	program, err := exec.LookPath("patch")
	if err != nil {
		t.Skip("there is no patch")
	}
	long := strings.Replace(old, "# The gauge", strings.Repeat("# line\n  ", 30)+"# The gauge", 1)
	for name, text := range map[string]string{"whole": old, "no end": strings.TrimRight(old, "\n"), "far apart": long} {
		folder := t.TempDir()
		path := filepath.Join(folder, "rules.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		report := lint.Check(t.Context(), lint.Collect(t.Context(), []string{path}, nil), lint.Options{})
		report.Plan(t.Context(), lint.Options{})
		var diff bytes.Buffer
		require.NoError(t, report.Files[0].Diff(&diff))
		command := exec.CommandContext(t.Context(), program, "--silent", path)
		command.Stdin = &diff
		out, err := command.CombinedOutput()
		require.NoError(t, err, "%s: %s", name, out)
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, string(report.Files[0].After), string(got), name)
	}
}

func TestFilesAreReplacedAsAWhole(t *testing.T) {
	folder := t.TempDir()
	path, link := filepath.Join(folder, "rules.yaml"), filepath.Join(folder, "link.yaml")
	require.NoError(t, os.WriteFile(path, []byte(old), 0o600))
	require.NoError(t, os.Chmod(path, 0o640))
	require.NoError(t, os.Symlink("rules.yaml", link))
	report := lint.Check(t.Context(), lint.Collect(t.Context(), []string{link}, nil), lint.Options{})
	report.Plan(t.Context(), lint.Options{})
	report.Write()
	assert.Equal(t, 4, report.Summary.Fixed)
	assert.Empty(t, report.Files[0].NotFixed)
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, repaired, string(got))
	info, err := os.Lstat(link)
	require.NoError(t, err)
	assert.NotZero(t, info.Mode()&os.ModeSymlink, "the link stays one")
	info, err = os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o640), info.Mode().Perm())
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	assert.Len(t, entries, 2, "nothing else is left")
}

func TestFilesThatCannotBeReplacedStayAsTheyAre(t *testing.T) {
	plan := func(t *testing.T, path string) *lint.Report {
		t.Helper()
		require.NoError(t, os.WriteFile(path, []byte(old), 0o600))
		report := lint.Check(t.Context(), lint.Collect(t.Context(), []string{path}, nil), lint.Options{})
		report.Plan(t.Context(), lint.Options{})
		return report
	}
	t.Run("read-only", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a.yaml")
		report := plan(t, path)
		require.NoError(t, os.Chmod(path, 0o444))
		report.Write()
		assert.Contains(t, report.Files[0].NotFixed, "read-only")
		got, _ := os.ReadFile(path)
		assert.Equal(t, old, string(got))
	})
	t.Run("changed meanwhile", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a.yaml")
		report := plan(t, path)
		require.NoError(t, os.WriteFile(path, []byte(old+"# more\n"), 0o600))
		report.Write()
		assert.Contains(t, report.Files[0].NotFixed, "has changed")
		got, _ := os.ReadFile(path)
		assert.Equal(t, old+"# more\n", string(got))
		assert.Zero(t, report.Summary.Fixed)
	})
	t.Run("removed meanwhile", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "a.yaml")
		report := plan(t, path)
		require.NoError(t, os.Remove(path))
		report.Write()
		assert.Contains(t, report.Files[0].NotFixed, "cannot be read")
	})
	t.Run("a folder that cannot be written", func(t *testing.T) {
		if os.Getuid() == 0 || runtime.GOOS == "windows" {
			t.Skip("the superuser can write everywhere")
		}
		folder := t.TempDir()
		report := plan(t, filepath.Join(folder, "a.yaml"))
		require.NoError(t, os.Chmod(folder, 0o500))
		report.Write()
		require.NoError(t, os.Chmod(folder, 0o700))
		assert.Contains(t, report.Files[0].NotFixed, "cannot be written")
	})
	t.Run("standard input", func(t *testing.T) {
		report := lint.Check(t.Context(), lint.Collect(t.Context(), []string{"-"}, strings.NewReader(old)), lint.Options{})
		report.Plan(t.Context(), lint.Options{})
		report.Write()
		assert.Contains(t, report.Files[0].NotFixed, "--diff")
	})
}

// The value of an anchor is one text in the file, however often it is used.
func TestAnExpressionThatIsUsedTwiceIsChangedOnce(t *testing.T) {
	text := "groups:\n- name: a\n  rules:\n  - {alert: A, expr: &e 'vllm:gpu_cache_usage_perc > 0.9', for: 5m}\n  - {alert: B, expr: *e, for: 5m}\n"
	report := check(t, "a.yaml", text, lint.Options{})
	report.Plan(t.Context(), lint.Options{})
	assert.Equal(t, strings.Replace(text, "gpu_", "kv_", 1), string(report.Files[0].After))
}
