package boards

import (
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/history"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/gpu"
)

// The story of the pictures is a day of a real vLLM: its pages are those of the first server, at
// their own times. Two servers that join the pool later play the same pages again. Another model,
// with GPUs, adapters and speculation, is simulated, and so is the gateway.
const (
	// shown is the part at the end that the pictures show.
	shown      = time.Hour
	asRecorded = "chat-a-0:8000"
	simulated  = "llama-0:8000"
	second     = 20 * time.Minute
	third      = 37*time.Minute + 45*time.Second
	// overload and relief are when the first server gets four times its load, and when no more.
	overload, relief = 15 * time.Minute, 17*time.Minute + 30*time.Second
	// hotFrom and hotTo are when the fan of the simulated server stands still.
	hotFrom, hotTo = 35 * time.Minute, 45 * time.Minute
)

var (
	// begin is when the first page was received.
	begin = time.Date(2026, 11, 28, 13, 58, 8, 949e6, time.UTC)
	end   = time.Date(2026, 11, 28, 15, 0, 0, 0, time.UTC)
)

// pictureStory returns the story with the pages of a folder.
func pictureStory(pages string) *history.Story {
	chat := func(name string, from time.Duration) history.Servers {
		return history.Servers{Config: vllmsim.Config{Version: "0.32.0"}, Name: name, Namespace: "chat", Recorded: pages, From: from}
	}
	load := engine.Chat(5)
	load.AdapterShare, load.Adapters = 0.6, 3
	llama := vllmsim.Config{
		Model: "llama-8b", Hardware: "8b-h100", Version: "0.32.0", Seed: 4, Workload: &load,
		LoRA: true, MaxLoRAs: 2, SpecDecode: true, FlopsCounters: true, FollowBlocks: 0.1,
		Transfer: engine.Transfer{Share: 0.3, Latency: 0.005, BytesPerSecond: 50e9},
		GPUs:     &gpu.Config{Families: gpu.Groups(), PodUID: true},
		Changes: []engine.Change{
			{At: hotFrom.Seconds(), Parameter: engine.ParamCooling, Value: 0.15},
			{At: hotTo.Seconds(), Parameter: engine.ParamCooling, Value: 1},
		},
	}
	calm := history.GatewayPhase{Served: 1.5, Duration: 2 * time.Second, Ready: 1}
	phases := []history.GatewayPhase{calm}
	for i, from := range []time.Duration{0, second, third} {
		joined, busy := calm, calm
		joined.From, joined.Served, joined.Ready = from, 1.5*float64(i+1), float64(i+1)
		busy.From, busy.Served, busy.Refused, busy.Failed, busy.Queued, busy.Ready = from+overload, joined.Served+4, 0.8, 0.1, 9, joined.Ready
		over := joined
		over.From = from + relief
		phases = append(phases, joined, busy, over)
	}
	return &history.Story{
		Name: "pictures", Begin: begin, Length: end.Sub(begin),
		Servers: []history.Servers{
			chat("chat-a", 0), chat("chat-b", second), chat("chat-c", third),
			{Config: llama, Name: "llama", Namespace: "chat"},
		},
		Gateway: &history.Gateway{Model: "tiny", Pool: "chat", Phases: phases[1:]},
		Syncers: []history.Syncer{{Adapters: []string{"docs", "sql"}}},
		Own:     ownTelemetry,
		Processor: map[string]any{
			"hardware": []any{map[string]any{"gpu": "H100-SXM"}},
			"metrics": map[string]any{
				"vllm.diagnosis.signal":       map[string]any{"enabled": true},
				"vllm.diagnosis.signal_ratio": map[string]any{"enabled": true},
			},
			"objectives": []any{
				map[string]any{"name": "ttft", "metric": "vllm.time_to_first_token", "threshold": "1s", "target": 0.95},
				map[string]any{"name": "tpot", "metric": "vllm.request.time_per_output_token", "threshold": "75ms", "target": 0.95},
				map[string]any{"name": "e2e", "metric": "vllm.e2e_request_latency", "threshold": "30s", "target": 0.95},
			},
		},
	}
}

// ownTelemetry is what the collector reports about its process and its exporter: in the last
// minutes the backend does not accept data, and the queue grows.
func ownTelemetry(at time.Duration) []history.Sample {
	queued := func(at time.Duration) float64 { return 2 * max(0, at-57*time.Minute).Seconds() }
	return history.Exporters(queued, func(at time.Duration) float64 { return 6 * queued(at) })(at)
}
