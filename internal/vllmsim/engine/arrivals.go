package engine

import (
	"math"
	"math/rand/v2"
)

// arrivals draws requests. Two runs with the same seed have the same requests in
// the same order, independently of rates and engines: each request's own numbers are
// from a generator seeded by its number, and arrival times from a process
// of rate 1 whose time is stretched by the rate. So runs that differ in one
// cause can be compared request by request (common random numbers).
type arrivals struct {
	seed  uint64
	work  Workload
	limit int // Longest prompt and output together.

	gaps   *rand.Rand
	bursts *rand.Rand
	own    rand.PCG
	rng    *rand.Rand

	burstFrom, burstTo float64
	count              int
	at                 float64 // Of the next arrival; +Inf if there is none.
	left               float64 // The rest of its distance, in the time of rate 1.
	seen               float64 // Up to when the rate has been used.
}

func newArrivals(seed uint64, w Workload, maxModelLen int) *arrivals {
	a := &arrivals{
		seed: seed, work: w, limit: maxModelLen,
		gaps:   rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15)),
		bursts: rand.New(rand.NewPCG(seed, 0xbf58476d1ce4e5b9)),
	}
	a.rng = rand.New(&a.own)
	a.burstFrom, a.burstTo = math.Inf(1), math.Inf(1)
	if w.BurstFactor > 0 {
		a.burstTo = 0
		a.nextBurst()
	}
	a.left = a.gap()
	return a
}

// gap draws a distance with mean 1.
func (a *arrivals) gap() float64 {
	cv := a.work.CV
	if cv == 0 || cv == 1 {
		return a.gaps.ExpFloat64()
	}
	shape := 1 / (cv * cv)
	return gamma(a.gaps, shape) / shape
}

// gamma draws from the gamma distribution with scale 1 (Marsaglia and Tsang,
// with their extension to shapes below 1).
func gamma(rng *rand.Rand, shape float64) float64 {
	if shape < 1 {
		return gamma(rng, shape+1) * math.Pow(rng.Float64(), 1/shape)
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := rng.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(1-rng.Float64()) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v
		}
	}
}

func (a *arrivals) nextBurst() {
	a.burstFrom = a.burstTo + a.bursts.ExpFloat64()*a.work.BurstEvery
	a.burstTo = a.burstFrom + (0.5+a.bursts.Float64())*a.work.BurstSeconds
}

// seek finds the next arrival before horizon, up to which factor multiplies the
// rate. It remembers how far it got where there is none.
func (a *arrivals) seek(horizon, factor float64) {
	for a.seen < horizon {
		for a.seen >= a.burstTo {
			a.nextBurst()
		}
		rate, until := a.rate(a.seen)
		rate *= factor
		until = min(until, horizon)
		if span := (until - a.seen) * rate; span < a.left {
			if math.IsInf(until, 1) {
				break
			}
			a.left -= span
			a.seen = until
			continue
		}
		a.seen += a.left / rate
		a.left = 0
		a.at = a.seen
		return
	}
	a.at = math.Inf(1)
}

// rate returns the nominal rate at t and until when it holds. The sine is
// taken in 256 steps per wave.
func (a *arrivals) rate(t float64) (rate, until float64) {
	rate, until = a.work.Rate, math.Inf(1)
	if a.work.Swing > 0 {
		step := a.work.Period / 256
		n := math.Floor(t/step + 1e-9)
		rate *= 1 + a.work.Swing*math.Sin(2*math.Pi*(n+0.5)/256)
		until = (n + 1) * step
	}
	if a.work.BurstFactor > 0 {
		if t >= a.burstFrom {
			rate *= a.work.BurstFactor
			until = min(until, a.burstTo)
		} else {
			until = min(until, a.burstFrom)
		}
	}
	return rate, until
}

// take returns the request that arrives now. Afterwards seek finds the next one.
func (a *arrivals) take(v *values) *request {
	w := &a.work
	a.own.Seed(a.seed, uint64(a.count)*0x9e3779b97f4a7c15+1)
	r := &request{id: a.count, arrived: a.at, prefix: -1}
	a.count++
	a.left = a.gap()

	// All numbers are drawn in the same order whatever is switched on.
	zPrompt, zOutput := a.rng.NormFloat64(), a.rng.NormFloat64()
	var u [24]float64
	for i := range u {
		u[i] = a.rng.Float64()
	}
	r.route = u[0]
	r.prompt = w.Prompt.draw(zPrompt, v[ParamPromptLength], a.limit*3/4)
	r.output = w.Output.draw(zOutput, v[ParamOutputLength], a.limit-r.prompt)
	most := a.limit - r.prompt
	if len(w.MaxTokens) > 0 {
		r.maxTokens = w.MaxTokens[int(u[1]*float64(len(w.MaxTokens)))]
		if r.maxTokens > 0 {
			most = min(most, r.maxTokens)
		}
	}
	r.end = EndStop
	if r.output >= most {
		r.output, r.end = most, EndLength
	}
	if u[2] < w.PrefixShare {
		skew := w.PrefixSkew
		if skew == 0 {
			skew = 2
		}
		r.prefix = int(math.Pow(u[3], skew) * math.Ceil(float64(w.Prefixes)*v[ParamPrefixPool]))
		r.shared = min(w.PrefixTokens, r.prompt)
	}
	if u[4] < w.AdapterShare && w.Adapters > 0 {
		pool := min(maxAdapters, math.Ceil(float64(w.Adapters)*v[ParamAdapterPool]))
		r.adapter = 1 + int(u[5]*pool)
	}
	r.stopAt = r.output
	r.leaves = math.Inf(1)
	if w.Timeout > 0 {
		r.leaves = r.arrived + w.Timeout
	}
	switch {
	case u[6] < w.Refused:
		r.end = EndRefused
	case u[16] < v[ParamClientErrors]:
		r.end, r.excepted = EndRefused, true
	case u[17] < v[ParamUnscheduled]:
		r.end, r.unscheduled = EndError, true
	case u[7] < v[ParamErrorRate]:
		r.end, r.stopAt = EndError, 1+int(u[8]*float64(r.output))
	case u[9] < w.LeaveEarly:
		r.impatient = true
		r.leaves = min(r.leaves, r.arrived-math.Log(1-u[10])*w.Patience)
	case u[9] < w.LeaveEarly+w.LeaveLate:
		r.stopAt = 1 + int(u[10]*float64(r.output))
		if r.stopAt < r.output {
			r.end = EndLeft
		}
	}
	if u[21] < w.MediaShare {
		r.media = 1 + int(u[22]*float64(w.Media))
	}
	w.shape(r, u[18], u[19], u[20])
	r.corrupted = u[11] < v[ParamCorruption]
	r.transferFails = u[12] < v[ParamTransferFailure]
	r.remote = u[13]
	r.completions = u[14] < 0.3
	r.streams = u[15] < 0.7
	return r
}

// shape makes a request one for choices, a beam search or a session, by three numbers
// between 0 and 1. Beam searches and sessions are complete answers.
func (w *Workload) shape(r *request, choices, beams, sessions float64) {
	complete := (r.end == EndStop || r.end == EndLength) && !r.impatient
	switch {
	case r.end == EndRefused:
	case choices < w.ChoicesShare:
		r.choices = w.Choices
	case complete && beams < w.BeamShare:
		r.beams, r.end, r.leaves = w.Beams, EndLength, math.Inf(1)
	case complete && sessions < w.SessionShare:
		r.session = &session{left: w.Chunks - 1, prompt: max(1, r.prompt/4), output: r.output, pause: w.ChunkPause}
	}
}
