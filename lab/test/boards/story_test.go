package boards

import (
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/history"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// The story of the pictures. Two models are healthy for a while. Then the memory of one chat
// server gets slow, its queue grows, and the gateway refuses requests; it recovers. Later
// the server of the other model restarts. At the end, longer prompts come to that server.
const (
	length   = 95 * time.Minute
	slowFrom = 50 * time.Minute
	slowTo   = 63 * time.Minute
	downFrom = 74 * time.Minute
	downTo   = 77 * time.Minute
	longFrom = 88 * time.Minute
	// shown is the part at the end that the pictures show: before it, engines are learned.
	shown = time.Hour
	// restarted is the server that restarts and gets longer prompts at the end.
	restarted = "large-0:8000"
)

// drawnEnd is the end of the story in the pictures.
var drawnEnd = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func pictureStory() *history.Story {
	chat := func(seed uint64) vllmsim.Config {
		load := engine.Chat(4)
		return vllmsim.Config{Model: "llama-8b", Hardware: "8b-h100", Version: "0.25.0", Seed: seed, Workload: &load}
	}
	slow := chat(2)
	slow.Changes = []engine.Change{
		{At: slowFrom.Seconds(), Parameter: engine.ParamBandwidth, Value: 0.2},
		{At: slowTo.Seconds(), Parameter: engine.ParamBandwidth, Value: 1},
	}
	load := engine.Chat(1)
	load.AdapterShare, load.Adapters = 0.6, 3
	code := vllmsim.Config{
		Model: "llama-70b", Hardware: "70b-tp4-h100", Version: "0.25.0", Seed: 4, Workload: &load,
		LoRA: true, MaxLoRAs: 2, SpecDecode: true, FlopsCounters: true, FollowBlocks: 0.1,
		Transfer: engine.Transfer{Share: 0.3, Latency: 0.005, BytesPerSecond: 50e9},
		Faults:   []vllmsim.Fault{{At: downFrom.Seconds(), Until: downTo.Seconds(), Kind: vllmsim.FaultRestart}},
		Changes:  []engine.Change{{At: longFrom.Seconds(), Parameter: engine.ParamPromptLength, Value: 5}},
	}
	return &history.Story{
		Name: "pictures", Length: length,
		Servers: []history.Servers{
			{Config: chat(1), Name: "chat-a", Namespace: "chat"},
			{Config: slow, Name: "chat-b", Namespace: "chat"},
			{Config: chat(3), Name: "chat-c", Namespace: "chat"},
			{Config: code, Name: "large", Namespace: "chat"},
		},
		Gateway: &history.Gateway{Model: "llama-8b", Pool: "chat", Phases: []history.GatewayPhase{
			{Served: 15, Duration: 1200 * time.Millisecond, Ready: 3},
			{From: slowFrom + 2*time.Minute, Served: 14, Refused: 0.8, Failed: 0.3, Duration: 2500 * time.Millisecond, Ready: 2, Queued: 9},
			{From: slowTo, Served: 15, Duration: 1200 * time.Millisecond, Ready: 3},
		}},
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
				map[string]any{"name": "tpot", "metric": "vllm.request.time_per_output_token", "threshold": "100ms", "target": 0.99},
				map[string]any{"name": "e2e", "metric": "vllm.e2e_request_latency", "threshold": "30s", "target": 0.99},
			},
		},
	}
}

// ownTelemetry is what the collector reports about its process and its exporter: for some
// minutes the backend does not accept data, and the queue grows.
func ownTelemetry(at time.Duration) []history.Sample {
	since := func(from time.Duration) float64 { return max(0, at-from).Seconds() }
	full := min(since(58*time.Minute), (5*time.Minute).Seconds()) - min(since(63*time.Minute), (time.Minute).Seconds())*5
	const process = `{job="otelcol-vllm",instance="collector-a:8888"}`
	return append(history.Exporters(func(time.Duration) float64 { return full }, func(time.Duration) float64 { return 12 * min(since(58*time.Minute), 300) })(at),
		history.Sample{Series: "otelcol_process_uptime" + process, Value: at.Seconds()},
		history.Sample{Series: "otelcol_process_cpu_seconds" + process, Value: 0.02 * at.Seconds()},
		history.Sample{Series: "otelcol_process_memory_rss" + process, Value: 110e6 + 1e3*at.Seconds() + 2e4*full},
	)
}

// moved copies all series of a storage into an empty one, with other times.
func moved(t *testing.T, from, to *history.Store, by time.Duration) {
	t.Helper()
	querier, err := from.DB.Querier(0, 1<<62)
	require.NoError(t, err)
	defer querier.Close()
	// In the order of series: each has its own order of time.
	app := to.DB.Appender(t.Context())
	found := querier.Select(t.Context(), true, nil, labels.MustNewMatcher(labels.MatchRegexp, "__name__", ".+"))
	for found.Next() {
		series := found.At()
		samples := series.Iterator(nil)
		for samples.Next() == chunkenc.ValFloat {
			at, value := samples.At()
			_, err := app.Append(storage.SeriesRef(0), series.Labels(), at+by.Milliseconds(), value)
			require.NoError(t, err)
		}
		require.NoError(t, samples.Err())
	}
	require.NoError(t, found.Err())
	require.NoError(t, app.Commit())
}
