// Package causes lists all causes of the catalogue for tests. The product looks up a
// cause by its name only.
package causes

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// All returns the causes of internal/catalog/diagnosis.yaml, in the order of the file.
func All(t *testing.T) []catalog.Cause {
	t.Helper()
	_, file, _, found := runtime.Caller(0)
	require.True(t, found)
	content, err := os.ReadFile(filepath.Join(filepath.Dir(file), "..", "..", "catalog", "diagnosis.yaml"))
	require.NoError(t, err)
	var doc struct {
		Causes []struct {
			Name string `yaml:"name"`
		} `yaml:"causes"`
	}
	require.NoError(t, yaml.Unmarshal(content, &doc))
	require.NotEmpty(t, doc.Causes)
	var all []catalog.Cause
	for _, c := range doc.Causes {
		cause, known := catalog.CauseByName(c.Name)
		require.True(t, known, "the table has no cause %q: run make generate", c.Name)
		all = append(all, *cause)
	}
	return all
}
