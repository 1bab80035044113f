package stories

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// Size says how much is played.
type Size struct {
	// Singles is the number of stories of each cause and effect, Curve that of each rate and
	// effect, Pairs, Drifts, Starts and Expositions those of all.
	Singles, Curve, Pairs, Drifts, Starts, Expositions int
	// Recorded is the number of stories of each inferred cause on recorded traffic.
	Recorded int
	// Healthy is the number of healthy hours that shall count in each cell: of a model,
	// traffic and load.
	Healthy float64
	// HealthyRecorded is the same for recorded traffic.
	HealthyRecorded int
}

// Sizes are those of a first look and of the published run, which takes an hour on two cores at most: a healthy hour took
// 0.85 seconds of a processor and a story with a fault 1.4, and a quarter more for the collection of garbage.
var Sizes = map[string]Size{
	"tiny":      {Singles: 1, Curve: 1, Pairs: 4, Drifts: 2, Starts: 4, Expositions: 3, Recorded: 1, Healthy: 9, HealthyRecorded: 1},
	"published": {Singles: 7, Curve: 5, Pairs: 40, Drifts: 28, Starts: 20, Expositions: 12, Recorded: 3, Healthy: 100, HealthyRecorded: 1},
}

const (
	minute = 60.0
	hour   = 3600.0
	// plateau is how long a fault of a size lasts after its ramp, recovery what follows.
	plateau, recovery = 20 * minute, 8 * minute
	// healthyLength is the length of a healthy story.
	healthyLength = 12 * hour
)

// All returns the plans of a set in an order in which every beginning is a fair sample:
// what is small and what is long, faults and healthy servers, take turns.
func All(set Set, size Size, recorded bool) []Plan {
	parts := [][]Plan{
		singles(set, size.Singles), curves(set, size.Curve), pairStories(set, size.Pairs), drifts(set, size.Drifts),
		starts(set, size.Starts), expositions(set, size.Expositions), healthy(set, size.Healthy),
	}
	if recorded {
		parts = append(parts, recordings(set, size.Recorded), healthyRecorded(set, size.HealthyRecorded))
	}
	type placed struct {
		at   float64
		plan Plan
	}
	var all []placed
	for _, part := range parts {
		// By their seeds, which have nothing to do with what they are.
		slices.SortStableFunc(part, func(a, b Plan) int { return cmp.Compare(a.Seed%1_000_000, b.Seed%1_000_000) })
		for i := range part {
			all = append(all, placed{(float64(i) + 0.5) / float64(len(part)), part[i]})
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(a.at, b.at) })
	out := make([]Plan, len(all))
	for i := range all {
		out[i] = all[i].plan
	}
	return out
}

// pairsOf are the models with their traffic that a set may use and that fit.
func pairsOf(set Set, fits func(*background) bool) []background {
	var out []background
	for _, p := range pairs {
		if set == Tuning && !(modelTuned(p.model) && trafficOf(p.traffic).Tuned) {
			continue
		}
		b := background{model: p.model, traffic: p.traffic}
		if fits == nil || fits(&b) {
			out = append(out, b)
		}
	}
	return out
}

func modelTuned(name string) bool { return slices.Contains(Models, Model{name, true}) }

// loads are those of the stories with faults.
var loads = []float64{0.5, 0.8, 0.2, 0.65, 1.1, 0.35, 0.95}

// pick takes the n-th of the backgrounds of a fault, each equally often, with a load. The
// order is shuffled for each fault, so that effects and backgrounds are independent.
func pick(set Set, f *fault, n int) background {
	choices := pairsOf(set, f.fits)
	if len(choices) == 0 { // No tuned traffic has blocks.
		choices = pairsOf(HeldOut, func(b *background) bool { return modelTuned(b.model) && f.fits(b) })
	}
	// Each round has an order of its own, or a background would always have the same effects.
	round := uint64(n / len(choices))
	order := rand.New(rand.NewPCG(uint64(f.parameter), 0x0bac+round)).Perm(len(choices))
	b := choices[order[n%len(order)]]
	return judgeable(b.model, b.traffic, loads[(n+3*int(f.parameter))%len(loads)])
}

// leastRate is the least arrival rate of stories with a fault, in requests per second: of a
// minute with fewer than twenty requests it is not known whether it was harmful. Where even
// the knee has hardly more, mostForRate is the load.
const leastRate, mostForRate = 0.45, 0.95

// judgeable is a background with the given load, or with a higher one where that has fewer
// requests than leastRate.
func judgeable(model, kind string, load float64) background {
	if !Closed(kind) {
		load = max(load, min(mostForRate, leastRate/kneeOf(model, kind).Rate))
	}
	return newBackground(model, kind, load)
}

// builder collects what a story is made of.
type builder struct {
	Meta
	b          background
	faults     []*fault
	injections []judge.Injection
	draw       draw
	processor  map[string]any
	prepare    func(*engine.Config)
}

func begin(set Set, kind Kind, name string) *builder {
	seed := seedOf(set, name)
	return &builder{
		Meta: Meta{Name: name, Set: set, Kind: kind, Servers: 1, Seed: seed}, draw: newDraw(seed), processor: map[string]any{},
	}
}

// on sets the background.
func (s *builder) on(b background) { s.b = b }

// add injects a fault.
func (s *builder) add(f *fault, in Injected) {
	s.faults = append(s.faults, f)
	s.Injections = append(s.Injections, in)
	s.injections = append(s.injections, in.injection(f.parameter, f.value))
	if f.breakEven > 0 {
		s.processor["diagnosis"] = map[string]any{"speculation_break_even": f.breakEven}
	}
}

// injection is what the judge plays.
func (i *Injected) injection(p engine.Parameter, value float64) judge.Injection {
	until := i.Until
	if until == 0 {
		until = math.Inf(1)
	}
	return judge.Injection{
		Parameter: p, At: i.At, Over: i.Over, Until: until, Value: value, Effect: i.Wanted, Servers: i.Servers,
	}
}

// promise gives the processor objectives.
func (s *builder) promise() {
	s.Objectives = true
	s.processor["objectives"] = objectives(s.b.model, s.b.traffic)
}

// retry lets clients give up, and try again.
func (s *builder) retry() {
	s.Retries = true
	s.prepare = func(c *engine.Config) {
		c.Workload.Timeout, c.Workload.Retries, c.Workload.RetryAfter = 90, 2, 2
	}
}

// plan ends the story.
func (s *builder) plan(seconds float64) Plan {
	s.Seconds = math.Ceil(seconds/minute) * minute
	s.Model, s.Traffic, s.Load, s.Rate = s.b.model, s.b.traffic, s.b.load, s.b.rate
	s.Tuned, s.KnownTraffic = modelTuned(s.b.model), s.b.kind().Tuned
	s.Recorded, s.Rising = s.b.trace != "", s.b.rises >= 0
	if s.Interval == 0 {
		s.Interval = one(s.draw, []float64{10, 10, 15, 20, 30})
	}
	return Plan{Meta: s.Meta, make: s.make}
}

func (s *builder) make() (*judge.Story, error) {
	out := &judge.Story{
		Name: s.Name, Injections: s.injections, Faults: s.Faults, Length: time.Duration(s.Seconds * float64(time.Second)),
		Interval: time.Duration(s.Interval * float64(time.Second)), Processor: s.processor,
	}
	for i := range s.Servers {
		c, err := s.b.config(s.Seed+uint64(i)<<32, s.Seconds)
		if err != nil {
			return nil, err
		}
		for _, f := range s.faults {
			if f.prepare != nil {
				f.prepare(&c)
			}
		}
		if s.prepare != nil {
			s.prepare(&c)
		}
		out.Servers = append(out.Servers, c)
	}
	return out, nil
}

// vary draws what every story with a fault has: objectives in half of them, retries in
// one of eight, rising traffic in one of four.
func (s *builder) vary(n int, onset float64) {
	if s.draw.IntN(2) == 0 {
		s.promise()
	}
	if n%8 == 5 {
		s.retry()
	}
	if n%4 == 2 && !s.b.closed() {
		s.b.rises = max(0, onset-riseSeconds/2)
	}
}

// onset draws when a fault begins: in one of four stories before a baseline can have been
// learned, and never on a grid.
func (s *builder) onset(n int) float64 {
	if n%4 == 1 {
		return s.draw.between(0, 15*minute)
	}
	return s.draw.between(15*minute, 35*minute)
}

// single is a story of one fault.
func (s *builder) single(f *fault, n int, effect float64) Plan {
	s.Variant = f.parameter.String()
	n += n / len(Effects) // Or an effect would always have the same onsets and traffic.
	at, over, lasts := s.onset(n), 0.0, plateau
	if n%4 == 3 && f.value == 0 {
		over = s.draw.scale(2*minute, 20*minute)
	}
	if f.lasts > 0 {
		lasts = f.lasts
	}
	s.vary(n, at)
	s.add(f, f.inject(at, over, at+over+lasts, effect))
	return s.plan(at + over + lasts + recovery)
}

func singles(set Set, each int) []Plan {
	var out []Plan
	for i := range faults {
		f := &faults[i]
		for n := range int(math.Ceil(float64(each)*f.weight())) * len(Effects) {
			if f.value != 0 && n%3 > 0 {
				continue // Two of them per six of the others.
			}
			effect := Effects[(n+i)%len(Effects)]
			s := begin(set, Single, fmt.Sprintf("%s-%s-%d", set, f.parameter, n))
			s.on(pick(set, f, n))
			out = append(out, s.single(f, n, effect))
		}
	}
	return out
}

// CurveRates are the arrival rates of the detection curve, in requests per second.
var CurveRates = []float64{1, 5, 20}

// The background of the detection curve.
const curveModel, curveTraffic = "8b-h100", "conversation"

func curves(set Set, each int) []Plan {
	var out []Plan
	for n := range each {
		for e, effect := range Effects {
			for r, rate := range CurveRates {
				f := faultOf(onCurve[(n+3*e+5*r)%len(onCurve)])
				s := begin(set, Curve, fmt.Sprintf("%s-curve-%g-%g-%d", set, rate, effect, n))
				s.Variant = f.parameter.String()
				b := newBackground(curveModel, curveTraffic, 0)
				b.rate, b.work = rate, 0
				b.load = rate / kneeOf(curveModel, curveTraffic).Rate
				s.on(b)
				s.Interval = 10
				at := s.draw.between(25*minute, 30*minute)
				s.add(f, f.inject(at, 0, at+plateau, effect))
				out = append(out, s.plan(at+plateau+minute))
			}
		}
	}
	return out
}

func pairStories(set Set, n int) []Plan {
	var out []Plan
	for i := range n {
		s := begin(set, Pair, fmt.Sprintf("%s-pair-%d", set, i))
		first := faultOf(pairable[i%len(pairable)])
		second := first
		for judge.CauseOf(second.parameter) == judge.CauseOf(first.parameter) {
			second = faultOf(one(s.draw, pairable))
		}
		both := func(b *background) bool {
			return (first.fits == nil || first.fits(b)) && (second.fits == nil || second.fits(b))
		}
		s.on(pick(set, &fault{parameter: first.parameter, fits: both}, i))
		s.Variant = first.parameter.String() + " and " + second.parameter.String()
		at := s.draw.between(5*minute, 30*minute)
		s.vary(i, at)
		end := at
		for _, f := range []*fault{first, second} {
			from := at
			if f == second {
				from = max(0, at+s.draw.between(-10*minute, 15*minute))
			}
			over := 0.0
			if s.draw.IntN(4) == 0 {
				over = s.draw.scale(2*minute, 15*minute)
			}
			until := from + over + s.draw.between(15*minute, 25*minute)
			s.add(f, f.inject(from, over, until, one(s.draw, Effects[1:])))
			end = max(end, until)
		}
		out = append(out, s.plan(end+recovery))
	}
	return out
}

// drifts are faults that grow over four hours to twice the bar of harm.
func drifts(set Set, n int) []Plan {
	var out []Plan
	for i := range n {
		f := faultOf(drifting[i%len(drifting)])
		s := begin(set, Drift, fmt.Sprintf("%s-drift-%s-%d", set, f.parameter, i))
		s.Variant = f.parameter.String()
		s.on(pick(set, f, i))
		s.b = judgeable(s.b.model, s.b.traffic, one(s.draw, []float64{0.35, 0.5, 0.65}))
		if i%2 == 0 {
			s.promise()
		}
		at := s.draw.between(20*minute, 40*minute)
		s.add(f, f.inject(at, 4*hour, at+4*hour+30*minute, 2))
		out = append(out, s.plan(at+4*hour+35*minute))
	}
	return out
}

// starts are faults that are there from the first second: of a lone server, and of one of
// three in a pool.
func starts(set Set, n int) []Plan {
	var out []Plan
	for i := range n {
		f := faultOf(lasting[i/2%len(lasting)])
		s := begin(set, FromStart, fmt.Sprintf("%s-start-%s-%d", set, f.parameter, i))
		s.Variant = f.parameter.String()
		s.on(pick(set, f, i))
		s.b = judgeable(s.b.model, s.b.traffic, one(s.draw, []float64{0.35, 0.5, 0.65}))
		in := f.inject(0, 0, 0, Effects[2+i/2%4])
		if i%2 == 0 {
			s.Servers, s.Pool, in.Servers = 3, true, []int{s.draw.IntN(3)}
			s.processor["pool"] = map[string]any{}
		}
		s.add(f, in)
		out = append(out, s.plan(45*minute))
	}
	return out
}
