package signal

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// loaded is a baseline of windows with loads that vary, of an engine whose steps take some multiple
// of 10 ms and 0.5 ms for each sequence.
func loaded(windows int, times float64) *Baseline {
	b := NewBaseline()
	b.Version = "0.24.0"
	for n := range windows {
		w := healthy(int64(n+1) * int64(time.Minute))
		sequences := float64(2 + n%9)
		w.Signals[StepTime] = times * (0.01 + 0.0005*sequences)
		w.Signals[InterTokenLatency] = w.Signals[StepTime]
		w.Generation = sequences / w.Signals[StepTime]
		b.Learn(&w, time.Minute, &Set{})
	}
	return b
}

// A model says what the fit says, and the fit solves a system of equations for it.
func TestAModelIsTheFitThatItWasMadeOf(t *testing.T) {
	t.Parallel()
	b := loaded(30, 1)
	m := NewModel(b)
	for _, load := range [][3]float64{{2, 1100, 5}, {8, 4400, 10}, {40, 20000, 10}} {
		x := m.Step(load[0], load[1], load[2])
		assert.InEpsilon(t, b.Step.Expect(load[:]...), x.Seconds, 1e-9)
		assert.InEpsilon(t, b.Step.Uncertainty(load[:]...), x.Uncertainty, 1e-6)
	}
	before := m.Step(8, 4400, 10).Seconds
	for n := range 50 {
		w := healthy(int64(100+n) * int64(time.Minute))
		w.Signals[StepTime] = 9
		b.Learn(&w, time.Minute, &Set{})
	}
	assert.InDelta(t, before, m.Step(8, 4400, 10).Seconds, 0, "it never changes")
	assert.Nil(t, NewModel(NewBaseline()))
	assert.Nil(t, NewModel(loaded(4, 1)))
}

// An engine begins with what was usual, instead of what its first windows showed.
func TestAnEngineBeginsWithWhatWasUsual(t *testing.T) {
	t.Parallel()
	usual := NewModel(loaded(100, 1))
	b := loaded(2, 3)
	b.Version = "0.25.0"
	b.Begin(usual, &Set{})
	assert.InEpsilon(t, usual.Step(5, 2750, 10).Seconds, b.Step.Expect(5, 2750, 10), 0.05)
	assert.Equal(t, "0.24.0", b.Earlier)
	assert.InDelta(t, beginWindows, b.Step.N, 1e-9)
	learnedAlready := loaded(5, 3)
	learnedAlready.Begin(usual, &Set{})
	assert.InEpsilon(t, loaded(5, 3).Step.Expect(5, 2750, 10), learnedAlready.Step.Expect(5, 2750, 10), 1e-9)
	// Versions whose steps cannot be compared.
	other := loaded(2, 3)
	other.Begin(usual, &Set{StepFactor: true})
	assert.InEpsilon(t, loaded(2, 3).Step.Expect(5, 2750, 10), other.Step.Expect(5, 2750, 10), 1e-9)
}

// What is slower long after an upgrade is not slower since it.
func TestAVersionSettles(t *testing.T) {
	t.Parallel()
	b := loaded(30, 1)
	b.Upgrade("0.25.0")
	learn := func(n int, except *Set) {
		w := healthy(b.Learned + int64(n)*int64(time.Minute))
		b.Learn(&w, time.Minute, except)
	}
	for range 100 {
		learn(1, &Set{StepFactor: true})
	}
	assert.Equal(t, "0.24.0", b.Earlier, "steps that are left out settle nothing")
	for range settled - 1 {
		learn(1, &Set{})
	}
	assert.Equal(t, "0.24.0", b.Earlier)
	learn(1, &Set{})
	assert.Empty(t, b.Earlier)
	assert.Equal(t, "0.25.0", b.Version)
}

func TestReferencesSurviveTheirEncoding(t *testing.T) {
	t.Parallel()
	usual := NewModel(loaded(100, 1))
	all := []Reference{{"m", 1000, usual}, {"n", 0, usual}, {"unknown", 5, nil}}
	got, newest, sound := DecodeReferences(EncodeReferences(all))
	require.True(t, sound)
	require.Len(t, got, 2)
	assert.Equal(t, 100*int64(time.Minute), newest)
	assert.Equal(t, "0.24.0", got[0].Usual.Version)
	assert.InEpsilon(t, usual.Step(5, 2750, 10).Seconds, got[0].Usual.Step(5, 2750, 10).Seconds, 1e-9)
	assert.True(t, got[0].Fits("m", 1090))
	assert.False(t, got[0].Fits("m", 1150))
	assert.False(t, got[0].Fits("n", 1000))
	assert.False(t, got[0].Fits("m", 0))
	assert.True(t, got[1].Fits("n", 0))
}

// What comes from servers has a bound, and what is damaged is refused.
func TestReferencesAreBounded(t *testing.T) {
	t.Parallel()
	usual := NewModel(loaded(100, 1))
	var all []Reference
	for range 1000 {
		all = append(all, Reference{strings.Repeat("\x01", longestModel), 1, usual})
	}
	assert.Less(t, len(EncodeReferences(all)), 20_000)
	assert.Nil(t, EncodeReferences([]Reference{{strings.Repeat("m", longestModel+1), 1, usual}}))
	for _, bad := range []string{"", "{}", `{"pool":1,"references":[{"model":"m","learned":1}]}`, `{"pool":2,"references":[]}`, `{"pool":1,"references":[],"x":1}`} {
		_, _, sound := DecodeReferences([]byte(bad))
		assert.False(t, sound, bad)
	}
	_, sound := DecodeBaseline(EncodeReferences(all[:1]))
	assert.False(t, sound, "they are not a baseline")
	b := NewBaseline()
	b.Accepted = math.NaN()
	assert.False(t, b.sound())
}

// What is not known of a time at equal load counts for more where the load grows with the time: an
// error of the time by one part in a hundred is one by 1 / (1 - rho) at the fixed point.
func TestTheDoubtGrowsWithTheLoop(t *testing.T) {
	t.Parallel()
	b := loaded(30, 1)
	m := NewModel(b)
	w := Work{Generation: 600, Computed: 500, Held: 550, Own: 500, Accepted: 1}
	seconds, busy := b.StepAt(w)
	require.Greater(t, busy, 0.2)
	at := m.Step(w.Generation*seconds, w.Generation*seconds*w.Held, w.Computed*seconds)
	got := m.StepOf(w)
	assert.InEpsilon(t, seconds, got.Seconds, 1e-6)
	assert.InEpsilon(t, at.Uncertainty/(1-busy), got.Uncertainty, 1e-6)
	assert.InEpsilon(t, at.Deviation/(1-busy), got.Deviation, 1e-6)
}

// The slow reference learns the first windows and then one of each hour, so that what becomes
// slower over hours stands out against it.
func TestTheSlowReferenceLearnsAWindowOfEachHour(t *testing.T) {
	t.Parallel()
	b := loaded(100, 1)
	steps, slow := b.Step.Expect(5, 2750, 10), b.Slow.Expect(5, 2750, 10)
	assert.InEpsilon(t, steps, slow, 0.01)
	times, n := 3.0, b.Slow.N
	for until := b.SlowLearned + int64(59*time.Minute); b.Learned < until; {
		w := healthy(b.Learned + int64(time.Minute))
		w.Signals[StepTime] = times * 0.0125
		w.Signals[InterTokenLatency] = w.Signals[StepTime]
		w.Generation = 5 / w.Signals[StepTime]
		b.Learn(&w, time.Minute, &Set{})
	}
	assert.InEpsilon(t, slow, b.Slow.Expect(5, 2750, 10), 1e-9)
	assert.InDelta(t, n, b.Slow.N, 0)
	assert.Greater(t, b.Step.Expect(5, 2750, 10), 1.3*steps)
	w := healthy(b.SlowLearned + int64(time.Hour))
	b.Learn(&w, time.Minute, &Set{})
	assert.Greater(t, b.Slow.N, n)
}
