package window

import (
	"math"
	"slices"
)

// Histogram is what a histogram with explicit bounds counted over some time.
//
// A histogram whose bounds are not finite and ascending, or that has not one
// bucket more than bounds, is malformed. It answers like one without buckets:
// only its count and sum are used.
type Histogram struct {
	Bounds []float64 // finite upper inclusive bounds, ascending; no +Inf
	Counts []float64 // len(Bounds)+1, per bucket (not cumulative); the last is the open one
	Count  float64   // all observations
	Sum    float64   // meaningless unless HasSum
	HasSum bool
}

// Mean returns sum / count; false without a sum or without observations.
func (h *Histogram) Mean() (float64, bool) {
	if !h.HasSum || !(h.Count > 0) {
		return 0, false
	}
	mean := h.Sum / h.Count
	return mean, !math.IsNaN(mean) && !math.IsInf(mean, 0)
}

// Reset empties the histogram and reuses its memory.
func (h *Histogram) Reset() {
	*h = Histogram{Bounds: h.Bounds[:0], Counts: h.Counts[:0]}
}

// Add adds the observations of another histogram. The slices of h must be its
// own; those of other are only read.
//
// Where bounds differ, the bounds that both have remain. The result is coarser but
// correct: a bucket between common bounds is a sum of whole buckets of either side.
// Without a common bound only count and sum remain. Bounds are common when they are the
// same float64. A side without observations is ignored, with its bounds and its lack of
// a sum.
func (h *Histogram) Add(other *Histogram) {
	if h.Count == 0 {
		h.copyFrom(other)
		return
	}
	if other.Count == 0 {
		return
	}
	h.Count += other.Count
	h.Sum += other.Sum
	h.HasSum = h.HasSum && other.HasSum
	if h.wellFormed() && other.wellFormed() {
		h.addBuckets(other)
	} else {
		h.keepNoBuckets()
	}
}

func (h *Histogram) copyFrom(other *Histogram) {
	h.Count, h.Sum, h.HasSum = other.Count, other.Sum, other.HasSum
	if !other.wellFormed() {
		h.keepNoBuckets()
		return
	}
	h.Bounds = append(h.Bounds[:0], other.Bounds...)
	h.Counts = append(h.Counts[:0], other.Counts...)
}

// keepNoBuckets reduces h to one open bucket with all observations.
func (h *Histogram) keepNoBuckets() {
	h.Bounds, h.Counts = h.Bounds[:0], append(h.Counts[:0], h.Count)
}

func (h *Histogram) addBuckets(other *Histogram) {
	if slices.Equal(h.Bounds, other.Bounds) {
		for i, count := range other.Counts {
			h.Counts[i] += count
		}
		return
	}

	// The result overwrites buckets that have been read. It never has more of them.
	common, i, j, open := 0, 0, 0, 0.0
	for i < len(h.Bounds) && j < len(other.Bounds) {
		mine, theirs := h.Bounds[i], other.Bounds[j]
		if mine <= theirs {
			open += h.Counts[i]
			i++
		}
		if theirs <= mine {
			open += other.Counts[j]
			j++
		}
		if mine == theirs {
			h.Bounds[common], h.Counts[common] = mine, open
			common, open = common+1, 0
		}
	}
	for _, count := range h.Counts[i:] {
		open += count
	}
	for _, count := range other.Counts[j:] {
		open += count
	}
	h.Counts[common] = open
	h.Bounds, h.Counts = h.Bounds[:common], h.Counts[:common+1]
}

// RemoveZeros removes n observations of the value 0 from the count and from the bucket of
// 0. The sum is not changed. It reports whether all n could be removed. A bucket with
// fewer is emptied.
func (h *Histogram) RemoveZeros(n float64) bool {
	if !(n >= 0) {
		return false
	}
	from := &h.Count
	if h.wellFormed() {
		i, _ := slices.BinarySearch(h.Bounds, 0)
		from = &h.Counts[i]
	}
	removed := min(n, max(*from, 0))
	if from != &h.Count {
		*from -= removed
	}
	h.Count = max(h.Count-removed, 0)
	return removed == n
}

// wellFormed reports whether the buckets are valid, see Histogram.
func (h *Histogram) wellFormed() bool {
	if len(h.Counts) != len(h.Bounds)+1 {
		return false
	}
	last := math.Inf(-1)
	for _, bound := range h.Bounds {
		if !(bound > last) || math.IsInf(bound, 1) {
			return false
		}
		last = bound
	}
	for _, count := range h.Counts {
		if math.IsNaN(count) || math.IsInf(count, 0) {
			return false
		}
	}
	return true
}

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
