package window

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/promstore"
)

// prometheus computes the quantile with the function behind histogram_quantile.
func prometheus(q float64, h *Histogram) float64 {
	var buckets promql.Buckets
	sum := 0.0
	for i, count := range h.Counts {
		sum += count
		bound := math.Inf(1)
		if i < len(h.Bounds) {
			bound = h.Bounds[i]
		}
		buckets = append(buckets, promql.Bucket{UpperBound: bound, Count: sum})
	}
	quantile, _, _, _, _, _ := promql.BucketQuantile(q, buckets)
	return quantile
}

// random makes a histogram with bounds on either side of 0 or not, empty buckets,
// whole or fractional counts, and sometimes a cumulative count that falls.
func random(r *rand.Rand) *Histogram {
	h := &Histogram{HasSum: true}
	bound := r.Float64()
	if r.IntN(4) == 0 {
		bound -= 3
	}
	for range 1 + r.IntN(25) {
		h.Bounds = append(h.Bounds, bound)
		bound += r.ExpFloat64() + 1e-3
	}
	whole, falling := r.IntN(2) == 0, r.IntN(8) == 0
	for range len(h.Bounds) + 1 {
		count := float64(r.IntN(50)) * float64(r.IntN(2))
		if !whole {
			count *= r.Float64()
		}
		if falling && len(h.Counts) > 0 && r.IntN(5) == 0 {
			count = -count / 4
		}
		h.Counts = append(h.Counts, count)
		h.Count += count
	}
	h.Sum = h.Count * bound * r.Float64()
	return h
}

func TestQuantileEqualsPrometheus(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	found := 0
	for range 20000 {
		h := random(r)
		q := r.Float64()
		switch r.IntN(10) {
		case 0:
			q = 1
		case 1:
			q = 1e-9
		}
		got, ok := h.Quantile(q)
		want := prometheus(q, h)
		if !ok {
			require.True(t, math.IsNaN(want), "q %v of %+v: Prometheus says %v", q, h, want)
			continue
		}
		found++
		require.InDelta(t, want, got, 1e-12*max(1, math.Abs(want)), "q %v of %+v", q, h)
	}
	assert.Greater(t, found, 15000, "most random histograms have observations")
}

// The whole way in Prometheus: scraped counters, their increase over a window, its
// quantile. The counters were not zero when the window began.
func TestQuantileEqualsThePrometheusEngine(t *testing.T) {
	// At each scrape 1, 3, 5 and 1 observations more, by bucket.
	scraped := scrapes{"0.1": {3, 1}, "0.25": {8, 4}, "0.5": {8, 9}, "+Inf": {9, 10}}
	h := &Histogram{Bounds: []float64{0.1, 0.25, 0.5}, Counts: []float64{4, 12, 20, 4}, Count: 40}

	stored := promstore.Store{}
	for bound, counts := range scraped {
		for i := range 20 {
			at := time.Unix(0, 0).Add(time.Duration(i) * 15 * time.Second)
			stored.Add(at, counts.first+float64(i)*counts.step, "__name__", "x_bucket", "le", bound)
		}
	}
	for _, q := range []string{"0.05", "0.25", "0.5", "0.9", "0.95"} {
		want := stored.Ask(t, "histogram_quantile("+q+", increase(x_bucket[1m] anchored))", time.Unix(180, 0))
		number, err := strconv.ParseFloat(q, 64)
		require.NoError(t, err)
		got, ok := h.Quantile(number)
		require.True(t, ok)
		assert.InDelta(t, want, got, 1e-12, "q %v", q)
	}
}

// scrapes are the first cumulative count of each bucket and what every further
// scrape, 15 s later, adds to it.
type scrapes map[string]struct{ first, step float64 }

func TestQuantileAndIntervalByHand(t *testing.T) {
	inf := math.Inf(1)
	for name, test := range map[string]struct {
		h            Histogram
		q            float64
		want         float64
		lower, upper float64
	}{
		"the first bucket begins at 0":              {Histogram{Bounds: []float64{2, 4}, Counts: []float64{4, 0, 0}}, 0.5, 1, 0, 2},
		"on a bound, the lower bucket":              {Histogram{Bounds: []float64{2, 4}, Counts: []float64{4, 4, 0}}, 0.5, 2, 0, 2},
		"inside the second":                         {Histogram{Bounds: []float64{2, 4}, Counts: []float64{4, 4, 0}}, 0.75, 3, 2, 4},
		"the open bucket":                           {Histogram{Bounds: []float64{2, 4}, Counts: []float64{1, 0, 9}}, 0.5, 4, 4, inf},
		"a first bound of 0 has no lower bound":     {Histogram{Bounds: []float64{0, 4}, Counts: []float64{4, 0, 0}}, 0.5, 0, -inf, 0},
		"a negative first bound":                    {Histogram{Bounds: []float64{-3, 4}, Counts: []float64{4, 0, 0}}, 0.5, -3, -inf, -3},
		"q = 0 skips empty buckets":                 {Histogram{Bounds: []float64{2, 4}, Counts: []float64{0, 4, 0}}, 0, 2, 2, 4},
		"q = 1":                                     {Histogram{Bounds: []float64{2, 4}, Counts: []float64{1, 4, 0}}, 1, 4, 2, 4},
		"a fraction of an observation":              {Histogram{Bounds: []float64{2, 4}, Counts: []float64{0.25, 0.25, 0}}, 0.75, 3, 2, 4},
		"Count disagrees: the buckets are believed": {Histogram{Bounds: []float64{2, 4}, Counts: []float64{4, 4, 0}, Count: 80}, 0.75, 3, 2, 4},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := test.h.Quantile(test.q)
			require.True(t, ok)
			assert.Equal(t, test.want, got)
			lower, upper, ok := test.h.Interval(test.q)
			require.True(t, ok)
			assert.Equal(t, []float64{test.lower, test.upper}, []float64{lower, upper})
		})
	}
}

func TestNoQuantileWithoutAnAnswer(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	good := Histogram{Bounds: []float64{1, 2}, Counts: []float64{1, 1, 1}, Count: 3}
	for name, test := range map[string]struct {
		h Histogram
		q float64
	}{
		"nothing at all":         {Histogram{}, 0.5},
		"no observations":        {Histogram{Bounds: []float64{1}, Counts: []float64{0, 0}}, 0.5},
		"no finite bound":        {Histogram{Counts: []float64{5}, Count: 5}, 0.5},
		"one bucket missing":     {Histogram{Bounds: []float64{1, 2}, Counts: []float64{1, 1}, Count: 2}, 0.5},
		"bounds that descend":    {Histogram{Bounds: []float64{2, 1}, Counts: []float64{1, 1, 1}, Count: 3}, 0.5},
		"bounds that repeat":     {Histogram{Bounds: []float64{1, 1}, Counts: []float64{1, 1, 1}, Count: 3}, 0.5},
		"a bound of NaN":         {Histogram{Bounds: []float64{1, nan}, Counts: []float64{1, 1, 1}, Count: 3}, 0.5},
		"an infinite bound":      {Histogram{Bounds: []float64{1, inf}, Counts: []float64{1, 1, 1}, Count: 3}, 0.5},
		"a count of NaN":         {Histogram{Bounds: []float64{1}, Counts: []float64{1, nan}, Count: 3}, 0.5},
		"an infinite count":      {Histogram{Bounds: []float64{1}, Counts: []float64{inf, 1}, Count: 3}, 0.5},
		"a quantile below 0":     {good, -0.1},
		"a quantile above 1":     {good, 1.1},
		"a quantile that is NaN": {good, nan},
	} {
		t.Run(name, func(t *testing.T) {
			_, ok := test.h.Quantile(test.q)
			assert.False(t, ok, "Quantile")
			_, ok = test.h.MeanConstrained(test.q)
			assert.False(t, ok, "MeanConstrained")
			_, _, ok = test.h.Interval(test.q)
			assert.False(t, ok, "Interval")
		})
	}
}
