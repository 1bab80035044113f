package vllmdiagnosisconnector

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Whatever is sent, nothing breaks, the limit holds, and each record says what it is
// about.
func FuzzConsumeMetrics(f *testing.F) {
	explained := degraded
	explained.said = said()
	for _, d := range []diagnosis{healthy, degraded, stalled, explained} {
		body, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(joined(newServer("a").reports(0, d)...))
		require.NoError(f, err)
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		metrics, err := (&pmetric.ProtoUnmarshaler{}).UnmarshalMetrics(body)
		if err != nil {
			return
		}
		b := newBench(t, func(c *Config) { c.Initial, c.MaxEngines = true, 2 })
		for second := range 3 {
			b.second = float64(second)
			require.NoError(t, b.ConsumeMetrics(t.Context(), metrics))
		}
		require.LessOrEqual(t, b.engines.count, 2)
		require.NoError(t, b.Shutdown(t.Context()))
		for _, record := range b.sink.records() {
			require.NotEmpty(t, text(record, "vllm.diagnosis.condition"))
			require.NotEmpty(t, record.Body().Str())
			require.Less(t, len(record.Body().Str()), 5<<10)
			require.NotZero(t, record.Timestamp())
		}
	})
}
