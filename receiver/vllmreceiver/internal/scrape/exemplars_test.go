package scrape

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/fetch"
)

const (
	pickerDuration = "llm_d_epp_request_duration_seconds"
	ourDuration    = "inference_gateway.epp.request.duration"
	trace          = "0102030405060708090a0b0c0d0e0f10"
	span           = "0102030405060708"
)

// handler serves a registry as llm-d-router does.
func handler(registry *prometheus.Registry, created bool) http.Handler {
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{EnableOpenMetrics: true, EnableOpenMetricsTextCreatedSamples: created})
}

// textual is the same server without OpenMetrics.
func textual(registry *prometheus.Registry) http.Handler {
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

func durations(registry *prometheus.Registry) *prometheus.HistogramVec {
	vec := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: pickerDuration, Help: "h", Buckets: []float64{0.5, 1, 2}},
		[]string{"model_name", "target_model_name", "fairness_id", "priority"})
	registry.MustRegister(vec)
	return vec
}

// exemplarsOf are the exemplars of a histogram's points, in order.
func exemplarsOf(metrics pmetric.Metrics, name string) (all []pmetric.Exemplar) {
	for _, m := range metricsNamed(metrics, name) {
		for _, p := range m.Histogram().DataPoints().All() {
			for _, e := range p.Exemplars().All() {
				all = append(all, e)
			}
		}
	}
	return all
}

// without removes the exemplars.
func without(metrics pmetric.Metrics) pmetric.Metrics {
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				switch m.Type() {
				case pmetric.MetricTypeSum:
					for _, p := range m.Sum().DataPoints().All() {
						pmetric.NewExemplarSlice().CopyTo(p.Exemplars())
					}
				case pmetric.MetricTypeHistogram:
					for _, p := range m.Histogram().DataPoints().All() {
						pmetric.NewExemplarSlice().CopyTo(p.Exemplars())
					}
				}
			}
		}
	}
	return metrics
}

// A picker that traces: the trace of a slow request arrives on our histogram, and nothing else
// is different from the scrape of its text.
func TestExemplarsOfAGatewayArriveOnItsHistogram(t *testing.T) {
	registry := prometheus.NewRegistry()
	vec := durations(registry)
	r, plain := newRig(t), newRig(t)
	r.metrics, plain.metrics = handler(registry, false), textual(registry)
	observe := func(client string, seconds float64, labels prometheus.Labels) {
		vec.WithLabelValues("m", "t", client, "0").(prometheus.ExemplarObserver).ObserveWithExemplar(seconds, labels)
	}
	before := time.Now()
	observe("a", 0.7, prometheus.Labels{"trace_id": trace, "span_id": span})
	observe("b", 5, prometheus.Labels{"trace_id": trace, "user": "u"})
	after := time.Now()

	assert.Empty(t, exemplarsOf(r.scrape(""), ourDuration), "what it is is known from its first page")
	plain.scrape("")
	scraped, want := r.scrape(""), plain.scrape("")
	found := exemplarsOf(scraped, ourDuration)
	require.Len(t, found, 2)
	assert.Equal(t, []float64{0.7, 5}, []float64{found[0].DoubleValue(), found[1].DoubleValue()})
	for _, e := range found {
		assert.Equal(t, trace, e.TraceID().String())
		// The page has milliseconds.
		assert.WithinRange(t, e.Timestamp().AsTime(), before.Add(-time.Millisecond), after.Add(time.Millisecond))
	}
	assert.Equal(t, span, found[0].SpanID().String())
	assert.Empty(t, found[0].FilteredAttributes().AsRaw())
	assert.Equal(t, map[string]any{"user": "u"}, found[1].FilteredAttributes().AsRaw())
	assert.Equal(t, render(want), render(without(scraped)))
	assert.Empty(t, r.logged("info"))
}

// An exemplar passes a conversion to deltas.
func TestExemplarsPassTheConversionToDeltas(t *testing.T) {
	registry := prometheus.NewRegistry()
	observer := durations(registry).WithLabelValues("m", "t", "a", "0").(prometheus.ExemplarObserver)
	d := newDeltaRig(t)
	d.metrics = handler(registry, false)
	for range 3 {
		observer.ObserveWithExemplar(0.7, prometheus.Labels{"trace_id": trace})
		require.NoError(t, d.processor.ConsumeMetrics(t.Context(), d.scrape("")))
	}
	sent := d.sink.AllMetrics()
	last := sent[len(sent)-1]
	histogram := metricsNamed(last, ourDuration)[0].Histogram()
	assert.Equal(t, pmetric.AggregationTemporalityDelta, histogram.AggregationTemporality())
	assert.EqualValues(t, 1, histogram.DataPoints().At(0).Count())
	require.Len(t, exemplarsOf(last, ourDuration), 1)
	assert.Equal(t, trace, exemplarsOf(last, ourDuration)[0].TraceID().String())
}

// randomRegistry has families of all kinds, under names of a picker and others, and returns what
// moves them, and whether a counter lacks _total, which has no type in OpenMetrics. Among them is what llm-d-router writes in file-discovery mode: a gauge x and a
// counter x_total are one family x in OpenMetrics, declared twice.
func randomRegistry(random *rand.Rand) (registry *prometheus.Registry, move func(), untyped bool) {
	registry = prometheus.NewRegistry()
	var moves []func()
	value := func() float64 {
		return []float64{0, 0.1, 1, 3, 1e6, 123456789, 1e21, 5e-324, float64(random.IntN(1e6)) / 8}[random.IntN(9)]
	}
	text := func() string {
		return []string{"", "m", "0", `a"b`, `c\d`, "line\nend", "größe", "{x=\"y\"}", "# EOF"}[random.IntN(9)]
	}
	labels := []string{"model_name", "fairness_id", "pool"}
	for i := range 3 + random.IntN(12) {
		name := []string{"llm_d_epp_", "inference_extension_", "own_"}[random.IntN(3)] + fmt.Sprintf("x%d", i) +
			[]string{"", "_seconds", "_bytes", "_info", "_ratio", "_count"}[random.IntN(6)]
		series := 1 + random.IntN(3)
		with := func() []string { return []string{text(), text(), text()} }
		switch random.IntN(6) {
		case 0:
			vec := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: text()}, labels)
			registry.MustRegister(vec)
			for range series {
				g := vec.WithLabelValues(with()...)
				moves = append(moves, func() { g.Set([]float64{value(), -value(), math.Inf(1), math.NaN()}[random.IntN(4)]) })
			}
		case 1, 2:
			if random.IntN(8) > 0 {
				name += "_total"
			} else {
				untyped = true
			}
			vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: text()}, labels)
			registry.MustRegister(vec)
			for range series {
				c := vec.WithLabelValues(with()...)
				moves = append(moves, func() { c.(prometheus.ExemplarAdder).AddWithExemplar(value(), prometheus.Labels{"trace_id": trace}) })
			}
		case 3:
			vec := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: text(), Buckets: []float64{0.005, 1, 1e6}}, labels)
			registry.MustRegister(vec)
			for range series {
				h := vec.WithLabelValues(with()...).(prometheus.ExemplarObserver)
				moves = append(moves, func() { h.ObserveWithExemplar(value(), prometheus.Labels{"trace_id": trace}) })
			}
		case 4:
			vec := prometheus.NewSummaryVec(prometheus.SummaryOpts{Name: name, Help: text(), Objectives: map[float64]float64{0.5: 0.1}}, labels)
			registry.MustRegister(vec)
			s := vec.WithLabelValues(with()...)
			moves = append(moves, func() { s.Observe(value()) })
		default:
			gauge := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: text()})
			counter := prometheus.NewCounter(prometheus.CounterOpts{Name: name + "_total", Help: text()})
			registry.MustRegister(gauge, counter)
			moves = append(moves, func() { gauge.Set(value()) }, func() { counter.Add(value()) })
		}
	}
	h := durations(registry).WithLabelValues("m", "t", "a", "0")
	moves = append(moves, func() { h.Observe(value()) })
	return registry, func() {
		for _, move := range moves {
			if random.IntN(3) > 0 {
				move()
			}
		}
	}, untyped
}

// The OpenMetrics page of a server gives the same points as its text.
func TestBothFormatsOfAServerGiveTheSamePoints(t *testing.T) {
	exemplars := 0
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 45))
		registry, move, untyped := randomRegistry(random)
		r, plain := newRig(t), newRig(t)
		r.metrics, plain.metrics = handler(registry, false), textual(registry)
		for range 4 {
			move()
			scraped, want := r.scrape(""), plain.scrape("")
			exemplars += strings.Count(render(scraped), trace)
			require.Equal(t, render(want), render(without(scraped)), "seed %d", seed)
		}
		require.Equal(t, untyped, r.scraper.textOnly, "seed %d: %v", seed, r.logged("info"))
	}
	assert.Greater(t, exemplars, 1000)
}

// Creation times are in OpenMetrics only. They are no points, and no restart.
func TestCreationTimesInOneFormatAreNoRestart(t *testing.T) {
	registry := prometheus.NewRegistry()
	h := durations(registry).WithLabelValues("m", "t", "a", "0")
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: "llm_d_epp_request_total", Help: "h"})
	registry.MustRegister(counter)
	r, plain := newRig(t), newRig(t)
	r.metrics, plain.metrics = handler(registry, true), textual(registry)
	for range 4 {
		h.Observe(1)
		counter.Add(2)
		scraped := r.scrape("")
		want := plain.scrape("")
		assert.Equal(t, values(want), values(scraped))
	}
	assert.Equal(t, 1, r.asked["/version"], "it is not taken for another process")
}

// values are the lines of a rendering without their times, which stand in brackets there.
func values(metrics pmetric.Metrics) (all []string) {
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			switch m.Type() {
			case pmetric.MetricTypeSum:
				for _, p := range m.Sum().DataPoints().All() {
					all = append(all, fmt.Sprint(m.Name(), p.Attributes().AsRaw(), p.DoubleValue(), p.Flags()))
				}
			case pmetric.MetricTypeHistogram:
				for _, p := range m.Histogram().DataPoints().All() {
					all = append(all, fmt.Sprint(m.Name(), p.Attributes().AsRaw(), p.BucketCounts().AsRaw(), p.Sum(), p.Flags()))
				}
			case pmetric.MetricTypeGauge:
				all = append(all, m.Name())
			}
		}
	}
	return all
}

const pickerText = "# TYPE llm_d_epp_request_total counter\nllm_d_epp_request_total{model_name=\"m\"} %d\n" +
	"# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds %d\n"

// An OpenMetrics page that cannot be used costs no scrape: the same one gets the text. One line
// says so, and another process is asked for exemplars again.
func TestAGatewayWithInvalidOpenMetricsIsScrapedAsText(t *testing.T) {
	page := func(body string) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "application/openmetrics-text; version=1.0.0; charset=utf-8")
			_, _ = io.WriteString(w, body)
		}
	}
	for name, answer := range map[string]func(http.ResponseWriter){
		"without its end": page("# TYPE llm_d_epp_request counter\nllm_d_epp_request_total{model_name=\"m\"} 1\n"),
		"a bad line":      page("# TYPE llm_d_epp_request counter\nllm_d_epp_request_total{model_name=\"m\"} one\n# EOF\n"),
		"a series twice": page("# TYPE llm_d_epp_request counter\nllm_d_epp_request_total{model_name=\"m\"} 1\n" +
			"llm_d_epp_request_total{model_name=\"m\"} 2\n# EOF\n"),
		"nothing":        page(""),
		"an error":       func(w http.ResponseWriter) { w.WriteHeader(http.StatusInternalServerError) },
		"not acceptable": func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotAcceptable) },
		"a web page": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html>")
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			var formats []string
			requests, start := 0, firstScrape.Unix()-100
			r.metrics = http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
				if strings.Contains(request.Header.Get("Accept"), "openmetrics") {
					formats = append(formats, "openmetrics")
					answer(w)
					return
				}
				formats = append(formats, "text")
				requests++
				_, _ = fmt.Fprintf(w, pickerText, requests, start)
			})
			for i := range 4 {
				at := fmt.Sprintf("@%d %d", 15*i, i+1)
				lines := points(r.scrape(""), "inference_gateway.epp.requests")
				require.Len(t, lines, 1)
				assert.Contains(t, lines[0], at)
			}
			assert.Equal(t, []string{"text", "openmetrics", "text", "text", "text"}, formats)
			start += 145
			requests = 0
			r.scrape("")
			r.scrape("")
			r.scrape("")
			assert.Equal(t, []string{"text", "openmetrics", "text", "text"}, formats[5:])
			require.Len(t, r.logged("info"), 1)
			assert.Contains(t, r.logged("info")[0], "OpenMetrics page of this gateway cannot be used")
			assert.Empty(t, r.logged("warn"))
		})
	}
}

// Nothing but a gateway is asked for OpenMetrics: see fetch.Accept.
func TestAServerIsAskedForTextOnly(t *testing.T) {
	r := newRig(t)
	var accepts []string
	r.metrics = http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		accepts = append(accepts, request.Header.Get("Accept"))
		_, _ = io.WriteString(w, "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{engine=\"0\",model_name=\"m\"} 1\n")
	})
	r.scrape("")
	r.scrape("")
	assert.Equal(t, []string{fetch.Accept, fetch.Accept}, accepts)
}

// broken is a gateway whose OpenMetrics page lacks its end, or does not come in time.
type broken struct {
	Origin
	slow      bool
	deadlines []time.Time
	// held is how many bodies hold their places.
	held int
}

func (b *broken) Metrics(ctx context.Context, body *bytes.Buffer, exemplars bool) (fetch.Answer, error) {
	deadline, _ := ctx.Deadline()
	b.deadlines = append(b.deadlines, deadline)
	if b.held > 0 {
		return fetch.Answer{}, &fetch.Error{Outcome: fetch.OutcomeOther, Message: "a place is taken"}
	}
	if b.slow && exemplars {
		<-ctx.Done()
		return fetch.Answer{}, &fetch.Error{Outcome: fetch.OutcomeTimeout}
	}
	b.held++
	body.Reset()
	_, _ = fmt.Fprintf(body, pickerText, 1, 1)
	answer := fetch.Answer{ContentType: fetch.Accept, Release: func() { b.held-- }}
	if exemplars {
		answer.ContentType = "application/openmetrics-text"
	}
	return answer, nil
}

func (b *broken) Version(context.Context) (string, error) { return "", &fetch.Error{} }
func (b *broken) Load(context.Context) (float64, error)   { return 0, &fetch.Error{} }

// The repeated request has the rest of the timeout, and a large body does not wait for the place of
// another one of the same target.
func TestTheRepeatedRequestSharesTimeAndPlace(t *testing.T) {
	for _, slow := range []bool{false, true} {
		r, origin := newRig(t), &broken{slow: slow}
		r.scraper.origin = origin
		if slow {
			r.scraper.timeout = time.Second
		}
		began := time.Now()
		for i := range 3 {
			assert.Contains(t, points(r.scrape(""), "vllm.up"), fmt.Sprintf("gauge {state} {} @%d 1", 15*i))
		}
		require.Len(t, origin.deadlines, 4, "OpenMetrics is asked for once")
		assert.WithinDuration(t, began.Add(r.scraper.timeout), origin.deadlines[2], 10*time.Second)
		assert.Equal(t, r.scraper.timeout/2, origin.deadlines[2].Sub(origin.deadlines[1]).Round(100*time.Millisecond))
		assert.Zero(t, origin.held)
		assert.True(t, r.scraper.textOnly)
		assert.Len(t, r.logged("info"), 1)
	}
}
