package engine

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// The expected values are worked out by hand from the specification: peak
// rates, efficiencies and sizes, not from the code.
func TestStepTimesOfTheFormula(t *testing.T) {
	for _, c := range []struct {
		name  string
		batch Batch
		want  float64
	}{
		// 15e9 B / (0.8 x 3.35e12 B/s) = 5.597 ms, and 1.5 ms, and 5 us.
		{"8B decodes one sequence in 7 ms", Batch{Seqs: 1, Tokens: 1}, 7.102e-3},
		// 200,000 x 131,072 B / (0.75 x 3.35e12 B/s) = 10.434 ms more.
		{"200k tokens in the cache cost 10.4 ms", decodes(1, 200_000), 17.536e-3},
		// 8192 x 15e9 / (0.55 x 989e12) = 225.9 ms.
		{"8B computes 8192 tokens in 0.23 s", Batch{Seqs: 8, Tokens: 8192}, 227.44e-3},
		// 4 x 32 x 4096 x 8192 x 4096 / (0.4 x 989e12) = 44.47 ms more where they are
		// one prompt, whose tokens look back on 4096 others in the mean.
		{"one prompt of 8192 tokens costs attention", chunks(1, 8192), 271.88e-3},
	} {
		assert.InEpsilon(t, c.want, roofline().StepTime(c.batch, Nominal()), 1e-3, c.name)
	}
}

// The expected values are sums of published measurements, rounded, and 0.8 ms for the host.
func TestStepTimesOfThePresets(t *testing.T) {
	for _, c := range []struct {
		name, preset string
		batch        Batch
		want         float64 // In milliseconds.
	}{
		{"8B decodes one sequence", "8b-h100", decodes(1, 1024), 5.02 + 0.43 + 0.43 + 0.8},
		// 131,072 tokens in the cache cost the host 20 ns each as well.
		{"8B decodes 128 sequences", "8b-h100", decodes(128, 1024), 5.78 + 0.38 + 6.10 + 0.8 + 2.6},
		{"8B computes one prompt of 8192 tokens", "8b-h100", chunks(1, 8192), 154.7 + 0.43 + 29.2 + 0.8},
		{"70B decodes one sequence on four", "70b-tp4-h100", decodes(1, 1024), 12.17 + 0.2 + 1.01 + 0.78 + 0.8},
		{"70B computes one prompt of 2048 tokens on four", "70b-tp4-h100", chunks(1, 2048), 82.8 + 0.2 + 3.7 + 52.8 + 0.8},
		{"8B decodes one sequence on an A100", "8b-a100", decodes(1, 1024), 9.85 + 0.66 + 0.6 + 0.8},
		{"8B decodes one sequence on an L40S", "8b-l40s", decodes(1, 1024), 19.6 + 1.64 + 0.5 + 0.8},
	} {
		assert.InEpsilon(t, c.want/1000, Models()[c.preset].StepTime(c.batch, Nominal()), 0.05, c.name)
	}
}

// The memory of the GPU x 0.9 without weights and 1.5 GiB, over the size of a token.
func TestTheCacheHoldsWhatTheHardwareHolds(t *testing.T) {
	for name, gib := range map[string]float64{
		"8b-h100": 72 - 15 - 1.5, "8b-a100": 72 - 15 - 1.5, "8b-l40s": 43.2 - 15 - 1.5, "70b-tp4-h100": 72 - 32.9 - 1.5,
		"32b-h200": 126.9 - 61 - 1.5,
	} {
		m := Models()[name]
		assert.InEpsilon(t, gib*(1<<30), float64(m.Blocks)*16*m.KVBytes, 0.01, name)
		assert.Empty(t, m.Note)
	}
}

func TestPresetsHaveTheDefaultsOfTheirGPUs(t *testing.T) {
	assert.Len(t, ModelNames(), 10)
	for _, name := range ModelNames() {
		s := start(t, Config{Model: Models()[name], Workload: fixed(1, 10, 10)})
		want := []int{1024, 8192}
		if name == "8b-a100" || name == "70b-tp4-a100" || name == "8b-l40s" {
			want = []int{256, 2048}
		}
		assert.Equal(t, want, []int{s.cfg.MaxSeqs, s.cfg.MaxBatchedTokens}, name)
		s = start(t, Config{Model: Models()[name], Workload: fixed(1, 10, 10), MaxSeqs: 7, MaxBatchedTokens: 777})
		assert.Equal(t, []int{7, 777}, []int{s.cfg.MaxSeqs, s.cfg.MaxBatchedTokens}, name)
	}
}

func TestClockAndBandwidthSlowDownWhatDependsOnThem(t *testing.T) {
	m := roofline()
	prefill, decode := Batch{Seqs: 8, Tokens: 8192}, decodes(1, 200_000)
	slow := func(b Batch, s Shape) float64 { return m.StepTime(b, s) / m.StepTime(b, Nominal()) }
	assert.InDelta(t, 2, slow(prefill, Shape{Clock: 0.5, Bandwidth: 1}), 0.02)
	assert.InDelta(t, 1, slow(prefill, Shape{Clock: 1, Bandwidth: 0.5}), 0.02)
	assert.InDelta(t, 1, slow(decode, Shape{Clock: 0.5, Bandwidth: 1}), 0.02)
	assert.InDelta(t, 2, slow(decode, Shape{Clock: 1, Bandwidth: 0.5}), 0.1)
	assert.InDelta(t, 0.01, m.StepTime(decode, Shape{Clock: 1, Bandwidth: 1, Host: 0.01})-m.StepTime(decode, Nominal()), 1e-12)
}
