package catalog_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// The sem_conv_version of a component must be the version of the schema on its resources.
func TestStatedConventionsAreThoseOfTheSchema(t *testing.T) {
	files, err := filepath.Glob("../../*/*/metadata.yaml")
	require.NoError(t, err)
	stated := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var component struct {
			Version string `yaml:"sem_conv_version"`
		}
		require.NoError(t, yaml.Unmarshal(text, &component), file)
		if component.Version == "" {
			continue
		}
		stated++
		_, version, _ := strings.Cut(catalog.SchemaURL, "/schemas/")
		assert.Equal(t, component.Version, version,
			"%s states %s, the resources carry %s", file, component.Version, catalog.SchemaURL)
	}
	assert.NotZero(t, stated, "no component states a version")
}
