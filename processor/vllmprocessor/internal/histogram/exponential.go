package histogram

import "math"

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
