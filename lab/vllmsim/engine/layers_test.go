package engine

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
)

// plan is the factor of the arrival rate from each time on.
type plan []struct{ at, factor float64 }

func (p plan) factorAt(t float64) float64 {
	factor := 1.0
	for _, step := range p {
		if step.at <= t {
			factor = step.factor
		}
	}
	return factor
}

// planned returns the requests up to t under a plan.
func planned(w Workload, seed uint64, t float64, p plan) []*request {
	a, v := newArrivals(seed, w, 16384), nominalValues()
	a.set(0, 1)
	var out []*request
	for _, step := range p {
		out = append(out, take(a, &v, step.at)...)
		a.set(step.at, step.factor)
	}
	return append(out, take(a, &v, t)...)
}

// randomPlan has steps and ramps; some factors are whole, and some are 0.
func randomPlan(rng *rand.Rand, t float64) (p plan) {
	for at := t * rng.Float64() / 4; at < t; at += t * rng.Float64() / 4 {
		factor := [...]float64{0, 0.5, 1, 1.02, 2, 4, 12 * rng.Float64()}[rng.IntN(7)]
		p = append(p, plan{{at, factor}}...)
		if rng.IntN(3) == 0 {
			for range 20 {
				at += 0.5
				factor += 0.1 * rng.Float64()
				p = append(p, plan{{at, factor}}...)
			}
		}
	}
	return p
}

// sources are workloads with each kind of arrivals.
func sources() map[string]Workload {
	wavy := Chat(8)
	wavy.CV, wavy.Swing, wavy.Period, wavy.BurstFactor, wavy.BurstEvery, wavy.BurstSeconds = 2, 0.6, 200, 3, 60, 20
	traffic := Chat(0)
	traffic.Traffic, traffic.Speed, traffic.From = someTraffic(800, 100), 2, 30
	return map[string]Workload{"poisson": Chat(8), "waves and bursts": wavy, "traffic": traffic}
}

// someTraffic has n random requests in a span, with blocks of 64 tokens: a third of the
// prompts continue another one.
func someTraffic(n int, span float64) *Traffic {
	rng := rand.New(rand.NewPCG(1, 2))
	t := &Traffic{Name: "some", Span: span, BlockTokens: 64}
	number := int32(0)
	for i := range n {
		a := Arrival{At: span * rng.Float64(), Output: int32(1 + rng.IntN(200))}
		if i > 0 && rng.IntN(3) == 0 {
			a.Prefix = slices.Clone(t.Arrivals[rng.IntN(i)].Prefix)
		}
		own := 1 + rng.Int32N(30)
		a.Prefix = append(a.Prefix, BlockRun{number, number + own - 1})
		number += own
		a.Prompt = int32(blockCount(a.Prefix)*64) - rng.Int32N(64)
		t.Arrivals = append(t.Arrivals, a)
	}
	slices.SortFunc(t.Arrivals, func(a, b Arrival) int { return int(math.Copysign(1, a.At-b.At)) })
	return t
}

// facts are what runs must agree on.
func facts(r *request) [10]float64 {
	return [...]float64{
		r.arrived, float64(r.prompt), float64(r.output), float64(r.stopAt), float64(r.maxTokens), float64(r.prefix), float64(r.shared),
		r.leaves, r.route, float64(r.end),
	}
}

func TestTwoPlansShareTheirRequests(t *testing.T) {
	const length = 200.0
	for name, w := range sources() {
		for seed := range uint64(6) {
			rng := rand.New(rand.NewPCG(seed, 9))
			one, other := randomPlan(rng, length), randomPlan(rng, length)
			nominal := planned(w, seed, length, nil)
			known := map[int]*request{}
			for _, r := range planned(w, seed, length, one) {
				require.Nil(t, known[r.id], "%s: two requests have the number %d", name, r.id)
				known[r.id] = r
			}
			again := map[int]*request{}
			for _, r := range planned(w, seed, length, other) {
				again[r.id] = r
				if same := known[r.id]; same != nil {
					require.Equal(t, facts(same), facts(r), "%s: equal numbers, equal requests", name)
				}
			}
			for _, r := range nominal {
				for _, run := range []struct {
					p   plan
					has map[int]*request
				}{{one, known}, {other, again}} {
					if run.p.factorAt(r.arrived) >= 1 {
						require.NotNil(t, run.has[r.id], "%s: nominal request %d at %v s", name, r.id, r.arrived)
						require.Equal(t, facts(r), facts(run.has[r.id]), "%s", name)
					}
				}
				// Of two thinned runs the thinner one has no request of its own.
				f, g := one.factorAt(r.arrived), other.factorAt(r.arrived)
				require.False(t, f <= g && known[r.id] != nil && again[r.id] == nil, "%s: nested", name)
			}
			for id, r := range known {
				if one.factorAt(r.arrived) <= other.factorAt(r.arrived) {
					require.NotNil(t, again[id], "%s: a greater factor has all requests of a smaller one", name)
				}
			}
		}
	}
}

// A pause of the arrivals that is shorter than the gap between two of them loses neither: the
// stream has drawn the next arrival before the pause, and it is due after it.
func TestAShortPauseLosesNoRequestAfterIt(t *testing.T) {
	for name, w := range sources() {
		for _, whole := range []float64{1, 3} {
			all := planned(w, 3, 20, plan{{0, whole}})
			for i := 1; i+1 < len(all); i += 23 {
				from, to := all[i].arrived, all[i+1].arrived
				if to-from < 1e-6 {
					continue
				}
				pause := plan{{0, whole}, {from + 0.4*(to-from), 0}, {from + 0.6*(to-from), whole}}
				got := planned(w, 3, 20, pause)
				require.Len(t, got, len(all), "%s, factor %v: a pause without arrivals after %v s", name, whole, from)
				for n := range got {
					require.Equal(t, all[n].id, got[n].id, "%s, factor %v", name, whole)
				}
			}
		}
	}
}

// Waves stretch the time of a stream and change nothing else: the n-th request is the same one
// as without waves, and comes when as many are expected as were without them. What is expected
// is the integral of the rate, here from the formula of a wave.
func TestWavesStretchTheTimeOfAStream(t *testing.T) {
	const rate, swing, period = 10.0, 0.8, 300.0
	for _, cv := range []float64{1, 2.5} {
		plain := Chat(rate)
		plain.CV = cv
		wavy := plain
		wavy.Swing, wavy.Period = swing, period
		for _, factor := range []float64{1, 3.3} {
			p := plan{{0, factor}}
			times := map[int]*request{}
			for _, r := range planned(plain, 5, 700, p) {
				times[r.id] = r
			}
			compared := 0
			for _, r := range planned(wavy, 5, 600, p) {
				same := times[r.id]
				require.NotNil(t, same, "CV %v, factor %v: request %d", cv, factor, r.id)
				even := r.arrived + swing*period/(2*math.Pi)*(1-math.Cos(2*math.Pi*r.arrived/period))
				// A wave has 256 steps.
				require.InDelta(t, same.arrived, even, 0.02, "CV %v, factor %v", cv, factor)
				a, b := facts(r), facts(same)
				require.Equal(t, b[1:7], a[1:7])
				compared++
			}
			require.Greater(t, compared, 5000)
		}
	}
}

func TestTheFactorIsThatOfTheRate(t *testing.T) {
	race.SkipSequential(t)
	const length, rate = 2_000, 8.0
	traffic := Workload{Traffic: someTraffic(rate*100, 100)}
	for name, w := range map[string]Workload{"poisson": Chat(rate), "traffic": traffic} {
		for _, factor := range []float64{0, 0.3, 1, 1.02, 1.5, 2, 3, 7.3} {
			requests := planned(w, 4, length, plan{{0, factor}})
			want := factor * rate * length
			assert.InDelta(t, want, len(requests), 5*math.Sqrt(want), "%s, factor %v", name, factor)
			extra := make([]float64, length/10)
			for _, r := range requests {
				if r.id >= 1<<layerShift {
					extra[int(r.arrived/10)]++
				}
			}
			if factor > 1 {
				// An added Poisson process, in windows of ten seconds.
				m, squares := 0.0, 0.0
				for _, n := range extra {
					m += n / float64(len(extra))
					squares += n * n / float64(len(extra))
				}
				assert.InDelta(t, (factor-1)*rate*10, m, 5*math.Sqrt((factor-1)*rate*10/float64(len(extra))), "%s, factor %v", name, factor)
				if name == "poisson" {
					assert.InDelta(t, 1, (squares-m*m)/m, 0.5, "index of dispersion, factor %v", factor)
				}
			}
		}
	}
}

func TestAnAddedStreamHasTheShapeOfTheNominalOne(t *testing.T) {
	race.SkipSequential(t)
	w := Chat(10)
	w.Swing, w.Period = 0.9, 1000
	w.CV = 3
	up, down := 0.0, 0.0
	windows := make([]float64, 10_000)
	for _, r := range planned(w, 3, 10_000, plan{{0, 2}}) {
		if r.id < 1<<layerShift {
			continue
		}
		switch phase := math.Mod(r.arrived, 1000); {
		case phase > 200 && phase < 300:
			up++
		case phase > 700 && phase < 800:
			down++
		}
		windows[int(r.arrived)]++
	}
	assert.InEpsilon(t, (1+0.9*0.98)/(1-0.9*0.98), up/down, 0.2, "the wave's top and bottom")
	w.Swing = 0
	m, squares := 0.0, 0.0
	clear(windows)
	for _, r := range planned(w, 3, 10_000, plan{{0, 2}}) {
		if r.id >= 1<<layerShift {
			windows[int(r.arrived)]++
		}
	}
	for _, n := range windows {
		m += n / float64(len(windows))
		squares += n * n / float64(len(windows))
	}
	// For windows of ten requests the index is still below its limit of 9.
	assert.Greater(t, (squares-m*m)/m, 3.0)
}

// A change of the rate used to give the runs that are compared different requests, so that
// chance looked like harm: of 324 minutes 38 for 2 % more requests, and 65 for half of them.
func TestAnotherRateIsNoHarmByChance(t *testing.T) {
	race.SkipSequential(t)
	model := Llama8B()
	model.Name, model.WeightBytes, model.FlopsPerToken, model.Width, model.Layers, model.GPUs = "34b", 34e9, 34e9, 8192, 48, 2
	model.KVBytes, model.Bandwidth, model.Compute, model.Blocks = 98_304, 2.039e12, 312e12, 22_000
	const onset, end, length = 1200.0, 1200 + 18*60.0, 3000.0
	harmful := func(factor float64) (harmful, judged int) {
		for seed := range uint64(3) {
			outcomes := func(changes ...Change) map[int]Outcome {
				s := start(t, Config{
					Seed: seed, Model: model, Workload: Chat(1.1), FrontEnd: DefaultFrontEnd(), KeepOutcomes: true, Changes: changes,
				})
				s.AdvanceTo(length)
				out := map[int]Outcome{}
				for _, o := range s.Outcomes() {
					out[o.ID] = o
				}
				return out
			}
			nominal := outcomes()
			actual := outcomes(Change{At: onset, Parameter: ParamArrivalRate, Value: factor}, Change{At: end, Parameter: ParamArrivalRate, Value: 1})
			type sums struct{ n, first, actualFirst, gaps, actualGaps float64 }
			var minutes [length / 60]sums
			for id, o := range nominal {
				other, both := actual[id]
				if !both || o.FirstToken == 0 || other.FirstToken == 0 {
					continue
				}
				m := &minutes[int(o.Arrived/60)]
				m.n++
				m.first += o.FirstToken
				m.actualFirst += other.FirstToken
				m.gaps += o.MeanGap
				m.actualGaps += other.MeanGap
			}
			for _, m := range minutes[onset/60:] {
				if m.n < 20 {
					continue
				}
				judged++
				if (m.actualFirst > 1.3*m.first && m.actualFirst-m.first > 0.1*m.n) || (m.actualGaps > 1.3*m.gaps && m.actualGaps-m.gaps > 0.005*m.n) {
					harmful++
				}
			}
		}
		return harmful, judged
	}
	for _, factor := range []float64{1.02, 0.5} {
		bad, of := harmful(factor)
		require.Greater(t, of, 60)
		// A long prompt among the added requests is harm to its minute.
		assert.LessOrEqual(t, float64(bad), 0.02*float64(of), "factor %v: %d of %d minutes", factor, bad, of)
		t.Logf("factor %v: %d of %d minutes", factor, bad, of)
	}
}

func TestARampOfManyChangesIsCheap(t *testing.T) {
	a := newArrivals(1, Chat(10), 16384)
	v := nominalValues()
	kept := 0
	for i := range 100_000 {
		at := float64(i) * 0.01
		kept += len(take(a, &v, at))
		a.set(at, 1+float64(i)/100_000)
	}
	// From one to two times the rate in 1000 s.
	assert.InEpsilon(t, 15_000, kept, 0.03)
	assert.Len(t, a.layers, 2)
}
