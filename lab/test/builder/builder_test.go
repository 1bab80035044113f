package builder

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const (
	ours      = "github.com/otelcol-vllm/otelcol-vllm"
	processor = ours + "/processor/vllmprocessor"
)

// ocb returns the OpenTelemetry Collector Builder, which "make own-collector" names.
func ocb(t *testing.T) string {
	t.Helper()
	path := os.Getenv("OTELCOL_VLLM_OCB")
	if path == "" {
		t.Skip("no builder: run make own-collector")
	}
	return path
}

func root(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "..", ".."))
	require.NoError(t, err)
	return path
}

// manifest is what these tests change in a builder's manifest; the rest stays.
type manifest map[string]any

func read(t *testing.T, name string) manifest {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root(t), "examples", name))
	require.NoError(t, err)
	var m map[string]any
	require.NoError(t, yaml.Unmarshal(content, &m))
	return m
}

// fromReleased makes a manifest with the version of a release usable before that
// release is published: the version is this checkout's.
func (m manifest) fromReleased(t *testing.T) {
	t.Helper()
	content, err := yaml.Marshal(m)
	require.NoError(t, err)
	require.NotContains(t, string(content), "path: ./otelcol-vllm", "a release needs no checkout")
	m["replaces"] = []string{ours + " => " + root(t)}
}

// onlyTheProcessor leaves the processor alone of our components.
func (m manifest) onlyTheProcessor(t *testing.T) {
	t.Helper()
	path, found := "", false
	for _, kind := range []string{"receivers", "processors", "connectors", "extensions", "converters"} {
		var others []any
		entries, _ := m[kind].([]any)
		for _, entry := range entries {
			component := entry.(map[string]any)
			if text, has := component["path"].(string); has {
				path = text
			}
			name, _ := component["import"].(string)
			switch {
			case name == processor:
				found = true
				if path != "" {
					component["path"] = path
				}
				others = append(others, component)
			case !strings.HasPrefix(name, ours):
				others = append(others, component)
			}
		}
		if m[kind] = others; len(others) == 0 {
			delete(m, kind)
		}
	}
	require.True(t, found, "the manifest has the processor")
}

// generate runs the builder as its user does, in a folder with the checkout next to
// the manifest, and returns the folder of the sources.
func (m manifest) generate(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	require.NoError(t, os.Symlink(root(t), filepath.Join(folder, "otelcol-vllm")))
	content, err := yaml.Marshal(m)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "builder.yaml"), content, 0o600))
	// Strict: otherwise ocb mixes releases of the Collector without a word.
	run(t, folder, ocb(t), "--config", "builder.yaml", "--skip-compilation", "--skip-strict-versioning=false")
	return filepath.Join(folder, "my-collector")
}

// compile builds folder/collector with the flags of "make build", so that most packages
// are in Go's cache.
func compile(t *testing.T, folder string) {
	t.Helper()
	t.Setenv("CGO_ENABLED", "0")
	run(t, folder, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", "collector", ".")
}

func run(t *testing.T, folder, program string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, program, args...)
	command.Dir = folder
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s %s:\n%s", program, strings.Join(args, " "), output)
	return string(output)
}

func TestTheManifestsBuildACollector(t *testing.T) {
	ocb(t)
	for _, name := range []string{"builder/checkout.yaml", "builder/release.yaml"} {
		prepared := func(t *testing.T) manifest {
			t.Helper()
			m := read(t, name)
			if name == "builder/release.yaml" {
				m.fromReleased(t)
			}
			return m
		}
		t.Run(name+" with all components", func(t *testing.T) {
			run(t, prepared(t).generate(t), "go", "vet", ".")
		})
		t.Run(name+" with the processor alone", func(t *testing.T) {
			m := prepared(t)
			m.onlyTheProcessor(t)
			folder := m.generate(t)
			compile(t, folder)
			var built struct {
				Receivers, Processors []struct{ Name string }
			}
			require.NoError(t, yaml.Unmarshal([]byte(run(t, folder, "./collector", "components")), &built))
			require.Len(t, built.Processors, 1)
			assert.Equal(t, "vllm", built.Processors[0].Name)
			for _, receiver := range built.Receivers {
				assert.NotEqual(t, "vllm", receiver.Name)
			}
		})
	}
}

// Both manifests have the same components, so that a release has what the checkout had.
func TestTheManifestsDifferByThePathOnly(t *testing.T) {
	checkout, release := read(t, "builder/checkout.yaml"), read(t, "builder/release.yaml")
	paths := 0
	for _, section := range checkout {
		entries, _ := section.([]any)
		for _, entry := range entries {
			if _, has := entry.(map[string]any)["path"]; has {
				paths++
				delete(entry.(map[string]any), "path")
			}
		}
	}
	assert.Equal(t, 1, paths, "one path serves all components")
	assert.Equal(t, checkout, release)
}
