package scrape

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

const pagesOfGateways = "../../../../testdata/gateways"

// counted adds up the points of a metric with some attributes: the count and sum of a histogram, or the value.
func counted(metrics pmetric.Metrics, name string, with ...string) (count, sum float64) {
	has := func(attributes pcommon.Map) bool {
		for i := 0; i < len(with); i += 2 {
			if textOf(attributes, with[i]) != with[i+1] {
				return false
			}
		}
		return true
	}
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			switch {
			case m.Name() != name:
			case m.Type() == pmetric.MetricTypeHistogram:
				for _, p := range m.Histogram().DataPoints().All() {
					if has(p.Attributes()) {
						count, sum = count+float64(p.Count()), sum+p.Sum()
					}
				}
			case m.Type() == pmetric.MetricTypeSum:
				for _, p := range m.Sum().DataPoints().All() {
					if has(p.Attributes()) {
						sum += p.DoubleValue()
					}
				}
			case m.Type() == pmetric.MetricTypeGauge:
				for _, p := range m.Gauge().DataPoints().All() {
					if has(p.Attributes()) {
						sum += p.DoubleValue()
					}
				}
			}
		}
	}
	return count, sum
}

// shapes are the names, units, kinds and attribute keys of what a page gives.
func shapes(metrics pmetric.Metrics) []string {
	found := map[string]bool{}
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			if m.Name() == "vllm.up" || strings.HasPrefix(m.Name(), "vllm.scrape.") {
				continue
			}
			keys := map[string]bool{}
			add := func(attributes pcommon.Map) {
				for key := range attributes.All() {
					keys[key] = true
				}
			}
			switch m.Type() {
			case pmetric.MetricTypeHistogram:
				for _, p := range m.Histogram().DataPoints().All() {
					add(p.Attributes())
				}
			case pmetric.MetricTypeSum:
				for _, p := range m.Sum().DataPoints().All() {
					add(p.Attributes())
				}
			default:
				for _, p := range m.Gauge().DataPoints().All() {
					add(p.Attributes())
				}
			}
			line := fmt.Sprintf("%s %s %s %s", m.Name(), m.Type(), m.Unit(), strings.Join(slices.Sorted(maps.Keys(keys)), ","))
			found[strings.Join(strings.Fields(line), " ")] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// measured is what a metric increased by between the two pages. The numbers are those of the requests, which
// lab/test/gateways adds up.
type measured struct {
	metric     string
	attributes []string
	count, sum float64
}

const (
	envoyModels = "gen_ai.operation.name,gen_ai.original.model,gen_ai.provider.name,gen_ai.request.model,gen_ai.response.model"
	agentModels = "bind,gateway,gen_ai.operation.name,gen_ai.provider.name,gen_ai.request.model,gen_ai.response.model"
	agentHTTP   = "backend,bind,gateway,listener,method,protocol,reason,route,route_rule,status"
)

var gatewayPages = map[string]struct {
	kind   string
	shapes []string
	// increases are between the pages, and values on the second page.
	increases, values []measured
}{
	"envoy-ai-gateway": {
		kind: "gateway",
		shapes: []string{
			"gen_ai.client.token.usage Histogram {token} " + envoyModels + ",gen_ai.token.type",
			"gen_ai.server.request.duration Histogram s error.type," + envoyModels,
			"gen_ai.server.time_per_output_token Histogram s " + envoyModels,
			"gen_ai.server.time_to_first_token Histogram s " + envoyModels,
		},
		increases: []measured{
			{"gen_ai.server.request.duration", []string{"gen_ai.request.model", "llama"}, 7, 27},
			{"gen_ai.server.request.duration", []string{"gen_ai.request.model", "llama", "error.type", "_OTHER", "gen_ai.response.model", "unknown"}, 1, 9},
			{"gen_ai.server.request.duration", []string{"gen_ai.response.model", "llama"}, 6, 18},
			{"gen_ai.server.request.duration", []string{"gen_ai.response.model", "qwen", "gen_ai.provider.name", "openai", "gen_ai.operation.name", "chat"}, 2, 2},
			{"gen_ai.server.time_to_first_token", []string{"gen_ai.response.model", "llama"}, 4, 1.2},
			{"gen_ai.server.time_to_first_token", []string{"gen_ai.original.model", "our-qwen"}, 2, .2},
			// (1-.1)/10 + (2-.2)/20 + (3-.3)/20 + (6-.6)/20 = .09 + .09 + .135 + .27
			{"gen_ai.server.time_per_output_token", []string{"gen_ai.response.model", "llama"}, 4, .585},
			{"gen_ai.client.token.usage", []string{"gen_ai.response.model", "llama", "gen_ai.token.type", "input"}, 6, 600},
			{"gen_ai.client.token.usage", []string{"gen_ai.response.model", "llama", "gen_ai.token.type", "output"}, 6, 120},
		},
	},
	"agentgateway": {
		kind: "gateway",
		shapes: []string{
			"agentgateway.gen_ai_client_cost_usd Sum {usd} " + agentModels + ",listener,route,route_rule",
			"agentgateway.request_duration Histogram s " + agentHTTP,
			"agentgateway.requests Sum {request} " + agentHTTP,
			"agentgateway.response Sum By " + agentHTTP,
			"agentgateway.retries Sum {retry} " + agentHTTP,
			"agentgateway.tokio_num_workers Gauge",
			"agentgateway.upstream_call_duration Histogram s kind,subtype",
			"gen_ai.client.token.usage Histogram {token} " + agentModels + ",gen_ai.token.type,listener,route,route_rule",
			"gen_ai.server.request.duration Histogram s " + agentModels + ",listener,route,route_rule",
			"gen_ai.server.time_per_output_token Histogram s " + agentModels + ",listener,route,route_rule",
			"gen_ai.server.time_to_first_token Histogram s " + agentModels + ",listener,route,route_rule",
		},
		increases: []measured{
			{"gen_ai.server.request.duration", []string{"gen_ai.request.model", "llama"}, 7, 27},
			{"gen_ai.server.request.duration", []string{"gen_ai.response.model", "llama", "gen_ai.provider.name", "openai"}, 6, 18},
			{"gen_ai.server.request.duration", []string{"gen_ai.response.model", "qwen", "gateway", "default/gw"}, 2, 2},
			{"gen_ai.server.time_to_first_token", []string{"gen_ai.response.model", "llama"}, 4, 1.2},
			{"gen_ai.server.time_per_output_token", []string{"gen_ai.response.model", "llama"}, 4, .585},
			{"gen_ai.client.token.usage", []string{"gen_ai.response.model", "qwen", "gen_ai.token.type", "output"}, 2, 20},
			{"agentgateway.requests", []string{"status", "200", "reason", "Upstream"}, 0, 8},
			{"agentgateway.requests", []string{"status", "503", "reason", "UpstreamFailure"}, 0, 1},
			{"agentgateway.retries", nil, 0, 2},
			{"agentgateway.gen_ai_client_cost_usd", []string{"gen_ai.request.model", "llama"}, 0, 120. / 1024},
			{"agentgateway.request_duration", nil, 9, 29},
		},
	},
	"production-stack": {
		kind: "router",
		shapes: []string{
			// avg_itl and avg_decoding_length are -1 where the router has no value.
			"vllm_router.avg_decoding_length Gauge {token} server", "vllm_router.avg_latency Gauge s server",
			"vllm_router.cpu_usage_percent Gauge %", "vllm_router.current_qps Gauge {request}/s server", "vllm_router.disk_usage_percent Gauge %",
			"vllm_router.gpu_prefix_cache.hit_rate Gauge 1 server", "vllm_router.gpu_prefix_cache.hits_total Gauge {token} server",
			"vllm_router.gpu_prefix_cache.queries_total Gauge {token} server", "vllm_router.healthy_pods_total Gauge {pod} server",
			"vllm_router.input_tokens Sum {token} model,server", "vllm_router.memory_usage_percent Gauge %",
			"vllm_router.num_decoding_requests Gauge {request} server", "vllm_router.num_incoming_requests Sum {request} model",
			"vllm_router.num_prefill_requests Gauge {request} server", "vllm_router.num_requests.running Gauge {request} server",
			"vllm_router.num_requests.swapped Gauge {request} server", "vllm_router.output_tokens Sum {token} model,server",
			"vllm_router.request.errors Sum {error} error_type,model,server", "vllm_router.request.latency Histogram s model,server,status",
		},
		increases: []measured{
			{"vllm_router.num_incoming_requests", []string{"model", "llama"}, 0, 7},
			{"vllm_router.request.errors", []string{"model", "llama", "error_type", "ClientOSError"}, 0, 1},
			{"vllm_router.request.latency", []string{"model", "llama", "status", "success"}, 6, 18},
			{"vllm_router.request.latency", []string{"model", "llama", "status", "error"}, 1, 9},
			{"vllm_router.request.latency", []string{"model", "qwen", "server", "http://qwen:8000"}, 2, 2},
			{"vllm_router.input_tokens", []string{"model", "qwen"}, 0, 100},
			{"vllm_router.output_tokens", []string{"model", "llama"}, 0, 120},
		},
		values: []measured{
			{"vllm_router.num_requests.running", []string{"server", "http://llama:8000"}, 0, 3},
			// 12 requests in all, at half a percent and 64 tokens.
			{"vllm_router.cpu_usage_percent", nil, 0, 6},
			{"vllm_router.gpu_prefix_cache.hits_total", []string{"server", "http://qwen:8000"}, 0, 768},
		},
	},
	"vllm-router": {
		kind: "router",
		shapes: []string{
			"vllm_router.active_workers Gauge {worker}", "vllm_router.cb_outcomes Sum {attempt} outcome,worker",
			"vllm_router.cb_state Gauge {state} worker", "vllm_router.generate_duration Histogram s",
			"vllm_router.kv_routing_inputs Sum {request} result,transport", "vllm_router.policy_decisions Sum {decision} policy,worker",
			"vllm_router.prefix_routing_decisions Sum {decision} outcome,policy,stage", "vllm_router.processed_requests Sum {attempt} worker",
			"vllm_router.request.errors Sum {error} error_type,route", "vllm_router.requests Sum {request} route",
			"vllm_router.retries Sum {retry} route", "vllm_router.retries_exhausted Sum {request} route",
			"vllm_router.running_requests Gauge {request} worker", "vllm_router.worker_health Gauge {worker} worker",
		},
		increases: []measured{
			{"vllm_router.requests", []string{"route", "/v1/chat/completions"}, 0, 8},
			{"vllm_router.request.errors", nil, 0, 1},
			{"vllm_router.generate_duration", nil, 8, 20},
			{"vllm_router.processed_requests", []string{"worker", "http://llama:8000"}, 0, 11},
			{"vllm_router.retries", nil, 0, 4},
		},
		values: []measured{{"vllm_router.active_workers", nil, 0, 2}},
	},
}

func TestGatewaysHaveMeasuredWhatTheirClientsSaw(t *testing.T) {
	for name, want := range gatewayPages {
		sources := []normalize.Source{normalize.SourceAuto}
		if want.kind == "gateway" {
			sources = append(sources, normalize.SourceGateway)
		}
		for _, source := range sources {
			t.Run(name+" "+string(source), func(t *testing.T) {
				r := newRig(t, func(c *Config) { c.Source = source })
				r.contentType = "text/plain;charset=utf-8"
				before := r.scrape(read(t, filepath.Join(pagesOfGateways, name+".txt")))
				after := r.scrape(read(t, filepath.Join(pagesOfGateways, name+"-2.txt")))
				assert.Equal(t, want.shapes, shapes(after))
				for _, m := range want.increases {
					c0, s0 := counted(before, m.metric, m.attributes...)
					c1, s1 := counted(after, m.metric, m.attributes...)
					assert.InDelta(t, m.count, c1-c0, 1e-9, "%v", m)
					assert.InDelta(t, m.sum, s1-s0, 1e-9, "%v", m)
				}
				for _, m := range want.values {
					_, value := counted(after, m.metric, m.attributes...)
					assert.InDelta(t, m.sum, value, 1e-9, "%v", m)
				}
				require.Equal(t, 1, after.ResourceMetrics().Len())
				resource := after.ResourceMetrics().At(0).Resource().Attributes()
				assert.Equal(t, want.kind, textOf(resource, "vllm.server.kind"))
				if name == "agentgateway" {
					assert.Equal(t, "1.5.0", textOf(resource, "service.version"))
				}
				assert.Empty(t, r.logged("warn"))
				for _, line := range r.logged("info") {
					assert.NotContains(t, line, "unknown")
				}
			})
		}
	}
}

// Envoy AI Gateway has no metric of its own before the first request.
func TestAGatewayIsKnownFromItsFirstRequestOn(t *testing.T) {
	r := newRig(t)
	const idle = "# TYPE target_info gauge\ntarget_info{service_name=\"x\"} 1\n"
	kinds := func(metrics pmetric.Metrics) (kinds []string) {
		for _, rm := range metrics.ResourceMetrics().All() {
			kinds = append(kinds, textOf(rm.Resource().Attributes(), "vllm.server.kind"))
		}
		return kinds
	}
	page := read(t, filepath.Join(pagesOfGateways, "envoy-ai-gateway.txt"))
	assert.Equal(t, []string{""}, kinds(r.scrape(idle)))
	scraped := r.scrape(page)
	assert.Equal(t, []string{"", "gateway"}, kinds(scraped), "the first has the ends")
	assert.Contains(t, render(scraped), "vllm.up gauge {state} {} @15 end")
	assert.Equal(t, []string{"gateway"}, kinds(r.scrape(page)))
	assert.Equal(t, 2, r.asked["/version"])
	// Another program at the same address.
	assert.Equal(t, []string{"gateway", ""}, kinds(r.scrape(gauge("1"))))
}

func TestAGatewayKeepsItsNamesOfTheWireWithoutAWarning(t *testing.T) {
	for _, name := range []string{"envoy-ai-gateway", "agentgateway", "dynamo"} {
		r := newRig(t, func(c *Config) { c.Naming = NamingWire })
		scraped := r.scrape(read(t, filepath.Join(pagesOfGateways, name+".txt")))
		assert.Equal(t, "gateway", textOf(scraped.ResourceMetrics().At(0).Resource().Attributes(), "vllm.server.kind"))
		for _, shape := range shapes(scraped) {
			assert.NotContains(t, shape, ".")
		}
		assert.Empty(t, append(r.logged("info"), r.logged("warn")...), name)
	}
}

// Two instrumentations of one gateway differ only by their scope. Where units stand depends on the format.
func TestScopesAreAddedUpAndUnitsOfOneFormatAreIgnored(t *testing.T) {
	const of = `gen_ai_own_calls_total{otel_scope_name=`
	page := "# TYPE gen_ai_own_calls counter\n" + of + "\"a\"} 1\n" + of + "\"b\"} 2\n" +
		"# TYPE gen_ai_own_widgets gauge\n# UNIT gen_ai_own_widgets widgets\ngen_ai_own_widgets{otel_scope_name=\"a\"} 4\n# EOF\n"
	for _, contentType := range []string{"text/plain", "application/openmetrics-text"} {
		r := newRig(t)
		r.contentType = contentType
		scraped := r.scrape(page)
		_, calls := counted(scraped, "gen_ai.own_calls")
		assert.InDelta(t, 3, calls, 0)
		assert.Equal(t, []string{"gen_ai.own_calls Sum", "gen_ai.own_widgets Gauge"}, shapes(scraped))
	}
}
