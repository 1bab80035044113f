//go:build e2e

package examples

import (
	"bytes"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

// An engine gets slow and recovers. The processor's diagnosis arrives by OTLP
// here, as from a collector before this one, so that the test knows every state.
func TestEachChangeOfADiagnosisReachesTheBackendOnce(t *testing.T) {
	t.Parallel()
	vendor := &backend{header: "api-key", value: "secret-key"}
	vendor.serve(t)
	addr := collector.FreeAddr(t)
	c := startExample(t, example("diagnosis.yaml"), map[string]string{
		"OTLP_ENDPOINT": vendor.url, "OTLP_API_KEY": "secret-key",
	}, soon, "receivers::otlp::protocols::http::endpoint: "+addr, "service::pipelines::metrics::receivers: [otlp]")
	c.WaitFor(t, "the start of all components", c.Ready)

	start := time.Now().Add(-time.Minute)
	for i, degraded := range []bool{false, false, true, true, false, false} {
		sendDiagnosis(t, "http://"+addr+"/v1/metrics", start.Add(time.Duration(i)*time.Second), degraded)
	}
	c.WaitFor(t, "three events", func() bool { return len(vendor.records()) >= 3 })
	time.Sleep(500 * time.Millisecond)
	c.Stop(t)

	records := vendor.records()
	require.Len(t, records, 3)
	for i, want := range []struct {
		severity            plog.SeverityNumber
		condition, previous any
		after               time.Duration
	}{
		{plog.SeverityNumberInfo, "healthy", nil, 0},
		{plog.SeverityNumberWarn, "degraded", "healthy", 2 * time.Second},
		{plog.SeverityNumberInfo, "healthy", "degraded", 4 * time.Second},
	} {
		attributes := records[i].Attributes().AsRaw()
		assert.Equal(t, "vllm.diagnosis.changed", records[i].EventName())
		assert.Equal(t, want.severity, records[i].SeverityNumber())
		assert.Equal(t, want.condition, attributes["vllm.diagnosis.condition"])
		assert.Equal(t, want.previous, attributes["vllm.diagnosis.previous_condition"])
		assert.Equal(t, start.Add(want.after).UnixNano(), records[i].Timestamp().AsTime().UnixNano())
	}
	assert.Equal(t, "slow_steps", records[1].Attributes().AsRaw()["vllm.diagnosis.cause"])
	assert.Contains(t, records[1].Body().AsString(), "The engine itself is slower")
	assert.Len(t, vendor.metrics()["vllm.diagnosis.severity"], 6, "the metrics go their own way")
	assert.Contains(t, c.Log(), "EventName: vllm.diagnosis.changed", "on the terminal, too")
	assert.Empty(t, vendor.errors())
	assert.Empty(t, c.Complaints())
	assert.NotContains(t, c.Log(), "secret-key")
}

// sendDiagnosis sends the diagnosis of one engine at a time by OTLP.
func sendDiagnosis(t *testing.T, url string, at time.Time, degraded bool) {
	t.Helper()
	metrics := pmetric.NewMetrics()
	rm := metrics.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.instance.id", "vllm-0")
	list := rm.ScopeMetrics().AppendEmpty().Metrics()
	add := func(name string, value int64, attributes map[string]any) {
		metric := list.AppendEmpty()
		metric.SetName(name)
		point := metric.SetEmptyGauge().DataPoints().AppendEmpty()
		require.NoError(t, point.Attributes().FromRaw(attributes))
		point.Attributes().PutStr("engine", "0")
		point.Attributes().PutStr("model_name", "m")
		point.SetTimestamp(pcommon.NewTimestampFromTime(at))
		point.SetIntValue(value)
	}
	is := map[bool]int64{true: 1}
	add("vllm.diagnosis.severity", 2*is[degraded], nil)
	add("vllm.diagnosis.condition", is[!degraded], map[string]any{"condition": "healthy"})
	add("vllm.diagnosis.condition", is[degraded], map[string]any{"condition": "degraded"})
	add("vllm.diagnosis.cause", is[degraded], map[string]any{"cause": "slow_steps", "role": "primary"})

	body, err := pmetricotlp.NewExportRequestFromMetrics(metrics).MarshalProto()
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/x-protobuf")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusOK, response.StatusCode)
}
