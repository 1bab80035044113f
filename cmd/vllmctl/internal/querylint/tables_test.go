package querylint

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// The attributes of the resources that the project's components declare.
func TestTheAttributesOfOurResourcesAreInTheTable(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "..", "*", "*", "metadata.yaml"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 3)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var component struct {
			ResourceAttributes map[string]any `yaml:"resource_attributes"`
		}
		require.NoError(t, yaml.Unmarshal(text, &component), file)
		for name := range component.ResourceAttributes {
			assert.Contains(t, resourceAttributes, name)
		}
	}
}

// Each name of the catalogue is known in each spelling, and labels are spelled as in the content.
func TestNamesAreThoseOfThePackageOfSpellings(t *testing.T) {
	for _, to := range spelling.All() {
		names := namesOf(Spelling(to))
		metrics := catalog.All()
		for i := range metrics {
			m := &metrics[i]
			name, err := spelling.Name(m, to)
			require.NoError(t, err)
			if m.Kind == catalog.KindHistogram {
				assert.Equal(t, m, names.bare[name])
				name += "_bucket"
			}
			assert.Equal(t, m, names.byName[name].metric, name)
		}
		for _, attribute := range []string{"model_name", "k8s.pod.name", "service.version", "gen_ai.request.model"} {
			assert.Equal(t, spelling.Label(Suffixed.label(attribute), to), Spelling(to).label(attribute))
		}
	}
}

// Each list of values is about an attribute that the metric has.
func TestValuesAreOfAttributesOfTheMetric(t *testing.T) {
	for key, values := range valuesOf {
		var metric, attribute string
		for i := range key {
			if key[i] == ' ' {
				metric, attribute = key[:i], key[i+1:]
			}
		}
		m, known := catalog.ByName(metric)
		require.True(t, known, key)
		assert.Contains(t, m.Attributes, attribute, key)
		assert.True(t, slices.IsSorted(values), key)
	}
	for whole := range parts {
		for _, name := range []string{whole, parts[whole]} {
			_, known := catalog.ByName(name)
			assert.True(t, known, name)
		}
	}
}
