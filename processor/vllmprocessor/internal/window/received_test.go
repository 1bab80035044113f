package window

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// A number as the server sends it is the same for one who has read the server for long, and has seen a
// restart, and for one who begins.
func TestWhatIsReceivedIsTheSameForEveryReader(t *testing.T) {
	type engines = map[string][]input.Sample
	counted := func(total, start float64) input.Sample {
		s := tokens(total)
		s.Start = at(start)
		return s
	}
	settings := Settings{Window: time.Minute, MaxStaleness: 5 * time.Minute}
	evidence := input.Evidence{ProcessStart: 1000}
	long, fresh := NewResource(settings), NewResource(settings)
	showing(long, 0, input.Evidence{}, engines{"0": {counted(100, -50)}})
	showing(long, 15, evidence, engines{"0": {counted(7, 10)}})
	for _, r := range []*Resource{long, fresh} {
		showing(r, 30, evidence, engines{"0": {counted(9, 10), {Input: input.Running, Value: 2}}})
		views := r.Views(nil, false)
		require.Len(t, views, 1)
		v := &views[0]
		assert.Equal(t, 9.0, v.Received(input.PromptTokens))
		assert.Equal(t, 2.0, v.Received(input.Running))
		assert.True(t, math.IsNaN(v.Received(input.GenerationTokens)), "it is not sent")
		assert.Equal(t, at(10), v.Began(input.PromptTokens))
		assert.Zero(t, v.Began(input.GenerationTokens))
		assert.Equal(t, 1000.0, r.ProcessStart())
		total, _ := v.Total(input.PromptTokens)
		if r == long {
			assert.Equal(t, 109.0, total, "with what was counted before the restart")
		}
	}
	unknown, deltas := NewResource(settings), NewResource(settings)
	showing(unknown, 30, input.Evidence{}, engines{"0": {counted(9, 30)}})
	assert.Zero(t, unknown.Views(nil, false)[0].Began(input.PromptTokens), "a start at the time of the point")
	delta := counted(9, 10)
	delta.Delta = true
	showing(deltas, 30, input.Evidence{}, engines{"0": {delta}})
	v := deltas.Views(nil, false)[0]
	assert.True(t, math.IsNaN(v.Received(input.PromptTokens)), "deltas have no such number")
	assert.Zero(t, v.Began(input.PromptTokens))
}
