package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
)

const root = "../../.."

func TestTheGeneratedFilesAreUpToDate(t *testing.T) {
	files, err := generated(root, content.Groups())
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
	_, err := generated(t.TempDir(), content.Groups())
	assert.ErrorContains(t, err, "docs/alerts.md")
}

// Without this a runbook with empty parts was written, and somebody opens it at night.
func TestAnAlertWithAGapIsRefused(t *testing.T) {
	groups := content.Groups()
	groups[0].Alerts[0].Mitigation, groups[0].Alerts[0].Monitor = nil, nil
	_, err := generated(root, groups)
	assert.EqualError(t, err, "alert VLLMPoolNotServing has no Mitigation: write the actions, each with its cost, next to its Expr in cmd/vllmctl/content\n"+
		"alert VLLMPoolNotServing has no Monitor: write it, or NoMonitor with the reason why Datadog has none, next to its Expr in cmd/vllmctl/content")
}

// A user takes another spelling from the folder that is named; a name that is wrong writes nothing.
func TestAnotherSpellingIsWrittenIntoAFolder(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, write(dir, []string{"dotted", "wire"}))
	for name, expr := range map[string]string{
		"rules/dotted/vllm.yaml": `{"vllm.slo.valid"}`, "perses/wire/vllm-wire.json": "vllm:num_requests_running",
		"kubernetes/vllm-raw-rules.yaml": "name: vllm-raw", "grafana/dotted/kustomization.yaml": "vllm-overview.json",
	} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.Contains(t, string(text), expr, name)
	}
	assert.NoFileExists(t, filepath.Join(dir, "rules", "unsuffixed", "vllm.yaml"))
	assert.ErrorContains(t, write(filepath.Join(dir, "none"), []string{"dotty"}), `no spelling "dotty"; write dotted, unsuffixed, wire or suffixed`)
	assert.NoDirExists(t, filepath.Join(dir, "none"))
}

// The repository has one spelling; the others follow from it.
func TestOtherSpellingsAreNotCommitted(t *testing.T) {
	files, err := generated(root, content.Groups())
	require.NoError(t, err)
	for name := range files {
		assert.NotRegexp(t, "/(dotted|unsuffixed|wire)/|-raw", name)
	}
}
