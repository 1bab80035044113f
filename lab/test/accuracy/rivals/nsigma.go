package rivals

import (
	"context"
	"math"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
)

const (
	// windowSeconds is the least length of a window.
	windowSeconds = 60.0
	// mostDeviations is the distance from the mean from which on a value is an anomaly, in standard deviations.
	mostDeviations = 3.0
	// inARow is how many windows in a row have to be slow before it is reported.
	inARow = 2
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

// history is what is known of a server.
type history struct {
	of         *NSigma
	begin, now values
	from       float64
	// gauges are the sums of the scrapes in the window.
	gauges  values
	scrapes float64
	before  [len(signals)]moments
	slow    int
	report  judge.Report
}

// values are by the name of a metric: sums over all series of a server. Sums and counts of histograms end in .sum
// and .count.
type values map[string]float64

// signal is a number of a window. NaN is a window without it.
type signal struct {
	// cause is what it stands for in the diagnosis; empty for what users wait for.
	cause string
	// falls is true where less of it is harm.
	falls bool
	of    func(increase, gauge values, seconds float64) float64
}

// mean is a mean over the observations of a histogram.
func mean(cause, histogram string) signal {
	return signal{cause: cause, of: func(d, _ values, _ float64) float64 { return d[histogram+".sum"] / d[histogram+".count"] }}
}

func gauge(cause, name string) signal {
	return signal{cause: cause, of: func(_, g values, _ float64) float64 { return g[name] }}
}

const (
	firstToken, interToken = "vllm.time_to_first_token", "vllm.inter_token_latency"
	deferred               = "vllm.num_requests.waiting_by_reason deferred"
	demand, prefill        = "demand_exceeds_capacity", "prefill_heavy"
	decode, kv             = "decode_load", "kv_pressure"
)

// signals are those of the diagnosis that need no model of the engine.
var signals = [...]signal{
	mean("", firstToken),
	// With speculation a step yields several tokens.
	{of: func(d, _ values, _ float64) float64 {
		return d[interToken+".sum"] / (d["vllm.generation_tokens"] - d[firstToken+".count"])
	}},
	mean(demand, "vllm.request.queue_time"),
	{cause: demand, of: func(d, _ values, seconds float64) float64 {
		return (d[firstToken+".count"] + d["vllm.num_requests.waiting"]) / seconds
	}},
	{cause: demand, of: func(_, g values, _ float64) float64 { return g["vllm.num_requests.waiting"] - g[deferred] }},
	gauge("admission_deferred", deferred),
	mean(prefill, "vllm.request.prefill_time"),
	mean(prefill, "vllm.request.prompt_tokens"),
	mean(prefill, "vllm.request.prefill_kv_computed_tokens"),
	mean(decode, "vllm.request.generation_tokens"),
	gauge(decode, "vllm.num_requests.running"),
	gauge(kv, "vllm.kv_cache.utilization"),
	{cause: kv, of: func(d, _ values, _ float64) float64 { return d["vllm.num_preemptions"] / d[firstToken+".count"] }},
	mean("slow_steps", interToken),
	{cause: "speculation_wasteful", falls: true, of: func(d, _ values, _ float64) float64 {
		return d["vllm.spec_decode.num_accepted_tokens"] / d["vllm.spec_decode.num_drafts"]
	}},
	{cause: "frontend_bound", of: func(d, _ values, _ float64) float64 {
		return (d["vllm.e2e_request_latency.sum"] - d["vllm.request.queue_time.sum"] - d["vllm.request.inference_time.sum"]) /
			d["vllm.e2e_request_latency.count"]
	}},
}

// Scraped takes a scrape; see judge.Method. It never fails.
func (n *NSigma) Scraped(_ context.Context, server int, at float64, metrics pmetric.Metrics) (judge.Report, error) {
	h := n.servers[server]
	if h == nil {
		h = &history{of: n, report: judge.Report{Condition: "unknown", Severity: 1}}
		n.servers[server] = h
	}
	h.scraped(at, metrics)
	return h.report, nil
}

func (h *history) scraped(at float64, metrics pmetric.Metrics) {
	counters, gauges := read(metrics)
	up := gauges["vllm.up"] == 1
	for name, v := range counters {
		up = up && v >= h.now[name] // Else the process is another one.
	}
	if !up {
		h.begin = nil
	}
	h.now = counters
	if h.begin == nil {
		if gauges["vllm.up"] == 1 {
			h.start(at, counters, gauges)
		}
		return
	}
	for name, v := range gauges {
		h.gauges[name] += v
	}
	h.scrapes++
	seconds := at - h.from
	if seconds < windowSeconds {
		return
	}
	increase := values{"vllm.num_requests.waiting": gauges["vllm.num_requests.waiting"] - h.begin["vllm.num_requests.waiting"]}
	for name, v := range counters {
		increase[name] = v - h.begin[name]
	}
	for name := range h.gauges {
		h.gauges[name] /= h.scrapes
	}
	h.window(increase, h.gauges, seconds)
	h.start(at, counters, gauges)
}

// start begins a window.
func (h *history) start(at float64, counters, gauges values) {
	h.from, h.begin, h.gauges, h.scrapes = at, values{}, values{}, 0
	for name, v := range counters {
		h.begin[name] = v
	}
	h.begin["vllm.num_requests.waiting"] = gauges["vllm.num_requests.waiting"]
}

// window judges a window by those before, and then counts it as one of them.
func (h *history) window(increase, gauges values, seconds float64) {
	slow, cause, most, after := false, "", math.Inf(-1), h.before
	for i := range signals {
		s := &signals[i]
		v := s.of(increase, gauges, seconds)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		z := h.before[i].distance(v)
		after[i].add(v)
		if s.falls {
			z = -z
		}
		switch {
		case h.before[i].n < h.of.fewest:
		case s.cause == "":
			slow = slow || z > mostDeviations
		case z > most:
			cause, most = s.cause, z
		}
	}
	if !slow || !h.of.quiet {
		h.before = after
	}
	h.slow++
	if !slow {
		h.slow = 0
	}
	switch {
	case h.slow >= inARow:
		h.report = judge.Report{Condition: "degraded", Severity: 2, Cause: cause}
	case h.before[0].n >= h.of.fewest:
		h.report = judge.Report{Condition: "healthy"}
	default:
		h.report = judge.Report{Condition: "unknown", Severity: 1}
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

// read adds up what a scrape shows of the engines of a server.
func read(metrics pmetric.Metrics) (counters, gauges values) {
	counters, gauges = values{}, values{}
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				switch m.Type() {
				case pmetric.MetricTypeSum:
					for _, p := range m.Sum().DataPoints().All() {
						counters[m.Name()] += p.DoubleValue()
					}
				case pmetric.MetricTypeGauge:
					for _, p := range m.Gauge().DataPoints().All() {
						name := m.Name()
						if reason, has := p.Attributes().Get("reason"); has {
							name += " " + reason.Str()
						}
						gauges[name] += p.DoubleValue()
					}
				case pmetric.MetricTypeHistogram:
					for _, p := range m.Histogram().DataPoints().All() {
						counters[m.Name()+".sum"] += p.Sum()
						counters[m.Name()+".count"] += float64(p.Count())
					}
				default:
				}
			}
		}
	}
	return counters, gauges
}
