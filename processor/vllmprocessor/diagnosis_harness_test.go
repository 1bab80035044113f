package vllmprocessor

import (
	"cmp"
	"maps"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.uber.org/zap/zaptest/observer"
)

// load is a server under steady load: so many requests a second, each with a prompt
// of 500 tokens and an answer of 100. All that it shows is what they were.
type load struct {
	// version is the attribute service.version of the resource; empty for none.
	version  string
	instance string
	engines  int
	// rate is requests per second and engine, firstToken and gap what each takes, in
	// seconds.
	rate, firstToken, gap float64
	at                    time.Time
	// every is the time between two scrapes; 0 for 15 s.
	every time.Duration

	requests, firstTokens, gaps float64 // of each engine, so far
	began                       bool

	// counts and levels are further counters and gauges of each engine, own are gauges
	// of the server itself; attribute=value follows a name in braces.
	counts, levels, own map[string]float64
	// stalled is true while nothing moves: the gauges show what was, and waiting grows
	// by what arrives.
	stalled bool
	waiting float64
}

func steady(instance string, at time.Time) *load {
	return &load{instance: instance, engines: 1, rate: 1, firstToken: 0.1, gap: 0.02, at: at}
}

func (l *load) interval() time.Duration { return cmp.Or(l.every, 15*time.Second) }

// scrape is what the server shows at the next scrape.
func (l *load) scrape() pmetric.Metrics {
	if l.began {
		l.at = l.at.Add(l.interval())
		served := l.rate * l.interval().Seconds()
		if l.stalled {
			l.waiting += served
			served = 0
		}
		l.requests += served
		l.firstTokens += served * l.firstToken
		l.gaps += served * 99 * l.gap
	}
	l.began = true
	metrics := pmetric.NewMetrics()
	rm := metrics.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "vllm")
	rm.Resource().Attributes().PutStr("service.instance.id", l.instance)
	if l.version != "" {
		rm.Resource().Attributes().PutStr("service.version", l.version)
	}
	to := rm.ScopeMetrics().AppendEmpty().Metrics()
	running := l.rate * (l.firstToken + 99*l.gap)
	for engine := range l.engines {
		point := func(attributes pcommon.Map, at interface{ SetTimestamp(pcommon.Timestamp) }) {
			attributes.PutStr("engine", string(rune('0'+engine)))
			attributes.PutStr("model_name", "m")
			at.SetTimestamp(pcommon.NewTimestampFromTime(l.at))
		}
		gauge := func(name string, value float64) {
			metric := to.AppendEmpty()
			metric.SetName(name)
			p := metric.SetEmptyGauge().DataPoints().AppendEmpty()
			p.SetDoubleValue(value)
			point(p.Attributes(), p)
		}
		counter := func(name string, value float64) {
			metric := to.AppendEmpty()
			metric.SetName(name)
			sum := metric.SetEmptySum()
			sum.SetIsMonotonic(true)
			sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			p := sum.DataPoints().AppendEmpty()
			p.SetDoubleValue(value)
			point(p.Attributes(), p)
		}
		histogram := func(name string, count, sum float64) {
			metric := to.AppendEmpty()
			metric.SetName(name)
			h := metric.SetEmptyHistogram()
			h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			p := h.DataPoints().AppendEmpty()
			p.BucketCounts().FromRaw([]uint64{uint64(count)})
			p.SetCount(uint64(count))
			p.SetSum(sum)
			point(p.Attributes(), p)
		}
		gauge("vllm.num_requests.running", running)
		gauge("vllm.num_requests.waiting", l.waiting)
		for name, value := range l.levels {
			gauge(name, value)
		}
		for name, value := range l.counts {
			counter(name, value)
		}
		gauge("vllm.kv_cache.utilization", running/100)
		counter("vllm.prompt_tokens", 500*l.requests)
		counter("vllm.generation_tokens", 100*l.requests)
		histogram("vllm.time_to_first_token", l.requests, l.firstTokens)
		histogram("vllm.inter_token_latency", 99*l.requests, l.gaps)
	}
	l.server(to)
	return metrics
}

// server adds the gauges of the server itself.
func (l *load) server(to pmetric.MetricSlice) {
	for name, value := range l.own {
		metric := to.AppendEmpty()
		name, attribute, _ := strings.Cut(strings.TrimSuffix(name, "}"), "{")
		metric.SetName(name)
		p := metric.SetEmptyGauge().DataPoints().AppendEmpty()
		p.SetDoubleValue(value)
		p.SetTimestamp(pcommon.NewTimestampFromTime(l.at))
		if key, value, has := strings.Cut(attribute, "="); has {
			p.Attributes().PutStr(key, value)
		}
	}
}

// failed is what the receiver sends 15 s later where the scrape fails in some way.
func (l *load) failed(outcome string, more map[string]float64) pmetric.Metrics {
	l.at = l.at.Add(15 * time.Second)
	metrics := pmetric.NewMetrics()
	rm := metrics.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "vllm")
	rm.Resource().Attributes().PutStr("service.instance.id", l.instance)
	was := l.own
	l.own = map[string]float64{"vllm.up": 0}
	if outcome != "" {
		l.own["vllm.scrape.failure{outcome="+outcome+"}"] = 1
	}
	maps.Copy(l.own, more)
	l.server(rm.ScopeMetrics().AppendEmpty().Metrics())
	l.own = was
	return metrics
}

// fails passes a scrape that failed through and returns what diagnosisOf does.
func (i *instance) fails(l *load, outcome string, more map[string]float64) map[string]float64 {
	i.t.Helper()
	metrics := l.failed(outcome, more)
	i.at = l.at
	metrics, err := i.process(i.t.Context(), metrics)
	if err != nil {
		i.t.Fatal(err)
	}
	return diagnosisOf(metrics)
}

// watch passes scrapes through for a time and returns what was reported last.
func (i *instance) watch(l *load, d time.Duration) map[string]float64 {
	i.t.Helper()
	var reported map[string]float64
	for range d / l.interval() {
		reported = i.diagnoses(l)
	}
	return reported
}

// diagnoses passes one scrape through and returns what was reported of the diagnosis,
// as severity, condition=NAME and cause=NAME of engine 0.
func (i *instance) diagnoses(l *load) map[string]float64 {
	i.t.Helper()
	metrics := l.scrape()
	i.at = l.at
	metrics, err := i.process(i.t.Context(), metrics)
	if err != nil {
		i.t.Fatal(err)
	}
	return diagnosisOf(metrics)
}

func diagnosisOf(metrics pmetric.Metrics) map[string]float64 {
	reported := map[string]float64{}
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				name, ours := strings.CutPrefix(m.Name(), "vllm.diagnosis.")
				if !ours {
					continue
				}
				for _, p := range m.Gauge().DataPoints().All() {
					if engine, has := p.Attributes().Get("engine"); has && engine.AsString() > "0" {
						continue
					}
					if value, has := p.Attributes().Get(name); has {
						reported[name+"="+value.AsString()] = p.DoubleValue()
					} else {
						reported[name] = p.DoubleValue()
					}
				}
			}
		}
	}
	return reported
}

// changes are the lines of the log about changes.
func (i *instance) changes() []observer.LoggedEntry {
	return i.logs.Filter(func(e observer.LoggedEntry) bool { return strings.HasPrefix(e.Message, "diagnosis: ") }).All()
}

// markEnds makes every point say that its series has ended.
func markEnds(metrics pmetric.Metrics) {
	gone := pmetric.DefaultDataPointFlags.WithNoRecordedValue(true)
	for _, m := range metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		switch m.Type() {
		case pmetric.MetricTypeGauge:
			m.Gauge().DataPoints().At(0).SetFlags(gone)
		case pmetric.MetricTypeSum:
			m.Sum().DataPoints().At(0).SetFlags(gone)
		default:
			m.Histogram().DataPoints().At(0).SetFlags(gone)
		}
	}
}

// parts splits the metrics of a batch in so many calls.
func parts(metrics pmetric.Metrics, n int) (all []pmetric.Metrics) {
	from := metrics.ResourceMetrics().At(0)
	each := from.ScopeMetrics().At(0).Metrics()
	for i := range n {
		part := pmetric.NewMetrics()
		rm := part.ResourceMetrics().AppendEmpty()
		from.Resource().CopyTo(rm.Resource())
		to := rm.ScopeMetrics().AppendEmpty().Metrics()
		for k := i * each.Len() / n; k < (i+1)*each.Len()/n; k++ {
			each.At(k).CopyTo(to.AppendEmpty())
		}
		all = append(all, part)
	}
	return all
}
