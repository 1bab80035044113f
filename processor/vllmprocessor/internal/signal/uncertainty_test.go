package signal

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The uncertainty is that of the posterior of a constant and one number, worked out by hand: the
// precision is the sum of those of the observations and of the guess, and the variance of what is
// expected at (1, x) is (1, x) times its inverse times (1, x).
func TestTheUncertaintyIsThatOfThePosterior(t *testing.T) {
	t.Parallel()
	const share, count = 0.4, 30
	random := rand.New(rand.NewPCG(5, 9))
	f := newFit(share)
	var n, sx, sxx, sy, sxy float64
	for range count {
		x := 50 + 20*random.Float64()
		y := (0.05 + 0.001*x) * (1 + 0.02*random.NormFloat64())
		f.learn(y, x)
		const keep = 1 - 1.0/240
		n, sx, sxx, sy, sxy = n*keep+1, sx*keep+x, sxx*keep+x*x, sy*keep+y, sxy*keep+x*y
	}
	meanX, meanY := sx/n, sy/n
	noise := 0.05 * meanY
	// The guess: each share is known to 20 % of the whole.
	widthConstant, widthSlope := 0.2*meanY, 0.2*meanY/meanX
	p11 := n/(noise*noise) + 1/(widthConstant*widthConstant)
	p12 := sx / (noise * noise)
	p22 := sxx/(noise*noise) + 1/(widthSlope*widthSlope)
	b1 := sy/(noise*noise) + (1-share)*meanY/(widthConstant*widthConstant)
	b2 := sxy/(noise*noise) + share*meanY/meanX/(widthSlope*widthSlope)
	determinant := p11*p22 - p12*p12
	constant, slope := (p22*b1-p12*b2)/determinant, (p11*b2-p12*b1)/determinant
	before := 0.0
	for _, x := range []float64{meanX, 80, 120, 300, 1000} {
		expected := constant + slope*x
		variance := (p22 - 2*p12*x + p11*x*x) / determinant
		require.InEpsilon(t, expected, f.Expect(x), 1e-9)
		want := math.Hypot(math.Sqrt(variance)/expected, 0.05*math.Log(expected/meanY))
		got := f.Uncertainty(x)
		assert.InEpsilon(t, want, got, 1e-6, "at %g", x)
		assert.Greater(t, got, before, "the farther from what was learned, the less is known: %g", x)
		before = got
	}
	assert.Less(t, f.Uncertainty(meanX), 0.05/math.Sqrt(count/2), "and where it was learned, much")
}

// With more observations at different loads an expectation becomes certain; with more of the
// same load, only that one.
func TestObservationsMakeAnExpectationCertain(t *testing.T) {
	t.Parallel()
	at := func(load func(n int) float64) (near, far float64) {
		f := newFit(0.5)
		for n := range 200 {
			x := load(n)
			f.learn(0.01+0.001*x, x)
		}
		return f.Uncertainty(10), f.Uncertainty(40)
	}
	same, sameFar := at(func(int) float64 { return 10 })
	_, variedFar := at(func(n int) float64 { return 5 + float64(n%11) })
	few := newFit(0.5)
	few.learn(0.02, 10)
	assert.Less(t, same, 0.01)
	assert.Less(t, same, few.Uncertainty(10)/3)
	assert.Greater(t, sameFar, 0.15, "how the time depends on the load is a guess")
	assert.Less(t, variedFar, sameFar/2)
	empty := newFit(0.5)
	assert.True(t, math.IsNaN(empty.Uncertainty(10)), "nothing is expected")
}

// varying is a level that has learned so many windows of a logarithm.
func varying(windows int, at func(n int) float64) *Baseline {
	b := NewBaseline()
	for n := range windows {
		b.Levels[PromptTokens].learn(at(n))
	}
	return b
}

// Windows that are drawn at random vary by the same from window to window and from block to
// block. Traffic that changes for five minutes at a time and not within them varies from block to
// block, by the square root of 5 times as much.
func TestASignalWandersFromBlockToBlock(t *testing.T) {
	t.Parallel()
	const deviation = 0.2
	wander := func(b *Baseline) float64 { return b.Wander(PromptTokens, 0, 0) }
	square, squareBlocks := 0.0, 0.0
	const seeds = 200
	for seed := range uint64(seeds) {
		random := rand.New(rand.NewPCG(seed, 11))
		b := varying(300, func(int) float64 { return 6 + deviation*random.NormFloat64() })
		square += wander(b) * wander(b) / seeds
		block := 0.0
		b = varying(300, func(n int) float64 {
			if n%blockWindows == 1 {
				block = deviation * random.NormFloat64()
			}
			return 6 + block
		})
		squareBlocks += wander(b) * wander(b) / seeds
		require.GreaterOrEqual(t, wander(b), b.Spread(PromptTokens))
	}
	// The mean follows within 20 windows, which takes a part of a slow change away and adds its
	// own error to a fast one.
	assert.InEpsilon(t, deviation, math.Sqrt(square), 0.25)
	assert.InEpsilon(t, deviation*math.Sqrt(blockWindows), math.Sqrt(squareBlocks), 0.25)
}

// A prior counts as so many windows, whatever a quiet beginning shows.
func TestAQuietBeginningDoesNotMakeASignalCertain(t *testing.T) {
	t.Parallel()
	quiet := func(windows int) float64 {
		return varying(windows, func(int) float64 { return 6 }).Wander(PromptTokens, 0.3, 10)
	}
	assert.InDelta(t, 0.3, quiet(0), 1e-9)
	assert.InDelta(t, 0.3*math.Sqrt(10./15), quiet(5), 1e-9)
	assert.InDelta(t, 0.3*math.Sqrt(10./30), quiet(20), 1e-9, "20 windows are remembered")
	// 40 blocks of five windows are remembered in the end.
	assert.InDelta(t, 0.3*math.Sqrt(10./210), quiet(1000), 1e-9)
}

// A cache that fills makes the first windows differ from all later ones. With 6 + 2 exp(-n) the
// differences of windows 1 to 5 from the mean of those before are 4.6 together, and their block would
// vary by 4.6^2 / 5 = 4.3. It does not count, and the next one varies by a quarter of that.
func TestAColdStartIsNoVariation(t *testing.T) {
	t.Parallel()
	cold := varying(2*blockWindows, func(n int) float64 { return 6 + 2*math.Exp(-float64(n)) })
	level := &cold.Levels[PromptTokens]
	assert.InDelta(t, 1, level.Blocks, 0)
	assert.InDelta(t, 1.1, level.Slow, 0.1)
}
