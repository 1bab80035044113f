package signal

import (
	"math"
)

// Work is what an engine is given to do. A fault of the engine changes none of it, unlike
// the number of sequences in a step, which grows when steps take longer (Little's law).
type Work struct {
	// Generation and Computed are rates in tokens per second: of generated tokens, and of
	// prompt tokens that are computed.
	Generation, Computed float64
	// Held is the mean number of tokens that a sequence holds in the KV cache, Own the
	// computed tokens of one prompt.
	Held, Own float64
	// Accepted is the number of tokens that a step gives a sequence: more than 1 with
	// speculative decoding.
	Accepted float64
}

// Work returns the work of a window.
func (w *Window) Work() Work {
	s := &w.Signals
	return Work{
		Generation: w.Generation, Computed: w.Computed, Own: s[ComputedTokens],
		Held:     w.held(w.Generation * s[InterTokenLatency]),
		Accepted: Or(s[StepTime]/s[InterTokenLatency], 1),
	}
}

// mostBusy bounds the share of the time that grows with the work: beyond it a small error
// of the coefficients would make the expectation infinite.
const mostBusy = 0.95

// StepAt returns the time of a step that an engine needs for some work, as the fixed point
// of the linear step time: with T = c0 + c1 n + c2 n L + c3 p, Little's law n = G T / a and
// p = C T, it is T = c0 / (1 - (c1 G / a + c2 G L / a + c3 C)). busy is the part in the outer
// brackets: the share of the time that grows with the work (rho in docs/why/method.md; Little, 1961).
func (b *Baseline) StepAt(w Work) (seconds, busy float64) {
	return stepAt(b.Step.solved(), w)
}

// stepAt is StepAt with coefficients, nil where there are none.
func stepAt(c []float64, w Work) (seconds, busy float64) {
	if c == nil {
		return math.NaN(), math.NaN()
	}
	sequences := w.Generation / w.Accepted
	busy = min(c[1]*sequences+c[2]*sequences*w.Held+c[3]*w.Computed, mostBusy)
	return c[0] / (1 - busy), busy
}

// PrefillAt is the same of the time of a prefill, F = (k0 + k1 own) / (1 - k2 C).
func (b *Baseline) PrefillAt(w Work) (seconds, busy float64) {
	return prefillAt(b.Prefill.solved(), w)
}

// prefillAt is PrefillAt with coefficients, nil where there are none.
func prefillAt(k []float64, w Work) (seconds, busy float64) {
	if k == nil {
		return math.NaN(), math.NaN()
	}
	busy = min(k[2]*w.Computed, mostBusy)
	return (k[0] + k[1]*w.Own) / (1 - busy), busy
}
