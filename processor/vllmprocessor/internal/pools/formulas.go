package pools

import (
	"math"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// formula yields the values of a metric in a pool.
type formula func(p *Totals, g *group, yield func(extra string, number float64))

// sum adds up a part over all engines of all servers. A whole one is absent where a defect makes the
// part of one server wrong: without that server it would be too low.
func sum(part int, whole bool) formula {
	return func(_ *Totals, g *group, yield func(string, float64)) {
		if total, has, defective := g.total(part); has && !(whole && defective) {
			yield("", total.Numerator)
		}
	}
}

// quotient divides the sum of all numerators by that of all denominators.
func quotient(part int) formula {
	return func(_ *Totals, g *group, yield func(string, float64)) {
		total, has, _ := g.total(part)
		if value, reason := total.Divide(); has && reason == derive.OK {
			yield("", value)
		}
	}
}

// quantiles are those of the distributions of all engines, merged.
func quantiles(distribution int) formula {
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

// ofServers is a number of what each server has of a part.
func ofServers(part int, number func(values []float64) float64) formula {
	return func(p *Totals, g *group, yield func(string, float64)) {
		if values := p.perServer(g, part); len(values) > 0 {
			yield("", number(values))
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

// compared is a number of what the servers have, over the mean.
func compared(number func(values []float64, mean float64) float64) formula {
	return func(p *Totals, g *group, yield func(string, float64)) {
		p.compare(g, func(signal string, values []float64, mean float64) { yield(signal, number(values, mean)/mean) })
	}
}

// deviation is the population standard deviation.
func deviation(values []float64, mean float64) float64 {
	squares := 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	return math.Sqrt(squares / float64(len(values)))
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

// total adds up a part over the engines that have it. has is false where none has; defective is true
// where a defect makes the part of one wrong.
func (g *group) total(part int) (total derive.Parts, has, defective bool) {
	for _, s := range g.servers {
		for _, e := range s {
			is := &e.parts[part]
			if is.Reason == derive.OK {
				total.Numerator += is.Numerator
				total.Denominator += is.Denominator
				has = true
			}
			defective = defective || is.Reason == derive.KnownDefect
		}
	}
	return total, has, defective
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

// The parts that are states. Those of the derived metrics follow them.
const (
	running = iota
	waiting
	utilization
	states
)

// alike are the metrics of one server that a pool has as well, and their names there, by the same
// formula over the sums of all servers' parts.
var alike = []struct{ server, pool string }{
	{"vllm.prefix_cache.hit_ratio", "vllm.pool.prefix_cache.hit_ratio"},
	{"vllm.prompt_tokens_cached_ratio", "vllm.pool.prompt_tokens_cached_ratio"},
	{"vllm.external_prefix_cache.hit_ratio", "vllm.pool.external_prefix_cache.hit_ratio"},
	{"vllm.external_prefix_cache.hit_throughput", "vllm.pool.external_prefix_cache.hit_throughput"},
	{"vllm.prompt_throughput", "vllm.pool.prompt_throughput"},
	{"vllm.prefill_compute_throughput", "vllm.pool.prefill_compute_throughput"},
	{"vllm.generation_throughput", "vllm.pool.generation_throughput"},
	{"vllm.request_throughput", "vllm.pool.request_throughput"},
	{"vllm.first_token_rate", "vllm.pool.first_token_rate"},
	{"vllm.preemption_rate", "vllm.pool.preemption_rate"},
	{"vllm.arrival_rate", "vllm.pool.arrival_rate"},
	{"vllm.drop_rate", "vllm.pool.drop_rate"},
	{"vllm.request.queue_wait_estimate", "vllm.pool.request.queue_wait_estimate"},
	{"vllm.preemptions_per_first_token", "vllm.pool.preemptions_per_first_token"},
	{"vllm.request.queue_time_ratio", "vllm.pool.request.queue_time_ratio"},
	{"vllm.spec_decode.acceptance_ratio", "vllm.pool.spec_decode.acceptance_ratio"},
	{"vllm.time_to_first_token_mean", "vllm.pool.time_to_first_token_mean"},
	{"vllm.time_to_first_token_quantile", "vllm.pool.time_to_first_token_quantile"},
	{"vllm.inter_token_latency_mean", "vllm.pool.inter_token_latency_mean"},
	{"vllm.inter_token_latency_quantile", "vllm.pool.inter_token_latency_quantile"},
	{"vllm.e2e_request_latency_mean", "vllm.pool.e2e_request_latency_mean"},
	{"vllm.e2e_request_latency_quantile", "vllm.pool.e2e_request_latency_quantile"},
}

// row is one metric of a pool.
type row struct {
	derive.Row
	values formula
}

// part is a number, or numerator and denominator, that each engine adds.
type part func(*derive.Settings, *derive.Member) derive.Parts

// table is what pools say and what that is computed from.
type table struct {
	rows          []row
	parts         []part
	distributions []*derive.Row
	// generation is the part that is the generation throughput.
	generation int
	// times are the parts that are the times of requests, per second.
	times [derive.NumUntil]int
}

func newTable() *table {
	t := &table{parts: []part{
		running: state(input.Running), waiting: state(input.Waiting), utilization: state(input.KVCacheUtilization),
	}}
	t.add("vllm.pool.replicas", (*Totals).replicas)
	t.add("vllm.pool.running", sum(running, false))
	t.add("vllm.pool.waiting", sum(waiting, false))
	t.add("vllm.pool.kv_cache.utilization_mean", ofServers(utilization, mean))
	t.add("vllm.pool.kv_cache.utilization_max", ofServers(utilization, slices.Max))
	of := map[string]*derive.Row{}
	for i := range derive.Rows() {
		of[derive.Rows()[i].Metric] = &derive.Rows()[i]
	}
	for _, names := range alike {
		t.addAlike(names.pool, of[names.server])
	}
	for until, metric := range [...]string{derive.FirstToken: "vllm.time_to_first_token_mean", derive.End: "vllm.e2e_request_latency_mean"} {
		t.times[until] = len(t.parts)
		t.parts = append(t.parts, func(settings *derive.Settings, m *derive.Member) derive.Parts {
			return derive.PerSecond(of[metric].Of(settings, m), m.Now.Elapsed)
		})
	}
	t.add("vllm.pool.gateway_delay", (*Totals).gatewayDelay, "until")
	t.add("vllm.pool.imbalance.stddev_ratio", compared(deviation), "signal")
	t.add("vllm.pool.imbalance.max_ratio", compared(func(values []float64, _ float64) float64 { return slices.Max(values) }), "signal")
	return t
}

func (t *table) add(metric string, values formula, extra ...string) {
	t.rows = append(t.rows, row{Row: derive.Row{Metric: metric, Extra: extra}, values: values})
}

// addAlike adds a metric that one server has, too.
func (t *table) addAlike(name string, server *derive.Row) {
	switch {
	case server.Additive != nil:
		if server.Metric == "vllm.generation_throughput" {
			t.generation = len(t.parts)
		}
		t.add(name, sum(len(t.parts), true))
		t.parts = append(t.parts, func(settings *derive.Settings, m *derive.Member) derive.Parts {
			value, reason := server.Additive(settings, m)
			return derive.Parts{Numerator: value, Reason: reason}
		})
	case server.Quotient != nil:
		t.add(name, quotient(len(t.parts)))
		t.parts = append(t.parts, oneUnit(server))
	default:
		t.add(name, quantiles(len(t.distributions)), server.Extra...)
		t.distributions = append(t.distributions, server)
	}
}

// oneUnit leaves out the prefix cache of servers that count blocks, or may do so:
// blocks and tokens cannot be added up.
func oneUnit(server *derive.Row) part {
	if server.Metric != "vllm.prefix_cache.hit_ratio" {
		return server.Of
	}
	return func(settings *derive.Settings, m *derive.Member) derive.Parts {
		if m.Now.Older(input.PrefixCacheHits) || m.Now.Older(input.PrefixCacheQueries) {
			return derive.Parts{Reason: derive.Missing}
		}
		return server.Of(settings, m)
	}
}

// state reads the newest value of a gauge. A server whose gauges can be those of requests
// that are gone is left out.
func state(in input.Metric) part {
	return func(_ *derive.Settings, m *derive.Member) derive.Parts {
		value, status := m.Now.Gauge(in)
		reason := derive.Because(status)
		if reason == derive.OK && (derive.Frozen(&m.Now) || derive.Mixed(&m.Now)) {
			reason = derive.KnownDefect
		}
		if in == input.KVCacheUtilization {
			value = diagnose.WithoutNullBlock(&m.Now, value)
		}
		return derive.Parts{Numerator: value, Reason: reason}
	}
}
