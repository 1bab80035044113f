package observed

import (
	"fmt"
	"sort"
)

// Histogram counts observations between fixed bounds. Its bounds are the union
// of what all vLLM versions use for a family, so that any version's buckets can
// be read from it exactly.
type Histogram struct {
	bounds []float64
	// atMost[i] counts observations v with bounds[i-1] < v <= bounds[i], and
	// below[i] those with bounds[i-1] <= v < bounds[i]. Ray needs the second
	// kind: its upper bounds are exclusive.
	atMost, below []uint64
	// Sum is the sum of all observations.
	Sum float64
	// Count is the number of observations.
	Count uint64
}

// NewHistogram returns an empty histogram with the given ascending bounds.
func NewHistogram(bounds []float64) *Histogram {
	return &Histogram{
		bounds: bounds,
		atMost: make([]uint64, len(bounds)+1),
		below:  make([]uint64, len(bounds)+1),
	}
}

// Empty returns an empty histogram with the same bounds.
func (h *Histogram) Empty() *Histogram { return NewHistogram(h.bounds) }

// Observe adds one observation.
func (h *Histogram) Observe(v float64) { h.ObserveN(v, 1) }

// ObserveN adds n equal observations.
func (h *Histogram) ObserveN(v float64, n int) {
	if n <= 0 {
		return
	}
	i := sort.SearchFloat64s(h.bounds, v)
	h.atMost[i] += uint64(n)
	if i < len(h.bounds) && h.bounds[i] == v {
		i++
	}
	h.below[i] += uint64(n)
	h.Sum += v * float64(n)
	h.Count += uint64(n)
}

// Cumulative returns, for each of the given ascending bounds, how many
// observations were at most that bound; with exclusive set, how many were
// below it. It fails when a bound is not one of the histogram's own, because
// the counts could then only be guessed.
func (h *Histogram) Cumulative(bounds []float64, exclusive bool) ([]uint64, error) {
	counts := h.atMost
	if exclusive {
		counts = h.below
	}
	out := make([]uint64, len(bounds))
	var total uint64
	next := 0
	for i, bound := range bounds {
		for next < len(h.bounds) && h.bounds[next] <= bound {
			total += counts[next]
			next++
		}
		if next == 0 || h.bounds[next-1] != bound {
			return nil, fmt.Errorf("bound %v is not kept by this histogram", bound)
		}
		out[i] = total
	}
	return out, nil
}

// Add merges another histogram with the same bounds into this one.
func (h *Histogram) Add(other *Histogram) {
	for i := range h.atMost {
		h.atMost[i] += other.atMost[i]
		h.below[i] += other.below[i]
	}
	h.Sum += other.Sum
	h.Count += other.Count
}
