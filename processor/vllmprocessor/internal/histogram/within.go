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
