package traffic

import (
	"math"
	"math/rand/v2"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// stream is the fit of a service whose tenants are not known: one rate that drifts, and
// prompts that determine how long the answer is likely to be.
type stream struct {
	rate  float64
	drift drift
	// gapCV is the coefficient of variation of the gaps, which are gamma distributed.
	gapCV  float64
	prompt law
	// output has the answers of each tenth of the prompts, from the shortest to the longest.
	output [10]law
}

func (s *stream) generate(seed uint64, rate, seconds float64) *engine.Traffic {
	factors := s.drift.factors(newRandom(seed, "drift"), seconds)
	gaps, lengths := newRandom(seed, "gaps"), newRandom(seed, "lengths")
	shape := 1 / (s.gapCV * s.gapCV)
	all := make([]engine.Arrival, 0, int(rate*seconds*1.05)+10)
	// Gaps are drawn at a rate of 1 and stretched by the rate of the moment.
	at, step := 0.0, 0
	for next := gamma(gaps, shape) * gaps.Float64(); ; next = gamma(gaps, shape) {
		for next > 0 {
			if step >= len(factors) {
				return finishArrivals(all, seconds)
			}
			now := rate * factors[step]
			end := min(seconds, float64(step+1)*driftStep)
			if reach := (end - at) * now; next > reach {
				next, at, step = next-reach, end, step+1
				continue
			}
			at, next = at+next/now, 0
		}
		u := lengths.Float64()
		all = append(all, engine.Arrival{
			At:     at,
			Prompt: length(s.prompt.at(u), maxTokens),
			Output: length(s.output[min(9, int(10*u))].draw(lengths), maxTokens),
		})
	}
}

// drift is a slow random change of the rate: an Ornstein-Uhlenbeck process of its logarithm.
type drift struct {
	// sd is the standard deviation of the logarithm, seconds its correlation time.
	sd, seconds float64
}

// driftStep is how long the rate stays the same, in seconds.
const driftStep = 10

// factors are those of the rate in each step, 1 on average.
func (d drift) factors(rng *rand.Rand, seconds float64) []float64 {
	all := make([]float64, int(math.Ceil(seconds/driftStep)))
	keep := math.Exp(-driftStep / d.seconds)
	x, sum := rng.NormFloat64(), 0.0
	for i := range all {
		all[i] = math.Exp(d.sd * x)
		// The last step may be a part of one.
		sum += all[i] * min(1, seconds/driftStep-float64(i))
		x = keep*x + math.Sqrt(1-keep*keep)*rng.NormFloat64()
	}
	for i := range all {
		all[i] *= seconds / driftStep / sum
	}
	return all
}
