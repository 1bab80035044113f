package beside

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest"
	read "github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/history"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/promapi"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/replay"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/rulestore"
	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/boards"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/history"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
)

const simulatedVersion = "0.20.0"

// serve answers the API over a store.
func serve(tb testing.TB, store *rulestore.Store, now time.Time) *promapi.Client {
	tb.Helper()
	server := httptest.NewServer(boards.NewAPI(store.DB, store.Engine, now))
	tb.Cleanup(server.Close)
	return client(tb, server.URL)
}

// options judge a period with the defaults.
func options(server backtest.Server, from, to time.Time) *backtest.Options {
	return &backtest.Options{
		Server: server, Address: "http://test", Period: read.Span{From: from, To: to}, Parallel: 2, MaxTargets: 100,
		Receiver:  vllmreceiver.NewFactory().CreateDefaultConfig().(*vllmreceiver.Config),
		Processor: vllmprocessor.NewFactory().CreateDefaultConfig().(*vllmprocessor.Config),
		Version:   simulatedVersion,
	}
}

func server(name string, rate float64, changes []engine.Change, faults ...vllmsim.Fault) history.Servers {
	workload := engine.Chat(rate)
	return history.Servers{
		Name: name, Namespace: "chat",
		Config: vllmsim.Config{Hardware: "8b-h100", Version: simulatedVersion, Workload: &workload, Seed: 3, Changes: changes, Faults: faults},
	}
}

// The same scrapes are judged twice: by a collector that runs while they happen, and by a
// backtest that reads them from the API of a Prometheus which scraped the same answers. At
// every scrape both say the same.
func TestABacktestSaysWhatALiveCollectorSaid(t *testing.T) {
	race.SkipSequential(t)
	length := 75 * time.Minute
	store, err := rulestore.Open(t.TempDir(), rulestore.Suffixed, rulestore.Memory, 0)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, store.Close()) })
	var mu sync.Mutex
	targets := map[string]*prometheus{}
	story := &history.Story{
		Length: length,
		Servers: []history.Servers{
			server("slow", 4, []engine.Change{{At: 2400, Parameter: engine.ParamClock, Value: 0.25}, {At: 3000, Parameter: engine.ParamClock, Value: 1}}),
			server("stalls", 5, []engine.Change{{At: 2700, Parameter: engine.ParamStall, Value: 1}, {At: 2880, Parameter: engine.ParamStall, Value: 0}}),
			server("restarts", 6, nil, vllmsim.Fault{At: 1800, Until: 1874, Kind: vllmsim.FaultRestart}, vllmsim.Fault{At: 3300, Until: 3480, Kind: vllmsim.FaultUnreachable}),
		},
		Tap: func(host string, at time.Time, status int, contentType string, body []byte) {
			mu.Lock()
			defer mu.Unlock()
			if targets[host] == nil {
				targets[host] = &prometheus{names: []map[string]string{{"job": "vllm", "instance": host, "namespace": "chat"}}}
			}
			if status != http.StatusOK {
				body = nil
			}
			assert.NoError(t, targets[host].scrape(t.Context(), store, at, body, contentType))
		},
	}
	live := history.Play(t, story, history.Suffixed, history.Unsuffixed, history.Dotted)
	require.Len(t, targets, 3)

	// What Prometheus scraped from the servers, and what a collector stored by OTLP in each
	// spelling.
	stores := map[string]*rulestore.Store{"raw": store}
	for _, s := range live.Stores {
		stores[s.Strategy.Name] = s.Store
	}
	for name, from := range stores {
		t.Run(name, func(t *testing.T) { compareWithLive(t, live, from) })
	}
}

// withObjectives sets the objectives of the collector of history.Play.
func withObjectives(t *testing.T, o *backtest.Options) {
	t.Helper()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{
		"objectives": []any{
			map[string]any{"name": "ttft", "metric": "vllm.time_to_first_token", "threshold": "2.5s", "target": 0.95},
			map[string]any{"name": "itl", "metric": "vllm.inter_token_latency", "threshold": "100ms", "target": 0.99},
		},
	}).Unmarshal(o.Processor))
}

func compareWithLive(t *testing.T, live *history.History, from *rulestore.Store) {
	t.Helper()
	o := options(serve(t, from, live.End), live.Begin, live.End.Add(time.Second))
	// The servers are a pool, so each is also compared with its siblings.
	withObjectives(t, o)
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"pool": map[string]any{}}).Unmarshal(o.Processor))
	out, err := backtest.Run(t.Context(), o)
	require.NoError(t, err)
	require.Len(t, out.Results, 4, "three servers and the pool")
	compared, seen := 0, map[string]int{}
	for _, one := range out.Results {
		if one.Target == nil {
			assert.NotEmpty(t, one.Episodes)
			continue
		}
		instance := one.Target.Labels.Get("instance")
		for label, query := range map[string]string{
			"condition": `vllm_diagnosis_condition{instance=%q} == 1`, "cause": `vllm_diagnosis_cause{instance=%q,role="primary"} == 1`,
		} {
			matrix, err := live.Stores[0].Range(t.Context(), fmt.Sprintf(query, instance), live.Begin, live.End, 15*time.Second)
			require.NoError(t, err)
			n, wrong := sameAsLive(t, instance, label, matrix, one.Episodes, seen)
			assert.Zero(t, wrong, instance)
			compared += n
		}
	}
	assert.Greater(t, compared, 3*250)
	t.Log(seen)
	// What was compared has the faults in it.
	for _, name := range []string{"degraded", "stalled", "unreachable", "slow_steps"} {
		assert.Positive(t, seen[name], name)
	}
}

// sameAsLive compares the conditions that were stored live with the episodes of a backtest.
func sameAsLive(t *testing.T, instance, label string, matrix promql.Matrix, episodes []replay.Episode, seen map[string]int) (compared, wrong int) {
	t.Helper()
	for _, series := range matrix {
		want := series.Metric.Get(label)
		for _, p := range series.Floats {
			at := time.UnixMilli(p.T).UTC()
			got := ""
			for i := range episodes {
				if !at.Before(episodes[i].From) && (at.Before(episodes[i].To) || i == len(episodes)-1) {
					if got = episodes[i].Condition; label == "cause" {
						got = episodes[i].Cause
					}
				}
			}
			compared++
			seen[want]++
			if got != want && wrong < 5 {
				wrong++
				t.Errorf("%s at %s: live %s, backtest %q", instance, at, want, got)
			}
		}
	}
	return compared, wrong
}
