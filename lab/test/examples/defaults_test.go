package examples

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	otel "go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector"
	"github.com/otelcol-vllm/otelcol-vllm/extension/storagecheckextension"
	"github.com/otelcol-vllm/otelcol-vllm/extension/vllmfleetextension"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
)

// ours are the default configurations of this project's components, by section and type.
var ours = map[string]func() otel.Config{
	"receivers vllm":            vllmreceiver.NewFactory().CreateDefaultConfig,
	"processors vllm":           vllmprocessor.NewFactory().CreateDefaultConfig,
	"connectors vllm_diagnosis": vllmdiagnosisconnector.NewFactory().CreateDefaultConfig,
	"extensions storage_check":  storagecheckextension.NewFactory().CreateDefaultConfig,
	"extensions vllm_fleet":     vllmfleetextension.NewFactory().CreateDefaultConfig,
}

// taught are the defaults that a page is about, which a reader is told to change.
var taught = map[string][]string{
	"docs/start/datadog.md":                                     {"preset", "preset"}, // over an example's
	"docs/start/prometheus.md":                                  {"service_name"},
	"examples/kubernetes/components/objectives/objectives.yaml": {"budget_window"},
	"examples/objectives.yaml":                                  {"budget_window"},
	"examples/prometheus-dashboards.yaml":                       {"service_name"},
	"receiver/vllmreceiver/README.md":                           {"config::endpoint"}, // of receiver_creator
}

// restated returns the keys of a value of YAML without which each component has the same
// configuration, and adds the number of components to looked.
func restated(t *testing.T, value any, looked *int) (found []string) {
	t.Helper()
	switch value := value.(type) {
	case string: // a configuration within a ConfigMap
		var within map[string]any
		if strings.Contains(value, "\n") && yaml.Unmarshal([]byte(value), &within) == nil {
			return restated(t, within, looked)
		}
	case []any:
		for _, each := range value {
			found = append(found, restated(t, each, looked)...)
		}
	case map[string]any:
		for _, section := range slices.Sorted(maps.Keys(value)) {
			components, _ := value[section].(map[string]any)
			for id, settings := range components {
				kind, _, _ := strings.Cut(id, "/")
				if defaults, is := ours[section+" "+kind]; is {
					*looked++
					settings, _ := settings.(map[string]any)
					found = append(found, withoutEffect(t, defaults, settings)...)
				}
			}
			found = append(found, restated(t, value[section], looked)...)
		}
	}
	return found
}

// withoutEffect returns the keys without which a component has the same configuration.
func withoutEffect(t *testing.T, defaults func() otel.Config, settings map[string]any) (found []string) {
	t.Helper()
	decoded := func() otel.Config {
		config := defaults()
		require.NoError(t, confmap.NewFromStringMap(settings).Unmarshal(config))
		return config
	}
	whole := decoded()
	preset := catalog.Standard
	if text, is := settings["preset"].(string); is {
		require.NoError(t, preset.UnmarshalText([]byte(text)))
	}
	var visit func(prefix string, within map[string]any)
	visit = func(prefix string, within map[string]any) {
		for _, key := range slices.Sorted(maps.Keys(within)) {
			value := within[key]
			if strings.Contains(fmt.Sprint(value), "${") {
				continue // The environment can change it.
			}
			if below, is := value.(map[string]any); is && len(below) > 0 {
				visit(prefix+key+confmap.KeyDelimiter, below)
				continue
			}
			delete(within, key)
			metric, known := catalog.ByName(strings.TrimSuffix(strings.TrimPrefix(prefix, "metrics::"), confmap.KeyDelimiter))
			if assert.ObjectsAreEqual(whole, decoded()) || known && key == "enabled" && value == metric.In(preset) {
				found = append(found, prefix+key)
			}
			within[key] = value
		}
	}
	visit("", settings)
	return found
}

// yamlBlock is a configuration that a page shows.
var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$") //nolint:gocritic // with (?m), ^ is the start of a line

// What an example repeats of the defaults hides what the example is about.
func TestNoExampleRestatesADefault(t *testing.T) {
	looked := 0
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if entry.IsDir() && slices.Contains([]string{".git", "build", "bin", "internal", "testdata"}, entry.Name()) {
			return filepath.SkipDir
		}
		kind := filepath.Ext(path)
		if err != nil || kind != ".yaml" && kind != ".md" {
			return err
		}
		content, err := os.ReadFile(path)
		texts := []string{string(content)}
		if kind == ".md" {
			texts = nil
			for _, block := range yamlBlock.FindAllStringSubmatch(string(content), -1) {
				texts = append(texts, block[1])
			}
		}
		var found []string
		for _, text := range texts {
			var value any
			for documents := yaml.NewDecoder(strings.NewReader(text)); documents.Decode(&value) == nil; value = nil {
				found = append(found, restated(t, value, &looked)...)
			}
		}
		name, _ := filepath.Rel(root, path)
		assert.Equal(t, taught[name], found, "%s: remove what has the default", name)
		return err
	}))
	assert.Greater(t, looked, 100)
}
