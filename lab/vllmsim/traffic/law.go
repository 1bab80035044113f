package traffic

import (
	"math"
	"math/rand/v2"
	"slices"
)

// law is a distribution by its quantiles at the shares of the same number of points; between
// them the logarithm of the value is interpolated. It follows distributions with several
// modes, which lognormal ones do not.
type law []float64

// The shares of the quantiles of a law. Lengths of a whole service have more modes than those
// of one tenant.
var (
	coarseShares = []float64{0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1}
	fineShares   = []float64{0, 0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.93, 0.96, 0.98, 0.99, 0.995, 0.999, 1}
)

func (l law) shares() []float64 {
	if len(l) == len(fineShares) {
		return fineShares
	}
	return coarseShares
}

// at is the value at a share.
func (l law) at(share float64) float64 {
	shares := l.shares()
	i := min(len(shares)-1, max(1, firstAbove(shares, share)))
	part := (share - shares[i-1]) / (shares[i] - shares[i-1])
	low, high := toLog(l[i-1]), toLog(l[i])
	return fromLog(low + part*(high-low))
}

func (l law) draw(rng *rand.Rand) float64 { return l.at(rng.Float64()) }

// drawLike draws a value that is correlated with others of its group: z is standard normal and
// common to the group, alike the share of the variance that it has.
func (l law) drawLike(rng *rand.Rand, z, alike float64) float64 {
	z = math.Sqrt(alike)*z + math.Sqrt(1-alike)*rng.NormFloat64()
	return l.at(0.5 * math.Erfc(-z/math.Sqrt2))
}

func firstAbove(shares []float64, share float64) int {
	i, found := slices.BinarySearch(shares, share)
	if found {
		i++
	}
	return i
}

// toLog is a logarithm that knows 0 and negative values.
func toLog(v float64) float64   { return math.Asinh(v / 2) }
func fromLog(v float64) float64 { return 2 * math.Sinh(v) }

// length makes a drawn value a number of tokens.
func length(v float64, most int) int32 { return int32(min(float64(most), max(1, math.Round(v)))) }
