package judge

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// A target may be so close to 1 that nothing is allowed after rounding.
func TestTheEffectOfTheStrictestObjectiveIsFinite(t *testing.T) {
	strict := []objective{{of: interToken, threshold: 0.02, target: 0.9999999999999}}
	h := assess(answered(strict, 100, 0.2, 0.04, 0), answered(strict, 100, 0.2, 0.01, 0), strict)
	assert.Greater(t, h.effect(), 1.0)
	assert.Less(t, h.effect(), math.Inf(1))
	h = assess(answered(strict, 100, 0.2, 0.01, 0), answered(strict, 100, 0.2, 0.04, 0), strict)
	assert.Zero(t, h.effect())
}

func slowed(objective map[string]any) *Story {
	return &Story{
		Name: "slowed", Servers: []engine.Config{chatServer(1, 6)}, Length: 4 * time.Minute,
		Injections: []Injection{{Parameter: engine.ParamBandwidth, Value: 0.3, At: 120}},
		Processor:  map[string]any{"objectives": []any{objective}},
	}
}

// The objectives for other models decide nothing, as in the processor.
func TestObjectivesForOtherModelsDoNotCount(t *testing.T) {
	for models, applies := range map[string]bool{"other-*": false, "meta-llama/*": true, "*": true, "llama-*": false} {
		played, err := Play(t.Context(), slowed(map[string]any{
			"name": "gap", "metric": "vllm.inter_token_latency", "threshold": "1s", "target": 0.9, "models": []any{models},
		}))
		require.NoError(t, err)
		for _, line := range played.Lines {
			assert.Equal(t, !applies && line.Minute >= 2, line.Harmful, "%s: %+v", models, line)
		}
		if applies {
			assert.Empty(t, played.Notes)
			continue
		}
		assert.Equal(t, []string{`objective "gap" has no effect: it is for other models than meta-llama/Llama-3.1-8B-Instruct, the one of the servers`},
			played.Notes)
	}
}

// Two thresholds between the same two bounds are one, and a note says which.
func TestTheThresholdOfGapsThatIsUsedIsNoted(t *testing.T) {
	of := func(metric, threshold string) *Played {
		played, err := Play(t.Context(), slowed(map[string]any{"name": "gap", "metric": metric, "threshold": threshold, "target": 0.9}))
		require.NoError(t, err)
		return played
	}
	const gaps = "vllm.inter_token_latency"
	assert.Equal(t, of(gaps, "20ms").Lines, of(gaps, "24ms").Lines)
	for threshold, want := range map[string]string{
		"24ms": "the truth uses the threshold 20ms instead of 24ms, because",
		"9ms":  "the truth uses the threshold 7.5ms instead of 9ms, because",
		"11s":  "the truth uses the threshold 10s instead of 11s, because",
		"4ms":  "all times between two tokens count as longer than 4ms, because the truth has them by bounds; of these 0.005s is the least",
	} {
		notes := of(gaps, threshold).Notes
		if assert.Len(t, notes, 1, threshold) {
			assert.Contains(t, notes[0], `objective "gap": `+want)
		}
	}
	for _, bound := range engine.GapBounds {
		assert.Empty(t, of(gaps, time.Duration(math.Round(bound*1e9)).String()).Notes)
	}
	assert.Empty(t, of("vllm.request.time_per_output_token", "24ms").Notes)
}
