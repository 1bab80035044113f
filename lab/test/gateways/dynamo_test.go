package gateways

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// The bounds of a running frontend of Dynamo 1.6.1.
var (
	dynamoDuration   = []float64{0, 2, 4, 8, 16, 32, 64, 130, 260, 510}
	dynamoFirstToken = []float64{0, .0022, .0047, .01, .022, .047, .1, .22, .47, 1, 2.2, 4.7, 10, 22, 48, 100, 220, 480}
	dynamoTokens     = []float64{0, 50, 100, 250, 1000, 4000}
	dynamoMillis     = []float64{.1, .25, .5, 1, 2, 4, 8}
)

// dynamo is the frontend of NVIDIA Dynamo 1.6.1 with KV routing, as it was seen. It observes the duration of failed
// requests with that of the others, and the first token of answers that are not streamed, too: here after a tenth of
// their duration, as in streams. It measures the router and the tokenizer in milliseconds.
func dynamo(t *testing.T, requests []request) []byte {
	t.Helper()
	component := labels{"dynamo_component", "backend", "dynamo_namespace", "dynamo", "worker_id", "617bc1275073e531"}
	routed := append(append(labels{}, component...), "router_id", "7024420418412078385")
	var total, started, failures, output, routerRequests, applied counts
	duration, firstToken := histogram{bounds: dynamoDuration}, histogram{bounds: dynamoFirstToken}
	between, routerFirst := histogram{bounds: dynamoFirstToken}, histogram{bounds: dynamoFirstToken}
	inputs, outputs, routerInputs := histogram{bounds: dynamoTokens}, histogram{bounds: dynamoTokens}, histogram{bounds: dynamoTokens}
	hashing, scheduling, overhead := histogram{bounds: dynamoMillis}, histogram{bounds: dynamoMillis}, histogram{bounds: dynamoMillis}
	tokenizer, hitRate := histogram{bounds: dynamoMillis}, histogram{bounds: []float64{0, .25, .5, .75, 1}}
	stages := histogram{bounds: dynamoFirstToken}
	for _, r := range requests {
		kind, status, problem := "stream", "success", ""
		switch {
		case r.failed:
			kind, status, problem = "unary", "error", "internal"
			failures.add(1, "class", "Internal", "reason", "internal.error")
		case r.firstToken == 0:
			kind = "unary"
		}
		of := labels{"endpoint", "chat_completions", "model", r.model, "request_type", kind}
		started.add(1, of...)
		total.add(1, "endpoint", "chat_completions", "error_type", problem, "model", r.model, "request_type", kind, "status", status)
		duration.observe(r.duration, "model", r.model)
		inputs.observe(float64(r.input), "model", r.model)
		routerInputs.observe(float64(r.input), append(append(labels{}, routed...), "model", r.model, "phase", "aggregated")...)
		tokenizer.observe(float64(r.input)/100, "operation", "tokenize")
		stages.observe(.001, "stage", "preprocess")
		hashing.observe(.5, "router_id", "7024420418412078385")
		scheduling.observe(1, "router_id", "7024420418412078385")
		overhead.observe(2, "router_id", "7024420418412078385")
		hitRate.observe(.25, routed...)
		routerRequests.add(1, routed...)
		applied.add(3, append(append(labels{}, component...), "event_type", "stored", "status", "ok")...)
		if r.failed {
			continue
		}
		firstToken.observe(r.duration/10, "model", r.model)
		routerFirst.observe(r.duration/10, routed...)
		output.add(float64(r.output), "model", r.model)
		outputs.observe(float64(r.output), "model", r.model)
		for range r.output - 1 {
			between.observe(r.duration*9/10/float64(r.output-1), "model", r.model)
		}
	}
	return written(t, func(to chan<- prometheus.Metric) {
		const f, c = "dynamo_frontend_", "dynamo_component_"
		sendCounts(to, f+"requests_total", "", total)
		sendCounts(to, f+"requests_started_total", "", started)
		sendCounts(to, f+"failures_total", "", failures)
		sendCounts(to, f+"output_tokens_total", "", output)
		sendHistogram(to, f+"request_duration_seconds", "", &duration)
		sendHistogram(to, f+"time_to_first_token_seconds", "", &firstToken)
		sendHistogram(to, f+"inter_token_latency_seconds", "", &between)
		sendHistogram(to, f+"input_sequence_tokens", "", &inputs)
		sendHistogram(to, f+"output_sequence_tokens", "", &outputs)
		sendHistogram(to, f+"tokenizer_latency_ms", "", &tokenizer)
		sendHistogram(to, f+"stage_duration_seconds", "", &stages)
		sendHistogram(to, "dynamo_router_overhead_block_hashing_ms", "", &hashing)
		sendHistogram(to, "dynamo_router_overhead_scheduling_ms", "", &scheduling)
		sendHistogram(to, "dynamo_router_overhead_total_ms", "", &overhead)
		sendHistogram(to, c+"router_kv_hit_rate", "", &hitRate)
		sendHistogram(to, c+"router_time_to_first_token_seconds", "", &routerFirst)
		sendHistogram(to, c+"router_input_sequence_tokens", "", &routerInputs)
		sendCounts(to, c+"router_requests_total", "", routerRequests)
		sendCounts(to, c+"kv_cache_events_applied", "", applied)
		for _, model := range []string{"llama", "qwen"} {
			for _, name := range []string{"active_requests", "inflight_requests", "queued_requests", "model_ready"} {
				send(to, prometheus.GaugeValue, f+name, "", 1, "model", model)
			}
			send(to, prometheus.GaugeValue, f+"router_queue_pending_requests", "", 2, "model", model, "policy_class", "default", "worker_type", "decode")
		}
		send(to, prometheus.GaugeValue, f+"disconnected_clients", "", 0)
		send(to, prometheus.GaugeValue, f+"stage_requests", "", 1, "phase", "aggregated", "stage", "dispatch")
		send(to, prometheus.GaugeValue, f+"worker_active_decode_blocks", "", 7, "dp_rank", "0", "worker_id", "1", "worker_type", "decode")
		send(to, prometheus.GaugeValue, "dynamo_request_plane_inflight_requests", "", 1)
		send(to, prometheus.GaugeValue, c+"uptime_seconds", "", 60, "worker_id", "617bc1275073e531")
		send(to, prometheus.GaugeValue, "dynamo_tokio_alive_tasks", "", 68)
	})
}
