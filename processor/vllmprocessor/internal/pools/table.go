package pools

import (
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

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
	// values yields the values of the metric in a pool.
	values func(*Totals, *group, func(extra string, number float64))
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
}

func newTable() *table {
	t := &table{parts: []part{
		running: state(input.Running), waiting: state(input.Waiting), utilization: state(input.KVCacheUtilization),
	}}
	t.add("vllm.pool.replicas", (*Totals).replicas)
	t.add("vllm.pool.running", sum(running))
	t.add("vllm.pool.waiting", sum(waiting))
	t.add("vllm.pool.kv_cache.utilization_mean", (*Totals).utilizationMean)
	t.add("vllm.pool.kv_cache.utilization_max", (*Totals).utilizationMax)
	of := map[string]*derive.Row{}
	for i := range derive.Rows() {
		of[derive.Rows()[i].Metric] = &derive.Rows()[i]
	}
	for _, names := range alike {
		t.addAlike(names.pool, of[names.server])
	}
	t.add("vllm.pool.imbalance.stddev_ratio", (*Totals).deviations, "signal")
	t.add("vllm.pool.imbalance.max_ratio", (*Totals).excesses, "signal")
	return t
}

func (t *table) add(metric string, values func(*Totals, *group, func(string, float64)), extra ...string) {
	t.rows = append(t.rows, row{Row: derive.Row{Metric: metric, Extra: extra}, values: values})
}

// addAlike adds a metric that one server has, too.
func (t *table) addAlike(name string, server *derive.Row) {
	switch {
	case server.Additive != nil:
		if server.Metric == "vllm.generation_throughput" {
			t.generation = len(t.parts)
		}
		t.add(name, whole(len(t.parts)))
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
