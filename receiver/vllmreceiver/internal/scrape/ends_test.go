package scrape

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/scrapetest"
)

// The points of an end have the shape of those before and no value, and their
// metrics no description: one of a megabyte would be sent with each of thousands.
func TestEndsKeepTheirShape(t *testing.T) {
	r := newRig(t)
	shape := func(m pmetric.Metric) (string, []float64) {
		switch m.Type() {
		case pmetric.MetricTypeHistogram:
			p := m.Histogram().DataPoints().At(0)
			require.Equal(t, p.ExplicitBounds().Len()+1, p.BucketCounts().Len())
			return m.Name(), p.ExplicitBounds().AsRaw()
		case pmetric.MetricTypeSummary:
			var quantiles []float64
			for _, q := range m.Summary().DataPoints().At(0).QuantileValues().All() {
				quantiles = append(quantiles, q.Quantile())
			}
			return m.Name(), quantiles
		}
		return m.Name(), nil
	}
	before := map[string][]float64{}
	for _, m := range r.scrape(scrapetest.BodyWithEveryKind(t, "../../../..")).ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		name, bounds := shape(m)
		before[name] = bounds
	}
	ends := 0
	for _, m := range r.fail(500).ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		name, bounds := shape(m)
		if strings.HasPrefix(name, "vllm.up") || strings.HasPrefix(name, "vllm.scrape.") {
			continue
		}
		ends++
		assert.Empty(t, m.Description(), name)
		assert.Equal(t, before[name], bounds, name)
		if m.Type() == pmetric.MetricTypeHistogram {
			p := m.Histogram().DataPoints().At(0)
			assert.True(t, p.Flags().NoRecordedValue())
			assert.Zero(t, p.Count())
			assert.False(t, math.IsNaN(p.Sum()))
		}
	}
	assert.Greater(t, ends, 50)
}
