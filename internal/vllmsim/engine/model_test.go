package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// The expected values are worked out by hand from the specification: peak
// rates, efficiencies and sizes, not from the code.
func TestStepTimesOfTheModels(t *testing.T) {
	for _, c := range []struct {
		name  string
		model Model
		batch Batch
		want  float64
	}{
		// 15e9 B / (0.8 x 3.35e12 B/s) = 5.597 ms, and 1.5 ms, and 5 us.
		{"8B decodes one sequence in 7 ms", Llama8B(), Batch{Seqs: 1, Tokens: 1}, 7.102e-3},
		// 200,000 x 131,072 B / (0.75 x 3.35e12 B/s) = 10.434 ms more.
		{"200k tokens in the cache cost 10.4 ms", Llama8B(), Batch{Seqs: 1, Tokens: 1, KVTokens: 200_000}, 17.536e-3},
		// 8192 x 15e9 / (0.55 x 989e12) = 225.9 ms.
		{"8B computes 8192 tokens in 0.23 s", Llama8B(), Batch{Seqs: 8, Tokens: 8192}, 227.44e-3},
		// 4 x 32 x 4096 x 8192 x 4096 / (0.4 x 989e12) = 44.47 ms more where they are
		// one prompt, whose tokens look back on 4096 others in the mean.
		{"one prompt of 8192 tokens costs attention", Llama8B(), Batch{Seqs: 1, Tokens: 8192, Attention: 8192 * 4096}, 271.88e-3},
		// 34.8e9 / (0.8 x 3.35e12) = 12.985 ms, 3 ms, 5 us, 8 us.
		{"70B decodes one sequence in 16 ms", Llama70B(), Batch{Seqs: 1, Tokens: 1}, 15.998e-3},
		// 8192 x 34.8e9 / (0.5 x 989e12) = 576.5 ms, communication 65.5 ms.
		{"70B computes 8192 tokens in 0.64 s", Llama70B(), Batch{Seqs: 8, Tokens: 8192}, 645.09e-3},
	} {
		assert.InEpsilon(t, c.want, c.model.StepTime(c.batch, Nominal()), 1e-3, c.name)
	}
}

func TestTheCacheHoldsWhatTheHardwareHolds(t *testing.T) {
	assert.InDelta(t, 456_000, Llama8B().Blocks*16, 1000)
	assert.InDelta(t, 480_000, Llama70B().Blocks*16, 1000)
	// 60 GB for the 8B model: 80 GB x 0.92 without weights and activations.
	assert.InEpsilon(t, 59.8e9, float64(Llama8B().Blocks)*16*Llama8B().KVBytes, 0.01)
}

func TestClockAndBandwidthSlowDownWhatDependsOnThem(t *testing.T) {
	m := Llama8B()
	prefill, decode := Batch{Seqs: 8, Tokens: 8192}, Batch{Seqs: 1, Tokens: 1, KVTokens: 200_000}
	slow := func(b Batch, s Shape) float64 { return m.StepTime(b, s) / m.StepTime(b, Nominal()) }
	assert.InDelta(t, 2, slow(prefill, Shape{Clock: 0.5, Bandwidth: 1}), 0.02)
	assert.InDelta(t, 1, slow(prefill, Shape{Clock: 1, Bandwidth: 0.5}), 0.02)
	assert.InDelta(t, 1, slow(decode, Shape{Clock: 0.5, Bandwidth: 1}), 0.02)
	assert.InDelta(t, 2, slow(decode, Shape{Clock: 1, Bandwidth: 0.5}), 0.1)
	assert.InDelta(t, 0.01, m.StepTime(decode, Shape{Clock: 1, Bandwidth: 1, Host: 0.01})-m.StepTime(decode, Nominal()), 1e-12)
}
