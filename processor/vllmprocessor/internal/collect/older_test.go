package collect

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

func TestANameThatCanMeanBlocksIsToldApart(t *testing.T) {
	for name, older := range map[string]bool{
		"vllm.prefix_cache.hits":           false,
		"vllm:prefix_cache_hits_total":     false,
		"vllm:prefix_cache_hits":           false,
		"vllm.gpu_prefix_cache.hits":       true,
		"vllm:gpu_prefix_cache_hits":       true,
		"vllm_gpu_prefix_cache_hits":       true,
		"vllm:gpu_prefix_cache_hits_total": true, // blocks before v0.9, tokens since
		"vllm:gpu_cache_usage_perc":        false,
		"vllm:num_requests_running":        false,
	} {
		metrics := pmetric.NewMetrics()
		metric := metrics.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
		metric.SetName(name)
		n, known := lookUp(name)
		require.True(t, known, name)
		points := metric.SetEmptyGauge().DataPoints()
		if n.input.Define().Kind == input.Counter {
			sum := metric.SetEmptySum()
			sum.SetIsMonotonic(true)
			sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			points = sum.DataPoints()
		}
		point := points.AppendEmpty()
		point.SetTimestamp(1)
		point.SetDoubleValue(0.5)
		batches, _ := Read(metrics)
		require.Len(t, batches, 1, name)
		assert.Equal(t, older, batches[0].Samples[0].Older, name)
	}
}
