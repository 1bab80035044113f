package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../../.."

func TestTheGeneratedFilesAreUpToDate(t *testing.T) {
	files, err := generated(root)
	require.NoError(t, err)
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err, "run make generate")
		assert.Equal(t, string(want), string(got), "%s: run make generate", name)
	}
	stale, err := staleFiles(root, files)
	require.NoError(t, err)
	assert.Empty(t, stale, "run make generate")
}

// The chart has each dashboard, in as few bytes as JSON allows: a third less than with indentation.
func TestTheDashboardsOfTheChartAreSmall(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, dashboards, "*.json"))
	require.NoError(t, err)
	require.Len(t, files, 7)
	for _, file := range files {
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		got, err := os.ReadFile(filepath.Join(root, chart, "files", "content", filepath.Base(file)))
		require.NoError(t, err)
		assert.JSONEq(t, string(want), string(got))
		assert.Less(t, len(got), len(want)*3/4, file)
	}
}

func TestAFileThatIsNotWrittenAnyMoreIsRemoved(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{chart + "/files/old.yaml", chart + "/files/pool/old.yaml", chart + "/files/collector.yaml", chart + "/values.yaml"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	stale, err := staleFiles(dir, map[string][]byte{chart + "/files/collector.yaml": {1}})
	require.NoError(t, err)
	assert.Equal(t, []string{chart + "/files/old.yaml", chart + "/files/pool/old.yaml"}, stale)
}

func TestConfigurationsAreMergedAsTheCollectorDoesIt(t *testing.T) {
	got, err := merged([][]byte{
		[]byte("# The file.\n\nextensions:\n  # Alive.\n  a: {x: 1}\n  b: {}\nservice:\n  extensions: [a, b]\n  other: {list: [1, 2]}\n"),
		[]byte("extensions:\n  a: {y: 2}\nservice:\n  other: {list: [3]}\n"),
	}, []string{"b"})
	require.NoError(t, err)
	assert.YAMLEq(t, "extensions: {a: {x: 1, y: 2}}\nservice: {extensions: [a], other: {list: [3]}}\n", string(got))
	assert.Contains(t, string(got), "  # Alive.\n")
	assert.NotContains(t, string(got), "# The file.")
	_, err = merged([][]byte{[]byte("[]")}, nil)
	assert.Error(t, err)
}

func TestAConfigurationIsEmbeddedBetweenItsMarks(t *testing.T) {
	page := "config:\n  " + beginMark + " Why.\n  old: 1\n  " + endMark + "\nafter: 1\n"
	got, err := embed([]byte(page), []byte("a:\n  b: 1\n\nc: 2\n"))
	require.NoError(t, err)
	assert.Equal(t, "config:\n  "+beginMark+" Why.\n  a:\n    b: 1\n\n  c: 2\n  "+endMark+"\nafter: 1\n", string(got))
	_, err = embed([]byte("config:\n"), nil)
	assert.ErrorContains(t, err, "are missing")
}

func TestValuesAreDocumentedByTheirComments(t *testing.T) {
	const page = "# Chart\n<!-- values: begin -->\n<!-- values: end -->\n"
	got, err := documented([]byte(page), []byte("# What it\n# does.\nmode: \"\"\n\n# The ports | of it.\nport:\n  # One | two.\n  http: 80\n\n# A list:\n# - name: a\n#   value: b\nlist: []\n"))
	require.NoError(t, err)
	assert.Equal(t, "# Chart\n<!-- values: begin -->\n\n| Value | Default | What it is |\n|---|---|---|\n"+
		"| `mode` |  | What it does. |\n| `port.http` | `80` | One \\| two. |\n"+
		"| `list` | `[]` | A list: `name: a`, `value: b` |\n\n<!-- values: end -->\n", string(got))
	got, err = documented([]byte(page), []byte("# Labels.\nlabels:\n  a: \"1\"\n  b: c\n"))
	require.NoError(t, err)
	assert.Contains(t, string(got), "| `labels` | `{a: \"1\", b: c}` | Labels. |\n")
	_, err = documented([]byte(page), []byte("# Ports.\nport:\n  # One.\n  http: 80\n  other: 1\n"))
	assert.ErrorContains(t, err, "the value port.other has no comment")
	_, err = documented([]byte(page), []byte("[]"))
	assert.Error(t, err)
}
