package history

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/scenario"
)

const scenarios = "../../../examples/scenarios"

func TestPlayTry(t *testing.T) {
	s, err := scenario.Load(filepath.Join(scenarios, "daily-ramp.yaml"))
	require.NoError(t, err)
	began := time.Now()
	h := Play(t, FromScenario(&s), Suffixed)
	t.Log(time.Since(began))
	for _, q := range []string{"vllm_up", "vllm_diagnosis_severity", "count({__name__=~\".+\"})", "up", "count by (__name__) ({__name__=~'otelcol.*'})"} {
		v, err := h.Stores[0].Instant(t.Context(), q, h.Begin.Add(12*time.Minute))
		require.NoError(t, err)
		t.Log(v)
	}
}
