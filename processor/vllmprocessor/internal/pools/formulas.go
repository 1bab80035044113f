package pools

import (
	"math"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
)

// sum adds up a part over all engines of all servers.
func sum(part int) func(*Totals, *group, func(string, float64)) {
	return func(_ *Totals, g *group, yield func(string, float64)) {
		if total, ok := g.total(part); ok {
			yield("", total.Numerator)
		}
	}
}

// whole is sum, and absent where a defect makes the part of one server wrong: without that
// server it would be too low.
func whole(part int) func(*Totals, *group, func(string, float64)) {
	return func(_ *Totals, g *group, yield func(string, float64)) {
		if total, ok := g.total(part); ok && !g.defective(part) {
			yield("", total.Numerator)
		}
	}
}

// quotient divides the sum of all numerators by that of all denominators.
func quotient(part int) func(*Totals, *group, func(string, float64)) {
	return func(_ *Totals, g *group, yield func(string, float64)) {
		total, ok := g.total(part)
		if !ok {
			return
		}
		if value, reason := total.Divide(); reason == derive.OK {
			yield("", value)
		}
	}
}

// quantiles are those of the distributions of all engines, merged.
func quantiles(distribution int) func(*Totals, *group, func(string, float64)) {
	return func(p *Totals, g *group, yield func(string, float64)) {
		p.merged.Reset()
		for _, s := range g.servers {
			for _, e := range s {
				p.merged.Add(&e.distributions[distribution])
			}
		}
		for _, q := range p.settings.Derive.Quantiles {
			if value, reason := p.settings.Derive.Quantile(&p.merged, q.Rank); reason == derive.OK {
				yield(q.Text, value)
			}
		}
	}
}

// replicas counts the servers that say how many requests they run, whether that is true
// or not.
func (*Totals) replicas(g *group, yield func(string, float64)) {
	n := 0
	for _, s := range g.servers {
		if slices.ContainsFunc(s, func(e *engine) bool {
			reason := e.parts[running].Reason
			return reason == derive.OK || reason == derive.KnownDefect
		}) {
			n++
		}
	}
	if n > 0 {
		yield("", float64(n))
	}
}

func (p *Totals) utilizationMean(g *group, yield func(string, float64)) {
	if values := p.perServer(g, utilization); len(values) > 0 {
		yield("", mean(values))
	}
}

func (p *Totals) utilizationMax(g *group, yield func(string, float64)) {
	if values := p.perServer(g, utilization); len(values) > 0 {
		yield("", slices.Max(values))
	}
}

// deviations are the population standard deviations over the means.
func (p *Totals) deviations(g *group, yield func(string, float64)) {
	p.compare(g, func(signal string, values []float64, mean float64) {
		squares := 0.0
		for _, v := range values {
			squares += (v - mean) * (v - mean)
		}
		yield(signal, math.Sqrt(squares/float64(len(values)))/mean)
	})
}

// excesses are the greatest values over the means.
func (p *Totals) excesses(g *group, yield func(string, float64)) {
	p.compare(g, func(signal string, values []float64, mean float64) {
		yield(signal, slices.Max(values)/mean)
	})
}

// compare calls back for each signal in which servers can be compared: two or
// more have it, and not all have 0.
func (p *Totals) compare(g *group, yield func(signal string, values []float64, mean float64)) {
	for _, signal := range []struct {
		name string
		part int
	}{
		{"generation_throughput", p.table.generation},
		{"kv_cache_utilization", utilization},
		{"running", running},
		{"waiting", waiting},
	} {
		values := p.perServer(g, signal.part)
		if len(values) < 2 {
			continue
		}
		if average := mean(values); average > 0 {
			yield(signal.name, values, average)
		}
	}
}

// total adds up a part over the engines that have it; false where none has.
func (g *group) total(part int) (total derive.Parts, ok bool) {
	for _, s := range g.servers {
		for _, e := range s {
			if is := &e.parts[part]; is.Reason == derive.OK {
				total.Numerator += is.Numerator
				total.Denominator += is.Denominator
				ok = true
			}
		}
	}
	return total, ok
}

// defective reports whether a defect makes the part of an engine wrong.
func (g *group) defective(part int) bool {
	for _, s := range g.servers {
		for _, e := range s {
			if e.parts[part].Reason == derive.KnownDefect {
				return true
			}
		}
	}
	return false
}

// perServer returns a part of each server that has it: the sum over its
// engines, of the utilization the mean. The result is valid until the next call.
func (p *Totals) perServer(g *group, part int) []float64 {
	p.values = p.values[:0]
	for _, s := range g.servers {
		total, engines := 0.0, 0
		for _, e := range s {
			if is := &e.parts[part]; is.Reason == derive.OK {
				total += is.Numerator
				engines++
			}
		}
		if engines == 0 {
			continue
		}
		if part == utilization {
			total /= float64(engines)
		}
		p.values = append(p.values, total)
	}
	return p.values
}

func mean(values []float64) float64 {
	total := 0.0
	for _, v := range values {
		total += v
	}
	return total / float64(len(values))
}
