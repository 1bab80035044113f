package window

import (
	"encoding/binary"
	"math"
	"testing"
)

// numbersOf reads any float64 there is: NaN, infinities, subnormal numbers.
func numbersOf(data []byte) []float64 {
	var all []float64
	for len(data) >= 8 {
		all = append(all, math.Float64frombits(binary.LittleEndian.Uint64(data)))
		data = data[8:]
	}
	return all
}

func encoded(values ...float64) []byte {
	var data []byte
	for _, value := range values {
		data = binary.LittleEndian.AppendUint64(data, math.Float64bits(value))
	}
	return data
}

func seeds(f *testing.F) {
	f.Helper()
	nan, inf := math.NaN(), math.Inf(1)
	f.Add(encoded(1, 2, 4), encoded(3, 2, 1, 1), 12.0, 7.0, 0.5, 0.95)
	f.Add(encoded(1, 2, 4), encoded(3, 0, 0, 0), 0.0, 3.0, 0.5, 1.0)
	f.Add(encoded(0.3), encoded(0, 5), 1e9, 5.0, 0.0, 1.0)
	f.Add(encoded(-1, 0, 1), encoded(3, 2, -1, 1), -2.0, 5.0, 0.0, 1.0)
	f.Add(encoded(-1e308, 1e308), encoded(1, 1, 1), 1.0, 3.0, 0.5, 0.6)
	f.Add(encoded(5e-324, 1e308), encoded(1e300, 1e300, 1e300), 1e300, 3e300, 0.5, 0.6)
	f.Add(encoded(1, nan), encoded(1, inf, 1), nan, inf, 0.5, nan)
	f.Add(encoded(), encoded(5), 1.0, 5.0, 0.5, 0.5)
	f.Add(encoded(2, 1), encoded(), 1.0, 5.0, -1.0, 2.0)
}

func FuzzQuantiles(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, bounds, counts []byte, sum, count, q1, q2 float64) {
		h := &Histogram{Bounds: numbersOf(bounds), Counts: numbersOf(counts), Count: count, Sum: sum, HasSum: true}
		if q1 > q2 {
			q1, q2 = q2, q1
		}
		for name, quantile := range map[string]func(float64) (float64, bool){
			"Quantile": h.Quantile, "MeanConstrained": h.MeanConstrained,
		} {
			last := math.Inf(-1)
			for _, q := range []float64{q1, q2} {
				value, ok := quantile(q)
				lower, upper, okInterval := h.Interval(q)
				if ok != okInterval {
					t.Fatalf("%s(%v) is there: %v, its interval: %v", name, q, ok, okInterval)
				}
				if !ok {
					continue
				}
				if math.IsNaN(value) || math.IsInf(value, 0) || value < lower || value > upper {
					t.Fatalf("%s(%v) = %v, not in [%v, %v], of %+v", name, q, value, lower, upper, h)
				}
				if value < last {
					t.Fatalf("%s falls from %v to %v between %v and %v, of %+v", name, last, value, q1, q2, h)
				}
				last = value
			}
		}
		if mean, ok := h.Mean(); ok && (math.IsNaN(mean) || math.IsInf(mean, 0)) {
			t.Fatalf("Mean() = %v", mean)
		}
	})
}

func FuzzAdd(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, bounds, counts []byte, sum, count, n, threshold float64) {
		part := &Histogram{Bounds: numbersOf(bounds), Counts: numbersOf(counts), Count: count, Sum: sum, HasSum: true}
		other := &Histogram{Bounds: []float64{-1, 0.5, 1, 4}, Counts: []float64{1, 2, 3, 4, 5}, Count: 15}
		var h Histogram
		for _, p := range []*Histogram{part, other, part} {
			h.Add(p)
			h.Within(threshold)
		}
		if len(h.Counts) != len(h.Bounds)+1 {
			t.Fatalf("%d bounds, %d counts", len(h.Bounds), len(h.Counts))
		}
		if exact := h.RemoveZeros(n); exact && !(n >= 0) {
			t.Fatalf("removed %v observations", n)
		}
	})
}
