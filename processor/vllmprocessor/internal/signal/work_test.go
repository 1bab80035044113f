package signal

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// physics is a server whose steps take a + b n + c n L + d p seconds for n sequences that hold L
// tokens each and p tokens of prompts, and whose prefills take e + f own + g others.
type physics struct{ a, b, c, d, e, f, g float64 }

var server = physics{0.008, 8e-5, 6e-8, 3e-5, 0.01, 8e-5, 3e-5}

// serve returns the time of a step under some work: it runs so long until Little's law holds, the
// sequences in a step being the tokens that are generated while it lasts.
func (p physics) serve(w Work) (step, prefill float64) {
	for range 100_000 {
		sequences := w.Generation * step / w.Accepted
		step += 0.2 * (p.a + p.b*sequences + p.c*sequences*w.Held + p.d*w.Computed*step - step)
		prefill += 0.2 * (p.e + p.f*w.Own + p.g*w.Computed*prefill - prefill)
	}
	return step, prefill
}

// taught is a baseline with exactly the coefficients of a server.
func taught(p physics) *Baseline {
	b := NewBaseline()
	b.Step.N, b.Prefill.N = 100, 100
	b.Step.coefficients = []float64{p.a, p.b, p.c, p.d}
	b.Prefill.coefficients = []float64{p.e, p.f, p.g}
	return b
}

// The expected times are the fixed point of the law of a step and Little's law.
func TestTheExpectedTimeOfAStepIsWhereLittlesLawHolds(t *testing.T) {
	t.Parallel()
	b := taught(server)
	for _, w := range []Work{
		{Generation: 0, Computed: 0, Held: 0, Own: 0, Accepted: 1},
		{Generation: 100, Computed: 500, Held: 550, Own: 500, Accepted: 1},
		{Generation: 2000, Computed: 6000, Held: 1500, Own: 900, Accepted: 1},
		{Generation: 4000, Computed: 9000, Held: 2000, Own: 3000, Accepted: 2.5},
		{Generation: 3500, Computed: 15_000, Held: 600, Own: 1000, Accepted: 1},
	} {
		step, prefill := server.serve(w)
		got, busy := b.StepAt(w)
		require.Less(t, busy, mostBusy, "%+v", w)
		assert.InEpsilon(t, step, got, 1e-6, "%+v", w)
		assert.InEpsilon(t, 1-server.a/step, busy, 1e-6+boolean(busy == 0), "%+v", w)
		got, _ = b.PrefillAt(w)
		assert.InEpsilon(t, prefill, got, 1e-6, "%+v", w)
	}
}

func boolean(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// Near saturation the expected time is bounded, and rises with the work all the way.
func TestTheExpectedTimeIsBoundedNearSaturation(t *testing.T) {
	t.Parallel()
	b := taught(server)
	before, saturated := 0.0, false
	for generation := 0.0; generation < 1e6; generation += 200 {
		w := Work{Generation: generation, Computed: generation, Held: 1000, Own: 500, Accepted: 1}
		step, busy := b.StepAt(w)
		prefill, _ := b.PrefillAt(w)
		require.GreaterOrEqual(t, step, before)
		require.LessOrEqual(t, step, 20*server.a*(1+1e-9))
		require.LessOrEqual(t, prefill, 20*(server.e+server.f*w.Own)*(1+1e-9))
		require.LessOrEqual(t, busy, mostBusy)
		before, saturated = step, saturated || busy == mostBusy
	}
	assert.True(t, saturated)
}

// A fault makes steps slower and thereby fuller. At the load that it causes it looks smaller than
// it is; against the work, which it does not change, it is what it is.
func TestAFaultDoesNotRaiseWhatIsExpectedOfTheWork(t *testing.T) {
	t.Parallel()
	b := taught(server)
	w := Work{Generation: 2500, Computed: 8000, Held: 1500, Own: 900, Accepted: 1}
	healthy, _ := server.serve(w)
	slow := server
	for _, c := range []*float64{&slow.a, &slow.b, &slow.c, &slow.d} {
		*c *= 1.5
	}
	faulty, _ := slow.serve(w)
	require.Greater(t, faulty/healthy, 1.8, "the loop makes it worse than 1.5 times")
	window := Window{Signals: Unknown(), Generation: w.Generation, Computed: w.Computed}
	s := &window.Signals
	s[StepTime], s[InterTokenLatency] = faulty, faulty
	s[PromptTokens], s[OutputTokens], s[ComputedTokens] = 1400, 200, 900
	assert.Equal(t, w, window.Work())
	step, _ := b.StepAt(window.Work())
	assert.InEpsilon(t, healthy, step, 1e-6)
	assert.InEpsilon(t, 1.5, faulty/b.Step.Expect(window.StepLoad()), 1e-3, "at equal load: the fault alone")
}

// Two tokens are accepted in each step of speculative decoding: half of the sequences.
func TestTheWorkOfAWindow(t *testing.T) {
	t.Parallel()
	w := healthy(int64(time.Hour))
	assert.Equal(t, Work{Generation: 100, Computed: 500, Held: 550, Own: 500, Accepted: 1}, w.Work())
	w.Signals[StepTime] = 2 * w.Signals[InterTokenLatency]
	assert.InDelta(t, 2, w.Work().Accepted, 1e-9)
	w.Signals[StepTime], w.Signals[OutputTokens] = math.NaN(), math.NaN()
	assert.InDelta(t, 1, w.Work().Accepted, 0, "where it is not known")
	assert.InDelta(t, 500, w.Work().Held, 1e-9)
	step, busy := NewBaseline().StepAt(w.Work())
	assert.True(t, math.IsNaN(step) && math.IsNaN(busy), "nothing was learned")
	step, busy = NewBaseline().PrefillAt(w.Work())
	assert.True(t, math.IsNaN(step) && math.IsNaN(busy), "nothing was learned")
}
