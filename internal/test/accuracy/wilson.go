package accuracy

import "math"

// z is the normal quantile of a two-sided confidence of 95 %.
const z = 1.959964

// wilson returns the bounds of the share p of n observations by Wilson's score
// interval. n does not have to be an integer.
func wilson(p, n float64) (low, high float64) {
	if n <= 0 {
		return 0, 1
	}
	centre := p + z*z/(2*n)
	half := z * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return max(0, (centre-half)/(1+z*z/n)), min(1, (centre+half)/(1+z*z/n))
}

// Share is the number of right observations and of all.
type Share struct{ Right, Of float64 }

// Value is the share itself; NaN without observations.
func (s Share) Value() float64 { return s.Right / s.Of }

// macro is the mean of shares, each with the same weight, and the effective number of
// observations of this mean. The variance of the mean is that of one observation
// times the sum of 1/n, divided by the square of the number of shares. So the
// effective number is the total if all shares have equally many observations, and
// smaller if they are uneven.
func macro(shares map[string]Share) (mean, worth float64) {
	inverse := 0.0
	for _, s := range shares {
		mean += s.Value()
		inverse += 1 / s.Of
	}
	n := float64(len(shares))
	if n == 0 {
		return math.NaN(), 0
	}
	return mean / n, n * n / inverse
}

// poissonAtLeast is the probability of at least k events if mean are expected.
func poissonAtLeast(k int, mean float64) float64 {
	below, term := 0.0, math.Exp(-mean)
	for i := range k {
		below += term
		term *= mean / float64(i+1)
	}
	return 1 - below
}
