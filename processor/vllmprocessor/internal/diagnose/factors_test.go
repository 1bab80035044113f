package diagnose

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// A factor that has changed, or may have, is not learned, and the others are. Here the front end
// is slower by the half of what is harmful, while prompts become slowly longer.
func TestWhatMayHaveChangedIsNotLearned(t *testing.T) {
	t.Parallel()
	healthy := func(r *reading) {
		r.Signals[signal.FrontEnd], r.Signals[signal.PrefillTime], r.Signals[signal.QueueTime] = 0.05, 0.06, 0.01
	}
	b := signal.NewBaseline()
	w := newWard(t, b)
	w.minutes(60, healthy)
	require.InEpsilon(t, 0.05, b.Usual(signal.FrontEnd), 1e-6)
	before := b.Windows
	n := 0
	w.minutes(60, func(r *reading) {
		healthy(r)
		r.Signals[signal.FrontEnd] = 0.09
		n++
		grown := 1 + 0.1*float64(n)/240
		r.Signals[signal.PromptTokens] *= grown
		r.Signals[signal.TimeToFirstToken] += 0.04
	})
	assert.Equal(t, Healthy, w.Reported.Condition)
	assert.Greater(t, b.Windows, before+50, "it learns on")
	assert.InEpsilon(t, 0.05, b.Usual(signal.FrontEnd), 0.1, "the factor that has changed is not learned")
	assert.InEpsilon(t, 1.09*500, b.Usual(signal.PromptTokens), 0.03, "another factor is")
	// As usual again, it is learned again.
	w.minutes(60, func(r *reading) {
		healthy(r)
		r.Signals[signal.FrontEnd] = 0.051
	})
	assert.InEpsilon(t, 0.051, b.Usual(signal.FrontEnd), 0.01)
}

// One request in a second was deferred for 1 s, and now for 3 s: deferral makes its first token 2 s later.
func TestDeferralCostsWhatItIsLongerThanUsual(t *testing.T) {
	t.Parallel()
	b := signal.NewBaseline()
	w := newWard(t, b)
	w.minutes(60, func(r *reading) { r.Signals[signal.Deferred] = 1 })
	require.InEpsilon(t, 1, b.Usual(signal.Deferred), 1e-6)
	r := healthyReading(w.at + scrape)
	r.Signals[signal.Deferred] = 3
	out := newEffects(&r, b, &growths{moreDeferred: math.Log(3)}, false, growths{})
	assert.InEpsilon(t, 2, out.first, 1e-6)
}

// Each factor has the signals that it is seen by.
func TestTheSignalsOfAFactor(t *testing.T) {
	t.Parallel()
	for f, want := range map[factor][]signal.Signal{
		moreArrivals: {signal.ArrivalRate}, longerPrompts: {signal.PromptTokens}, moreComputed: {signal.ComputedTokens},
		longerOutputs: {signal.OutputTokens}, fewerAccepted: {signal.AcceptanceLength}, fewerBlocks: {signal.KVPerToken, signal.KVPerComputed},
		slowerSteps: {signal.StepFactor}, slowerPrefills: {signal.PrefillFactor}, slowerFrontEnd: {signal.FrontEnd}, moreDeferred: {signal.Deferred},
	} {
		e := &engine{}
		assert.Equal(t, signal.Set{}, e.unsure())
		e.Changes[f].Score = suspicious - 1e-9
		assert.Equal(t, signal.Set{}, e.unsure())
		e.Changes[f].Score = suspicious
		var expected signal.Set
		for _, s := range want {
			expected[s] = true
		}
		assert.Equal(t, expected, e.unsure(), f)
	}
}

// Harm of any kind never enters what is usual for a latency, also before it is certain; work
// that is as usual is learned on in that time.
func TestHarmIsNeverLearnedAsAUsualLatency(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(r *reading){
		"steps": func(r *reading) { r.Signals[signal.StepTime], r.Signals[signal.InterTokenLatency] = 0.08, 0.08 },
		"the front end": func(r *reading) {
			r.Signals[signal.FrontEnd], r.Signals[signal.TimeToFirstToken] = 3, 3.1
		},
		"a queue": func(r *reading) {
			r.waitingNow, r.Signals[signal.Waiting], r.Signals[signal.QueueWait], r.Signals[signal.QueueTime] = 40, 40, 40, 20
			r.Signals[signal.TimeToFirstToken] = 20
		},
		"errors": func(r *reading) { r.Signals[signal.ErrorRatio], r.Signals[signal.TimeToFirstToken] = 0.5, 0.001 },
	} {
		b := signal.NewBaseline()
		w := newWard(t, b)
		usual := func(r *reading) {
			r.Signals[signal.FrontEnd], r.Signals[signal.QueueTime], r.Signals[signal.ErrorRatio] = 0.02, 0.01, 0
		}
		w.minutes(30, usual)
		want := signal.Unknown()
		for _, s := range latencies {
			want[s] = b.Usual(s)
		}
		before := b.Windows
		w.minutes(45, func(r *reading) {
			usual(r)
			harm(r)
		})
		require.Contains(t, []Condition{Degraded, Critical, Failing}, w.Reported.Condition, name)
		for _, s := range latencies {
			if signal.Known(want[s]) {
				assert.InDelta(t, want[s], b.Usual(s), 1e-6, "%s: %s", name, s)
			}
		}
		if name != "errors" { // A server that fails teaches nothing.
			assert.Greater(t, b.Windows, before+30, name)
		}
	}
}

// A growth is judged by how much its signal wanders, and that of steps also by how unsure the
// expectation is and how much the load swings within the window.
func TestAGrowthIsJudgedByItsNoise(t *testing.T) {
	t.Parallel()
	b := learned(200)
	r := healthyReading(0)
	r.Signals[signal.StepTime], r.Signals[signal.InterTokenLatency] = 0.03, 0.03
	b.Compare(&r.Window)
	grown, atUsualLoad := newGrowths(&r, b, 0)
	assert.Positive(t, grown[slowerSteps])
	r.Signals[signal.PromptTokens] *= math.E
	grown, deviations := newGrowths(&r, b, 0)
	assert.InDelta(t, 1, grown[longerPrompts], 1e-9)
	// 39 blocks of five windows without any variation, and a prior of 0.3 for five windows: the
	// first window has nothing to differ from.
	assert.InDelta(t, 1/(0.3*math.Sqrt(5./200)), deviations[longerPrompts], 1e-6)
	assert.InDelta(t, 0, grown[moreArrivals], 1e-9)
	assert.False(t, signal.Known(grown[slowerFrontEnd]), "it was never reported")
	assert.Zero(t, grown[slowerSteps], "no window had prompts of this length, and the expected step is unsure by as much")
	assert.Less(t, deviations[slowerSteps], atUsualLoad[slowerSteps])
	_, swung := newGrowths(&r, b, 1)
	assert.Less(t, swung[slowerSteps], deviations[slowerSteps])
	assert.InDelta(t, deviations[longerPrompts], swung[longerPrompts], 1e-9)
	// What the expectation may be wrong by is not growth.
	grow, _ := slower(0.2, 0.05, 0.1)
	assert.InDelta(t, 0.15, grow, 1e-9)
	grow, by := slower(0.04, 0.05, 0.1)
	assert.InDelta(t, 0, grow, 1e-9)
	assert.InDelta(t, 0.04/math.Hypot(0.05, 0.1), by, 1e-9)
	grow, _ = slower(-0.2, 0.05, 0.1)
	assert.InDelta(t, -0.2, grow, 1e-9, "and faster is faster")
}

// A swing is the logarithm of the most sequences by the least in a window, with three more in
// both so that few of them do not matter.
func TestASwingIsWhatTheSequencesChangeByInAWindow(t *testing.T) {
	t.Parallel()
	const window = int64(60e9)
	var s swings
	assert.InDelta(t, 0, s.observe(0, 10, window), 1e-9)
	assert.InDelta(t, math.Log(33./13), s.observe(15e9, 30, window), 1e-9)
	assert.InDelta(t, math.Log(33./3), s.observe(30e9, 0, window), 1e-9)
	for n := range int64(3) {
		s.observe((45+15*n)*1e9, 30, window)
	}
	assert.InDelta(t, math.Log(33./3), s.observe(90e9-1, 30, window), 1e-9)
	assert.InDelta(t, 0, s.observe(105e9, 30, window), 1e-9, "it has left the window")
	for n := range int64(10_000) {
		s.observe(105e9+n, 30, window)
		require.LessOrEqual(t, len(s), mostSamples)
	}
}

// Work varies: what counts of it is beyond two deviations, and of the engine all counts. Slower
// prefills alone are not a slower engine, which is slower in all steps.
func TestWhatCountsOfAChange(t *testing.T) {
	t.Parallel()
	e := &engine{}
	for f := range numFactors {
		e.Changes[f] = change{Score: 10, On: true}
	}
	var grown, deviated growths
	for f := range numFactors {
		grown[f], deviated[f] = 0.6, 4
	}
	got := e.changed(&grown, &deviated)
	assert.InDelta(t, 0.3, got[moreArrivals], 1e-9)
	assert.InDelta(t, 0.6, got[slowerSteps], 1e-9)
	assert.InDelta(t, 0.6, got[slowerPrefills], 1e-9)
	e.Changes[slowerSteps] = change{Score: 1}
	got = e.changed(&grown, &deviated)
	assert.Zero(t, got[slowerSteps])
	assert.Zero(t, got[slowerPrefills])
	e.Changes[slowerSteps].Score = 3
	assert.InDelta(t, 0.6, e.changed(&grown, &deviated)[slowerPrefills], 1e-9)
}

// Work that has grown for relearn_after is the usual one from then on, and not a minute before.
func TestWorkThatStaysBecomesUsual(t *testing.T) {
	t.Parallel()
	s := settings(2)
	b := learned(30)
	e := &engine{baseline: b}
	e.Changes[moreArrivals].On = true
	more := func(after time.Duration) {
		r := healthyReading(int64(time.Hour + after))
		r.Signals[signal.ArrivalRate] = 3
		e.accept(s, &r)
	}
	more(0)
	more(s.RelearnAfter - time.Minute)
	assert.InDelta(t, 1, b.Usual(signal.ArrivalRate), 1e-6)
	assert.True(t, e.Changes[moreArrivals].On)
	more(s.RelearnAfter)
	assert.InDelta(t, 3, b.Usual(signal.ArrivalRate), 1e-6)
	assert.Equal(t, change{}, e.Changes[moreArrivals])
}
