package traffic

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
)

// newRandom returns the stream of random numbers of one part of the traffic. Each part has
// its own, so that a change of one does not move the others.
func newRandom(seed uint64, part string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(part)) // never fails
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// gamma returns a gamma distributed number with mean 1.
func gamma(rng *rand.Rand, shape float64) float64 {
	// Marsaglia and Tsang (2000). Below 1 it is the number for shape+1, times U^(1/shape).
	boost := 1.0
	k := shape
	if k < 1 {
		boost = math.Pow(rng.Float64(), 1/k)
		k++
	}
	d := k - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := rng.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(rng.Float64()) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v * boost / shape
		}
	}
}
