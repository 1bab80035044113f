package window

import "math"

// Quantile returns the q-quantile, 0 <= q <= 1, as Prometheus's
// histogram_quantile does: linear interpolation in the bucket that holds rank
// q x observations. The first bucket begins at 0; where its bound is not above 0,
// its bound is the answer. The open bucket answers with the highest finite bound.
//
// The number of observations is that of the buckets, not Count. A cumulative count that
// falls is held at its maximum, as in Prometheus. ok is false without observations,
// without a finite bound or for another q. One difference: for q = 0 and an empty first
// bucket Prometheus returns NaN, and this function returns the lower bound of the first
// bucket with observations.
func (h *Histogram) Quantile(q float64) (float64, bool) {
	at, ok := h.locate(q)
	if !ok {
		return 0, false
	}
	return h.linear(at), true
}

// Interval returns the bounds of the bucket with the q-quantile. More is not known
// without an estimate. The upper bound of the open bucket is +Inf.
// The lower bound of the first is 0, or -Inf where its upper bound is not above 0.
func (h *Histogram) Interval(q float64) (lower, upper float64, ok bool) {
	at, ok := h.locate(q)
	if !ok {
		return 0, 0, false
	}
	lower, upper = h.edges(at.bucket)
	return lower, upper, true
}

// position is where a rank lies.
type position struct {
	bucket   int
	fraction float64 // of the bucket's observations, 0 to 1
}

// locate finds the first bucket with observations whose cumulative count reaches
// the rank of q.
func (h *Histogram) locate(q float64) (position, bool) {
	if !(q >= 0 && q <= 1) || len(h.Bounds) == 0 || !h.wellFormed() {
		return position{}, false
	}
	total, sum := 0.0, 0.0
	for _, count := range h.Counts {
		sum += count
		total = max(total, sum)
	}
	if total == 0 || math.IsInf(total, 0) || math.IsNaN(total) {
		return position{}, false
	}

	rank := q * total
	below := 0.0
	sum = 0
	for i, count := range h.Counts {
		sum += count
		if sum <= below {
			continue
		}
		if sum >= rank {
			return position{bucket: i, fraction: (rank - below) / (sum - below)}, true
		}
		below = sum
	}
	return position{}, false
}

func (h *Histogram) edges(bucket int) (lower, upper float64) {
	switch {
	case bucket > 0:
		lower = h.Bounds[bucket-1]
	case h.Bounds[0] <= 0:
		lower = math.Inf(-1)
	}
	if bucket == len(h.Bounds) {
		return lower, math.Inf(1)
	}
	return lower, h.Bounds[bucket]
}

func (h *Histogram) linear(at position) float64 {
	lower, upper := h.edges(at.bucket)
	switch {
	case math.IsInf(upper, 1):
		return lower
	case math.IsInf(lower, -1):
		return upper
	}
	return between(lower, upper, at.fraction)
}

// between interpolates without leaving [lower, upper] through rounding, and without an
// overflow where the width of the bucket overflows.
func between(lower, upper, fraction float64) float64 {
	width := upper - lower
	if math.IsInf(width, 1) {
		return lower*(1-fraction) + upper*fraction
	}
	return min(lower+width*fraction, upper)
}
