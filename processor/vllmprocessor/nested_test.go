package vllmprocessor

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadata"
)

// What a hostile sender nests passes through without being rendered, also under the scope of another processor.
func TestANestedAttributePassesThrough(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(32 << 20))
	r := newRig(t, "")
	metrics := pmetric.NewMetrics()
	rm := metrics.ResourceMetrics().AppendEmpty()
	value := rm.Resource().Attributes().PutEmpty("service.instance.id")
	for range 300_000 {
		value = value.SetEmptySlice().AppendEmpty()
	}
	for _, scope := range []string{metadata.ScopeName, "another"} {
		sm := rm.ScopeMetrics().AppendEmpty()
		sm.Scope().SetName(scope)
		metric := sm.Metrics().AppendEmpty()
		metric.SetName("vllm.num_requests.running")
		metric.SetEmptyGauge().DataPoints().AppendEmpty().SetTimestamp(1)
	}
	out, err := r.processor.process(t.Context(), metrics)
	require.NoError(t, err)
	require.Equal(t, 2, out.DataPointCount())
}
