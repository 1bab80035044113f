package window

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// prompts is a batch with one counter for each server, all of engine 0.
func prompts(at time.Duration, values ...float64) *input.Batch {
	batch := &input.Batch{Time: int64(at)}
	for i, value := range values {
		pod := fmt.Sprint("pod-", i)
		batch.Groups = append(batch.Groups, input.Group{
			Key: pod, Attributes: []input.Attribute{{Name: "engine", Value: "0"}, {Name: "pod", Value: pod}},
		})
		batch.Samples = append(batch.Samples, input.Sample{Input: input.PromptTokens, Group: i, Value: value})
	}
	return batch
}

// As behind a Prometheus that several servers were read by.
func TestServersOfOneResourceRestartEachForItself(t *testing.T) {
	r := NewResource(Settings{Window: time.Minute, MaxStaleness: 5 * time.Minute})
	for i, values := range [][]float64{{1000, 5000}, {1010, 5020}, {3, 5050}} {
		r.Observe(prompts(time.Duration(i+1)*15*time.Second, values...), 100)
	}
	var increases []float64
	for _, view := range r.Views(nil, false) {
		increase, status := view.Increase(input.PromptTokens)
		require.Equal(t, Present, status)
		increases = append(increases, increase)
	}
	assert.Equal(t, []float64{13, 50}, increases)
}

func TestTheModelsOfAnEngineRestartTogether(t *testing.T) {
	r := NewResource(Settings{Window: time.Minute, MaxStaleness: 5 * time.Minute})
	for i, values := range [][]float64{{1000, 50}, {10, 60}} {
		batch := prompts(time.Duration(i+1)*15*time.Second, values...)
		for g := range batch.Groups {
			batch.Groups[g].Attributes[1].Name = "model_name"
		}
		r.Observe(batch, 100)
	}
	views := r.Views(nil, false)
	increase, _ := views[1].Increase(input.PromptTokens)
	assert.Equal(t, 60.0, increase, "the counter of the other model fell")
}

// It takes some hundredths of a second. A search through all series for each
// point would take many seconds.
func TestManySeriesOfOneMetricAreFoundInAnyOrder(t *testing.T) {
	const n = 30000
	r := NewResource(Settings{Window: time.Minute, MaxStaleness: 5 * time.Minute})
	random := rand.New(rand.NewPCG(1, 2))
	began := time.Now()
	for i := range 3 {
		batch := &input.Batch{Time: int64(i+1) * int64(15*time.Second), Groups: []input.Group{{Key: "a"}}}
		for _, label := range random.Perm(n) {
			batch.Samples = append(batch.Samples, input.Sample{
				Input: input.HTTPRequests, Label: input.NewLabel(fmt.Sprint(label)), Value: float64((label + 1) * i),
			})
		}
		report := r.Observe(batch, n)
		assert.Zero(t, report.Ignored)
	}
	assert.Less(t, time.Since(began), 4*time.Second)
	assert.Equal(t, n, r.Series())
	view := r.Views(nil, false)[0]
	seen := 0
	for label, increase := range view.Increases(input.HTTPRequests) {
		var number int
		_, err := fmt.Sscan(label.Value(0), &number)
		require.NoError(t, err)
		require.Equal(t, float64(2*(number+1)), increase)
		seen++
	}
	assert.Equal(t, n, seen)
}
