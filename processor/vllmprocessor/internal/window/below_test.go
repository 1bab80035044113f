package window

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// counted is a histogram of values of a distribution, and the values.
func counted(n int, bounds []float64, draw func() float64) (*Histogram, []float64) {
	h := &Histogram{Bounds: bounds, Counts: make([]float64, len(bounds)+1), HasSum: true}
	values := make([]float64, n)
	for i := range values {
		values[i] = draw()
		bucket := 0
		for bucket < len(bounds) && values[i] > bounds[bucket] {
			bucket++
		}
		h.Counts[bucket]++
		h.Count++
		h.Sum += values[i]
	}
	return h, values
}

// The share below a threshold is the quantile that is at the threshold.
func TestTheShareBelowIsTheInverseOfTheQuantile(t *testing.T) {
	t.Parallel()
	bounds := []float64{0.1, 0.25, 0.5, 1, 2.5}
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 21))
		scale := 0.1 + random.Float64()
		h, _ := counted(200, bounds, func() float64 { return scale * random.ExpFloat64() })
		for _, threshold := range []float64{0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 1.4, 2.4} {
			low, high := 0.0, 1.0
			for range 40 {
				q := (low + high) / 2
				if value, ok := h.MeanConstrained(q); ok && value <= threshold {
					low = q
				} else {
					high = q
				}
			}
			assert.InDelta(t, low, h.Below(threshold)/h.Count, 1e-6, "seed %d, below %g", seed, threshold)
		}
	}
}

// Where the density of a bucket can be written down, so can the share: one bucket from 0 to 1 with
// a mean below the middle has the density e^(slope x), and what is below t is
// (e^(slope t) - 1) / (e^slope - 1).
func TestTheShareOfOneBucketFollowsFromItsMean(t *testing.T) {
	t.Parallel()
	// The mean of a density e^(-3 x) on [0, 1], by numerical integration.
	mass, moment := 0.0, 0.0
	const steps = 1_000_000
	for i := range steps {
		x := (float64(i) + 0.5) / steps
		mass += math.Exp(-3*x) / steps
		moment += x * math.Exp(-3*x) / steps
	}
	h := &Histogram{Bounds: []float64{1}, Counts: []float64{1000, 0}, Count: 1000, Sum: 1000 * moment / mass, HasSum: true}
	for _, at := range []float64{0.1, 0.5, 0.9} {
		share := 0.0
		for i := range int(at * steps) {
			share += math.Exp(-3*(float64(i)+0.5)/steps) / steps / mass
		}
		assert.InDelta(t, share, h.Below(at)/1000, 1e-5, "below %g", at)
	}
}

// It is nearer to the truth than a bucket that is divided evenly, and stays within what is
// certain.
func TestTheShareBelowIsNearTheTruth(t *testing.T) {
	t.Parallel()
	bounds := []float64{0.1, 0.25, 0.5, 1, 2.5}
	errorOf, errorOfLine := 0.0, 0.0
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 22))
		h, values := counted(2000, bounds, func() float64 { return 0.3 * math.Exp(0.5*random.NormFloat64()) })
		const threshold = 0.7
		good, undecided := h.Within(threshold)
		got := h.Below(threshold)
		assert.True(t, got >= good && got <= good+undecided)
		truth := 0.0
		for _, x := range values {
			if x <= threshold {
				truth++
			}
		}
		errorOf += math.Abs(got-truth) / 2000 / 50
		errorOfLine += math.Abs(good+undecided*(threshold-0.5)/0.5-truth) / 2000 / 50
	}
	assert.Less(t, errorOf, 0.02)
	assert.Less(t, errorOf, errorOfLine/2)
}

// It rises with the threshold, and is exact at the bounds. What cannot be estimated is not
// counted as below.
func TestTheShareBelowAtItsLimits(t *testing.T) {
	t.Parallel()
	h := &Histogram{Bounds: []float64{1, 2, 4}, Counts: []float64{10, 20, 30, 40}, Count: 100, Sum: 400, HasSum: true}
	before := 0.0
	for threshold := -1.0; threshold < 10; threshold += 0.01 {
		got := h.Below(threshold)
		require.GreaterOrEqual(t, got, before, threshold)
		before = got
	}
	assert.InDelta(t, 10, h.Below(1), 0)
	assert.InDelta(t, 30, h.Below(2), 0)
	assert.InDelta(t, 60, h.Below(4), 0)
	assert.InDelta(t, 60, h.Below(1000), 0, "where the open bucket ends is not known")
	assert.InDelta(t, 100, h.Below(math.Inf(1)), 0)
	assert.InDelta(t, 0, h.Below(math.NaN()), 0)
	h.HasSum = false
	assert.InDelta(t, 45, h.Below(3), 1e-9, "without a sum a bucket is divided evenly")
	assert.InDelta(t, 0, (&Histogram{Counts: []float64{5}, Count: 5}).Below(1), 0, "without buckets")
	assert.InDelta(t, 0, (&Histogram{Bounds: []float64{2, 1}, Counts: []float64{1, 2, 3}, Count: 6}).Below(1.5), 0, "malformed")
	// All at the lower, or at the upper ends of their buckets.
	h = &Histogram{Bounds: []float64{1, 2}, Counts: []float64{0, 10, 0}, Count: 10, Sum: 10, HasSum: true}
	assert.InDelta(t, 10, h.Below(1.1), 1e-9)
	h.Sum = 20
	assert.InDelta(t, 0, h.Below(1.9), 1e-9)
}
