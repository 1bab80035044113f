// Package rivals has methods that others would take in place of the diagnosis, so that its figures can be read beside
// theirs on the same scrapes: NSigma on the same signals, and the alerts on vLLM's own names in a Prometheus.
package rivals

import (
	"context"
	"math"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
)

const (
	// windowSeconds is the least length of a window, and inARow how many have to be slow before it is reported.
	windowSeconds, inARow = 60.0, 2
	// mostDeviations is the distance from the mean from which on a value is an anomaly, in standard deviations.
	mostDeviations = 3.0
)

// NSigma is the method of that name: a value is an anomaly where it is more than three standard deviations from the
// mean of the windows before. It reports a server as degraded where users wait so long in two windows in a row, and
// names the cause of the signal that is the furthest from its mean.
type NSigma struct {
	fewest  float64
	quiet   bool
	servers map[int]*history
}

// NewNSigma returns a method for the servers of one story. fewest is how many windows must have a signal before it is
// judged. The usual form learns from all windows, so that harm that lasts becomes usual; with quiet it learns only
// from those in which users do not wait long.
func NewNSigma(fewest int, quiet bool) *NSigma {
	return &NSigma{float64(fewest), quiet, map[int]*history{}}
}

// history is what is known of a server. The window began at from, with the values begin; sums are those of its scrapes.
type history struct {
	begin, sums   values
	from, scrapes float64
	tokens        float64
	before        [len(signals)]moments
	slow          int
	report        judge.Report
}

// values are the sums over all series of a server, by the name of a metric, and of histograms by that and the part.
type values map[string]float64

// signal is a number of a window, of what counters grew and the means of gauges. NaN is a window without it.
type signal struct {
	// cause is what it stands for in the diagnosis; empty for what users wait for.
	cause string
	of    func(grown, mean values, seconds float64) float64
}

func gauge(cause, name string) signal {
	return signal{cause, func(_, g values, _ float64) float64 { return g[name] }}
}

func ratio(cause, of, to string) signal {
	return signal{cause, func(d, _ values, _ float64) float64 { return d[of] / d[to] }}
}

// mean is one over the observations of a histogram.
func mean(cause, name string) signal { return ratio(cause, name+"_sum", name+"_count") }

const (
	first, inter         = "vllm.time_to_first_token", "vllm.inter_token_latency"
	whole, queue, inside = "vllm.e2e_request_latency", "vllm.request.queue_time", "vllm.request.inference_time"
	waiting, deferred    = "vllm.num_requests.waiting", "vllm.num_requests.waiting_by_reason deferred"
	demand, prefill      = "demand_exceeds_capacity", "prefill_heavy"
	decode, kv           = "decode_load", "kv_pressure"
)

// signals are those of the diagnosis that need no model of the engine. More of them is harm.
var signals = [...]signal{
	mean("", first),
	{"", func(d, _ values, _ float64) float64 { // With speculation a step yields several tokens.
		return d[inter+"_sum"] / (d["vllm.generation_tokens"] - d[first+"_count"])
	}},
	mean(demand, queue),
	{demand, func(d, _ values, seconds float64) float64 { return (d[first+"_count"] + d[waiting]) / seconds }},
	{demand, func(_, g values, _ float64) float64 { return g[waiting] - g[deferred] }},
	gauge("admission_deferred", deferred),
	mean(prefill, "vllm.request.prefill_time"),
	mean(prefill, "vllm.request.prompt_tokens"),
	mean(prefill, "vllm.request.prefill_kv_computed_tokens"),
	mean(decode, "vllm.request.generation_tokens"),
	gauge(decode, "vllm.num_requests.running"),
	gauge(kv, "vllm.kv_cache.utilization"),
	ratio(kv, "vllm.num_preemptions", first+"_count"),
	mean("slow_steps", inter),
	{"speculation_wasteful", func(d, _ values, _ float64) float64 {
		return -d["vllm.spec_decode.num_accepted_tokens"] / d["vllm.spec_decode.num_drafts"]
	}},
	{"frontend_bound", func(d, _ values, _ float64) float64 {
		return (d[whole+"_sum"] - d[queue+"_sum"] - d[inside+"_sum"]) / d[whole+"_count"]
	}},
}

// Scraped takes a scrape; see judge.Method. It never fails.
func (n *NSigma) Scraped(_ context.Context, server int, at float64, metrics pmetric.Metrics) (judge.Report, error) {
	now := read(metrics)
	h := n.servers[server]
	if h == nil {
		h = &history{report: judge.Report{Condition: "unknown", Severity: 1}}
		n.servers[server] = h
	}
	switch restarted := now[first+"_count"] < h.tokens; {
	case now["vllm.up"] != 1:
		h.begin = nil
		return h.report, nil
	case h.begin == nil || restarted:
		h.start(at, now)
		return h.report, nil
	}
	h.tokens = now[first+"_count"]
	h.scrapes++
	for name, v := range now {
		h.sums[name] += v
	}
	if seconds := at - h.from; seconds >= windowSeconds {
		grown, means := values{}, values{}
		for name, v := range now {
			grown[name], means[name] = v-h.begin[name], h.sums[name]/h.scrapes
		}
		n.window(h, grown, means, seconds)
		h.start(at, now)
	}
	return h.report, nil
}

// start begins a window.
func (h *history) start(at float64, now values) {
	h.from, h.begin, h.sums, h.scrapes, h.tokens = at, now, values{}, 0, now[first+"_count"]
}

// window judges a window by those before, and then counts it as one of them.
func (n *NSigma) window(h *history, grown, means values, seconds float64) {
	slow, cause, most, after := false, "", math.Inf(-1), h.before
	for i := range signals {
		v := signals[i].of(grown, means, seconds)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		after[i].add(v)
		switch z := h.before[i].distance(v); {
		case h.before[i].n < n.fewest:
		case signals[i].cause == "":
			slow = slow || z > mostDeviations
		case z > most:
			cause, most = signals[i].cause, z
		}
	}
	if !slow || !n.quiet {
		h.before = after
	}
	h.slow++
	if !slow {
		h.slow = 0
	}
	switch {
	case h.slow >= inARow:
		h.report = judge.Report{Condition: "degraded", Severity: 2, Cause: cause}
	case h.before[0].n >= n.fewest:
		h.report = judge.Report{Condition: "healthy"}
	}
}

// moments are the running mean and the sum of squared deviations from it.
type moments struct{ n, mean, squares float64 }

func (m *moments) add(v float64) {
	m.n++
	d := v - m.mean
	m.mean += d / m.n
	m.squares += d * (v - m.mean)
}

// distance is how many standard deviations a value is above the mean. As in the usual implementations, a signal that
// never changed has the deviation 1 in its own unit.
func (m *moments) distance(v float64) float64 {
	deviation := math.Sqrt(m.squares / m.n)
	if deviation == 0 {
		deviation = 1
	}
	return (v - m.mean) / deviation
}

// read adds up what a scrape shows of a server.
func read(metrics pmetric.Metrics) values {
	out := values{}
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				switch m.Type() {
				case pmetric.MetricTypeSum:
					for _, p := range m.Sum().DataPoints().All() {
						out[m.Name()] += p.DoubleValue()
					}
				case pmetric.MetricTypeGauge:
					for _, p := range m.Gauge().DataPoints().All() {
						name := m.Name()
						if reason, has := p.Attributes().Get("reason"); has {
							name += " " + reason.Str()
						}
						out[name] += p.DoubleValue()
					}
				case pmetric.MetricTypeHistogram:
					for _, p := range m.Histogram().DataPoints().All() {
						out[m.Name()+"_sum"] += p.Sum()
						out[m.Name()+"_count"] += float64(p.Count())
					}
				default:
				}
			}
		}
	}
	return out
}
