package signal

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A fit finds the line that noisy data come from, and continues it beyond what was
// seen.
func TestAFitRecoversWhatTheDataComeFrom(t *testing.T) {
	t.Parallel()
	truth := []float64{0.006, 2e-5, 5e-8, 2e-5}
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		f := newFit(0.1, 0.1, 0.15)
		for range 200 {
			xs := []float64{random.Float64() * 200, random.Float64() * 200_000, random.Float64() * 500}
			y := truth[0]
			for i, x := range xs {
				y += truth[i+1] * x
			}
			f.learn(y*(1+0.03*random.NormFloat64()), xs...)
		}
		for _, xs := range [][]float64{{10, 10_000, 20}, {100, 100_000, 250}, {300, 300_000, 800}} {
			want := truth[0]
			for i, x := range xs {
				want += truth[i+1] * x
			}
			got := f.Expect(xs...)
			assert.InEpsilon(t, want, got, 0.05, "%v of seed %d", xs, seed)
			assert.InDelta(t, 0.03, f.Deviation(), 0.01, "noise of 3 %%, with loads of which the means differ")
		}
		for i := range truth[1:] {
			assert.InEpsilon(t, truth[i+1], f.Part(i, 1), 0.25, "coefficient %d of seed %d", i, seed)
		}
	}
}

// More load never makes a step faster, whatever the data look like.
func TestNoCoefficientIsNegative(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 2))
		f := newFit(0.1, 0.1, 0.15)
		slope := random.NormFloat64()
		for range 1 + random.IntN(60) {
			a := random.Float64()
			xs := []float64{100 * a, 1e5 * random.Float64(), 500 * math.Abs(a+0.01*random.NormFloat64())}
			f.learn(max(0.01*(1+slope*(a-0.5))+0.001*random.NormFloat64(), 1e-6), xs...)
		}
		y := f.Expect(50, 5e4, 250)
		require.False(t, math.IsNaN(y) || math.IsInf(y, 0), "seed %d", seed)
		require.Positive(t, f.Deviation())
		for i, c := range f.coefficients {
			require.GreaterOrEqual(t, c, 0.0, "coefficient %d of seed %d", i, seed)
		}
	}
}

func TestAFitOfNothingExpectsNothing(t *testing.T) {
	t.Parallel()
	f := newFit(0.5, 0.2)
	y := f.Expect(1, 2)
	assert.True(t, math.IsNaN(y))
	f.learn(math.NaN(), 1, 2)
	f.learn(0, 1, 2)
	f.learn(-1, 1, 2)
	f.learn(1, math.NaN(), 2)
	f.learn(1, math.Inf(1), 2)
	y = f.Expect(1, 2)
	assert.True(t, math.IsNaN(y), "what is not known teaches nothing")
}

// A server whose load never changes teaches nothing about the load: the guess
// holds.
func TestAConstantLoadKeepsTheGuess(t *testing.T) {
	t.Parallel()
	f := newFit(0.5, 0.2)
	for range 100 {
		f.learn(0.1, 1000, 50)
	}
	got := f.Expect(1000, 50)
	assert.InEpsilon(t, 0.1, got, 1e-3)
	assert.InEpsilon(t, 0.05, f.Part(0, 1000), 0.01)
	assert.InEpsilon(t, 0.02, f.Part(1, 50), 0.01)
}

// The deviation is the relative error of what was learned: of times that are 20 % above or
// below the line in turn it is 20 %.
func TestTheDeviationIsTheErrorOfWhatWasLearned(t *testing.T) {
	t.Parallel()
	f := newFit(0.5)
	for n := range 2000 {
		x := float64(n/2%10 + 1)
		f.learn((0.01+0.002*x)*(1+0.2*float64(2*(n%2)-1)), x)
	}
	assert.InEpsilon(t, 0.021, f.Expect(5.5), 0.02)
	assert.InDelta(t, 0.2, f.Deviation(), 0.03)
	// A quiet beginning does not make it small: five windows are assumed to vary by 5 %.
	f = newFit(0.5)
	assert.InDelta(t, 0.05, f.Deviation(), 1e-9)
	for range 5 {
		f.learn(0.1, 1)
	}
	assert.InDelta(t, 0.05*math.Sqrt(5/(5+f.N)), f.Deviation(), 1e-3)
}
