package judge

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

func TestAServerWithoutRequestsIsNoted(t *testing.T) {
	late := chatServer(1, 0)
	late.Workload = engine.Workload{Traffic: &engine.Traffic{Arrivals: []engine.Arrival{{At: 5000, Prompt: 100, Output: 10}}, Span: 6000}}
	played, err := Play(t.Context(), &Story{
		Name: "late", Servers: []engine.Config{chatServer(2, 3), late}, Length: 3 * time.Minute,
		Injections: []Injection{{Parameter: engine.ParamBandwidth, Value: 0.5, At: 60}},
	})
	require.NoError(t, err)
	assert.Equal(t, []string{"server 1: no minute is judged, because no request counts: " +
		"none arrives before the end of the story, or none is in all runs that are compared"}, played.Notes)
}

// The effect that was found is that of all requests together, and no line shows it.
func TestAnEffectInMinutesWithFewRequestsIsNoted(t *testing.T) {
	story := &Story{
		Name: "few", Servers: []engine.Config{chatServer(2, 3), chatServer(3, 0.1)}, Length: 20 * time.Minute,
		Injections: []Injection{{Parameter: engine.ParamBandwidth, Effect: 4, At: 250, Over: 60, Until: 900, Servers: []int{1}}},
	}
	played, err := Play(t.Context(), story)
	require.NoError(t, err)
	assert.Equal(t, []string{"effect of bandwidth: 10 of 10 minutes in which it is in force have fewer than 20 requests and are not judged; " +
		"more requests must arrive"}, played.Notes)
	story.Injections[0].Servers = []int{0}
	played, err = Play(t.Context(), story)
	require.NoError(t, err)
	assert.Empty(t, played.Notes)
}
