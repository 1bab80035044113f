package window

import "math"

const (
	// halfAnObservation is added to the counts for slopes: an empty bucket has no
	// logarithm, and a small count makes an uncertain slope.
	halfAnObservation = 0.5

	// steepest limits how far neighbours bend the density of a bucket: by a
	// factor of e^steepest from one end to the other. The mean may bend it more.
	steepest = 5

	// Newton's method needs five to ten steps; a sum that is all but impossible
	// needs more.
	solverSteps = 100

	// solved is how exactly the sum is met, relative to what it leaves open.
	solved = 1e-9
)

// MeanConstrained returns the q-quantile as Quantile does, but uses what linear
// interpolation ignores: the neighbouring buckets and the exact sum. It answers as
// Quantile where there is no sum, where the sum cannot be that of values in these
// buckets, where a count is negative, or where the first bound is not above 0.
//
// Inside each bucket the density is an exponential function of the value. Its
// slope is first read from the neighbours. Then one number, the tilt, is added to
// the slopes of all buckets, so that the mean of the whole becomes sum / count.
// Among all densities with the right buckets and the right mean this one differs
// least from the first guess (it has the least relative entropy). The open bucket
// is an exponential tail, so its quantiles lie beyond the last bound; where they
// would be infinite, at q = 1, half an observation is left above them.
//
// The result is an estimate, as any interpolation is. It rises with q and never
// leaves the bucket that Interval names. docs/why/percentiles.md shows how well it
// does and where it loses.
func (h *Histogram) MeanConstrained(q float64) (float64, bool) {
	at, ok := h.locate(q)
	if !ok {
		return 0, false
	}
	value := math.NaN()
	if tilt, ok := h.tilt(); ok {
		value = h.tilted(at, tilt)
	}
	if math.IsNaN(value) {
		value = h.linear(at)
	}
	return value, true
}

func (h *Histogram) tilted(at position, tilt float64) float64 {
	lower, upper := h.edges(at.bucket)
	if math.IsInf(upper, 1) {
		fraction := min(at.fraction, 1-min(0.5, halfAnObservation/h.Counts[at.bucket]))
		return min(lower-math.Log1p(-fraction)/(h.tailRate()-tilt), math.MaxFloat64)
	}
	width := upper - lower
	return between(lower, upper, exponentialQuantile(at.fraction, (h.slope(at.bucket)+tilt)*width))
}

// tilt returns what to add to the slopes so that the mean is right, and false
// where nothing can make it right. It is -Inf or +Inf where all values must lie at
// the lower or at the upper ends of their buckets.
func (h *Histogram) tilt() (float64, bool) {
	if !h.HasSum || !(h.Bounds[0] > 0) {
		return 0, false
	}
	least, most, widest := 0.0, 0.0, 0.0
	for i, count := range h.Counts {
		if count < 0 {
			return 0, false
		}
		if count == 0 {
			continue
		}
		lower, upper := h.edges(i)
		least += count * lower
		most += count * upper
		if math.IsInf(upper, 1) {
			upper = lower + 1/h.tailRate()
		}
		widest = max(widest, upper-lower)
	}
	// The sum has been rounded often on its way.
	rounding := solved * least
	switch {
	case math.IsNaN(h.Sum), math.IsInf(h.Sum, 0), math.IsInf(least, 0):
		return 0, false
	case h.Sum < least-rounding, h.Sum > most+solved*most:
		return 0, false
	case h.Sum <= least:
		return math.Inf(-1), true
	case h.Sum >= most:
		return math.Inf(1), true
	}
	return h.solve(solved*(h.Sum-least), widest), true
}

// solve finds the tilt by Newton's method. Wherever a step leaves the interval
// that is known to hold the solution, the interval is halved, or widened where it
// has no end yet.
func (h *Histogram) solve(tolerance, widest float64) float64 {
	low, high := math.Inf(-1), math.Inf(1)
	if h.Counts[len(h.Bounds)] > 0 {
		high = h.tailRate() // from there on the tail has no mean
	}
	tilt, step := 0.0, 1/widest
	for range solverSteps {
		excess, derivative := h.excess(tilt)
		if math.Abs(excess) <= tolerance {
			break
		}
		if excess < 0 {
			low = tilt
		} else {
			high = tilt
		}
		next := tilt - excess/derivative
		if !(next > low && next < high) {
			switch {
			case math.IsInf(low, -1):
				next, step = tilt-step, 2*step
			case math.IsInf(high, 1):
				next, step = tilt+step, 2*step
			default:
				next = low + (high-low)/2
			}
		}
		tilt = next
	}
	return tilt
}

// excess returns by how much the sum of all densities exceeds the real one, and
// its derivative by the tilt, which is never negative.
func (h *Histogram) excess(tilt float64) (excess, derivative float64) {
	excess = -h.Sum
	for i, count := range h.Counts {
		if count == 0 {
			continue
		}
		lower, upper := h.edges(i)
		if math.IsInf(upper, 1) {
			beyond := 1 / (h.tailRate() - tilt)
			excess += count * (lower + beyond)
			derivative += count * beyond * beyond
			continue
		}
		width := upper - lower
		mean, variance := exponentialMoments((h.slope(i) + tilt) * width)
		excess += count * (lower + width*mean)
		derivative += count * width * width * variance
	}
	return excess, derivative
}

// slope is the first guess at the derivative of the logarithm of the density in a
// finite bucket: that between its neighbours, for the first bucket that to the next.
func (h *Histogram) slope(bucket int) float64 {
	from, before := h.logDensity(max(bucket-1, 0))
	to, after := h.logDensity(bucket + 1)
	lower, upper := h.edges(bucket)
	limit := steepest / (upper - lower)
	return min(max((after-before)/(to-from), -limit), limit)
}

// logDensity returns the logarithm of the mean density of a bucket and the value it
// stands for: the middle, for the open bucket its beginning.
func (h *Histogram) logDensity(bucket int) (at, logarithm float64) {
	lower, upper := h.edges(bucket)
	count := h.Counts[bucket] + halfAnObservation
	if math.IsInf(upper, 1) {
		return lower, math.Log(count * h.tailRate())
	}
	return lower + (upper-lower)/2, math.Log(count / (upper - lower))
}

// tailRate is the first guess at the rate of the exponential tail in the open
// bucket: that of a tail which begins one bucket earlier.
func (h *Histogram) tailRate() float64 {
	last := len(h.Bounds) - 1
	lower, upper := h.edges(last)
	ratio := (h.Counts[last] + halfAnObservation) / (h.Counts[last+1] + halfAnObservation)
	return math.Log1p(ratio) / (upper - lower)
}

// exponentialQuantile returns the quantile of the density on [0, 1] that is
// proportional to e^(slope x).
func exponentialQuantile(q, slope float64) float64 {
	switch {
	case math.Abs(slope) < 1e-9:
		return q
	case slope > 0:
		return 1 - exponentialQuantile(1-q, -slope)
	case math.IsInf(slope, -1):
		return 0
	}
	return min(math.Log1p(q*math.Expm1(slope))/slope, 1)
}

// exponentialMoments returns mean and variance of the same density.
func exponentialMoments(slope float64) (mean, variance float64) {
	switch {
	case math.Abs(slope) < 1e-3:
		// The first terms of the series; the formula below would cancel.
		return 0.5 + slope/12, 1.0 / 12
	case slope > 0:
		mean, variance = exponentialMoments(-slope)
		return 1 - mean, variance
	}
	end, mass := math.Exp(slope), -math.Expm1(slope)
	return -1/slope - end/mass, 1/(slope*slope) - end/(mass*mass)
}

// exponentialShare returns the share up to x of the density on [0, 1] that is proportional
// to e^(slope x).
func exponentialShare(x, slope float64) float64 {
	switch {
	case math.Abs(slope) < 1e-9:
		return x
	case slope > 0:
		return 1 - exponentialShare(1-x, -slope)
	case math.IsInf(slope, -1):
		return 1
	}
	return math.Expm1(slope*x) / math.Expm1(slope)
}
