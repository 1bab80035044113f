package history

import (
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/gpu"
)

// The models of Showcase.
const (
	ChatModel = "meta-llama/Llama-3.1-8B-Instruct"
	CodeModel = "Qwen/Qwen2.5-Coder-7B-Instruct"
)

// The incident of Showcase begins at IncidentFrom and is over at IncidentTo.
const (
	IncidentFrom = 15 * time.Minute
	IncidentTo   = 30 * time.Minute
)

// Showcase is a deployment that uses as many features as the simulator has: two models,
// five servers, LoRA, speculation, KV transfers, a gateway and a syncer of adapters. With
// an incident, the memory of the first chat server is slow, the second chat server does not
// answer for ten minutes, a server of code restarts, and the gateway refuses requests.
func Showcase(incident bool) *Story {
	// The newest surface, with all that can be switched on.
	all := func(model string, seed uint64, workload engine.Workload) vllmsim.Config {
		return vllmsim.Config{
			Dialect: "v1", Version: "0.24.0", Hardware: "8b-h100", Model: model, Seed: seed, Workload: &workload,
			FlopsCounters: true, NaNCounter: true, FollowBlocks: 0.1, GPUs: &gpu.Config{Families: gpu.Groups(), PodUID: true},
		}
	}
	chat := func(seed uint64) vllmsim.Config {
		workload := engine.Chat(5)
		workload.AdapterShare, workload.Adapters = 0.3, 2
		c := all(ChatModel, seed, workload)
		c.LoRA, c.MaxLoRAs = true, 4
		return c
	}
	code := func(seed uint64) vllmsim.Config {
		workload := engine.Code(4)
		c := all(CodeModel, seed, workload)
		c.SpecDecode = true
		c.Transfer = engine.Transfer{Share: 0.3, Latency: 0.01, BytesPerSecond: 2e10}
		return c
	}
	s := &Story{
		Name: "showcase", Length: 45 * time.Minute,
		Servers: []Servers{
			{Config: chat(1), Name: "chat-a", Namespace: "chat"},
			{Config: chat(2), Name: "chat-b", Namespace: "chat"},
			{Config: chat(3), Name: "chat-c", Namespace: "chat"},
			{Config: code(4), Name: "code-a", Namespace: "code"},
			{Config: code(5), Name: "code-b", Namespace: "code"},
		},
		Gateway: &Gateway{Model: ChatModel, Pool: "chat", Phases: []GatewayPhase{
			{Served: 15, Duration: 1500 * time.Millisecond, Ready: 3},
		}},
		Syncers: []Syncer{{Adapters: []string{"adapter-1", "adapter-2"}}, {Adapters: []string{"adapter-1", "adapter-2"}}},
		Processor: map[string]any{
			"hardware": []any{map[string]any{"gpu": "H100-SXM"}},
			"metrics": map[string]any{
				"vllm.diagnosis.signal":       map[string]any{"enabled": true},
				"vllm.diagnosis.signal_ratio": map[string]any{"enabled": true},
			},
			"objectives": []any{
				map[string]any{"name": "ttft", "metric": "vllm.time_to_first_token", "threshold": "2.5s", "target": 0.95},
				map[string]any{"name": "itl", "metric": "vllm.inter_token_latency", "threshold": "100ms", "target": 0.99},
				map[string]any{"name": "e2e", "metric": "vllm.e2e_request_latency", "threshold": "30s", "target": 0.99},
				map[string]any{"name": "tpot", "metric": "vllm.request.time_per_output_token", "threshold": "100ms", "target": 0.99},
			},
		},
	}
	s.Own = Exporters(nil, nil)
	if !incident {
		return s
	}
	s.Servers[0].Config.Changes = []engine.Change{
		{At: IncidentFrom.Seconds(), Parameter: engine.ParamBandwidth, Value: 0.25},
		{At: IncidentTo.Seconds(), Parameter: engine.ParamBandwidth, Value: 1},
	}
	s.Servers[1].Config.Faults = []vllmsim.Fault{{
		Kind: vllmsim.FaultUnreachable, At: IncidentFrom.Seconds() + 120, Until: IncidentTo.Seconds() - 180,
	}}
	s.Servers[4].Config.Faults = []vllmsim.Fault{{
		Kind: vllmsim.FaultRestart, At: IncidentFrom.Seconds() + 120, Until: IncidentFrom.Seconds() + 194,
	}}
	quiet := s.Gateway.Phases[0]
	busy, again := quiet, quiet
	busy.From, busy.Refused, busy.Queued, busy.Ready, busy.Duration = IncidentFrom, 4, 25, 2, 4*time.Second
	again.From = IncidentTo
	s.Gateway.Phases = []GatewayPhase{quiet, busy, again}
	return s
}

// Exporters returns what the collector's exporter reports about its queue and its
// deliveries. The names are those of the built collector: its boards have data of both. size is the number of batches in the queue, failed the number of points that could
// not be sent so far; nil is none.
func Exporters(size, failed func(at time.Duration) float64) func(at time.Duration) []Sample {
	const exporter = `{job="otelcol-vllm",instance="collector-a:8888",exporter="otlp_http"`
	value := func(f func(at time.Duration) float64, at time.Duration) float64 {
		if f == nil {
			return 0
		}
		return f(at)
	}
	return func(at time.Duration) []Sample {
		return []Sample{
			{`otelcol_exporter_queue_size` + exporter + `,data_type="metrics"}`, value(size, at)},
			{`otelcol_exporter_queue_capacity` + exporter + `,data_type="metrics"}`, 1000},
			{`otelcol_exporter_sent_metric_points` + exporter + `}`, 30 * at.Seconds()},
			{`otelcol_exporter_send_failed_metric_points` + exporter + `}`, value(failed, at)},
			{`otelcol_exporter_enqueue_failed_metric_points` + exporter + `}`, 0},
			{`otelcol_process_uptime{job="otelcol-vllm",instance="collector-a:8888"}`, at.Seconds()},
			{`otelcol_process_cpu_seconds{job="otelcol-vllm",instance="collector-a:8888"}`, 0.02 * at.Seconds()},
			{`otelcol_process_memory_rss{job="otelcol-vllm",instance="collector-a:8888"}`, 120e6},
		}
	}
}
