package derive_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// Two engines serve ten requests each. Engine 0 preempts five times; the sender of deltas
// leaves out the zeros of engine 1.
func TestARatioOverEnginesCountsTheEngineWithoutADelta(t *testing.T) {
	resource := window.NewResource(window.Settings{Window: 60e9, MaxStaleness: 300e9})
	for i := range 3 {
		batch := &input.Batch{Time: int64(i) * 15e9}
		for _, engine := range []string{"0", "1"} {
			batch.Groups = append(batch.Groups, input.GroupOf([]input.Attribute{{Name: "engine", Value: engine}, {Name: "model_name", Value: "m"}}))
			group := len(batch.Groups) - 1
			batch.Samples = append(batch.Samples, input.Sample{
				Input: input.TimeToFirstToken, Group: group, Delta: true, Bounds: []float64{1}, Counts: []float64{5, 0}, Count: 5, Sum: 1, HasSum: true,
			})
			if engine == "0" && i == 2 {
				batch.Samples = append(batch.Samples, input.Sample{Input: input.Preemptions, Group: group, Delta: true, Value: 5})
			}
		}
		resource.Observe(batch, math.MaxInt)
	}
	settings := derive.Settings{Enabled: make([]bool, len(derive.Rows()))}
	for i := range settings.Enabled {
		settings.Enabled[i] = true
	}
	got := map[string]float64{}
	for _, v := range (&derive.Evaluator{}).Evaluate(&settings, resource) {
		if v.Row != nil && v.Row.Metric == "vllm.preemptions_per_first_token" && !v.Pending {
			group := input.GroupOf(v.Attributes)
			got[group.Engine()] = v.Number
		}
	}
	assert.Equal(t, map[string]float64{"0": 0.5, "1": 0, "": 0.25}, got)
}
