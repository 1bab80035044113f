package engine

import (
	"math"
	"math/rand/v2"
)

// arrivals are the requests of an open loop. Runs with the same seed have the same requests,
// whatever the engines are and however the arrival rate changes, so that they can be compared
// request by request (common random numbers):
//
//   - What a request is follows from its number (its ID) and the seed alone.
//   - Layer 0 is the nominal stream. Its times follow from the seed and the workload; no
//     change of the arrival rate moves or renumbers it.
//   - A factor f below 1 keeps those of its requests whose own random number is below f, so
//     that a run with a smaller factor has a part of the requests of a run with a greater one.
//   - A factor above 1 adds the layers 1, 2, 3 and so on. They are streams of the same shape
//     (waves, bursts, variation) with random numbers of their own, at 1, 2, 4 and so on times
//     the nominal rate, and are thinned in the same way: layer 1 serves the factors up to 2,
//     layer 2 those up to 4. The times of a layer do not depend on the factor either, so that
//     the requests of one run are among those of another with a greater factor at that time.
//
// A thinned stream varies less than a whole one: its index of dispersion is 1+p(I-1), where p
// is the share that is kept and I the index of the whole.
type arrivals struct {
	seed  uint64
	work  Workload
	limit int // Longest prompt and output together.

	own rand.PCG
	rng *rand.Rand

	layers []*layer
	factor float64 // Of the arrival rate.
	next   *layer
	at     float64 // Of the next arrival, before thinning; +Inf if there is none.
	// cut counts requests that were longer than the model allows.
	cut int
	// seen is for copies of traffic with blocks, see leadingSeen.
	seen []int32
}

// layer is one stream of arrivals, of which a share is kept.
type layer struct {
	stream stream
	// It serves the factors from base to base + width.
	base, width float64
	active      bool
	arrival
}

// stream is arrivals in the order of their times.
type stream interface {
	// next returns the next arrival; its time is +Inf if there is none.
	next() arrival
	// forward returns the first arrival that is not before t, which is after the last one
	// returned.
	forward(t float64) arrival
}

// arrival is the moment, the number, and, of traffic, what arrives.
type arrival struct {
	at   float64
	id   int
	what *recorded
}

func newArrivals(seed uint64, w Workload, maxModelLen int) *arrivals {
	a := &arrivals{seed: seed, work: w, limit: maxModelLen, at: math.Inf(1)}
	a.rng = rand.New(&a.own)
	return a
}

// set takes over the factor of the arrival rate at a time.
func (a *arrivals) set(now, factor float64) {
	if factor == a.factor || a.work.Clients > 0 || (a.work.Traffic == nil && a.work.Rate == 0) {
		return
	}
	a.factor = factor
	for n := len(a.layers); factor > layerBase(n); n++ {
		a.layers = append(a.layers, a.newLayer(n))
	}
	for _, l := range a.layers {
		active := factor > l.base
		// What was drawn before a pause and comes after it has not been taken yet.
		if active && !l.active && l.arrival.at < now {
			l.arrival = l.stream.forward(now)
		}
		l.active = active
	}
	a.find()
}

// layerBase is the least factor for which a layer is not needed.
func layerBase(n int) float64 {
	if n == 0 {
		return 0
	}
	return math.Ldexp(1, n-1)
}

func (a *arrivals) newLayer(n int) *layer {
	l := &layer{base: layerBase(n), width: max(1, layerBase(n))}
	switch {
	case a.work.Traffic == nil:
		l.stream = newProcess(a.seed, &a.work, n, l.width)
	case n == 0:
		l.stream = newReplay(&a.work)
	default:
		if a.seen == nil {
			a.seen = a.work.Traffic.leadingSeen()
		}
		l.stream = newCopies(a.seed, &a.work, n, int(l.width), a.seen)
	}
	l.arrival.at = math.Inf(-1)
	return l
}

// find finds the layer of the next arrival.
func (a *arrivals) find() {
	a.next, a.at = nil, math.Inf(1)
	for _, l := range a.layers {
		if l.active && l.arrival.at < a.at {
			a.next, a.at = l, l.arrival.at
		}
	}
}

// take returns the request that arrives now, or nil where the arrival is thinned out.
func (a *arrivals) take(v *values) *request {
	l, came := a.next, a.next.arrival
	l.arrival = l.stream.next()
	a.find()
	if share := (a.factor - l.base) / l.width; share < 1 && uniform(a.seed, uint64(came.id), thinning) >= share {
		return nil
	}
	if !a.work.Part.has(came.id) {
		return nil
	}
	return a.request(came, v)
}

// What a random number is for, besides numbers.
const (
	thinning = 1 + iota
	sharing
	jitter
	nearby
	choosing
	pausing
)

// Part is one of several servers that share the requests of one workload. Each request is for
// one of them, by its own number.
type Part struct {
	// Seed is the same for all servers. From and To are the server's part of 0 to 1; equal
	// values mean that the server has all requests.
	Seed     uint64
	From, To float64
}

func (p Part) has(id int) bool {
	if p.From == p.To {
		return true
	}
	u := uniform(p.Seed, uint64(id), sharing)
	return u >= p.From && u < p.To
}

// process is a random stream: a process of rate 1 whose time is stretched by the rate.
type process struct {
	work         *Workload
	times        float64 // The nominal rate, of this stream.
	gaps, bursts *rand.Rand
	// Of the burst under way, or of the next.
	burstFrom, burstTo float64
	seen               float64 // Time of the last arrival.
	count              int
	last               arrival
}

func newProcess(seed uint64, w *Workload, layer int, times float64) *process {
	p := &process{
		work: w, times: times, count: layer << layerShift,
		gaps: rand.New(rand.NewPCG(seed, 0x9e3779b97f4a7c15+uint64(layer))),
		// Bursts are the same in all layers.
		bursts: rand.New(rand.NewPCG(seed, 0xbf58476d1ce4e5b9)),
	}
	p.burstFrom, p.burstTo = math.Inf(1), math.Inf(1)
	if w.BurstFactor > 0 {
		p.burstTo = 0
		p.nextBurst()
	}
	p.last.at = math.Inf(-1)
	return p
}

func (p *process) nextBurst() {
	p.burstFrom = p.burstTo + p.bursts.ExpFloat64()*p.work.BurstEvery
	p.burstTo = p.burstFrom + (0.5+p.bursts.Float64())*p.work.BurstSeconds
}

// gap draws a distance with mean 1.
func (p *process) gap() float64 {
	cv := p.work.CV
	if cv == 0 || cv == 1 {
		return p.gaps.ExpFloat64()
	}
	shape := 1 / (cv * cv)
	return gamma(p.gaps, shape) / shape
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

func (p *process) next() arrival {
	left := p.gap()
	for {
		for p.seen >= p.burstTo {
			p.nextBurst()
		}
		rate, until := p.rate(p.seen)
		if span := (until - p.seen) * rate; span < left {
			left -= span
			p.seen = until
			continue
		}
		p.seen += left / rate
		break
	}
	p.last = arrival{at: p.seen, id: p.count}
	p.count++
	return p.last
}

// forward draws all arrivals on the way, so that it does not matter when a layer is needed.
func (p *process) forward(t float64) arrival {
	for p.last.at < t {
		p.next()
	}
	return p.last
}

// rate returns the rate at t and until when it holds. The sine is
// taken in 256 steps per wave.
func (p *process) rate(t float64) (rate, until float64) {
	w := p.work
	rate, until = w.Rate*p.times, math.Inf(1)
	if w.Swing > 0 {
		step := w.Period / 256
		n := math.Floor(t/step + 1e-9)
		rate *= 1 + w.Swing*math.Sin(2*math.Pi*(n+0.5)/256)
		until = (n + 1) * step
	}
	if w.BurstFactor > 0 {
		if t >= p.burstFrom {
			rate *= w.BurstFactor
			until = min(until, p.burstTo)
		} else {
			until = min(until, p.burstFrom)
		}
	}
	return rate, until
}
