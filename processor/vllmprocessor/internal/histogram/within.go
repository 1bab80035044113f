package histogram

import (
	"math"
	"slices"
)

// Within returns how many observations are certainly at most threshold. undecided is the
// number in the bucket that the threshold splits; it is 0 where the threshold is a bound.
// Without buckets all are undecided.
func (h *Histogram) Within(threshold float64) (good, undecided float64) {
	if math.IsNaN(threshold) || !h.wellFormed() {
		return 0, h.Count
	}
	if math.IsInf(threshold, 1) {
		return h.Count, 0
	}
	i, exact := slices.BinarySearch(h.Bounds, threshold)
	for _, count := range h.Counts[:i] {
		good += count
	}
	if exact {
		return good + h.Counts[i], 0
	}
	return good, h.Counts[i]
}

// Below estimates how many observations are at most threshold, as MeanConstrained does: within
// the bucket that the threshold splits, the density bends with its neighbours and with the mean.
// What is beyond the last bound counts as beyond, and so does everything without buckets.
func (h *Histogram) Below(threshold float64) float64 {
	good, undecided := h.Within(threshold)
	if undecided == 0 || len(h.Bounds) == 0 || math.IsNaN(threshold) || !h.wellFormed() {
		return good
	}
	i, _ := slices.BinarySearch(h.Bounds, threshold)
	lower, upper := h.edges(i)
	if math.IsInf(upper, 1) || !(upper > lower) {
		return good
	}
	at := min(max((threshold-lower)/(upper-lower), 0), 1)
	if tilt, ok := h.tilt(); ok {
		at = exponentialShare(at, (h.slope(i)+tilt)*(upper-lower))
	}
	return good + undecided*at
}
