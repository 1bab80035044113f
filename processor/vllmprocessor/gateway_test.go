package vllmprocessor

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// passed are requests at a gateway: of a model, how many took at most 1 s and at most 2 s, and their sum.
type passed struct {
	labels       string
	within1, in2 int
	sum          float64
}

// page is a histogram in the text format.
func page(family string, all ...passed) string {
	out := "# TYPE " + family + " histogram\n"
	for _, p := range all {
		for i, n := range []int{p.within1, p.within1 + p.in2, p.within1 + p.in2} {
			out += fmt.Sprintf("%s_bucket{%s,le=%q} %d\n", family, p.labels, []string{"1", "2", "+Inf"}[i], n)
		}
		out += fmt.Sprintf("%s_sum{%s} %g\n%s_count{%s} %d\n", family, p.labels, p.sum, family, p.labels, p.within1+p.in2)
	}
	return out
}

// Within a minute model a has three requests of 0.5 s, three of 1.5 s and two that failed after 0.1 s; all that
// succeeded had their first token after 0.25 s. Model b has four of 0.5 s.
func gatewayPages(name string) (before, after string) {
	write := func(n int) string {
		of := func(labels string, within1, in2 int, sum float64) passed {
			return passed{labels, n * within1, n * in2, float64(n) * sum}
		}
		switch name {
		case "envoy":
			model := func(m string) string {
				return fmt.Sprintf("gen_ai_request_model=%q,gen_ai_response_model=%q", "alias of "+m, m)
			}
			return page("gen_ai_server_request_duration_seconds", of(model("a"), 3, 3, 6), of(model("b"), 4, 0, 2),
				of(`gen_ai_request_model="a",gen_ai_response_model="unknown",error_type="_OTHER"`, 2, 0, 0.2)) +
				page("gen_ai_server_time_to_first_token_seconds", of(model("a"), 6, 0, 1.5))
		case "agentgateway":
			// Two routes, of which one has the requests that failed; that is not marked.
			return page("gen_ai_server_request_duration", of(`gen_ai_request_model="a",route="x"`, 3, 3, 6), of(`gen_ai_request_model="a",route="y"`, 2, 0, 0.2),
				of(`gen_ai_request_model="b",route="x"`, 4, 0, 2)) +
				page("gen_ai_server_time_to_first_token", of(`gen_ai_request_model="a",route="x"`, 6, 0, 1.5))
		case "dynamo":
			return page("dynamo_frontend_request_duration_seconds", of(`model="a"`, 5, 3, 6.2), of(`model="b"`, 4, 0, 2)) +
				page("dynamo_frontend_time_to_first_token_seconds", of(`model="a"`, 6, 0, 1.5)) +
				fmt.Sprintf("# TYPE dynamo_frontend_requests_total counter\n"+
					"dynamo_frontend_requests_total{model=\"a\",status=\"success\",error_type=\"\",endpoint=\"chat_completions\"} %d\n"+
					"dynamo_frontend_requests_total{model=\"a\",status=\"error\",error_type=\"internal\",endpoint=\"chat_completions\"} %d\n"+
					"dynamo_frontend_requests_total{model=\"b\",status=\"success\",error_type=\"\",endpoint=\"completions\"} %d\n", 6*n, 2*n, 4*n)
		default:
			return page("vllm:request_latency_seconds", of(`model="a",server="s1",status="success"`, 3, 0, 1.5), of(`model="a",server="s2",status="success"`, 0, 3, 4.5),
				of(`model="a",server="s1",status="error"`, 2, 0, 0.2), of(`model="b",server="s2",status="success"`, 4, 0, 2))
		}
	}
	return write(0), write(1)
}

const ofA, ofB, ofWhole = "{model_name=a,}", "{model_name=b,}", "{}"

func TestWhatIsDerivedOfGateways(t *testing.T) {
	t.Parallel()
	const g = "inference_gateway."
	// Where the gateway marks what failed: 6 s of 6 requests of a.
	marked := map[string]float64{
		g + "request_rate" + ofA: 8.0 / 60, g + "request_rate" + ofB: 4.0 / 60,
		g + "request.error_ratio" + ofA: 0.25, g + "request.error_ratio" + ofB: 0, g + "request.error_ratio" + ofWhole: 2.0 / 12,
		g + "request.duration_mean" + ofA: 1, g + "request.duration_mean" + ofB: 0.5, g + "request.duration_mean" + ofWhole: 0.8,
		// 3 of 6 are in the bucket up to 1 s, and 95 % are 5.7: 2.7 of the 3 in the next one.
		g + "request.duration_quantile{model_name=a,quantile=0.5,}": 1, g + "request.duration_quantile{model_name=a,quantile=0.95,}": 1.9,
	}
	// Else 6.2 s of 8.
	unmarked := map[string]float64{
		g + "request_rate" + ofA: 8.0 / 60, g + "request.duration_mean" + ofA: 0.775, g + "request.duration_mean" + ofWhole: 8.2 / 12,
	}
	first := map[string]float64{
		g + "request.time_to_first_token_mean" + ofA: 0.25, g + "request.time_to_first_token_quantile{model_name=a,quantile=0.5,}": 0.5,
	}
	ratios := map[string]float64{g + "request.error_ratio" + ofA: 0.25, g + "request.error_ratio" + ofB: 0, g + "request.error_ratio" + ofWhole: 2.0 / 12}
	for name, wants := range map[string][]map[string]float64{
		"envoy": {marked, first}, "agentgateway": {unmarked, first}, "dynamo": {unmarked, first, ratios}, "production stack": {marked},
	} {
		before, after := gatewayPages(name)
		for way, change := range map[string]func(pmetric.Metrics){"scraped": func(pmetric.Metrics) {}, "pushed": asPushed, "pushed in ms": inMilliseconds} {
			if way != "scraped" && name != "envoy" {
				continue
			}
			t.Run(name+" "+way, func(t *testing.T) {
				t.Parallel()
				var batches []pmetric.Metrics
				for i, body := range []string{before, after} {
					batch := wirePoints(t, []byte(body), noon.Add(time.Duration(i)*time.Minute))
					change(batch)
					batches = append(batches, batch)
				}
				got := derivePicker(t, batches, nil)[1]
				for _, want := range wants {
					for series, value := range want {
						if is, has := got[series]; assert.True(t, has, "%s of %v", series, got) {
							assert.InDelta(t, value, is, 1e-9, series)
						}
					}
				}
				if name == "agentgateway" {
					for series := range got {
						assert.NotContains(t, series, "error_ratio", "it is not known whether it marks what fails")
					}
				}
			})
		}
	}
}

// asPushed gives the names and units of the convention, as an SDK of OpenTelemetry does.
func asPushed(metrics pmetric.Metrics) {
	for _, m := range metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		m.SetName(map[bool]string{true: "gen_ai.server.request.duration", false: "gen_ai.server.time_to_first_token"}[strings.Contains(m.Name(), "duration")])
		m.SetUnit("s")
		for _, p := range m.Histogram().DataPoints().All() {
			renamed := pcommon.NewMap()
			for name, value := range p.Attributes().All() {
				name = strings.NewReplacer("gen_ai_request_", "gen_ai.request.", "gen_ai_response_", "gen_ai.response.", "error_", "error.").Replace(name)
				renamed.PutStr(name, value.AsString())
			}
			renamed.MoveTo(p.Attributes())
		}
	}
}

func inMilliseconds(metrics pmetric.Metrics) {
	asPushed(metrics)
	for _, m := range metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		m.SetUnit("ms")
		for _, p := range m.Histogram().DataPoints().All() {
			p.SetSum(p.Sum() * 1000)
			for i := range p.ExplicitBounds().Len() {
				p.ExplicitBounds().SetAt(i, p.ExplicitBounds().At(i)*1000)
			}
		}
	}
}

// batchOfTimes is the batch of a resource: times by name, of n requests for a model that took a mean time each.
func batchOfTimes(resource, engine string, n, models int, means map[string]float64) pmetric.Metrics {
	metrics := pmetric.NewMetrics()
	rm := metrics.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.instance.id", resource)
	scope := rm.ScopeMetrics().AppendEmpty()
	now := pcommon.NewTimestampFromTime(time.Now())
	for name, mean := range means {
		m := scope.Metrics().AppendEmpty()
		m.SetName(name)
		m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		for model := range models {
			p := m.Histogram().DataPoints().AppendEmpty()
			p.SetTimestamp(now)
			p.SetCount(uint64(n))
			p.SetSum(float64(n) * mean)
			p.ExplicitBounds().FromRaw([]float64{10})
			p.BucketCounts().FromRaw([]uint64{uint64(n), 0})
			if engine != "" {
				p.Attributes().PutStr("engine", engine)
				p.Attributes().PutStr("model_name", "m")
			} else {
				p.Attributes().PutStr("gen_ai.request.model", map[bool]string{true: fmt.Sprint("m", model), false: "m"}[models > 1])
			}
		}
	}
	if engine != "" {
		m := scope.Metrics().AppendEmpty()
		m.SetName("vllm.num_requests.running")
		p := m.SetEmptyGauge().DataPoints().AppendEmpty()
		p.SetTimestamp(now)
		p.SetDoubleValue(1)
		p.Attributes().PutStr("engine", engine)
		p.Attributes().PutStr("model_name", "m")
	}
	return metrics
}

// A gateway with 10000 models, which its clients make up, does not keep another one from its pool.
func TestAHostileGatewayLeavesAnotherAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := new(consumertest.MetricsSink)
		p := pooled(t, sink)
		require.NoError(t, p.Start(t.Context(), host()))
		for minute := range 3 {
			n := 60 * minute
			for _, batch := range []pmetric.Metrics{
				batchOfTimes("hostile", "", n, 10_000, map[string]float64{"gen_ai.server.request.duration": 1}),
				batchOfTimes("engine", "0", n, 1, map[string]float64{"vllm.time_to_first_token": 0.3, "vllm.e2e_request_latency": 2}),
				batchOfTimes("gateway", "", n, 1, map[string]float64{"gen_ai.server.time_to_first_token": 0.8, "gen_ai.server.request.duration": 5}),
			} {
				require.NoError(t, p.ConsumeMetrics(t.Context(), batch))
			}
			sink.Reset()
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		all := sink.AllMetrics()
		var got map[string]string
		for _, sent := range all {
			if name, has := sent.ResourceMetrics().At(0).Resource().Attributes().Get("otelcol.component.id"); has && name.AsString() == "vllm" {
				got = delays(sent)
			}
		}
		assert.Equal(t, map[string]string{"m first_token": "0.500", "m end": "3.000"}, got)
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

// delays are the delays of the gateways of all pools.
func delays(metrics pmetric.Metrics) map[string]string {
	all := map[string]string{}
	for _, m := range metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		if m.Name() != "vllm.pool.gateway_delay" {
			continue
		}
		for _, p := range m.Gauge().DataPoints().All() {
			model, _ := p.Attributes().Get("model_name")
			until, _ := p.Attributes().Get("until")
			all[model.AsString()+" "+until.AsString()] = fmt.Sprintf("%.3f", p.DoubleValue())
		}
	}
	return all
}

// For 40 minutes the gateway adds 50 ms. Then it holds requests back for 2.4 s, while the server is as fast
// as before and has room.
func TestThePoolSaysThatItsGatewayHoldsRequestsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := new(consumertest.MetricsSink)
		p := pooled(t, sink, withDiagnosis)
		require.NoError(t, p.Start(t.Context(), host()))
		starved := func() (is bool) {
			for _, sent := range sink.AllMetrics() {
				for _, rm := range sent.ResourceMetrics().All() {
					for _, sm := range rm.ScopeMetrics().All() {
						for _, m := range sm.Metrics().All() {
							if m.Name() != "vllm.pool.diagnosis.cause" {
								continue
							}
							for _, point := range m.Gauge().DataPoints().All() {
								cause, _ := point.Attributes().Get("cause")
								is = cause.AsString() == "upstream_starved" && point.DoubleValue() == 1 || is
							}
						}
					}
				}
			}
			sink.Reset()
			return is
		}
		n, waited := 0, 0.0
		for minute := range 46 {
			for range 4 { // Scrapes of a minute, with 30 requests each.
				n += 30
				adds := 0.05
				if minute >= 40 {
					adds = 2.4
				}
				waited += 30 * (0.3 + adds)
				engine := batchOfTimes("engine", "0", n, 1, map[string]float64{"vllm.time_to_first_token": 0.3, "vllm.e2e_request_latency": 2, "vllm.request.queue_time": 0.001})
				gauges("engine", map[string]float64{"vllm.num_requests.waiting": 0, "vllm.generation_tokens": float64(100 * n), "vllm.prompt_tokens": float64(100 * n)}).
					ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().MoveAndAppendTo(engine.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics())
				require.NoError(t, p.ConsumeMetrics(t.Context(), engine))
				require.NoError(t, p.ConsumeMetrics(t.Context(), batchOfTimes("gateway", "", n, 1, map[string]float64{"gen_ai.server.time_to_first_token": waited / float64(n)})))
				time.Sleep(15 * time.Second)
			}
			if minute == 39 {
				assert.False(t, starved(), "as usual")
			}
		}
		assert.True(t, starved())
		require.NoError(t, p.Shutdown(t.Context()))
	})
}
