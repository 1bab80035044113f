package story

import (
	"math"
	"math/rand/v2"
	"time"
)

// Request is what one client asks for. Everything about it is decided by the seed, so that
// the real server and the simulator get the same.
type Request struct {
	// Phase is the number of the phase, After the time since the phase began.
	Phase int
	After time.Duration
	// Prompt is the number of tokens after the shared prefix, Output is max_tokens.
	Prompt, Output int
	// Prefix is the number of the shared prefix; -1 is none.
	Prefix int
	// Adapter is the number of the LoRA adapter, from 1; 0 is the model itself.
	Adapter int
	// Leaves is when the client leaves on purpose; 0 is never.
	Leaves time.Duration
	// Bad has an invalid parameter, Grammar a JSON schema of its own.
	Bad, Grammar bool
	// Seed makes the tokens of the prompt.
	Seed uint64
}

// Source draws the requests of one phase.
type Source struct {
	phase    *Phase
	number   int
	capacity float64
	random   *rand.Rand
	n        int
	at       time.Duration
}

// Source returns the requests of a phase of the play. capacity is how many requests of the
// book's lengths the server can serve in a second.
func (p *Play) Source(phase int, capacity float64, seed uint64) *Source {
	return &Source{
		phase: &p.Phases[phase], number: phase, capacity: capacity,
		at:     p.Phases[phase].Quiet,
		random: rand.New(rand.NewPCG(seed, uint64(phase)+1)),
	}
}

// Next returns the next request of an open loop; false when the phase has no more.
func (s *Source) Next() (Request, bool) {
	p := s.phase
	switch {
	case p.AtOnce > 0:
		if s.n >= p.AtOnce {
			return Request{}, false
		}
	case p.Every > 0:
		s.at = p.Quiet + time.Duration(s.n)*p.Every
	case p.Load > 0 || p.Rate > 0:
		gap := s.gap()
		if !(gap < p.For.Seconds()) { // Also where it is too long for a time.Duration.
			return Request{}, false
		}
		s.at += time.Duration(gap * float64(time.Second))
	default:
		return Request{}, false
	}
	if s.at >= p.For {
		return Request{}, false
	}
	return s.Draw(s.at), true
}

// gap draws the time to the next arrival, in seconds. In it, the rate adds up to a number that is
// drawn from the exponential distribution, also where the rate changes in that time.
func (s *Source) gap() float64 {
	p := s.phase
	rate, slope := p.Rate, 0.0
	if p.Load > 0 {
		rate = p.Load * s.capacity
		if p.To > 0 {
			slope = (p.To - p.Load) * s.capacity / p.For.Seconds()
			rate += slope * s.at.Seconds()
		}
	}
	n := s.random.ExpFloat64()
	if slope == 0 {
		return n / rate
	}
	return 2 * n / (rate + math.Sqrt(rate*rate+2*slope*n))
}

// Draw returns a request that is sent so long after the phase began.
func (s *Source) Draw(after time.Duration) Request {
	p := s.phase
	r := Request{Phase: s.number, After: after, Prefix: -1, Seed: s.random.Uint64()}
	r.Prompt, r.Output = p.Prompt.draw(s.random), p.Output.draw(s.random)
	if p.Prefix.Of > 0 {
		r.Prefix = s.random.IntN(p.Prefix.Of)
	}
	if leaves := s.random.Float64(); leaves < p.Abort {
		r.Leaves = 200*time.Millisecond + time.Duration(s.random.Float64()*1.8*float64(time.Second))
	}
	r.Bad = s.random.Float64() < p.Bad
	r.Grammar = s.random.Float64() < p.Grammar
	if p.Adapters > 0 {
		r.Adapter = 1 + s.n%p.Adapters
	}
	s.n++
	return r
}

func (l Lengths) draw(random *rand.Rand) int {
	n := l.Mean
	if l.Sigma > 0 {
		// The mean of a lognormal distribution is above its median.
		n = math.Exp(math.Log(l.Mean) - l.Sigma*l.Sigma/2 + l.Sigma*random.NormFloat64())
	}
	return max(1, min(int(n), l.Most))
}
