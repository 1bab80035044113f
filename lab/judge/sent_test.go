package judge

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// A stall of two minutes in which some requests come each second.
func TestSimulatedStoriesHaveWhatUsersFeel(t *testing.T) {
	played, err := Play(t.Context(), &Story{
		Name: "stall", Servers: []engine.Config{chatServer(3, 4)}, Length: 12 * time.Minute,
		Injections: []Injection{{At: 420, Until: 540, Parameter: engine.ParamStall, Value: 1}},
	})
	require.NoError(t, err)
	require.Len(t, played.Felt, 1)
	levels := map[Level]Felt{}
	for _, f := range played.Felt[0] {
		if f.What == "first token" {
			levels[f.Level] = f
		}
		assert.GreaterOrEqual(t, f.From, 420.0, "nothing is felt before: %+v", f)
	}
	// With 4 requests per second, two thirds of those in the last 30 s wait after 20 s, and their
	// mean wait is beyond 5 s soon after.
	assert.InDelta(t, 435, levels[Great].From, 15)
	assert.GreaterOrEqual(t, levels[Great].To, 540.0)
	assert.NotContains(t, levels, Outage)
	said := Hear(played.Felt[0], played.Said[0], nil, 10, 720)
	require.NotEmpty(t, said)
	assert.Equal(t, "stalled", said[0].Report.Condition)
}
