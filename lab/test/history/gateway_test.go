package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
)

// A bucket of the picker that falls would be a restart: then the processor counts everything
// since the start again.
func TestTheProcessorDerivesWhatThePickerServed(t *testing.T) {
	race.SkipSequential(t)
	h := Play(t, &Story{Length: 15 * time.Minute, Gateway: &Gateway{Model: "m", Pool: "p", Phases: []GatewayPhase{
		{Served: 15, Duration: time.Second, Ready: 3},
		{From: 5 * time.Minute, Served: 14, Refused: 0.8, Failed: 0.3, Duration: 2500 * time.Millisecond, Ready: 2, Queued: 9},
		{From: 8 * time.Minute, Served: 15, Duration: time.Second, Ready: 3},
	}}}, Suffixed)
	during := func(query string, from, to time.Duration, want, delta float64) {
		t.Helper()
		matrix, err := h.Stores[0].Range(t.Context(), query, h.Begin.Add(from), h.Begin.Add(to), 15*time.Second)
		require.NoError(t, err)
		require.Len(t, matrix, 1, query)
		for _, p := range matrix[0].Floats {
			assert.InDelta(t, want, p.F, delta, "%s at %s", query, time.UnixMilli(p.T).Sub(h.Begin))
		}
	}
	const failed = `inference_gateway_epp_request_error_ratio{model_name=""}`
	const arrived = `sum(inference_gateway_epp_request_rate_per_second)`
	during(failed, 7*time.Minute, 8*time.Minute, 1.1/14.8, 0.01)
	during(arrived, 7*time.Minute, 8*time.Minute, 14.8, 0.3)
	during(failed, 10*time.Minute, 15*time.Minute, 0, 0)
	during(arrived, 10*time.Minute, 15*time.Minute, 15, 0.3)
}
