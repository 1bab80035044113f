package kubernetes

import (
	"bytes"
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden renderings instead of comparing with them")

// chartFiles are the texts of the charts' files by their names.
func chartFiles(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{}
	for _, folder := range []string{"otelcol-vllm", "otelcol-vllm-sidecar"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(charts, folder, "files"), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := os.ReadFile(path)
			inside, _ := filepath.Rel(charts, path)
			texts[string(content)] = "the file " + filepath.ToSlash(inside)
			return err
		}))
	}
	return texts
}

// golden is a rendering with sorted objects and keys, in which the chart's files have only
// their names.
func golden(t *testing.T, rendered []byte) []byte {
	t.Helper()
	files := chartFiles(t)
	parts := map[string][]byte{}
	for document := range strings.SplitSeq("\n"+string(rendered), "\n---\n") {
		var object map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(document), &object))
		if object == nil {
			continue
		}
		for name, text := range at(object, "data") {
			if file, ok := files[text.(string)]; ok {
				object["data"].(map[string]any)[name] = file
			}
		}
		// It changes with every word of a comment in a configuration.
		for _, checksum := range []string{"checksum/configuration", "checksum/sidecar"} {
			if annotations := at(object, "spec", "template", "metadata", "annotations"); annotations[checksum] != nil {
				annotations[checksum] = "a checksum"
			}
		}
		if object["kind"] == "PrometheusRule" {
			object["spec"] = "the file otelcol-vllm/files/content/vllm.yaml"
		}
		text, err := yaml.Marshal(object)
		require.NoError(t, err)
		parts[object["kind"].(string)+" "+at(object, "metadata")["name"].(string)] = text
	}
	var out bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		out.WriteString("---\n")
		out.Write(parts[name])
	}
	return out.Bytes()
}

// What users get is reviewed as a diff: go test ./lab/test/kubernetes -run Golden -update.
func TestGoldenRenderings(t *testing.T) {
	renderings := helmed(t)
	for overlay, rendered := range renderings {
		file := filepath.Join("testdata", "helm", overlay+".yaml")
		got := golden(t, rendered)
		if *update {
			require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o750))
			require.NoError(t, os.WriteFile(file, got, 0o600))
			continue
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err, "run this test with -update")
		assert.Equal(t, string(want), string(got), overlay)
	}
	files, err := filepath.Glob(filepath.Join("testdata", "helm", "*"))
	require.NoError(t, err)
	assert.Len(t, files, len(renderings), "a rendering that is not made any more")
}
