package vllmprocessor

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadatatest"
)

// The processors of one collector have the same metrics: what they hold is added
// up, not overwritten by the last of them.
func TestWhatSeveralProcessorsHoldIsAddedUp(t *testing.T) {
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, telemetry.Shutdown(context.Background())) })
	for range 2 {
		p := create(t, configured(t, ""), metadatatest.NewSettings(telemetry))
		require.NoError(t, p.start(t.Context(), componenttest.NewNopHost()))
		t.Cleanup(func() { require.NoError(t, p.shutdown(context.Background())) })
		for _, call := range readStory(t, every(0, 15)).calls {
			_, err := p.process(t.Context(), call.input)
			require.NoError(t, err)
		}
	}
	for name, want := range map[string]int64{
		"otelcol_processor_vllm_resources": 2, "otelcol_processor_vllm_series": 2, "otelcol_processor_vllm_objective_trackers": 0,
	} {
		metric, err := telemetry.GetMetric(name)
		if want == 0 && err != nil {
			continue
		}
		require.NoError(t, err)
		sum, additive := metric.Data.(metricdata.Sum[int64])
		require.True(t, additive, name)
		assert.Equal(t, want, sum.DataPoints[0].Value, name)
	}
}
