package collect

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// gauge is a batch of one server with one point.
func gauge(instance string, attributes map[string]any) pmetric.Metrics {
	metrics := pmetric.NewMetrics()
	rm := metrics.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.instance.id", instance)
	metric := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	metric.SetName("vllm.num_requests.running")
	point := metric.SetEmptyGauge().DataPoints().AppendEmpty()
	point.SetTimestamp(1)
	_ = point.Attributes().FromRaw(attributes)
	return metrics
}

// The text format allows a zero byte in the value of a label. A server with such values
// must not change the attributes of another server whose key has the same bytes.
func TestAGroupDoesNotGetTheAttributesOfAnotherServer(t *testing.T) {
	t.Parallel()
	var r Reader
	r.Read(gauge("hostile", map[string]any{"engine": "0\x00model_name\x00m"}))
	batches, _ := r.Read(gauge("honest", map[string]any{"engine": "0", "model_name": "m"}))
	require.Len(t, batches, 1)
	assert.Equal(t, []input.Attribute{{Name: "engine", Value: "0"}, {Name: "model_name", Value: "m"}}, batches[0].Groups[0].Attributes)
	batches, _ = r.Read(gauge("hostile", map[string]any{"engine": "0\x00model_name\x00m"}))
	assert.Equal(t, []input.Attribute{{Name: "engine", Value: "0\x00model_name\x00m"}}, batches[0].Groups[0].Attributes)
}

// A request with the points of many times, as after an outage, must not keep its memory in
// a reader that is used for ever.
func TestAReaderDoesNotKeepTheMemoryOfAHugeRequest(t *testing.T) {
	t.Parallel()
	metrics := gauge("late", map[string]any{"engine": "0"})
	points := metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints()
	for i := range 50_000 {
		point := points.AppendEmpty()
		point.SetTimestamp(pcommon.Timestamp(i + 2))
		point.Attributes().PutStr("engine", "0")
	}
	var r Reader
	batches, _ := r.Read(metrics)
	require.Len(t, batches, 50_001)
	batches, _ = r.Read(gauge("usual", map[string]any{"engine": "0"}))
	require.Len(t, batches, 1)
	assert.LessOrEqual(t, cap(batches), 2048)
	assert.LessOrEqual(t, cap(r.pending), 2048)
	assert.LessOrEqual(t, len(r.memory.spare), 2048)
}
