package traffic

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// tenants is the fit of a service with known tenants. Each type is one of them; generated
// tenants are like one of these, with another rate, other lengths and other hours.
type tenants struct {
	rate float64
	// steps is the number of ten minutes in the window of the trace, after which the hours of
	// the tenants come again.
	steps int
	types []tenantType
	// most is the longest prompt.
	most int
	// whole keeps the types together, where one of them makes the traffic what it is. Another
	// rate then means more or less of each.
	whole bool
}

// tenantType is one tenant of the trace.
type tenantType struct {
	// rate is in requests per second over the whole window, active the share of the steps that
	// have any, in so many runs of steps without a pause.
	rate, active float64
	runs         int
	// cv is the coefficient of variation of the rates of the active steps, lag the correlation
	// of each with the next.
	cv, lag float64
	// phase is when the middle of the requests is, as a share of the window; focus is how
	// concentrated they are about it: 0 is evenly, 1 at once.
	phase, focus float64
	// gapCV is the coefficient of variation of the gaps, gapSpread how much it differs from
	// step to step, as the standard deviation of its logarithm.
	gapCV, gapSpread float64
	prompt, output   law
}

// tenantStep is how long the rate of a tenant stays the same, in seconds.
const tenantStep = 600

// How much generated tenants differ from those of the trace: standard deviations of
// logarithms, and of the phase as a share of the window.
const (
	rateJitter   = 0.3
	lengthJitter = 0.15
	activeJitter = 0.2
	phaseJitter  = 0.05
)

// maxGapCV bounds how bursty a step may be: beyond, all requests come at once.
const maxGapCV = 7

// tenant is a generated one.
type tenant struct {
	tenantType
	id int32
	// stretch are the factors of the lengths.
	promptStretch, outputStretch float64
	// rates are those of the steps, in requests per second.
	rates []float64
}

func (s *tenants) generate(seed uint64, rate, seconds float64) *engine.Traffic {
	all := s.choose(newRandom(seed, "tenants"), rate)
	steps := int(math.Ceil(seconds / tenantStep))
	periods := (steps + s.steps - 1) / s.steps
	for i := range all {
		rng := newRandom(seed, "hours "+strconv.Itoa(i))
		for range periods {
			all[i].rates = append(all[i].rates, all[i].period(rng, s.steps)...)
		}
	}
	from := window(newRandom(seed, "window"), all, seconds, rate)
	total := 0.0
	for i := range all {
		total += all[i].sum(from, from+steps, seconds)
		all[i].rates = all[i].rates[from : from+steps]
	}
	arrivals := make([]engine.Arrival, 0, int(rate*seconds*1.1)+10)
	for i := range all {
		arrivals = all[i].send(arrivals, newRandom(seed, "requests "+strconv.Itoa(i)), rate*seconds/total, seconds, s.most)
	}
	return finishArrivals(arrivals, seconds)
}

// choose draws tenants until they have the rate together: each type once before any comes
// again.
func (s *tenants) choose(rng *rand.Rand, rate float64) []tenant {
	var all []tenant
	sum, scale := 0.0, 1.0
	if s.whole {
		scale = 0.3 // one tenant is most of the traffic
	}
	for round := 0; sum < 0.95*rate; round++ {
		begun := len(all)
		for _, i := range rng.Perm(len(s.types)) {
			t := tenant{tenantType: s.types[i], id: int32(len(all))}
			t.promptStretch, t.outputStretch = jitter(rng, scale*lengthJitter), jitter(rng, scale*lengthJitter)
			t.rate *= jitter(rng, scale*rateJitter)
			t.active = min(1, t.active*jitter(rng, scale*activeJitter))
			t.phase += phaseJitter * rng.NormFloat64()
			if !s.whole && (sum >= 0.95*rate || sum+t.rate > 1.1*rate) {
				continue
			}
			all = append(all, t)
			sum += t.rate
		}
		if len(all) == begun && len(all) > 0 {
			break // what is missing is less than any tenant has
		}
		if len(all) == 0 && round > 2 {
			// The rate is less than any tenant has: one is enough.
			t := tenant{tenantType: s.types[rng.IntN(len(s.types))], promptStretch: 1, outputStretch: 1}
			all, sum = append(all, t), t.rate
		}
	}
	for i := range all {
		all[i].rate *= rate / sum
	}
	return all
}

func jitter(rng *rand.Rand, sd float64) float64 { return math.Exp(sd*rng.NormFloat64() - sd*sd/2) }

// period returns the rates in the steps of one window. Their mean is that of the tenant.
func (t *tenant) period(rng *rand.Rand, steps int) []float64 {
	on := t.hours(rng, steps)
	rates := make([]float64, steps)
	sigma := math.Sqrt(math.Log(1 + t.cv*t.cv))
	keep := min(0.99, max(0, t.lag))
	x, sum := rng.NormFloat64(), 0.0
	always := !slices.Contains(on, false)
	for i := range rates {
		if on[i] {
			rates[i] = math.Exp(sigma * x)
			if always {
				angle := 2 * math.Pi * (float64(i)/float64(steps) - t.phase)
				rates[i] *= 1 + min(0.95, 2*t.focus)*math.Cos(angle)
			}
			sum += rates[i]
		}
		x = keep*x + math.Sqrt(1-keep*keep)*rng.NormFloat64()
	}
	for i := range rates {
		rates[i] *= t.rate * float64(steps) / sum
	}
	return rates
}

// hours are the steps in which the tenant is active.
func (t *tenant) hours(rng *rand.Rand, steps int) []bool {
	on := make([]bool, steps)
	count := min(steps, max(1, int(t.active*float64(steps)+rng.Float64())))
	runs := max(1, min(t.runs, count))
	// The lengths of the runs are exponential; every run has a step.
	lengths, sum := make([]float64, runs), 0.0
	for i := range lengths {
		lengths[i] = rng.ExpFloat64()
		sum += lengths[i]
	}
	// The middles of the runs are normal about the phase, on the circle of the window.
	spread := math.Sqrt(-2*math.Log(max(0.05, min(0.999, t.focus)))) / (2 * math.Pi)
	left := count
	for i := range lengths {
		n := min(left-(runs-1-i), 1+int(lengths[i]/sum*float64(count-runs)+0.5))
		if i == runs-1 {
			n = left
		}
		left -= n
		middle := t.phase + spread*rng.NormFloat64()
		at := int(math.Floor((middle-math.Floor(middle))*float64(steps))) - n/2 + steps
		for ; n > 0; at++ {
			if k := at % steps; !on[k] {
				on[k] = true
				n--
			}
		}
	}
	return on
}

// sum is the number of requests in some steps, of which the last one ends after so many seconds.
func (t *tenant) sum(from, to int, seconds float64) float64 {
	total := 0.0
	for k, r := range t.rates[from:to] {
		total += r * min(tenantStep, seconds-float64(k)*tenantStep)
	}
	return total
}

// window returns the step at which the traffic begins. Where it is shorter than the window of
// the trace, it is one with about the mean rate.
func window(rng *rand.Rand, all []tenant, seconds, rate float64) int {
	steps := int(math.Ceil(seconds / tenantStep))
	var near []int
	best, distance := 0, math.Inf(1)
	for from := 0; from+steps <= len(all[0].rates); from++ {
		sum := 0.0
		for i := range all {
			sum += all[i].sum(from, from+steps, seconds)
		}
		d := math.Abs(math.Log(sum / seconds / rate))
		if d < distance {
			best, distance = from, d
		}
		if d < math.Log(1.25) {
			near = append(near, from)
		}
	}
	if len(near) > 0 {
		return near[rng.IntN(len(near))]
	}
	return best
}

// send adds the requests of a tenant: in each step as many as its rate says, with gamma
// distributed gaps that fill the step.
func (t *tenant) send(arrivals []engine.Arrival, rng *rand.Rand, factor, seconds float64, most int) []engine.Arrival {
	var gaps []float64
	for step, rate := range t.rates {
		n := int(rate*factor*tenantStep + rng.Float64())
		if n == 0 {
			continue
		}
		cv := max(0.05, min(maxGapCV, t.gapCV*math.Exp(t.gapSpread*rng.NormFloat64())))
		gaps = gaps[:0]
		sum := math.SmallestNonzeroFloat64
		for range n + 1 {
			gap := gamma(rng, 1/(cv*cv))
			gaps, sum = append(gaps, gap), sum+gap
		}
		at := float64(step) * tenantStep
		for _, gap := range gaps[:n] {
			at += gap / sum * tenantStep
			a := engine.Arrival{
				At: at, Client: t.id,
				Prompt: length(t.promptStretch*t.prompt.draw(rng), most),
				Output: length(t.outputStretch*t.output.draw(rng), maxTokens),
			}
			if at < seconds {
				arrivals = append(arrivals, a)
			}
		}
	}
	return arrivals
}
