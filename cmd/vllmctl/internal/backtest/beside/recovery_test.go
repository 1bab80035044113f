package beside

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// An engine stands still for 20 minutes, and works for a quarter of an hour through the requests
// that came meanwhile. As many come as before, so this is no demand, however long it lasts.
func TestTheRecoveryAfterAStallIsNotCalledDemand(t *testing.T) {
	const stall, end = 2710, 2710 + 1200
	story := &Story{Begin: time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC), Length: 90 * time.Minute, Every: 30 * time.Second}
	one := server("a", 9, []engine.Change{{At: stall, Parameter: engine.ParamStall, Value: 1}, {At: end, Parameter: engine.ParamStall, Value: 0}})
	story.Servers = []Server{{Labels: map[string]string{"job": "vllm", "instance": "a:8000"}, Config: one.Config}}
	store := Record(t, t.TempDir(), story)
	t.Cleanup(func() { assert.NoError(t, store.Close()) })
	out, err := backtest.Run(t.Context(), options(serve(t, store, story.Begin.Add(story.Length)), story.Begin, story.Begin.Add(story.Length)))
	require.NoError(t, err)
	recovery := time.Duration(0)
	for _, e := range out.Results[0].Episodes {
		assert.NotEqual(t, "demand_exceeds_capacity", e.Cause, "%s at %s", e.Condition, e.From)
		if e.Cause == "restarting" && e.From.After(story.Begin.Add(end*time.Second)) {
			recovery += e.To.Sub(e.From)
		}
	}
	assert.Greater(t, recovery, 12*time.Minute)
}
