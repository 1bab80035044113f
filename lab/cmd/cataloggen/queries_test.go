package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/otlptranslator"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// stored is the name that Prometheus's own translation gives a metric.
func stored(t *testing.T, m *catalog.Metric) string {
	t.Helper()
	types := map[catalog.Kind]otlptranslator.MetricType{
		catalog.KindGauge: otlptranslator.MetricTypeGauge, catalog.KindSum: otlptranslator.MetricTypeMonotonicCounter,
		catalog.KindHistogram: otlptranslator.MetricTypeHistogram, catalog.KindSummary: otlptranslator.MetricTypeSummary,
	}
	namer := otlptranslator.NewMetricNamer("", otlptranslator.UnderscoreEscapingWithSuffixes)
	name, err := namer.Build(otlptranslator.Metric{Name: m.Name, Unit: m.Unit, Type: types[m.Kind]})
	require.NoError(t, err)
	return name
}

func TestPrometheusNamesAreThoseOfTheTranslator(t *testing.T) {
	all := catalog.All()
	for i := range all {
		assert.Equal(t, stored(t, &all[i]), prometheusName(all[i].Name, all[i].Unit, all[i].Kind.String()), all[i].Name)
	}
}

// The table in docs/reference/naming.md has each family whose query changes by more than its
// colon, and no other, with the name that Prometheus's translation gives.
func TestTheNamingPageListsEveryQueryThatChanges(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "naming.md"))
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "<!-- changed-queries: begin -->")
	require.True(t, found)
	table, _, found = strings.Cut(table, "<!-- changed-queries: end -->")
	require.True(t, found)
	listed := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(vllm:[^`]+)` \\| (`[^(\n]*`)(?: \\(.+\\))? \\|$").FindAllStringSubmatch(table, -1) {
		assert.NotContains(t, listed, row[1], "there twice")
		listed[row[1]] = row[2]
	}
	want := map[string]string{}
	all := catalog.All()
	for i := range all {
		m := &all[i]
		for _, source := range m.Sources {
			translated := stored(t, m)
			if source.Label == "" && strings.HasPrefix(source.Family, "vllm:") && translated != strings.ReplaceAll(source.Family, ":", "_") {
				want[source.Family] = "`" + translated + "`"
			}
		}
	}
	require.Greater(t, len(want), 10)
	for family, instead := range want {
		assert.Equal(t, instead, listed[family], family)
		delete(listed, family)
	}
	// What is left are families whose labels become metrics: a query for them finds nothing.
	for family := range listed {
		assert.True(t, slices.ContainsFunc(catalog.InfoFamilies, func(f catalog.InfoFamily) bool { return f.Family == family }), family)
	}
	assert.GreaterOrEqual(t, len(listed), 2)
}
