package profile

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// neighbours are the values of an axis around x.
func neighbours(at []float64, x float64) (below, above float64, ok bool) {
	slices.Sort(at)
	at = slices.Compact(at)
	i, exact := slices.BinarySearch(at, x)
	switch {
	case exact:
		return x, x, true
	case i == 0 || i == len(at):
		return 0, 0, false
	}
	return at[i-1], at[i], true
}

// among is linear between two measured values, and linear in logarithms where the arguments
// are more than a factor of two apart.
func among(x, below, above, low, high float64) float64 {
	switch {
	case below == above:
		return low
	case below > 0 && above/below > 2:
		return low * math.Pow(high/low, math.Log(x/below)/math.Log(above/below))
	}
	return low + (high-low)*(x-below)/(above-below)
}

// inside is a part with two arguments, where all four neighbours were measured.
func (m measurement) inside(part string, x, y float64) (ms float64, ok bool) {
	var xs, ys []float64
	for k := range m[part] {
		xs, ys = append(xs, k[0]), append(ys, k[1])
	}
	left, right, okX := neighbours(xs, x)
	top, bottom, okY := neighbours(ys, y)
	if !okX || !okY {
		return 0, false
	}
	var row [2]float64
	for i, at := range []float64{left, right} {
		a, okA := m[part][[2]float64{at, top}]
		b, okB := m[part][[2]float64{at, bottom}]
		if !okA || !okB {
			return 0, false
		}
		row[i] = among(y, top, bottom, a, b)
	}
	return among(x, left, right, row[0], row[1]), true
}

// The length of a random step is what the description of the file says, computed from the
// file without the code under test:
//
//	gemm(T) + lm_head(S) + prefill_attention(n, p) per chunk + decode_attention(D, c) + allreduce(T) + rest
func TestRandomStepsAreTheFormulaOfTheFile(t *testing.T) {
	path := components(t)
	for _, w := range wanted {
		m, err := Read(path, w.card.GPU, w.card.Model, w.card.TP, w.card.DType)
		require.NoError(t, err)
		file := measured(t, path, w.card)
		rng := rand.New(rand.NewPCG(7, uint64(len(w.name))))
		compared, chunked := 0, 0
		for compared < 300 {
			var b engine.Batch
			want, ok := 0.0, true
			sequences, kv := rng.IntN(300), 0
			for range sequences {
				context := 64 + rng.IntN(4000)
				kv += context
				b.AddDecode(1, context)
			}
			if sequences > 0 {
				want, ok = file.inside("decode_attention", float64(sequences), float64(kv)/float64(sequences))
			}
			tokens, chunks := sequences, rng.IntN(3)
			for range chunks {
				n, before := 16+rng.IntN(4000), rng.IntN(8000)
				ms, inside := file.inside("prefill_attention", float64(n), float64(before))
				want, ok, tokens = want+ms, ok && inside, tokens+n
				b.AddChunk(n, before)
			}
			if !ok || tokens == 0 {
				continue
			}
			want += file.at("gemm", float64(tokens)) + file.at("lm_head", float64(sequences+chunks))
			if len(file["allreduce"]) > 0 {
				x := make([]float64, 0, len(file["allreduce"]))
				for k := range file["allreduce"] {
					x = append(x, k[0])
				}
				below, above, _ := neighbours(x, float64(tokens))
				one := file["allreduce"]
				want += among(float64(tokens), below, above, one[[2]float64{below}], one[[2]float64{above}])
			}
			// What the host takes, in milliseconds.
			want += 0.8
			if w.card.TP == 1 {
				want += 20e-6 * float64(kv)
			}
			require.InEpsilon(t, want/1000, m.StepTime(b, engine.Nominal()), 0.01, "%s: %d sequences with %d tokens, chunks %v", w.name, sequences, kv, b.Chunks)
			compared++
			chunked += chunks
		}
		assert.Greater(t, chunked, 30, w.name)
	}
}

// Beyond the measurements a step is finite and longer than any within, and it is never shorter
// for more work or because something is slower.
func TestStepsBeyondTheMeasurements(t *testing.T) {
	path := components(t)
	for _, w := range wanted {
		m, err := Read(path, w.card.GPU, w.card.Model, w.card.TP, w.card.DType)
		require.NoError(t, err)
		for _, m := range []engine.Model{m, engine.Models()[w.name]} {
			nominal := engine.Nominal()
			chunk := func(tokens, before int) float64 {
				var b engine.Batch
				b.AddChunk(tokens, before)
				return m.StepTime(b, nominal)
			}
			generating := func(n, context int) float64 { return m.StepTime(decodes(n, context), nominal) }
			// Attention over a prompt of eight times the length is 64 times the work, products are 8 times.
			assert.InDelta(t, 36, chunk(131072, 0)/chunk(16384, 0), 28, w.name)
			assert.Greater(t, chunk(16384, 114688), chunk(16384, 0), w.name)
			// Reading the cache is all that counts for so many sequences.
			assert.InEpsilon(t, 2, generating(1024, 100_000)/generating(512, 100_000), 0.06, w.name)
			assert.InEpsilon(t, 2, generating(1024, 100_000)/generating(1024, 50_000), 0.06, w.name)
			last := 0.0
			for n := 1024; n <= 131072; n *= 2 {
				require.Greater(t, chunk(n, 0), last, "%s: %d tokens", w.name, n)
				last = chunk(n, 0)
			}
			last = 0
			for context := 128; context <= 200_000; context *= 2 {
				require.GreaterOrEqual(t, generating(256, context), last*0.999, "%s: %d tokens in the cache", w.name, context)
				last = generating(256, context)
			}
			b := decodes(1024, 100_000)
			b.AddChunk(131072, 0)
			usual := m.StepTime(b, nominal)
			require.False(t, math.IsInf(usual, 0) || math.IsNaN(usual))
			for _, slower := range []engine.Shape{{Clock: 0.5, Bandwidth: 1}, {Clock: 1, Bandwidth: 0.5}} {
				ratio := m.StepTime(b, slower) / usual
				assert.Greater(t, ratio, 1.02, w.name)
				assert.LessOrEqual(t, ratio, 2.0, w.name)
			}
			assert.InDelta(t, 0.25, m.StepTime(b, engine.Shape{Clock: 1, Bandwidth: 1, Host: 0.25})-usual, 1e-6, "%s: the delay is in seconds", w.name)
		}
	}
}
