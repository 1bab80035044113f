package derive_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// Two engines finish ten requests in each step, which waited 0.1 s each. In the third step
// engine 1 ends one that was never scheduled, on a machine that is up for a day.
func TestABadObservationOfOneEngineWithholdsTheMeanOverAll(t *testing.T) {
	const metric = "vllm.request.queue_time_mean"
	resource := window.NewResource(window.Settings{Window: 60e9, MaxStaleness: 300e9})
	settings := derive.Settings{
		Enabled: make([]bool, len(derive.Rows())), Quantiles: []derive.Quantile{derive.NewQuantile(0.5)}, PerEngineQuantiles: true,
	}
	for i := range settings.Enabled {
		settings.Enabled[i] = slices.Contains([]string{
			metric, "vllm.request.queue_time_quantile", "vllm.request.queue_time_ratio", "vllm.e2e_request_latency_mean",
		}, derive.Rows()[i].Metric)
	}
	var count, bad float64
	for i := range 12 {
		batch := &input.Batch{Time: int64(i) * 15e9}
		if count += 10; i == 3 {
			bad = 1
		}
		for engine, negative := range map[string]float64{"0": 0, "1": bad} {
			batch.Groups = append(batch.Groups, input.GroupOf([]input.Attribute{{Name: "engine", Value: engine}, {Name: "model_name", Value: "m"}}))
			group, n := len(batch.Groups)-1, count+negative
			batch.Samples = append(
				batch.Samples,
				input.Sample{
					Input: input.QueueTime, Group: group, Bounds: []float64{0.3}, Counts: []float64{n, 0}, Count: n,
					Sum: count*0.1 - negative*86_400, HasSum: true,
				},
				input.Sample{
					Input: input.E2ERequestLatency, Group: group, Bounds: []float64{0.3}, Counts: []float64{0, n}, Count: n, Sum: n, HasSum: true,
				},
			)
		}
		resource.Observe(batch, math.MaxInt)
		evaluator := &derive.Evaluator{}
		got := map[string][]string{}
		for _, v := range evaluator.Evaluate(&settings, resource) {
			group := input.GroupOf(v.Attributes)
			got[v.Row.Metric] = append(got[v.Row.Metric], group.Engine())
			if v.Row.Metric == metric {
				assert.InDelta(t, 0.1, v.Number, 1e-9)
			}
		}
		for name, of := range got {
			slices.Sort(of)
			switch {
			case i >= 3 && i < 7 && name != "vllm.e2e_request_latency_mean":
				assert.Equal(t, []string{"0"}, of, "%d %s", i, name)
			default:
				assert.Equal(t, []string{"", "0", "1"}, of, "%d %s", i, name)
			}
		}
		if i == 3 {
			assert.Len(t, got, 4)
			// Three metrics of engine 1 and of the roll-up.
			assert.Equal(t, 6, evaluator.Absent[derive.KnownDefect])
		}
	}
}
