package querylint

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/content/spelling"
)

// component is what a component's metadata.yaml says about its own telemetry and resources.
type component struct {
	ResourceAttributes map[string]any `yaml:"resource_attributes"`
	Telemetry          struct {
		Metrics map[string]struct {
			Unit       string
			Attributes []string
			Gauge      map[string]any
			Histogram  map[string]any
			Sum        *struct{ Monotonic bool }
		}
	}
}

func components(t *testing.T) []component {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "*", "*", "metadata.yaml"))
	require.NoError(t, err)
	var all []component
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var c component
		require.NoError(t, yaml.Unmarshal(text, &c), file)
		all = append(all, c)
	}
	require.GreaterOrEqual(t, len(all), 3)
	return all
}

func TestTheMetricsOfOurComponentsAreInTheTable(t *testing.T) {
	ours := 0
	for _, c := range components(t) {
		for name, m := range c.Telemetry.Metrics {
			at := slices.IndexFunc(telemetry, func(f Foreign) bool { return f.Name == "otelcol_"+name })
			if !assert.GreaterOrEqual(t, at, 0, name) {
				continue
			}
			ours++
			f := telemetry[at]
			kind := "gauge"
			switch {
			case m.Histogram != nil:
				kind = "histogram"
			case m.Sum != nil && m.Sum.Monotonic:
				kind = "counter"
			}
			assert.Equal(t, kind, f.Type, name)
			assert.Equal(t, m.Unit, f.Unit, name)
			assert.ElementsMatch(t, m.Attributes, f.Labels, name)
		}
	}
	for _, f := range telemetry {
		for _, prefix := range []string{"otelcol_receiver_vllm_", "otelcol_processor_vllm_", "otelcol_connector_vllm_", "otelcol_extension_"} {
			if len(f.Name) > len(prefix) && f.Name[:len(prefix)] == prefix {
				ours--
			}
		}
	}
	assert.Zero(t, ours, "the table has metrics that no component emits")
}

func TestTheAttributesOfOurResourcesAreInTheTable(t *testing.T) {
	for _, c := range components(t) {
		for name := range c.ResourceAttributes {
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
