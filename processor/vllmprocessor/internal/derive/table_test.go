package derive

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// elsewhere are the derived metrics that are not of a single resource's window.
func elsewhere(name string) bool {
	for _, prefix := range []string{"vllm.slo.", "vllm.pool.", "vllm.diagnosis.", "vllm.gpu."} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return name == "vllm.energy_per_generated_token"
}

func TestTheTableIsTheCatalogues(t *testing.T) {
	var names []string
	for _, row := range Rows() {
		metric, known := catalog.ByName(row.Metric)
		require.True(t, known, row.Metric)
		assert.True(t, metric.Derived(), row.Metric)
		names = append(names, row.Metric)
		for _, a := range row.Extra {
			assert.Contains(t, metric.Attributes, a, row.Metric)
		}
		ways := 0
		for _, set := range []bool{row.Quotient != nil, row.Additive != nil, row.Several != nil, row.Quantiles != nil} {
			if set {
				ways++
			}
		}
		assert.Equal(t, 1, ways, row.Metric)
	}
	var want []string
	for _, m := range catalog.All() {
		if m.Derived() && !elsewhere(m.Name) {
			want = append(want, m.Name)
		}
	}
	slices.Sort(names)
	assert.Equal(t, want, names)
}
