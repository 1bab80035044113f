// Package gateways writes testdata/gateways: pages of gateways after the same requests, so that what a
// gateway measured is known. The names are those of the sources of Envoy AI Gateway 1.1, agentgateway
// (November 2026), the router of the production stack (August 2026), and of a running vllm-router 0.1.17.
package gateways

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the pages")

const folder = "../../../testdata/gateways"

// request is what a client sent through the gateway.
type request struct {
	model string
	// duration and firstToken are in seconds; firstToken is 0 where the answer was not streamed.
	duration, firstToken float64
	input, output        int
	failed               bool
}

// before are the requests of the first page of each gateway; the second page also has between.
var (
	before = []request{
		{"llama", 1, .1, 100, 11, false}, {"llama", 5, 0, 100, 21, true}, {"qwen", 1, .2, 50, 11, false},
	}
	// The sums that tests compare with.
	// llama: 7 requests, 1 of them failed. The 6 others took 18 s, 3 s on average; the first token of 4 came
	// after 1.2 s, 0.3 s on average. All 7 took 27 s. 600 tokens in (700 with the failed one), 120 out.
	// qwen: 2 requests, 2 s, 1 s on average; first tokens after 0.2 s, 0.1 s on average. 100 tokens in, 20 out.
	between = []request{
		{"llama", 1, .1, 100, 11, false},
		{"llama", 2, .2, 100, 21, false},
		{"llama", 3, .3, 100, 21, false},
		{"llama", 6, .6, 100, 21, false},
		{"llama", 2, 0, 100, 21, false},
		{"llama", 4, 0, 100, 25, false},
		{"llama", 9, 0, 100, 0, true},
		{"qwen", .5, .05, 50, 9, false},
		{"qwen", 1.5, .15, 50, 11, false},
	}
)

// labels are names and values in turn, in the order of the page.
type labels []string

// histogram is a distribution with its series by their labels, as Prometheus writes them.
type histogram struct {
	bounds []float64
	series map[string]*distribution
}

type distribution struct {
	labels labels
	sum    float64
	values []float64
}

func (h *histogram) observe(value float64, l ...string) {
	if h.series == nil {
		h.series = map[string]*distribution{}
	}
	key := strings.Join(l, "\xff")
	if h.series[key] == nil {
		h.series[key] = &distribution{labels: l}
	}
	d := h.series[key]
	d.sum, d.values = d.sum+value, append(d.values, value)
}

func (h *histogram) each(visit func(*distribution)) {
	for _, key := range slices.Sorted(maps.Keys(h.series)) {
		visit(h.series[key])
	}
}

func (d *distribution) atMost(bound float64) (n uint64) {
	for _, v := range d.values {
		if v <= bound {
			n++
		}
	}
	return n
}

// counts are counters by their labels.
type counts map[string]*distribution

func (c *counts) add(n float64, l ...string) {
	h := histogram{series: *c}
	h.observe(n, l...)
	*c = h.series
}

func (c counts) each(visit func(*distribution)) { (&histogram{series: c}).each(visit) }

// The bounds that the conventions advise, and those of the two routers.
var (
	tokenBounds      = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
	durationBounds   = []float64{.01, .02, .04, .08, .16, .32, .64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	firstTokenBounds = []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10}
	perTokenBounds   = []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5}
	httpBounds       = []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 80}
	stackBounds      = []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120}
	rustBounds       = []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 15, 30, 45, 60, 90, 120, 180, 240}
)

// genAI are the four histograms of the conventions.
type genAI struct{ tokens, duration, firstToken, perToken histogram }

// observe counts a request. A gateway that marks failures adds markFailed to the labels of the duration.
func (g *genAI) observe(r request, common labels, markFailed ...string) {
	marked := common
	if r.failed {
		marked = append(slices.Clone(common), markFailed...)
	}
	g.duration.observe(r.duration, marked...)
	if r.failed {
		return
	}
	g.tokens.observe(float64(r.input), append(slices.Clone(common), "gen_ai_token_type", "input")...)
	g.tokens.observe(float64(r.output), append(slices.Clone(common), "gen_ai_token_type", "output")...)
	if r.firstToken > 0 {
		g.firstToken.observe(r.firstToken, common...)
		g.perToken.observe((r.duration-r.firstToken)/float64(r.output-1), common...)
	}
}

// collector is what a program of its own registers: series that need not have the same labels.
type collector func(chan<- prometheus.Metric)

func (collector) Describe(chan<- *prometheus.Desc)           {}
func (c collector) Collect(metrics chan<- prometheus.Metric) { c(metrics) }

func described(name, help string, l labels) (*prometheus.Desc, []string) {
	var names, values []string
	for i := 0; i < len(l); i += 2 {
		names, values = append(names, l[i]), append(values, l[i+1])
	}
	return prometheus.NewDesc(name, help, names, nil), values
}

func sendHistogram(to chan<- prometheus.Metric, name, help string, h *histogram) {
	h.each(func(d *distribution) {
		buckets := map[float64]uint64{}
		for _, bound := range h.bounds {
			buckets[bound] = d.atMost(bound)
		}
		desc, values := described(name, help, d.labels)
		to <- prometheus.MustNewConstHistogram(desc, uint64(len(d.values)), d.sum, buckets, values...)
	})
}

func send(to chan<- prometheus.Metric, kind prometheus.ValueType, name, help string, value float64, l ...string) {
	desc, values := described(name, help, l)
	to <- prometheus.MustNewConstMetric(desc, kind, value, values...)
}

func sendCounts(to chan<- prometheus.Metric, name, help string, c counts) {
	c.each(func(d *distribution) { send(to, prometheus.CounterValue, name, help, d.sum, d.labels...) })
}

// written is the page of client_golang in the text format.
func written(t *testing.T, c collector) []byte {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	require.NoError(t, err)
	var page bytes.Buffer
	encoder := expfmt.NewEncoder(&page, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, family := range families {
		require.NoError(t, encoder.Encode(family))
	}
	return page.Bytes()
}

// envoy is Envoy AI Gateway: the Go SDK of OpenTelemetry with its exporter to Prometheus, which adds the
// labels otel_scope_* and target_info. A failed request has no model in its response.
func envoy(t *testing.T, requests []request) []byte {
	t.Helper()
	g := genAI{
		histogram{bounds: tokenBounds},
		histogram{bounds: durationBounds},
		histogram{bounds: append(slices.Clone(firstTokenBounds), 15, 20, 30, 45, 60)},
		histogram{bounds: perTokenBounds},
	}
	for _, r := range requests {
		answered := r.model
		if r.failed {
			answered = "unknown"
		}
		g.observe(r, labels{
			"gen_ai_operation_name", "chat", "gen_ai_provider_name", "openai",
			"gen_ai_original_model", "our-" + r.model, "gen_ai_request_model", r.model, "gen_ai_response_model", answered,
			"otel_scope_name", "envoyproxy/ai-gateway", "otel_scope_schema_url", "", "otel_scope_version", "",
		}, "error_type", "_OTHER")
	}
	return written(t, func(to chan<- prometheus.Metric) {
		sendHistogram(to, "gen_ai_client_token_usage", "Tokens of requests.", &g.tokens)
		sendHistogram(to, "gen_ai_server_request_duration_seconds", "Until the last byte.", &g.duration)
		sendHistogram(to, "gen_ai_server_time_to_first_token_seconds", "Until the first token of a stream.", &g.firstToken)
		sendHistogram(to, "gen_ai_server_time_per_output_token_seconds", "Per token after the first.", &g.perToken)
		send(to, prometheus.GaugeValue, "target_info", "Target metadata", 1, "service_name", "ai-gateway", "telemetry_sdk_language", "go")
	})
}

// agentgateway writes the lines of OpenMetrics as text/plain, with other prefixes and without a unit in the
// names of the conventions. It does not mark failures in their histograms; its counter of requests has their status,
// but not the model.
func agentgateway(t *testing.T, requests []request) []byte {
	t.Helper()
	g := genAI{
		histogram{bounds: tokenBounds},
		histogram{bounds: durationBounds},
		histogram{bounds: firstTokenBounds},
		histogram{bounds: append([]float64{.001}, perTokenBounds...)},
	}
	http, call := histogram{bounds: httpBounds}, histogram{bounds: httpBounds}
	var total, retries, cost, bytesSent counts
	route := labels{"bind", "bind/8080", "gateway", "default/gw", "listener", "http", "route", "default/llm", "route_rule", "unknown"}
	for _, r := range requests {
		answered, status, reason := r.model, "200", "Upstream"
		if r.failed {
			answered, status, reason = "unknown", "503", "UpstreamFailure"
		}
		common := append(labels{
			"gen_ai_operation_name", "chat", "gen_ai_system", "openai",
			"gen_ai_request_model", r.model, "gen_ai_response_model", answered,
		}, route...)
		of := append(labels{"backend", "default/vllm", "protocol", "llm", "method", "POST", "status", status, "reason", reason}, route...)
		g.observe(r, common)
		http.observe(r.duration, of...)
		call.observe(r.duration, "kind", "Primary", "subtype", "Llm")
		total.add(1, of...)
		bytesSent.add(float64(10*r.output), of...)
		if r.failed {
			retries.add(2, of...)
		} else {
			cost.add(float64(r.output)/1024, common...)
		}
	}
	var page strings.Builder
	family := func(name, help, kind, unit string) {
		fmt.Fprintf(&page, "# HELP %s %s.\n# TYPE %s %s\n", name, help, name, kind)
		if unit != "" {
			fmt.Fprintf(&page, "# UNIT %s %s\n", name, unit)
		}
	}
	braces := func(l labels) string {
		var pairs []string
		for i := 0; i < len(l); i += 2 {
			pairs = append(pairs, l[i]+"="+strconv.Quote(l[i+1]))
		}
		return "{" + strings.Join(pairs, ",") + "}"
	}
	number := func(v float64) string {
		text := strconv.FormatFloat(v, 'f', -1, 64)
		if !strings.Contains(text, ".") {
			text += ".0"
		}
		return text
	}
	counter := func(name, help, unit string, c counts) {
		family(name, help, "counter", unit)
		c.each(func(d *distribution) { fmt.Fprintf(&page, "%s_total%s %v\n", name, braces(d.labels), d.sum) })
	}
	buckets := func(name, help, unit string, h *histogram) {
		family(name, help, "histogram", unit)
		h.each(func(d *distribution) {
			fmt.Fprintf(&page, "%s_sum%s %s\n%s_count%s %d\n", name, braces(d.labels), number(d.sum), name, braces(d.labels), len(d.values))
			for _, bound := range h.bounds {
				fmt.Fprintf(&page, "%s_bucket%s %d\n", name, braces(append(labels{"le", number(bound)}, d.labels...)), d.atMost(bound))
			}
			fmt.Fprintf(&page, "%s_bucket%s %d\n", name, braces(append(labels{"le", "+Inf"}, d.labels...)), len(d.values))
		})
	}
	family("agentgateway_tokio_num_workers", "Threads", "gauge", "")
	page.WriteString("agentgateway_tokio_num_workers 4\n")
	family("agentgateway_build", "Build", "info", "")
	page.WriteString("agentgateway_build_info{tag=\"1.5.0\"} 1\n")
	buckets("agentgateway_gen_ai_client_token_usage", "Tokens", "", &g.tokens)
	counter("agentgateway_gen_ai_client_cost_usd", "Cost", "usd", cost)
	buckets("agentgateway_gen_ai_server_request_duration", "Duration", "", &g.duration)
	buckets("agentgateway_gen_ai_server_time_per_output_token", "Per token", "", &g.perToken)
	buckets("agentgateway_gen_ai_server_time_to_first_token", "First token", "", &g.firstToken)
	counter("agentgateway_requests", "Requests", "", total)
	counter("agentgateway_response_bytes", "Bytes", "bytes", bytesSent)
	buckets("agentgateway_request_duration_seconds", "Duration", "seconds", &http)
	buckets("agentgateway_upstream_call_duration_seconds", "Calls", "seconds", &call)
	counter("agentgateway_retries", "Retries", "", retries)
	return []byte(page.String() + "# EOF\n")
}

// Each model has one server of its own behind the two routers.
func serverOf(model string) string { return "http://" + model + ":8000" }

// stack is the router of the production stack.
func stack(t *testing.T, requests []request) []byte {
	t.Helper()
	latency := histogram{bounds: stackBounds}
	var incoming, failures, input, output counts
	var cpu, hits float64
	for _, r := range requests {
		server, status := serverOf(r.model), "success"
		incoming.add(1, "model", r.model)
		if r.failed {
			status = "error"
			failures.add(1, "server", server, "model", r.model, "error_type", "ClientOSError")
		} else {
			input.add(float64(r.input), "server", server, "model", r.model)
			output.add(float64(r.output), "server", server, "model", r.model)
		}
		latency.observe(r.duration, "server", server, "model", r.model, "status", status)
		cpu, hits = cpu+.5, hits+64
	}
	return written(t, func(to chan<- prometheus.Metric) {
		for _, server := range []string{serverOf("llama"), serverOf("qwen")} {
			gauge := func(name string, value float64) {
				send(to, prometheus.GaugeValue, "vllm:"+name, "Of a server.", value, "server", server)
			}
			gauge("num_requests_running", 3)
			gauge("current_qps", .25)
			gauge("avg_decoding_length", 1.5)
			gauge("num_prefill_requests", 1)
			gauge("num_decoding_requests", 2)
			gauge("healthy_pods_total", 1)
			gauge("avg_latency", 2.5)
			gauge("avg_itl", -1)
			gauge("num_requests_swapped", 0)
			gauge("gpu_prefix_cache_hit_rate", .5)
			gauge("gpu_prefix_cache_hits_total", hits)
			gauge("gpu_prefix_cache_queries_total", 2*hits)
		}
		sendCounts(to, "vllm:num_incoming_requests_total", "Requests.", incoming)
		sendCounts(to, "vllm:input_tokens_total", "Input.", input)
		sendCounts(to, "vllm:output_tokens_total", "Output.", output)
		sendCounts(to, "vllm:request_errors_total", "Errors.", failures)
		incoming.each(func(d *distribution) {
			send(to, prometheus.GaugeValue, "vllm:num_incoming_requests_created", "Requests.", 1.7e9, d.labels...)
		})
		sendHistogram(to, "vllm:request_latency_seconds", "Latency.", &latency)
		send(to, prometheus.GaugeValue, "router_cpu_usage_percent", "CPU.", cpu)
		send(to, prometheus.GaugeValue, "router_memory_usage_percent", "Memory.", 40)
		send(to, prometheus.GaugeValue, "router_disk_usage_percent", "Disk.", 20)
	})
}

// vllmRouter is the router that is written in Rust. It does not know models. It counts a successful request in
// requests, and a failed one in request_errors after four more attempts; it times the successful ones.
func vllmRouter(t *testing.T, requests []request) []byte {
	t.Helper()
	duration := histogram{bounds: rustBounds}
	var total, failures, retries, exhausted, processed, decisions, prefix, inputs, outcomes counts
	for _, r := range requests {
		const route = "/v1/chat/completions"
		worker, outcome, attempts := serverOf(r.model), "success", 1.
		if r.failed {
			outcome, attempts = "failure", 5
			failures.add(1, "route", route, "error_type", "non_retryable_error")
			retries.add(attempts-1, "route", route)
			exhausted.add(1, "route", route)
		} else {
			total.add(1, "route", route)
			duration.observe(r.duration)
		}
		processed.add(attempts, "worker", worker)
		decisions.add(attempts, "policy", "cache_aware", "worker", worker)
		prefix.add(attempts, "policy", "cache_aware", "stage", "regular", "outcome", "missing_tokens")
		inputs.add(1, "transport", "http", "result", "invalid_token_ids")
		outcomes.add(attempts, "worker", worker, "outcome", outcome)
	}
	return written(t, func(to chan<- prometheus.Metric) {
		sendCounts(to, "vllm_router_requests_total", "", total)
		sendCounts(to, "vllm_router_request_errors_total", "", failures)
		sendCounts(to, "vllm_router_retries_total", "", retries)
		sendCounts(to, "vllm_router_retries_exhausted_total", "", exhausted)
		sendCounts(to, "vllm_router_processed_requests_total", "", processed)
		sendCounts(to, "vllm_router_policy_decisions_total", "", decisions)
		sendCounts(to, "vllm_router_prefix_routing_decisions_total", "", prefix)
		sendCounts(to, "vllm_router_kv_routing_inputs_total", "", inputs)
		sendCounts(to, "vllm_router_cb_outcomes_total", "", outcomes)
		for _, worker := range []string{serverOf("llama"), serverOf("qwen")} {
			send(to, prometheus.GaugeValue, "vllm_router_running_requests", "", 0, "worker", worker)
			send(to, prometheus.GaugeValue, "vllm_router_worker_health", "", 1, "worker", worker)
			send(to, prometheus.GaugeValue, "vllm_router_cb_state", "", 0, "worker", worker)
		}
		send(to, prometheus.GaugeValue, "vllm_router_active_workers", "", 2)
		sendHistogram(to, "vllm_router_generate_duration_seconds", "", &duration)
	})
}

func TestThePagesAreThoseOfTheRequests(t *testing.T) {
	for name, page := range map[string]func(*testing.T, []request) []byte{
		"envoy-ai-gateway": envoy, "agentgateway": agentgateway, "production-stack": stack, "vllm-router": vllmRouter, "dynamo": dynamo,
	} {
		for suffix, requests := range map[string][]request{"": before, "-2": slices.Concat(before, between)} {
			file := filepath.Join(folder, name+suffix+".txt")
			want := page(t, requests)
			if *update {
				require.NoError(t, os.WriteFile(file, want, 0o600))
			}
			got, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Equal(t, cmp.Or(string(want), "empty"), string(got), "%s: -update writes it", file)
		}
	}
}
