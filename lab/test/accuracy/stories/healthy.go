package stories

import (
	"fmt"
	"math"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// Variants are the kinds of healthy stories.
var Variants = []string{"traffic alone", "bursts", "cold cache", "scrape gaps", "legitimate shift"}

// healthy returns healthy stories of each model, traffic and band of load, so many that
// about the given hours count.
func healthy(set Set, hours float64) []Plan {
	var out []Plan
	for p, place := range pairsOf(set, nil) {
		for b := range bands {
			for n := range int(math.Ceil(playedHours(hours, &place, b) * hour / healthyLength)) {
				out = append(out, healthyStory(set, fmt.Sprintf("%s-healthy-%s-%s-%d-%d", set, place.model, place.traffic, b, n), place, p, b, n, false))
			}
		}
	}
	return out
}

// healthyRecorded are healthy stories on recorded traffic, so many of each cell.
func healthyRecorded(set Set, each int) []Plan {
	var out []Plan
	for p, place := range pairsOf(set, nil) {
		for b := range bands {
			for n := range each {
				out = append(out, healthyStory(set, fmt.Sprintf("%s-recorded-healthy-%s-%s-%d-%d", set, place.model, place.traffic, b, n), place, p, b, n, true))
			}
		}
	}
	return out
}

// healthyStory is the n-th of a pair and a band.
func healthyStory(set Set, name string, place background, p, b, n int, recorded bool) Plan {
	s := begin(set, Healthy, name)
	s.on(newBackground(place.model, place.traffic, s.draw.between(bands[b].low, bands[b].high)))
	if recorded {
		s.b.trace = s.b.kind().Trace
	}
	s.Variant = Variants[(n+p+b)%len(Variants)]
	if recorded || s.b.closed() && s.Variant == "bursts" {
		s.Variant = "traffic alone"
	}
	if n%2 == (p+b)%2 {
		s.promise()
	}
	s.disturb()
	return s.plan(healthyLength)
}

// disturb adds what a healthy server must bear without an alarm.
func (s *builder) disturb() {
	d := s.draw
	switch s.Variant {
	case "bursts":
		for at := d.between(0, hour); at < healthyLength; at += d.between(0.4*hour, 1.5*hour) {
			s.b.bursts = append(s.b.bursts, at)
		}
	case "cold cache":
		for at := d.between(hour, 4*hour); at < healthyLength-hour; at += d.between(3*hour, 6*hour) {
			s.Faults = append(s.Faults, judge.Fault{Kind: judge.Restart, At: at, Until: at + d.between(40, 120)})
		}
	case "scrape gaps":
		for at := d.between(0.2*hour, hour); at < healthyLength-hour; at += d.between(0.2*hour, 1.5*hour) {
			s.Faults = append(s.Faults, judge.Fault{Kind: judge.Missed, At: at, Until: at + d.scale(12, 600)})
		}
	case "legitimate shift":
		choices := []engine.Parameter{engine.ParamArrivalRate, engine.ParamPromptLength, engine.ParamOutputLength}
		if s.b.closed() {
			choices = choices[1:]
		}
		p := one(d, choices)
		in := Injected{Parameter: p.String(), At: d.between(2*hour, 6*hour)}
		s.Injections = append(s.Injections, in)
		s.injections = append(s.injections, in.injection(p, d.between(1.1, 1.35)))
	}
}

// expositions are faults between the server and the collector. Their truth is the fault
// itself, not the latency of requests.
func expositions(set Set, n int) []Plan {
	var out []Plan
	for i := range n {
		kind := []judge.FaultKind{judge.Unreachable, judge.Restart, judge.Frozen}[i%3]
		s := begin(set, Exposition, fmt.Sprintf("%s-exposition-%s-%d", set, kind, i))
		s.Variant = string(kind)
		s.on(newBackground("8b-h100", "conversation", s.draw.between(0.3, 0.6)))
		// A restart lasts as long as large weights take to load: minutes up to a window after its
		// beginning do not count, so a shorter one would hardly be scored.
		length := map[judge.FaultKind]float64{
			judge.Unreachable: s.draw.between(4*minute, 15*minute), judge.Restart: s.draw.between(5*minute, 10*minute),
			judge.Frozen: s.draw.between(8*minute, 15*minute),
		}[kind]
		at := s.draw.between(20*minute, 30*minute)
		s.Faults = []judge.Fault{{Kind: kind, At: at, Until: at + length}}
		if kind == judge.Frozen {
			// A gauge that is frozen below a half is not noticed, so a burst fills the cache first.
			// Then all clients leave.
			s.on(newBackground(s.b.model, s.b.traffic, s.draw.between(0.5, 0.6)))
			s.b.bursts = []float64{at - minute}
			in := Injected{Parameter: engine.ParamArrivalRate.String(), At: at + burstSeconds - minute, Until: at + length}
			s.Injections = append(s.Injections, in)
			s.injections = append(s.injections, in.injection(engine.ParamArrivalRate, 0))
		}
		out = append(out, s.plan(at+length+15*minute))
	}
	return out
}

// recordings are stories of one fault on recorded traffic.
func recordings(set Set, each int) []Plan {
	var out []Plan
	for n := range each {
		for i := range faults {
			f := &faults[i]
			if f.value != 0 || !slices.Contains(Inferred, judge.CauseOf(f.parameter)) {
				continue
			}
			s := begin(set, Single, fmt.Sprintf("%s-recorded-%s-%d", set, f.parameter, n))
			s.on(pick(set, f, n+7))
			s.b.trace = s.b.kind().Trace
			s.Variant = f.parameter.String()
			at := s.onset(n + i)
			if (n+i)%2 == 0 {
				s.promise()
			}
			s.add(f, f.inject(at, 0, at+plateau, Effects[(n+i)%len(Effects)]))
			out = append(out, s.plan(at+plateau+recovery))
		}
	}
	return out
}
