package diagnose

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// However great harm is, it is certain only after the hold, less the half of a window that is from
// before on average, and then at once; and whatever the interval of the scrapes, it takes the same time.
func TestEvidenceOfGreatHarmTakesTheHold(t *testing.T) {
	t.Parallel()
	for _, hold := range []int{1, 2, 3, 5} {
		for _, scrapes := range []int{1, 4, 12} { // in a window
			for _, effect := range []float64{6, 1000} {
				var e evidence
				n := 0
				for ; !e.On && n < 1000; n++ {
					e.observe(effect, effect, 1/float64(scrapes), hold, hold)
				}
				assert.Equal(t, int(math.Ceil((float64(hold)-0.5)*float64(scrapes))), n, "hold %d, %d scrapes in a window, effect %g", hold, scrapes, effect)
			}
		}
	}
}

// Wald's test of 1 against 0 with the deviation 0.5 adds 4 (x - 1/2) in each window, and decides
// at ln 22,000 = 10.
func TestEvidenceOfSmallHarmTakesLonger(t *testing.T) {
	t.Parallel()
	assert.InDelta(t, enoughEvidence, math.Log(22_000), 0.01)
	for effect, windows := range map[float64]int{1: 5, 1.25: 4, 1.5: 3, 2: 2} {
		var e evidence
		n := 0
		for ; !e.On && n < 1000; n++ {
			e.observe(effect, effect, 1, 2, 2)
		}
		assert.Equal(t, windows, n, "effect %g", effect)
	}
	// What is less than the bar of harm is never harm, however long it lasts.
	for _, effect := range []float64{0, 0.3, 0.5, 0.7, 0.99} {
		var e evidence
		for range 10_000 {
			e.observe(effect, effect, 1, 2, 2)
		}
		assert.False(t, e.On, "effect %g", effect)
	}
}

// Noise is not harm. About 0 and with the assumed deviation, Wald's bound is one false decision
// in 22,000 tests; a test is at least a window.
func TestNoiseIsNoEvidence(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ mean, deviation, most float64 }{{0, 0.5, 5}, {0.3, 0.2, 0}} {
		random := rand.New(rand.NewPCG(1, 9))
		var e evidence
		decisions := 0.0
		for range 100_000 {
			x := test.mean + test.deviation*random.NormFloat64()
			was := e.On
			e.observe(x, x, 1, 2, 2)
			if e.On && !was {
				decisions++
			}
		}
		assert.LessOrEqual(t, decisions, test.most, "about %g", test.mean)
	}
}

// Harm that has ended is not harm any more after hold windows without evidence for it, also where it
// has lasted for days; a single window without harm is not an end.
func TestEvidenceEnds(t *testing.T) {
	t.Parallel()
	var e evidence
	for range 5000 {
		e.observe(10, 10, 1, 2, 2)
	}
	require.True(t, e.On)
	e.observe(0, 0, 1, 2, 2)
	assert.True(t, e.On)
	e.observe(math.NaN(), math.NaN(), 1, 2, 2)
	assert.InDelta(t, 8, e.Score, 1e-9, "what is not known is not evidence")
	e.observe(10, 10, 0.25, 2, 2)
	for range 7 {
		e.observe(0, 0, 0.25, 2, 2)
		require.True(t, e.On, "the windows since then overlap with the harm")
	}
	e.observe(0, 0, 0.25, 2, 2)
	assert.False(t, e.On)
	// Between the two it remains what it was: it does not flap.
	for n := range 1000 {
		e.observe(float64(n%2), float64(n%2), 1, 2, 2)
		require.False(t, e.On)
	}
}

// A change that is not certain yet collects evidence of harm, but does not decide.
func TestWhatMayBeHarmDoesNotDecide(t *testing.T) {
	t.Parallel()
	var e evidence
	for range 100 {
		e.observe(0, 5, 1, 2, 2)
		require.False(t, e.On)
	}
	e.observe(5, 5, 0.25, 2, 2)
	assert.True(t, e.On, "as soon as it is certain")
}

// The growth by one standard deviation is not a change however long it lasts, and the growth by
// two is found after 5 windows: changedAt is 5, slack 1. Of one window no more is believed than six
// deviations.
func TestAChangeIsMoreThanItsNoise(t *testing.T) {
	t.Parallel()
	for growth, windows := range map[float64]int{-3: 1000, 0: 1000, 1: 1000, 2: 5, 3: 3, 4: 2, 5: 2, 6: 1, 1e9: 1} {
		for _, scrapes := range []int{1, 4} {
			var c change
			n := 0
			for ; !c.On && n < 1000*scrapes; n++ {
				c.observe(growth, 1/float64(scrapes), changedAt)
			}
			got := math.Ceil(float64(n) / float64(scrapes))
			assert.InDelta(t, windows, got, 0, "%g deviations, %d scrapes in a window", growth, scrapes)
		}
	}
	var c change
	c.observe(math.NaN(), 1, changedAt)
	assert.Equal(t, change{}, c)
}

// By Siegmund's formula, exp(2 k h) / (2 k^2), normal noise is taken for a change once in 11,000
// windows at most.
func TestNoiseIsRarelyAChange(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(2, 9))
	const windows = 500_000
	found := 0
	var c change
	for range windows {
		c.observe(random.NormFloat64(), 1, changedAt)
		if c.On {
			c = change{}
			found++
		}
	}
	assert.LessOrEqual(t, found, int(windows/(math.Exp(2*slack*changedAt)/(2*slack*slack))))
	// A change of twice the noise is found in a few windows all the same.
	late := 0
	for range 1000 {
		c = change{}
		n := 0
		for ; !c.On; n++ {
			c.observe(2+random.NormFloat64(), 1, changedAt)
		}
		if n > 12 {
			late++
		}
	}
	assert.Less(t, late, 30)
}

// A change that has ended is forgotten in a time that does not depend on how long it lasted.
func TestAChangeIsForgotten(t *testing.T) {
	t.Parallel()
	for _, lasted := range []int{5, 100_000} {
		for _, at := range []float64{changedAt, 8} {
			t.Run(fmt.Sprint(lasted, at), func(t *testing.T) {
				t.Parallel()
				var c change
				for range lasted {
					c.observe(4, 1, at)
				}
				require.True(t, c.On)
				n := 0
				for ; c.On; n++ {
					c.observe(0, 1, at)
				}
				assert.InDelta(t, at+remembers, float64(n), 1)
			})
		}
	}
}

// One window alone, however strange, is not a change of the work: real readings have heavy tails.
func TestOneStrangeWindowIsNotAChangeOfTheWork(t *testing.T) {
	t.Parallel()
	var c change
	c.observe(1e12, 1, workChangedAt)
	assert.False(t, c.On)
	for range 10 {
		c.observe(0, 1, workChangedAt)
	}
	assert.Zero(t, c.Score)
	c.observe(1e12, 1, workChangedAt)
	c.observe(1e12, 1, workChangedAt)
	assert.True(t, c.On, "two windows are")
}
