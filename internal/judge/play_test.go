package judge

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/engine"
)

func chatServer(seed uint64, rate float64) engine.Config {
	return engine.Config{
		Seed: seed, Model: engine.Llama8B(), FrontEnd: engine.DefaultFrontEnd(), Workload: engine.Chat(rate), Semantics: Semantics(),
	}
}

func TestASlowServerIsHarmfulWhileItIsSlow(t *testing.T) {
	story := &Story{
		Name: "slow", Servers: []engine.Config{chatServer(1, 5)}, Length: 25 * time.Minute,
		Injections: []Injection{{Parameter: engine.ParamBandwidth, Value: 0.4, At: 600, Until: 1080}},
	}
	played, err := Play(t.Context(), story)
	require.NoError(t, err)
	require.Len(t, played.Lines, 25)
	for i, line := range played.Lines {
		assert.Equal(t, i, line.Minute)
		assert.InDelta(t, 300, line.Requests, 80)
		assert.Equal(t, i >= 10 && i < 18, line.Harmful, "minute %d: %+v", i, line)
		if line.Harmful {
			assert.Equal(t, map[string]float64{"slow_steps": 1}, line.TrueCauses)
		}
	}
	assert.Equal(t, "degraded", played.Lines[15].Condition)
	assert.Equal(t, "slow_steps", played.Lines[15].Causes[0].Name)
	again, err := Play(t.Context(), story)
	require.NoError(t, err)
	assert.Equal(t, played, again)
}
