package window

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The mean of a distribution is the integral of its quantiles. So the quantiles
// must give back the sum that they were constrained by.
func TestMeanConstrainedQuantilesHaveTheRightMean(t *testing.T) {
	const steps = 5000
	r := rand.New(rand.NewPCG(5, 6))
	for range 30 {
		h := &Histogram{Bounds: []float64{0.5, 1, 4, 5, 20}, HasSum: true}
		low, high := 0.0, 0.0
		for i := range 6 {
			count := float64(r.IntN(40))
			if i == 5 {
				count = 0 // the integral of an unbounded tail converges slowly
			}
			lower, upper := 0.0, 20.0
			if i > 0 {
				lower = h.Bounds[i-1]
			}
			if i < 5 {
				upper = h.Bounds[i]
			}
			h.Counts = append(h.Counts, count)
			h.Count += count
			low += count * lower
			high += count * upper
		}
		h.Sum = low + (high-low)*(0.1+0.8*r.Float64())
		mean, ok := h.Mean()
		require.True(t, ok)

		integral := 0.0
		for i := range steps {
			value, ok := h.MeanConstrained((float64(i) + 0.5) / steps)
			require.True(t, ok)
			integral += value / steps
		}
		require.InEpsilon(t, mean, integral, 1e-4, "%+v", h)
	}
}

// With one bucket the mean is all there is to know: a truncated exponential density,
// whose quantiles are computed here from its definition.
func TestMeanConstrainedFindsATruncatedExponential(t *testing.T) {
	for _, rate := range []float64{-40, -3, -0.5, 0.5, 3, 40} {
		// Density proportional to e^(-rate x) on [0, 2].
		mean := 1/rate - 2/math.Expm1(2*rate)
		h := &Histogram{Bounds: []float64{2}, Counts: []float64{1000, 0}, Count: 1000, Sum: 1000 * mean, HasSum: true}
		for _, q := range []float64{0.01, 0.5, 0.95, 0.99} {
			want := -math.Log(1-q*(1-math.Exp(-2*rate))) / rate
			got, ok := h.MeanConstrained(q)
			require.True(t, ok)
			assert.InEpsilon(t, want, got, 1e-6, "rate %v, q %v", rate, q)
		}
	}
}

// The tilt is as exact for a mean that is just above a bound: an exponential tail with a mean of a millionth.
func TestMeanConstrainedIsExactJustAboveABound(t *testing.T) {
	h := &Histogram{Bounds: []float64{1000, 1001}, Counts: []float64{0, 1, 0}, Count: 1, Sum: 1000 + 1e-6, HasSum: true}
	got, ok := h.MeanConstrained(0.5)
	require.True(t, ok)
	assert.InEpsilon(t, 1e-6*math.Ln2, got-1000, 1e-3)
}

func TestMeanConstrainedKnowsTheOpenBucket(t *testing.T) {
	// Nothing but the open bucket: an exponential tail with the right mean.
	h := &Histogram{Bounds: []float64{10}, Counts: []float64{0, 100}, Count: 100, Sum: 1500, HasSum: true}
	got, ok := h.MeanConstrained(0.5)
	require.True(t, ok)
	assert.InEpsilon(t, 10+5*math.Ln2, got, 1e-6)

	// Half an observation stays above the quantile 1.
	got, ok = h.MeanConstrained(1)
	require.True(t, ok)
	assert.InEpsilon(t, 10+5*math.Log(200), got, 1e-6)
}

func TestMeanConstrainedWhereAllValuesLieOnBounds(t *testing.T) {
	for name, test := range map[string]struct {
		sum  float64
		want float64
	}{
		"an idle queue: all zero":             {0, 0},
		"all at the upper bound":              {30, 0.3},
		"at the upper bound, badly rounded":   {30.0000000001, 0.3},
		"a whisker below, still near the end": {29.9999, 0.3},
	} {
		t.Run(name, func(t *testing.T) {
			h := &Histogram{Bounds: []float64{0.3, 0.5}, Counts: []float64{100, 0, 0}, Count: 100, Sum: test.sum, HasSum: true}
			for _, q := range []float64{0.5, 0.95, 1} {
				got, ok := h.MeanConstrained(q)
				require.True(t, ok)
				assert.InDelta(t, test.want, got, 1e-5, "q %v", q)
			}
		})
	}
}

func TestMeanConstrainedFallsBackToLinear(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	bounds, counts := []float64{1, 2, 4}, []float64{4, 4, 4, 0}
	for name, h := range map[string]*Histogram{
		"no sum":                        {Bounds: bounds, Counts: counts, Count: 12, Sum: 18},
		"a sum too small":               {Bounds: bounds, Counts: counts, Count: 12, Sum: 11, HasSum: true},
		"a sum too large":               {Bounds: bounds, Counts: counts, Count: 12, Sum: 29, HasSum: true},
		"a negative sum":                {Bounds: bounds, Counts: counts, Count: 12, Sum: -1, HasSum: true},
		"a sum of NaN":                  {Bounds: bounds, Counts: counts, Count: 12, Sum: nan, HasSum: true},
		"an infinite sum":               {Bounds: bounds, Counts: []float64{4, 4, 4, 4}, Count: 16, Sum: inf, HasSum: true},
		"a first bound that is not >0":  {Bounds: []float64{0, 1, 4}, Counts: counts, Count: 12, Sum: 18, HasSum: true},
		"a first bound below 0, unused": {Bounds: []float64{-1, 1, 2, 4}, Counts: []float64{0, 0, 6, 6, 0}, Count: 12, Sum: 24, HasSum: true},
		"a negative count":              {Bounds: bounds, Counts: []float64{5, -0.25, 7.25, 0}, Count: 12, Sum: 24, HasSum: true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, q := range []float64{0.1, 0.5, 0.8} {
				want, ok := h.Quantile(q)
				require.True(t, ok)
				got, ok := h.MeanConstrained(q)
				require.True(t, ok)
				assert.Equal(t, want, got, "q %v", q)
			}
		})
	}
}

// The moments are checked against a numerical integral of the density.
func TestExponentialMoments(t *testing.T) {
	const steps = 100000
	for _, slope := range []float64{-60, -5, -1, -2e-3, -5e-4, 0, 5e-4, 2e-3, 1, 5, 60} {
		mass, first, second := 0.0, 0.0, 0.0
		for i := range steps {
			x := (float64(i) + 0.5) / steps
			density := math.Exp(slope*x - max(slope, 0))
			mass += density
			first += density * x
			second += density * x * x
		}
		first /= mass
		second = second/mass - first*first
		mean, variance := exponentialMoments(slope)
		assert.InDelta(t, first, mean, 1e-6, "mean at slope %v", slope)
		assert.InDelta(t, second, variance, 1e-6, "variance at slope %v", slope)
		assert.InDelta(t, 0.0, exponentialQuantile(0, slope), 1e-12)
		assert.InDelta(t, 1.0, exponentialQuantile(1, slope), 1e-12)
	}
}
