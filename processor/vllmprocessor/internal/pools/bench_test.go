package pools

import (
	"fmt"
	"testing"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// batchOf is all that pools are computed from, for some engines.
func batchOf(engines int, n float64) *input.Batch {
	batch := &input.Batch{Resource: "a", Time: int64(1e15 + n*1e9)}
	bounds := make([]float64, 20)
	counts := make([]float64, 21)
	for i := range counts {
		counts[i] = n
		if i < len(bounds) {
			bounds[i] = float64(i + 1)
		}
	}
	for e := range engines {
		name := fmt.Sprint(e)
		batch.Groups = append(batch.Groups, input.Group{
			Key: name, Attributes: []input.Attribute{{Name: "engine", Value: name}, {Name: "model_name", Value: "m"}},
		})
		for in := range input.NumMetrics {
			sample := input.Sample{Input: in, Group: e, Value: n}
			if in.Define().Kind == input.Distribution {
				sample.Bounds, sample.Counts, sample.Count, sample.Sum, sample.HasSum = bounds, counts, 21*n, n, true
			}
			batch.Samples = append(batch.Samples, sample)
		}
	}
	return batch
}

// itself is the pool of a model.
func itself(to, engine []input.Attribute) []input.Attribute {
	return append(to, input.Attribute{Name: "model_name", Value: (&input.Group{Attributes: engine}).Value("model_name")})
}

func benchmarked(resources, engines int) (*Totals, *window.Resource) {
	p := NewTotals(Settings{
		GroupBy: []string{"model_name"}, MaxPools: 1000, MaxStaleness: time.Hour,
		Enabled: func(string) bool { return true },
		Derive:  &derive.Settings{Quantiles: []derive.Quantile{derive.NewQuantile(0.5), derive.NewQuantile(0.95), derive.NewQuantile(0.99)}},
	})
	state := window.NewResource(window.Settings{Window: time.Minute, MaxStaleness: time.Hour})
	state.Observe(batchOf(engines, 1), 1_000_000)
	state.Observe(batchOf(engines, 16), 1_000_000)
	for i := range resources {
		p.Observe(fmt.Sprint(i), state, itself, 1)
	}
	return p, state
}

// BenchmarkObserve is what pools add to a batch.
func BenchmarkObserve(b *testing.B) {
	for _, engines := range []int{1, 8} {
		b.Run(fmt.Sprintf("engines=%d", engines), func(b *testing.B) {
			p, state := benchmarked(1, engines)
			b.ReportAllocs()
			for b.Loop() {
				p.Observe("0", state, itself, 1)
			}
		})
	}
}

// BenchmarkEvaluate is what an interval costs, with the lock held.
func BenchmarkEvaluate(b *testing.B) {
	for _, resources := range []int{1, 100, 1000} {
		b.Run(fmt.Sprintf("resources=%d", resources), func(b *testing.B) {
			p, _ := benchmarked(resources, 8)
			b.ReportAllocs()
			for b.Loop() {
				if values, _ := p.Evaluate(2); len(values) == 0 {
					b.Fatal("the pools say nothing")
				}
			}
		})
	}
}
