package ends

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/message"
	"github.com/otelcol-vllm/otelcol-vllm/internal/wording"
)

// What the processor says beside the severity reaches no Prometheus, whichever way the metrics take: there are the
// same series with the same labels.
func TestWhatIsSaidMakesNoSeries(t *testing.T) {
	metrics := pmetric.NewMetrics()
	metric := metrics.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	metric.SetName("vllm.diagnosis.severity")
	point := metric.SetEmptyGauge().DataPoints().AppendEmpty()
	point.SetTimestamp(1_700_000_000_000_000_000)
	point.Attributes().PutStr("engine", "0")
	written, stored := remoteWritten(t, metrics), ingested(t, metrics)
	message.Write(metric.Metadata(), int64(point.Timestamp()), []message.Message{{Attributes: point.Attributes(), Words: wording.Words{Sentence: "Users wait."}}})
	require.Len(t, message.Read(metric.Metadata()), 1)
	assert.Len(t, written.live, 1)
	assert.Equal(t, written, remoteWritten(t, metrics))
	assert.Len(t, stored.live, 1)
	assert.Equal(t, stored, ingested(t, metrics))
}
