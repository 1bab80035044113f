package window

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAddSumsEqualBounds(t *testing.T) {
	var h Histogram
	h.Add(&Histogram{Bounds: []float64{1, 2}, Counts: []float64{1, 2, 3}, Count: 6, Sum: 12, HasSum: true})
	h.Add(&Histogram{Bounds: []float64{1, 2}, Counts: []float64{4, 0, 1}, Count: 5, Sum: 7, HasSum: true})
	assert.Equal(t, Histogram{Bounds: []float64{1, 2}, Counts: []float64{5, 2, 4}, Count: 11, Sum: 19, HasSum: true}, h)
}

func TestAddKeepsTheCommonBounds(t *testing.T) {
	// Before vLLM 0.8.4 the buckets of the time to first token ended at 10.
	var h Histogram
	h.Add(&Histogram{Bounds: []float64{1, 5, 10}, Counts: []float64{1, 2, 3, 4}, Count: 10})
	h.Add(&Histogram{Bounds: []float64{1, 2, 10, 20}, Counts: []float64{10, 20, 30, 40, 50}, Count: 150})
	assert.Equal(t, Histogram{Bounds: []float64{1, 10}, Counts: []float64{11, 55, 94}, Count: 160}, h)
}

func TestAddWithoutACommonBoundKeepsCountAndSum(t *testing.T) {
	var h Histogram
	h.Add(&Histogram{Bounds: []float64{1, 3}, Counts: []float64{1, 2, 3}, Count: 6, Sum: 12, HasSum: true})
	h.Add(&Histogram{Bounds: []float64{2}, Counts: []float64{1, 1}, Count: 2, Sum: 4, HasSum: true})
	assert.Empty(t, h.Bounds)
	_, ok := h.Quantile(0.5)
	assert.False(t, ok)
	mean, ok := h.Mean()
	assert.True(t, ok)
	assert.Equal(t, 2.0, mean)

	// What comes later cannot bring the buckets back.
	h.Add(&Histogram{Bounds: []float64{1, 3}, Counts: []float64{1, 0, 0}, Count: 1, Sum: 1, HasSum: true})
	assert.Empty(t, h.Bounds)
	assert.Equal(t, []float64{9}, h.Counts)
	assert.Equal(t, 9.0, h.Count)
}

func TestAMalformedPartTakesTheBucketsWithIt(t *testing.T) {
	good := Histogram{Bounds: []float64{1}, Counts: []float64{1, 2}, Count: 3}
	malformed := Histogram{Bounds: []float64{1, 2}, Counts: []float64{5}, Count: 5}
	for name, parts := range map[string][]Histogram{"last": {good, malformed}, "first": {malformed, good}} {
		t.Run(name, func(t *testing.T) {
			var h Histogram
			for _, part := range parts {
				h.Add(&part)
			}
			assert.Empty(t, h.Bounds)
			assert.Equal(t, []float64{8}, h.Counts)
			assert.Equal(t, 8.0, h.Count)
		})
	}
}

func TestAPartWithoutObservationsIsIgnored(t *testing.T) {
	busy := Histogram{Bounds: []float64{1, 2}, Counts: []float64{1, 2, 3}, Count: 6, Sum: 12, HasSum: true}
	idle := Histogram{Bounds: []float64{7}, Counts: []float64{0, 0}} // nor has its missing sum
	for name, parts := range map[string][]Histogram{"last": {busy, idle}, "first": {idle, busy}} {
		t.Run(name, func(t *testing.T) {
			var h Histogram
			for _, part := range parts {
				h.Add(&part)
			}
			assert.Equal(t, busy, h)
		})
	}
}

func TestOnePartWithoutASumTakesTheSum(t *testing.T) {
	with := Histogram{Bounds: []float64{1}, Counts: []float64{1, 0}, Count: 1, Sum: 1, HasSum: true}
	without := Histogram{Bounds: []float64{1}, Counts: []float64{1, 0}, Count: 1}
	for name, parts := range map[string][]Histogram{"last": {with, without}, "first": {without, with}} {
		t.Run(name, func(t *testing.T) {
			var h Histogram
			for _, part := range parts {
				h.Add(&part)
			}
			assert.False(t, h.HasSum)
			_, ok := h.Mean()
			assert.False(t, ok)
		})
	}
}

// Whatever order and whatever bounds: the buckets hold what was observed at most at
// each bound that all parts have.
func TestAddCountsWhatLiesBelowEachCommonBound(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		var parts []*Histogram
		var values []float64
		common := []float64{1, 2, 3, 4, 5, 6}
		for range 1 + r.IntN(4) {
			part := &Histogram{HasSum: true}
			for bound := 1.0; bound <= 6; bound++ {
				if r.IntN(4) > 0 {
					part.Bounds = append(part.Bounds, bound)
				}
			}
			part.Counts = make([]float64, len(part.Bounds)+1)
			for range 1 + r.IntN(20) {
				value := float64(r.IntN(80)) / 10
				values = append(values, value)
				i, _ := slices.BinarySearch(part.Bounds, value)
				part.Counts[i]++
				part.Count++
				part.Sum += value
			}
			common = slices.DeleteFunc(common, func(bound float64) bool { return !slices.Contains(part.Bounds, bound) })
			parts = append(parts, part)
		}
		var h Histogram
		for _, part := range parts {
			before := Histogram{Bounds: slices.Clone(part.Bounds), Counts: slices.Clone(part.Counts)}
			h.Add(part)
			require.Equal(t, before.Bounds, part.Bounds, "a part is only read")
			require.Equal(t, before.Counts, part.Counts, "a part is only read")
		}

		require.Equal(t, common, append([]float64{}, h.Bounds...))
		require.Len(t, h.Counts, len(common)+1)
		cumulative := 0.0
		for i, bound := range append(common, math.Inf(1)) {
			cumulative += h.Counts[i]
			below := 0.0
			for _, value := range values {
				if value <= bound {
					below++
				}
			}
			require.Equal(t, below, cumulative, "at most %v", bound)
		}
		require.Equal(t, float64(len(values)), h.Count)
	}
}

func TestResetForgetsEverything(t *testing.T) {
	var h Histogram
	h.Add(&Histogram{Bounds: []float64{1, 3}, Counts: []float64{1, 2, 3}, Count: 6, Sum: 12, HasSum: true})
	h.Reset()
	assert.Zero(t, h.Count)
	h.Add(&Histogram{Bounds: []float64{2}, Counts: []float64{1, 1}, Count: 2})
	assert.Equal(t, Histogram{Bounds: []float64{2}, Counts: []float64{1, 1}, Count: 2}, h)
}

func TestMean(t *testing.T) {
	mean, ok := (&Histogram{Count: 4, Sum: 6, HasSum: true}).Mean()
	assert.True(t, ok)
	assert.Equal(t, 1.5, mean)
	for name, h := range map[string]Histogram{
		"no sum":          {Count: 4, Sum: 6},
		"no observations": {HasSum: true},
		"a sum of NaN":    {Count: 4, Sum: math.NaN(), HasSum: true},
		"a count of NaN":  {Count: math.NaN(), Sum: 1, HasSum: true},
		"infinite sum":    {Count: 4, Sum: math.Inf(1), HasSum: true},
	} {
		_, ok := h.Mean()
		assert.False(t, ok, name)
	}
}

func TestRemoveZeros(t *testing.T) {
	for name, test := range map[string]struct {
		h     Histogram
		n     float64
		want  Histogram
		exact bool
	}{
		"from the first bucket": {
			Histogram{Bounds: []float64{1, 2}, Counts: []float64{5, 1, 0}, Count: 6, Sum: 3, HasSum: true},
			2,
			Histogram{Bounds: []float64{1, 2}, Counts: []float64{3, 1, 0}, Count: 4, Sum: 3, HasSum: true},
			true,
		},
		"more than there are": {
			Histogram{Bounds: []float64{1, 2}, Counts: []float64{5, 1, 0}, Count: 6},
			7,
			Histogram{Bounds: []float64{1, 2}, Counts: []float64{0, 1, 0}, Count: 1},
			false,
		},
		"none": {
			Histogram{Bounds: []float64{1}, Counts: []float64{5, 1}, Count: 6},
			0,
			Histogram{Bounds: []float64{1}, Counts: []float64{5, 1}, Count: 6},
			true,
		},
		"fewer than none": {
			Histogram{Bounds: []float64{1}, Counts: []float64{5, 1}, Count: 6},
			-1,
			Histogram{Bounds: []float64{1}, Counts: []float64{5, 1}, Count: 6},
			false,
		},
		"from the bucket that holds 0": {
			Histogram{Bounds: []float64{-1, 1}, Counts: []float64{5, 5, 0}, Count: 10},
			2,
			Histogram{Bounds: []float64{-1, 1}, Counts: []float64{5, 3, 0}, Count: 8},
			true,
		},
		"a bound of 0 is inclusive": {
			Histogram{Bounds: []float64{0, 1}, Counts: []float64{5, 5, 0}, Count: 10},
			2,
			Histogram{Bounds: []float64{0, 1}, Counts: []float64{3, 5, 0}, Count: 8},
			true,
		},
		"without buckets, from the count": {
			Histogram{Count: 10, Sum: 5, HasSum: true},
			2,
			Histogram{Count: 8, Sum: 5, HasSum: true},
			true,
		},
		"with the open bucket only": {
			Histogram{Counts: []float64{10}, Count: 10},
			2,
			Histogram{Counts: []float64{8}, Count: 8},
			true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.exact, test.h.RemoveZeros(test.n))
			assert.Equal(t, test.want, test.h)
		})
	}
}

func TestWithin(t *testing.T) {
	h := Histogram{Bounds: []float64{1, 2, 5}, Counts: []float64{10, 20, 30, 40}, Count: 100}
	for name, test := range map[string]struct{ threshold, good, undecided float64 }{
		"on a bound":            {2, 30, 0},
		"between two bounds":    {3, 30, 30},
		"below the first bound": {0.5, 0, 10},
		"on the last bound":     {5, 60, 0},
		"beyond the last bound": {6, 60, 40},
		"infinite":              {math.Inf(1), 100, 0},
		"NaN":                   {math.NaN(), 0, 100},
	} {
		t.Run(name, func(t *testing.T) {
			good, undecided := h.Within(test.threshold)
			assert.Equal(t, test.good, good)
			assert.Equal(t, test.undecided, undecided)
		})
	}

	good, undecided := (&Histogram{Count: 7}).Within(3)
	assert.Equal(t, []float64{0, 7}, []float64{good, undecided}, "without buckets nothing can be said")
}

// The width of the bucket is more than a float64 holds.
func TestAQuantileInAHugeBucketStaysInIt(t *testing.T) {
	h := Histogram{Bounds: []float64{-1.5e308, 1.5e308}, Counts: []float64{0, 4, 0}, Count: 4}
	for q, want := range map[float64]float64{0: -1.5e308, 0.25: -0.75e308, 0.5: 0, 1: 1.5e308} {
		got, ok := h.Quantile(q)
		require.True(t, ok)
		assert.InDelta(t, want, got, 1e299)
	}
}

// A histogram that is not one answers as one without buckets.
func TestWhatIsMalformed(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for name, h := range map[string]Histogram{
		"no bucket for the rest": {Bounds: []float64{1, 2}, Counts: []float64{1, 1}},
		"a bucket too many":      {Bounds: []float64{1}, Counts: []float64{1, 1, 1}},
		"equal bounds":           {Bounds: []float64{1, 1}, Counts: []float64{1, 1, 1}},
		"falling bounds":         {Bounds: []float64{2, 1}, Counts: []float64{1, 1, 1}},
		"a bound at infinity":    {Bounds: []float64{1, inf}, Counts: []float64{1, 1, 1}},
		"a bound below all":      {Bounds: []float64{math.Inf(-1), 1}, Counts: []float64{1, 1, 1}},
		"no number as a bound":   {Bounds: []float64{nan}, Counts: []float64{1, 1}},
		"an infinite count":      {Bounds: []float64{1}, Counts: []float64{1, inf}},
		"no number as a count":   {Bounds: []float64{1}, Counts: []float64{nan, 1}},
	} {
		h.Count, h.Sum, h.HasSum = 3, 6, true
		_, ok := h.Quantile(0.5)
		assert.False(t, ok, name)
		good, undecided := h.Within(1)
		assert.Equal(t, []float64{0, 3}, []float64{good, undecided}, name)
		mean, ok := h.Mean()
		assert.True(t, ok, name)
		assert.Equal(t, 2.0, mean, name)
		sum := Histogram{}
		sum.Add(&h)
		assert.Equal(t, []float64{3}, sum.Counts, name)
	}
}
