package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../.."

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

// What a builder does not write any more is removed; what people write below the same folders stays.
func TestOnlyStaleFilesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		"content/README.md", "content/rules/suffixed/vllm.yaml", "content/rules/suffixed/old.yaml", "content/old.json",
		"docs/runbooks/VLLMOld.md", "docs/runbooks/stalled.md", "docs/alerts.md",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	stale, err := staleFiles(dir, map[string][]byte{"content/rules/suffixed/vllm.yaml": {1}})
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"content/rules/suffixed/old.yaml", "content/old.json", "docs/runbooks/VLLMOld.md"}, stale)
}

// Nothing is written if the place of a part is missing.
func TestAPageWithoutThePlaceOfAPartIsAnError(t *testing.T) {
	_, err := generated(t.TempDir())
	assert.ErrorContains(t, err, "docs/alerts.md")
}
