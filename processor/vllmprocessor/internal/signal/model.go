package signal

import "math"

// Model is what an engine's baseline knows of the times of a step and of a prefill, as it was at
// one time. It never changes, so that other engines can be compared with it at any time.
type Model struct {
	// Version is the version of the server that it was learned with; empty where that is not
	// known. Learned is the end of the newest window in it, in Unix nanoseconds.
	Version string
	Learned int64

	step, prefill line
}

// NewModel returns the model of a baseline; nil while the baseline has not learned the time of a
// step.
func NewModel(b *Baseline) *Model {
	if !b.Ready() || !b.Step.Ready() {
		return nil
	}
	return newModel(&b.Step, &b.Prefill, b.Version, b.Learned)
}

func newModel(step, prefill *fit, version string, learned int64) *Model {
	return &Model{Version: version, Learned: learned, step: newLine(step), prefill: newLine(prefill)}
}

// Step returns the time of a step that is expected for a load, as from StepLoad, and Prefill that
// of a prefill for one as from PrefillLoad.
func (m *Model) Step(sequences, tokens, prompt float64) Expected {
	return m.step.expect(sequences, tokens, prompt)
}

// Prefill is explained at Step.
func (m *Model) Prefill(own, others float64) Expected { return m.prefill.expect(own, others) }

// StepOf returns the time of a step that is expected for some work, as Baseline.StepAt, and
// PrefillOf that of a prefill. What is not known counts for more the more of the time grows with
// the work.
func (m *Model) StepOf(w Work) Expected {
	t, busy := stepAt(m.step.coefficients(), w)
	sequences := w.Generation / w.Accepted * t
	return m.step.expect(sequences, sequences*w.Held, w.Computed*t).beside(busy)
}

// PrefillOf is explained at StepOf.
func (m *Model) PrefillOf(w Work) Expected {
	t, busy := prefillAt(m.prefill.coefficients(), w)
	return m.prefill.expect(w.Own, w.Computed*t).beside(busy)
}

// Expected is an expected time. Uncertainty is the standard deviation of its logarithm that comes
// from what is not known of it, Deviation that from window to window. All are NaN where nothing is
// known.
type Expected struct{ Seconds, Uncertainty, Deviation float64 }

// beside returns an expectation at the fixed point of a load that grows with the time itself.
func (x Expected) beside(busy float64) Expected {
	return Expected{x.Seconds, x.Uncertainty / (1 - busy), x.Deviation / (1 - busy)}
}

// With returns a baseline with the times of a model, and the levels of this one. It is for reading.
func (b *Baseline) With(m *Model) *Baseline {
	out := *b
	if m.step.of.Ready() {
		out.Step = m.step.of
	}
	if m.prefill.of.Ready() {
		out.Prefill = m.prefill.of
	}
	return &out
}

// TypicalStep returns what another model expects at the mean load of this one. It puts models
// in an order.
func (m *Model) TypicalStep(other *Model) float64 {
	if !m.step.of.Ready() {
		return math.NaN()
	}
	return other.step.expect(m.step.loads...).Seconds
}

// line is a fit that does not change any more. It is solved, so that reading it changes nothing.
type line struct {
	of        fit
	deviation float64
	// loads are the means of the numbers.
	loads []float64
}

func newLine(f *fit) line {
	l := line{of: f.clone()}
	if !l.of.Ready() {
		return l
	}
	l.deviation = l.of.Deviation() // It solves the fit.
	for i := range l.of.Shares {
		l.loads = append(l.loads, l.of.XX[0][i+1]/l.of.N)
	}
	return l
}

// coefficients are those of the fit; nil while it is not ready.
func (l *line) coefficients() []float64 {
	if !l.of.Ready() {
		return nil
	}
	return l.of.solved()
}

// expect is fit.Expect and fit.Uncertainty.
func (l *line) expect(xs ...float64) Expected {
	unknown := Expected{math.NaN(), math.NaN(), math.NaN()}
	if !l.of.Ready() {
		return unknown
	}
	seconds := l.of.Expect(xs...)
	if !(seconds > 0) || math.IsInf(seconds, 0) {
		return unknown
	}
	return Expected{seconds, l.of.Uncertainty(xs...), l.deviation}
}

func (f *fit) clone() fit {
	out := newFit(f.Shares...)
	out.begin(f, f.N)
	return out
}

// begin adds what another fit knows, as if it were so many windows.
func (f *fit) begin(from *fit, windows float64) {
	if !(from.N > 0) {
		return
	}
	scale := min(windows/from.N, 1)
	f.N += from.N * scale
	f.YY += from.YY * scale
	for i := range f.XX {
		f.XY[i] += from.XY[i] * scale
		for j := range f.XX[i] {
			f.XX[i][j] += from.XX[i][j] * scale
		}
	}
	f.coefficients = nil
}

// beginWindows is how many windows the model counts for that an engine begins with: half of what is
// learned after them is its own after twenty minutes of equal work.
const beginWindows = 20

// Begin makes a model what is usual for an engine of which little was learned, instead of the little, which can
// be of a version that is slower. Levels are not
// copied: they depend on the load, which may be another. except are the signals that the two
// versions cannot be compared by.
func (b *Baseline) Begin(from *Model, except *Set) {
	if b.Ready() || b.Began {
		return
	}
	b.Began = true
	if !except[StepFactor] {
		b.Step = newStepFit()
		b.Step.begin(&from.step.of, beginWindows)
	}
	if !except[PrefillFactor] {
		b.Prefill = newPrefillFit()
		b.Prefill.begin(&from.prefill.of, beginWindows)
	}
	if b.Earlier == "" && b.Version != "" && from.Version != "" && from.Version != b.Version && !except[StepFactor] {
		b.Earlier = from.Version
	}
}

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
