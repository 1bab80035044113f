package signal

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// healthy is a window of an engine that serves a request a second.
func healthy(at int64) Window {
	w := Window{Signals: Unknown(), At: at, FirstTokens: 60, Generation: 100, Computed: 500}
	s := &w.Signals
	s[TimeToFirstToken], s[StepTime], s[InterTokenLatency] = 0.1, 0.02, 0.02
	s[PromptTokens], s[ComputedTokens], s[OutputTokens] = 500, 500, 100
	s[PrefillTime], s[QueueWait], s[ArrivalRate] = 0.08, 0, 1
	return w
}

// learned is a baseline of some windows a minute apart.
func learned(windows int) *Baseline {
	b := NewBaseline()
	for n := range windows {
		w := healthy(int64(n+1) * int64(time.Minute))
		b.Learn(&w, time.Minute, &Set{})
	}
	return b
}

func TestABaselineSurvivesItsEncoding(t *testing.T) {
	t.Parallel()
	b := learned(50)
	again, sound := DecodeBaseline(b.Encode())
	require.True(t, sound)
	assert.Equal(t, b.Levels, again.Levels)
	assert.Equal(t, b.Windows, again.Windows)
	want := b.Step.Expect(3, 2000, 10)
	got := again.Step.Expect(3, 2000, 10)
	assert.InEpsilon(t, want, got, 1e-12)
	assert.Equal(t, 50*int64(time.Minute), again.Learned)
	assert.Nil(t, NewBaseline().Encode(), "nothing learned, nothing to keep")
	_, sound = DecodeBaseline(learned(1).Encode())
	assert.True(t, sound, "one window is worth keeping")
}

func FuzzDecodeBaseline(f *testing.F) {
	f.Add(learned(20).Encode())
	f.Add([]byte(`{"version":1,"baseline":{"step":{"xx":[[1]]}}}`))
	f.Fuzz(func(_ *testing.T, data []byte) {
		b, sound := DecodeBaseline(data)
		if !sound {
			return
		}
		r := healthy(b.Learned)
		b.Compare(&r)
		b.Learn(&r, time.Minute, &Set{})
	})
}

// A level is the mean and the variance of the last windows' logarithms.
func TestALevelIsAMeanAndAVariance(t *testing.T) {
	t.Parallel()
	var l level
	for _, x := range []float64{1, 2, 3, 4, 5, 6} {
		l.learn(x)
	}
	l.learn(math.NaN())
	assert.InDelta(t, 3.5, l.Mean, 1e-9)
	assert.InDelta(t, 35./12, l.Variance, 1e-9)
	for range 200 {
		l.learn(10)
	}
	assert.InDelta(t, 10, l.Mean, 0.01, "it follows")
	assert.InDelta(t, levelMemory, l.N, 1e-9)
}

// What is stored is read with care: what is not a baseline of this version is not taken.
func TestOnlyASoundBaselineIsTaken(t *testing.T) {
	t.Parallel()
	good := learned(10).Encode()
	for name, data := range map[string][]byte{
		"nothing": nil, "not JSON": []byte("{"), "another version": bytes.Replace(good, []byte(`"version":1`), []byte(`"version":2`), 1),
		"a field that is not known": bytes.Replace(good, []byte(`{"version"`), []byte(`{"more":1,"version"`), 1),
		"a negative number":         bytes.Replace(good, []byte(`"windows":10`), []byte(`"windows":-10`), 1),
		"no window":                 bytes.Replace(good, []byte(`"windows":10`), []byte(`"windows":0`), 1),
		"no baseline":               []byte(`{"version":1,"signals":30,"baseline":null}`),
	} {
		require.NotEqual(t, good, data, name)
		_, sound := DecodeBaseline(data)
		assert.False(t, sound, name)
	}
	for _, spoil := range []func(b *Baseline){
		func(b *Baseline) { b.Levels[3].Mean = math.NaN() }, func(b *Baseline) { b.Levels[3].Mean = math.Inf(1) },
		func(b *Baseline) { b.Levels[3].Variance = -1 }, func(b *Baseline) { b.Levels[3].N = -1 }, func(b *Baseline) { b.Windows = -1 },
		func(b *Baseline) { b.Version = "0.24.0\n" }, func(b *Baseline) { b.Version = "0.24.0 forged" }, func(b *Baseline) { b.Earlier = "0.23" },
		func(b *Baseline) { b.Step.N = -1 }, func(b *Baseline) { b.Step.YY = math.NaN() }, func(b *Baseline) { b.Prefill.XY[1] = math.NaN() },
		func(b *Baseline) { b.Prefill.XX[1][0] = math.Inf(1) }, func(b *Baseline) { b.Step.XX = b.Step.XX[1:] },
		func(b *Baseline) { b.Step.XX[0] = b.Step.XX[0][1:] }, func(b *Baseline) { b.Step.XY = b.Step.XY[1:] },
	} {
		b := learned(10)
		require.True(t, b.sound())
		spoil(b)
		assert.False(t, b.sound())
		assert.Nil(t, b.Encode(), "it is not stored either")
	}
}

// Signals that were added at the end cost no baseline; one that was written with more
// signals than there are, by a newer version, is not understood.
func TestABaselineOfFewerSignalsContinues(t *testing.T) {
	t.Parallel()
	now := string(learned(10).Encode())
	older := strings.Replace(now, fmt.Sprintf(`"signals":%d`, Count), fmt.Sprintf(`"signals":%d`, leastSignals), 1)
	require.NotEqual(t, now, older)
	// The levels of the new signals stand at the end of the list.
	levels, rest, found := strings.Cut(older, `],"step"`)
	require.True(t, found)
	for range int(Count) - leastSignals {
		levels = levels[:strings.LastIndexByte(levels, ',')]
		levels = levels[:strings.LastIndexByte(levels, '}')+1]
	}
	older = levels + `],"step"` + rest
	b, sound := DecodeBaseline([]byte(older))
	require.True(t, sound)
	assert.InEpsilon(t, 0.1, b.Usual(TimeToFirstToken), 0.01)
	assert.False(t, Known(b.Usual(GenerationRate)))
	for _, signals := range []int{leastSignals - 1, int(Count) + 1} {
		_, sound = DecodeBaseline([]byte(strings.Replace(now, fmt.Sprintf(`"signals":%d`, Count), fmt.Sprintf(`"signals":%d`, signals), 1)))
		assert.False(t, sound)
	}
}

// A window is learned once, and only with 5 requests or more. A baseline is ready after 5.
func TestABaselineLearnsWholeWindows(t *testing.T) {
	t.Parallel()
	b := NewBaseline()
	for n := range 21 {
		w := healthy(int64(time.Hour) + int64(n)*int64(15*time.Second))
		b.Learn(&w, time.Minute, &Set{})
		assert.Equal(t, n/4+1, b.Windows, n)
		assert.Equal(t, n >= 16, b.Ready(), n)
		assert.Equal(t, n >= 16, Known(b.Usual(TimeToFirstToken)), n)
		assert.Equal(t, n >= 16, Known(b.Growth(&w, TimeToFirstToken)), n)
	}
	few := healthy(int64(2 * time.Hour))
	few.FirstTokens = 4
	b.Learn(&few, time.Minute, &Set{})
	assert.Equal(t, 6, b.Windows)
	few.FirstTokens = 5
	b.Learn(&few, time.Minute, &Set{})
	assert.Equal(t, 7, b.Windows)
	assert.InEpsilon(t, 0.1, b.Usual(TimeToFirstToken), 1e-9)
	assert.InDelta(t, 0, b.Usual(QueueWait), 1e-9, "0 can be usual")
	assert.True(t, math.IsNaN(b.Usual(FrontEnd)), "it was never reported")
	w := healthy(0)
	w.Signals[TimeToFirstToken] = 0.3
	assert.InDelta(t, math.Log(3), b.Growth(&w, TimeToFirstToken), 1e-9)
	assert.Zero(t, b.Spread(TimeToFirstToken))
}

// The load of a step: 100 tokens a second and 0.02 s each are 2 sequences, which hold their
// prompt and half of their output. 500 computed tokens a second are 10 in a step and 40 in
// the time of a prefill.
func TestTheLoadOfAStepAndOfAPrefill(t *testing.T) {
	t.Parallel()
	w := healthy(0)
	sequences, tokens, prompt := w.StepLoad()
	assert.InDelta(t, 2, sequences, 1e-9)
	assert.InDelta(t, 2*550, tokens, 1e-9)
	assert.InDelta(t, 10, prompt, 1e-9)
	own, others := w.PrefillLoad()
	assert.InDelta(t, 500, own, 1e-9)
	assert.InDelta(t, 40, others, 1e-9)
}

// At the learned load a time that doubles has the factor 2. Before the baseline is ready,
// there is no factor.
func TestCompareGivesTheFactorOfATimeAtItsLoad(t *testing.T) {
	t.Parallel()
	for windows, want := range map[int]float64{4: math.NaN(), 20: 2} {
		b := learned(windows)
		w := healthy(int64(time.Hour))
		w.Signals[StepTime] *= 2
		w.Computed /= 2 // Steps that take twice as long have as many prompt tokens each.
		b.Compare(&w)
		if math.IsNaN(want) {
			assert.True(t, math.IsNaN(w.Signals[StepFactor]))
			continue
		}
		assert.InEpsilon(t, want, w.Signals[StepFactor], 0.01)
		assert.InEpsilon(t, 1, w.Signals[PrefillFactor], 0.15)
		w = healthy(int64(time.Hour))
		w.Signals[PrefillTime] *= 2
		w.Computed /= 2
		b.Compare(&w)
		assert.InEpsilon(t, want, w.Signals[PrefillFactor], 0.01)
		// The guess gives a step 15 % for prompts.
		w = healthy(0)
		assert.InDelta(t, 0.15, b.PromptShare(&w), 0.03)
	}
	w := healthy(0)
	assert.InDelta(t, 0.5, NewBaseline().PromptShare(&w), 1e-9, "where nothing is known")
}
