package board_test

import (
	"encoding/json"
	"maps"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/otlptranslator"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
	"github.com/otelcol-vllm/otelcol-vllm/lab/content/board"
	"github.com/otelcol-vllm/otelcol-vllm/lab/content/grafana"
	"github.com/otelcol-vllm/otelcol-vllm/lab/content/perses"
)

func TestPlaces(t *testing.T) {
	panels := []content.Panel{{Width: 16, Height: 4}, {Width: 8, Height: 6}, {Width: 12, Height: 3}, {Width: 12, Height: 2}, {Width: 1, Height: 1}}
	places, height := board.Places(panels)
	assert.Equal(t, []board.Place{
		{X: 0, Y: 0, Width: 16, Height: 4},
		{X: 16, Y: 0, Width: 8, Height: 6},
		{X: 0, Y: 6, Width: 12, Height: 3},
		{X: 12, Y: 6, Width: 12, Height: 2},
		{X: 0, Y: 9, Width: 1, Height: 1},
	}, places)
	assert.Equal(t, 10, height)
}

func TestTheDescriptionIsComposedFromTheCatalogue(t *testing.T) {
	p := content.Panel{About: "Of each pool.", Queries: []content.Query{
		{Expr: `vllm_pool_arrival_rate_per_second`},
		{Expr: `vllm_slo_threshold_seconds`, AsThreshold: true},
	}}
	text := board.Description(p)
	assert.True(t, strings.HasPrefix(text, "Of each pool.\n\n"))
	assert.Contains(t, text, "Requests cancelled before their first token", "from the metric that this one is like")
	assert.Contains(t, text, "From `vllm.pool.arrival_rate`.", "a limit is not in question")
	assert.Equal(t, "No value in this time. It needs `pool`.", board.NoValue(p))
	p.NoValue = "None."
	assert.Equal(t, "None.", board.NoValue(p))
	p.Queries = []content.Query{{Expr: "vllm_time_to_first_token_seconds_count"}}
	assert.Equal(t, "None. Or the preset is essential, which lacks it.", board.NoValue(p))
	plain := content.Panel{Queries: []content.Query{{Expr: "vllm_num_requests_running"}}}
	assert.NotContains(t, board.NoValue(plain), "needs")
}

// stored returns the names of the series of metadata.yaml in each spelling, by Prometheus's own
// library.
func stored(t *testing.T) map[string]map[string]bool {
	t.Helper()
	text, err := os.ReadFile("../../../metadata.yaml")
	require.NoError(t, err)
	var doc struct {
		Metrics map[string]map[string]any
	}
	require.NoError(t, yaml.Unmarshal(text, &doc))
	names := map[string]map[string]bool{}
	for folder, strategy := range map[string]otlptranslator.TranslationStrategyOption{
		"suffixed": otlptranslator.UnderscoreEscapingWithSuffixes, "unsuffixed": otlptranslator.UnderscoreEscapingWithoutSuffixes, "dotted": otlptranslator.NoTranslation,
	} {
		names[folder] = map[string]bool{}
		namer := otlptranslator.NewMetricNamer("", strategy)
		for name, fields := range doc.Metrics {
			kind, parts := otlptranslator.MetricType(otlptranslator.MetricTypeGauge), []string{""}
			if _, is := fields["sum"]; is {
				kind = otlptranslator.MetricTypeMonotonicCounter
			}
			if _, is := fields["histogram"]; is {
				kind, parts = otlptranslator.MetricTypeHistogram, []string{"_bucket", "_sum", "_count"}
			}
			unit, _ := fields["unit"].(string)
			base, err := namer.Build(otlptranslator.Metric{Name: name, Unit: unit, Type: kind})
			require.NoError(t, err)
			for _, part := range parts {
				names[folder][base+part] = true
			}
		}
	}
	return names
}

var otherPrograms = regexp.MustCompile(`^(otelcol_|DCGM_FI_)`)

// What stands in the files is what Prometheus stores with each of its strategies.
func TestTheFilesUseTheNamesThatPrometheusStores(t *testing.T) {
	names := stored(t)
	seen := map[string]int{}
	hide := strings.NewReplacer("$__rate_interval", "5m", "$__range", "1h", "$__interval", "1m")
	check := func(file, folder, expr string) {
		parsed, err := parser.NewParser(parser.Options{}).ParseExpr(hide.Replace(expr))
		require.NoError(t, err, "%s: %s", file, expr)
		parser.Inspect(parsed, func(node parser.Node, _ []parser.Node) error {
			s, is := node.(*parser.VectorSelector)
			if !is {
				return nil
			}
			name := s.Name
			for _, m := range s.LabelMatchers {
				if m.Name == model.MetricNameLabel {
					name = m.Value
				}
				if folder == "dotted" {
					assert.NotContains(t, []string{"k8s_cluster_name", "k8s_namespace_name", "k8s_pod_name", "service_version", "vllm_server_kind"}, m.Name, file)
				} else {
					assert.NotContains(t, m.Name, ".", file)
				}
			}
			if !otherPrograms.MatchString(name) {
				seen[folder]++
				assert.True(t, names[folder][name], "%s: %s is not stored", file, name)
			}
			return nil
		})
	}
	// Those of wire are of the servers themselves; see the test of their families.
	for _, to := range spelling.All() {
		boards, err := grafana.Files(to)
		require.NoError(t, err)
		files, err := perses.Files(to)
		require.NoError(t, err)
		maps.Copy(files, boards)
		for file, text := range files {
			folder := strings.Split(file, "/")[2]
			if path.Ext(file) != ".json" {
				continue
			}
			var decoded any
			require.NoError(t, json.Unmarshal(text, &decoded))
			walk(decoded, func(key, value string) {
				if key == "expr" || key == "query" && strings.Contains(file, "/perses/") {
					check(file, folder, value)
				}
			})
		}
	}
	for _, folder := range []string{"suffixed", "unsuffixed", "dotted"} {
		assert.Greater(t, seen[folder], 300, folder)
	}
}

// walk calls do for each string that is the value of a key.
func walk(value any, do func(key, value string)) {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			if text, is := inner.(string); is {
				do(key, text)
			}
			walk(inner, do)
		}
	case []any:
		for _, inner := range v {
			walk(inner, do)
		}
	}
}
