package emit

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

// expected says what becomes of a histogram by the rules of OpenTelemetry's Prometheus
// compatibility specification: the bounds are the finite values of le, and the count of a bucket is
// the difference of its number and that of the bucket before. It works with exact numbers. ok is false
// for a histogram whose numbers cannot all be counts of the same events.
func expected(parts []exposition.Series, common, values []float64) (bounds []float64, counts []int64, total int64, ok bool) {
	exact := func(slot int) (int64, bool) {
		if math.IsNaN(values[slot]) || math.IsInf(values[slot], 0) {
			return 0, false
		}
		n := new(big.Float).SetFloat64(values[slot])
		whole, accuracy := n.Int64()
		return whole, accuracy == big.Exact && whole >= 0 && whole <= 1<<53
	}
	cumulative := map[float64]int64{}
	for i := range parts {
		before := int64(0)
		for _, b := range parts[i].Buckets {
			n, is := exact(b.Slot)
			if !is || n < before {
				return nil, nil, 0, false
			}
			before = n
			cumulative[b.UpperBound] += n
		}
		count, is := exact(parts[i].Count)
		if !is || count != before {
			return nil, nil, 0, false
		}
		total += count
	}
	if bounds = common; bounds == nil {
		for _, b := range parts[0].Buckets[:len(parts[0].Buckets)-1] {
			bounds = append(bounds, b.UpperBound)
		}
	}
	before := int64(0)
	for _, bound := range append(slices.Clone(bounds), inf) {
		counts = append(counts, cumulative[bound]-before)
		before = cumulative[bound]
	}
	return bounds, counts, total, true
}

func TestHistogramsFollowTheSpecification(t *testing.T) {
	odd := []float64{math.NaN(), inf, -inf, -1, math.Copysign(0, -1), 0, 0.5, 1, 1 << 53, 1<<53 + 2, 1<<53 - 1, 5e-324, math.MaxUint64, 1e300}
	levels := []float64{-inf, -1, math.Copysign(0, -1), 5e-324, 0.1, 1, 2.5, 1e9, math.MaxFloat64}
	random := rand.New(rand.NewPCG(3, 5))
	good, bad := 0, 0
	for range 20000 {
		var values []float64
		add := func(n float64) int {
			values = append(values, n)
			return len(values) - 1
		}
		var parts []exposition.Series
		var common []float64
		for range 1 + random.IntN(3) {
			var bounds []float64
			for _, level := range levels {
				if random.IntN(3) > 0 {
					bounds = append(bounds, level)
				}
			}
			series := exposition.Series{Value: none, Sum: none, Created: none}
			n := 0.0
			for _, bound := range append(slices.Clone(bounds), inf) {
				n += float64(random.IntN(4))
				series.Buckets = append(series.Buckets, exposition.Bucket{UpperBound: bound, Slot: add(n)})
			}
			series.Count = add(n)
			if parts == nil {
				common = bounds
			} else {
				common = slices.DeleteFunc(slices.Clone(common), func(b float64) bool { return !slices.Contains(bounds, b) })
			}
			parts = append(parts, series)
		}
		for random.IntN(2) == 0 {
			values[random.IntN(len(values))] = odd[random.IntN(len(odd))]
		}
		point := normalize.Point{Parts: parts}
		if len(parts) > 1 || random.IntN(4) == 0 {
			point.Bounds = append([]float64{}, common...)
		}
		bounds, counts, total, ok := expected(parts, point.Bounds, values)
		r := newRig(t, Settings{})
		metrics := r.scrape(0, planOf(metricOf(catalog.KindHistogram, "h", point)), values...)
		if !ok {
			bad++
			require.Zero(t, metrics.Len(), "%v in %+v", values, parts)
			continue
		}
		good++
		require.Equal(t, 1, metrics.Len(), "%v in %+v", values, parts)
		p := metrics.At(0).Histogram().DataPoints().At(0)
		require.Equal(t, append([]float64{}, bounds...), append([]float64{}, p.ExplicitBounds().AsRaw()...))
		require.EqualValues(t, total, p.Count())
		require.Equal(t, len(counts), p.BucketCounts().Len())
		for i, n := range counts {
			require.EqualValues(t, n, p.BucketCounts().At(i), "%v in %+v", values, parts)
		}
	}
	assert.Greater(t, good, 5000)
	assert.Greater(t, bad, 5000)
}
