package release

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const root = "../../.."

// files reads the tracked files of this checkout.
func files(t *testing.T) map[string]string {
	t.Helper()
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		t.Skip("this is not a git checkout, so nothing says which files belong to the project")
	}
	tracked, err := Tracked(root)
	require.NoError(t, err)
	all := map[string]string{}
	for _, file := range tracked {
		content, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		all[file] = string(content)
	}
	return all
}

func TestEveryPlaceNamesTheVersionOfTheManifest(t *testing.T) {
	version, err := Version(root)
	require.NoError(t, err)
	counts := map[string]int{}
	for file, content := range files(t) {
		for _, p := range Places(file, content) {
			counts[file]++
			assert.Equal(t, version, p.Version, "%s; \"make set-version\" writes the version into every place", p)
		}
	}
	// The patterns find what a release must change: if one finds nothing, the test above proves nothing.
	for _, file := range []string{
		Manifest, "builder-config-full.yaml", "builder-config-tiers.yaml", "Dockerfile", "docs/start/kubernetes.md", "docs/start/own-collector.md",
		"examples/builder/release.yaml", "examples/helm/otelcol-vllm/Chart.yaml", "examples/helm/upstream-values.yaml",
		"examples/helm/vllm-with-sidecar/Chart.yaml", "examples/helm/otelcol-vllm-sidecar/README.md",
		"examples/kubernetes/overlays/agent/kustomization.yaml", "examples/operator/collector.yaml",
	} {
		assert.Positive(t, counts[file], "no version found in %s", file)
	}
	assert.Equal(t, 7, counts[Manifest], "dist.version, and a version for each of our six components")
}

func TestPlacesAreFoundByHowTheyAreWritten(t *testing.T) {
	for text, want := range map[string][]string{
		"image: ghcr.io/otelcol-vllm/otelcol-vllm:0.1.0":                                 {"0.1.0"},
		"docker build -t registry.example.com/otelcol-vllm:0.2.0-rc.1 .":                 {"0.2.0-rc.1"},
		"  - gomod: github.com/otelcol-vllm/otelcol-vllm v0.2.0":                         {"0.2.0"},
		"go install github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl@v0.2.0":             {"0.2.0"},
		"helm.sh/chart: otelcol-vllm-sidecar-0.3.0":                                      {"0.3.0"},
		"curl -LO .../otelcol-vllm_0.2.0_linux_amd64.tar.gz otelcol-vllm_0.1.0_sums.txt": {"0.2.0", "0.1.0"},
		"otelcol-vllm version 0.2.0":                                                     {"0.2.0"},
		"    newTag: 0.2.0":                                                              {"0.2.0"},
		`version: "0.2.0"`:                                                               {"0.2.0"},
		"app.kubernetes.io/version: v1.2.3":                                              {"1.2.3"},
		"vLLM 0.2.0 and newer":                                                           nil,
		"version: 2":                                                                     nil,
	} {
		var got []string
		for _, p := range Places("examples/x.yaml", text) {
			got = append(got, p.Version)
		}
		assert.Equal(t, want, got, text)
	}
	assert.Empty(t, Places("lab/vllmsim/x.yaml", "version: 0.2.0"), "a version of vLLM")
	assert.Empty(t, Places("CHANGELOG.md", "otelcol-vllm 0.1.0"))
	assert.Empty(t, Places("examples/helm/vllm-with-sidecar/Chart.yaml", "appVersion: 0.10.2"))
}

// The oracle is sed: in a checkout where nothing else has the version, it writes the same.
func TestSetVersionChangesEveryPlaceAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) {
		file := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(content), 0o644))
	}
	before := map[string]string{
		Manifest: "dist:\n  version: 0.2.0\nreceivers:\n  - gomod: github.com/otelcol-vllm/otelcol-vllm v0.2.0\n" +
			"  - gomod: go.opentelemetry.io/collector/receiver/otlpreceiver v0.158.0\n",
		"examples/a/kustomization.yaml": "images:\n  - name: otelcol-vllm\n    newTag: 0.2.0",
		"docs/start/prometheus.md":      "otelcol-vllm:0.2.0 is not otelcol-vllm:0.2.0-rc.1\n",
		"CHANGELOG.md":                  "## 0.2.0 - 2026-11-26\n",
		"metadata.yaml":                 "since: 0.2.0\n",
	}
	for name, content := range before {
		write(name, content)
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}} {
		command := exec.Command("git", args...)
		command.Dir = dir
		require.NoError(t, command.Run())
	}
	changed, err := SetVersion(dir, "0.10.0")
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{Manifest, "examples/a/kustomization.yaml", "docs/start/prometheus.md"}, changed)
	for name, content := range before {
		want := strings.ReplaceAll(strings.ReplaceAll(content, "0.2.0-rc.1", "0.10.0"), "0.2.0", "0.10.0")
		if name == "CHANGELOG.md" || name == "metadata.yaml" {
			want = content
		}
		got, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.Equal(t, want, string(got), name)
	}
	version, err := Version(dir)
	require.NoError(t, err)
	assert.Equal(t, "0.10.0", version)

	// There and back, as a release after its candidate.
	for _, next := range []string{"0.11.0-rc.1", "0.11.0-beta", "0.10.0"} {
		_, err = SetVersion(dir, next)
		require.NoError(t, err)
	}
	got, err := os.ReadFile(filepath.Join(dir, "docs", "start", "prometheus.md"))
	require.NoError(t, err)
	assert.Equal(t, "otelcol-vllm:0.10.0 is not otelcol-vllm:0.10.0\n", string(got))

	for _, wrong := range []string{"", "v0.3.0", "0.3", "latest", "0.3.0+meta", "0.3.0-pre.1", "0.3.0-rc.1-dirty", "0.3.0-", "0.3.0-.", "00.3.0", "0.03.0", "0.3.0 ", "0.3.0\n"} {
		_, err := SetVersion(dir, wrong)
		require.Error(t, err, wrong)
	}
}
