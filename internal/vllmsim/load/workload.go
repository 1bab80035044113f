package load

import (
	"math"
	"math/rand/v2"

	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim/observed"
)

const (
	// swing is how far the sine moves the arrival rate around its mean.
	swing = 0.6
	// A burst multiplies the rate for a while; bursts start at random, some
	// burstEvery periods apart in the mean.
	burstFactor  = 2.5
	burstEvery   = 6.0
	burstPortion = 0.4 // Length of a burst in periods, in the mean.
)

// workload draws requests: when they arrive and what they ask for.
type workload struct {
	cfg  Config
	rng  *rand.Rand
	next *request
	// burstFrom and burstTo bound the current or next burst.
	burstFrom, burstTo float64
}

func newWorkload(cfg Config) *workload {
	w := &workload{cfg: cfg, rng: rand.New(rand.NewPCG(cfg.Seed, 0x9e3779b97f4a7c15))}
	w.nextBurst(0)
	w.next = w.draw(0)
	return w
}

// take returns the next request that arrives at or before t, or nil.
func (w *workload) take(t float64) *request {
	r := w.next
	if r.arrived > t {
		return nil
	}
	w.next = w.draw(r.arrived)
	return r
}

func (w *workload) nextBurst(after float64) {
	w.burstFrom = after + w.rng.ExpFloat64()*burstEvery*w.cfg.Period
	w.burstTo = w.burstFrom + (0.5+w.rng.Float64())*burstPortion*w.cfg.Period
}

// rate is the arrival rate at t, in requests per second. Calls must not go
// back in time.
func (w *workload) rate(t float64) float64 {
	for t >= w.burstTo {
		w.nextBurst(w.burstTo)
	}
	rate := w.cfg.Rate * (1 + swing*math.Sin(2*math.Pi*t/w.cfg.Period))
	if t >= w.burstFrom {
		rate *= burstFactor
	}
	return rate
}

// draw returns the first request after t. Arrivals are a Poisson process whose
// rate varies, drawn by thinning one of the highest rate.
func (w *workload) draw(t float64) *request {
	highest := w.cfg.Rate * (1 + swing) * burstFactor
	for {
		t += w.rng.ExpFloat64() / highest
		if w.rng.Float64()*highest <= w.rate(t) {
			break
		}
	}
	r := &request{arrived: t, prefix: -1, path: "/v1/chat/completions"}
	if w.rng.Float64() < 0.3 {
		r.path = "/v1/completions"
	}
	own := w.lognormal(w.cfg.PromptMedian, 0.9)
	if w.rng.Float64() < 0.6 {
		// A system prompt shared by many requests; the first ones are the most used.
		r.prefix = int(float64(len(prefixLengths)) * math.Pow(w.rng.Float64(), 2))
		own += prefixLengths[r.prefix]
	}
	r.output = w.lognormal(w.cfg.OutputMedian, 0.8)
	r.maxTokens = [...]int{0, 256, 512, 512, 1024, 1024}[w.rng.IntN(6)]
	longest := w.cfg.MaxModelLen
	r.prompt = min(own, longest*3/4)
	limit := longest - r.prompt
	if r.maxTokens > 0 {
		limit = min(limit, r.maxTokens)
	}
	if r.output >= limit {
		r.output, r.reason = limit, observed.ReasonLength
	}
	switch p := w.rng.Float64(); {
	case p < 0.004:
		r.fate = fateRefused
	case p < 0.010:
		r.fate = fateAborted
		r.output = 1 + w.rng.IntN(r.output)
	}
	if w.cfg.LoRA && w.rng.Float64() < 0.7 {
		r.adapter = 1 + w.rng.IntN(len(adapterNames))
	}
	return r
}

func (w *workload) lognormal(median, sigma float64) int {
	return max(1, int(median*math.Exp(sigma*w.rng.NormFloat64())))
}

// prefixLengths are the lengths of the shared system prompts, in tokens.
var prefixLengths = [...]int{640, 288, 1024, 160, 480, 96}

// adapterNames are the LoRA adapters in use.
var adapterNames = [...]string{"sql-writer", "summary-de", "support-tone"}
