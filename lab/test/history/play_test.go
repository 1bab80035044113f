package history

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// value returns the only value of a query at a time of a story.
func value(t *testing.T, h *History, query string, at time.Duration) float64 {
	t.Helper()
	vector, err := h.Stores[0].Instant(t.Context(), query, h.Begin.Add(at))
	require.NoError(t, err, query)
	require.Len(t, vector, 1, query)
	return vector[0].F
}

// count returns the number of series of a query at a time of a story.
func count(t *testing.T, s *Store, query string, at time.Time) int {
	t.Helper()
	vector, err := s.Instant(t.Context(), query, at)
	require.NoError(t, err, query)
	return len(vector)
}

func calm(name string, rate float64) Servers {
	workload := engine.Chat(rate)
	return Servers{Config: vllmsim.Config{Hardware: "8b-h100", Workload: &workload, Seed: 3}, Name: name, Namespace: "chat"}
}

// The storage has what the simulated requests were.
func TestTheStorageHasTheTruth(t *testing.T) {
	race.SkipSequential(t)
	s := &Story{Length: 20 * time.Minute, Servers: []Servers{calm("chat", 6)}}
	h := Play(t, s, Suffixed)
	from, to := 300.0, 900.0
	var finished float64
	var first []float64
	for _, o := range h.Outcomes["chat-0:8000"] {
		if o.Ended >= from && o.Ended < to && (o.End == engine.EndStop || o.End == engine.EndLength) {
			finished++
		}
		if at := o.Arrived + o.FirstToken; o.FirstToken > 0 && at >= from && at < to {
			first = append(first, o.FirstToken)
		}
	}
	require.Greater(t, finished, 3000.0)
	assert.InEpsilon(t, finished/(to-from),
		value(t, h, `sum(rate(vllm_request_success_total{finished_reason=~"stop|length"}[10m]))`, 15*time.Minute), 0.03)
	slices.Sort(first)
	p95 := first[int(0.95*float64(len(first)))]
	// The bounds of the histogram between which the truth is.
	bounds := []float64{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5}
	i, _ := slices.BinarySearch(bounds, p95)
	stored := value(t, h, `histogram_quantile(0.95, sum by (le) (rate(vllm_time_to_first_token_seconds_bucket[10m])))`, 15*time.Minute)
	assert.GreaterOrEqual(t, stored, bounds[i-1])
	assert.LessOrEqual(t, stored, bounds[i])
	derived := value(t, h, `vllm_request_throughput_per_second`, 15*time.Minute)
	assert.InEpsilon(t, 6, derived, 0.2, "the rate of arrivals")
	assert.InDelta(t, 1, value(t, h, "vllm_up", 15*time.Minute), 0)
}

// The strategies have the same points under their own names.
func TestTheStrategiesHaveTheSamePoints(t *testing.T) {
	s := &Story{Length: 5 * time.Minute, Servers: []Servers{calm("chat", 3)}}
	h := Play(t, s, Suffixed, Unsuffixed, Dotted)
	all := func(s *Store) int { return count(t, s, `{job="vllm"}`, h.End) }
	assert.Greater(t, all(h.Stores[0]), 200)
	assert.Equal(t, all(h.Stores[0]), all(h.Stores[1]))
	assert.Equal(t, all(h.Stores[0]), all(h.Stores[2]))
	for i, series := range []string{
		`vllm_time_to_first_token_seconds_bucket{k8s_namespace_name="chat",le="2.5"}`,
		`vllm_time_to_first_token_bucket{k8s_namespace_name="chat",le="2.5"}`,
		`{"vllm.time_to_first_token_bucket","k8s.namespace.name"="chat",le="2.5"}`,
	} {
		assert.Equal(t, 1, count(t, h.Stores[i], series, h.End), series)
	}
}

// A server that is removed ends its series at once. One that is lost with its collector
// leaves them, until Prometheus no longer looks back so far.
func TestServersLeave(t *testing.T) {
	race.SkipSequential(t)
	gone := 5 * time.Minute
	removed, lost := calm("removed", 2), calm("lost", 2)
	removed.Gone, lost.Gone, lost.Silently = gone, gone, true
	h := Play(t, &Story{Length: 15 * time.Minute, Servers: []Servers{calm("stays", 2), removed, lost}}, Suffixed)
	for at, want := range map[time.Duration]int{gone - 30*time.Second: 3, gone + time.Minute: 2, gone + lookback + time.Minute: 1} {
		assert.Equal(t, want, count(t, h.Stores[0], "vllm_up", h.Begin.Add(at)), "%s", at)
		assert.Equal(t, want, count(t, h.Stores[0], "sum by (instance) (vllm_num_requests_running)", h.Begin.Add(at)), "%s", at)
	}
	assert.Equal(t, 1, count(t, h.Stores[0], "vllm_diagnosis_severity", h.End))
}

// A collector that is away leaves nothing, and then goes on.
func TestTheCollectorIsAway(t *testing.T) {
	race.SkipSequential(t)
	s := &Story{Length: 30 * time.Minute, Servers: []Servers{calm("chat", 2)}, Away: []Span{{10 * time.Minute, 20 * time.Minute}}}
	h := Play(t, s, Suffixed)
	for at, want := range map[time.Duration]int{9 * time.Minute: 1, 16 * time.Minute: 0, 21 * time.Minute: 1} {
		assert.Equal(t, want, count(t, h.Stores[0], "vllm_up", h.Begin.Add(at)), "%s", at)
		assert.Equal(t, want, count(t, h.Stores[0], "otelcol_receiver_vllm_targets", h.Begin.Add(at)), "%s", at)
	}
}

// With naming wire the storage has vLLM's own names, and those of the processor.
func TestWireNames(t *testing.T) {
	race.SkipSequential(t)
	h := Play(t, &Story{Length: 5 * time.Minute, Servers: []Servers{calm("chat", 2)}, Wire: true}, Suffixed)
	for _, series := range []string{"vllm:num_requests_running", `vllm:time_to_first_token_seconds_bucket{le="2.5"}`, "vllm:prompt_tokens_total", "vllm_diagnosis_severity"} {
		assert.Equal(t, 1, count(t, h.Stores[0], series, h.End), series)
	}
	assert.Zero(t, count(t, h.Stores[0], "vllm_num_requests_running", h.End))
}

// Recorded pages are played at their times, from when their server is added.
func TestRecordedPages(t *testing.T) {
	race.SkipSequential(t)
	folder := t.TempDir()
	for i := range 40 {
		page := fmt.Sprintf("# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{engine=\"0\",model_name=\"m\"} %d\n", i)
		require.NoError(t, os.WriteFile(filepath.Join(folder, fmt.Sprintf("%03d.txt", i)), []byte(page), 0o600))
	}
	recorded := Servers{Config: vllmsim.Config{Version: "0.32.0"}, Name: "real", Recorded: folder, From: 2 * time.Minute}
	begin := time.Date(2026, 11, 28, 14, 0, 0, 0, time.UTC)
	h := Play(t, &Story{Begin: begin, Length: 5 * time.Minute, Servers: []Servers{recorded}}, Suffixed)
	require.Equal(t, begin, h.Begin.UTC())
	const running = `vllm_num_requests_running{service_version="0.32.0"}`
	assert.Zero(t, count(t, h.Stores[0], running, begin.Add(2*time.Minute)))
	assert.InDelta(t, 12, value(t, h, running, 3*time.Minute+2*time.Second), 0)
	assert.InDelta(t, 24, value(t, h, running, 4*time.Minute+2*time.Second), 0)
}

// A server that does not answer is at 0, and the rule engine waits, fires and holds as
// the rule says.
func TestRulesFireWhenTheyMust(t *testing.T) {
	race.SkipSequential(t)
	servers := calm("chat", 2)
	servers.Config.Faults = []vllmsim.Fault{{Kind: vllmsim.FaultUnreachable, At: 600, Until: 900}}
	h := Play(t, &Story{Length: 25 * time.Minute, Servers: []Servers{servers, calm("calm", 2)}}, Suffixed)
	file := filepath.Join(t.TempDir(), "rules.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
groups:
  - name: test
    rules:
      - record: test:up
        expr: vllm_up
      - alert: Down
        expr: test:up == 0
        for: 2m
        keep_firing_for: 3m
        labels: {severity: page}
        annotations: {summary: "{{ $labels.instance }} is down"}
`), 0o600))
	fired := h.Stores[0].Rules(t, h.Begin, h.End, file)
	require.Len(t, fired, 1, "%v", fired)
	assert.Equal(t, "chat-0:8000", fired[0].Labels.Get("instance"))
	near := func(want, got time.Duration) {
		assert.LessOrEqual(t, math.Abs((got - want).Seconds()), 45.0, "%s, not %s", got, want)
	}
	near(12*time.Minute, fired[0].From)
	near(18*time.Minute, fired[0].To)
	assert.False(t, fired[0].Lasts)
}

// The gateway's page has the numbers of its phases.
func TestTheGatewayCounts(t *testing.T) {
	race.SkipSequential(t)
	g := &Gateway{Model: "m", Pool: "p", Phases: []GatewayPhase{
		{Served: 10, Duration: time.Second, Ready: 3},
		{From: 5 * time.Minute, Served: 4, Refused: 6, Failed: 1, Duration: time.Second, Ready: 1, Queued: 8},
	}}
	h := Play(t, &Story{Length: 10 * time.Minute, Gateway: g, Servers: []Servers{calm("chat", 1)}}, Suffixed)
	for query, want := range map[string]float64{
		`sum(increase(inference_gateway_epp_requests_total[4m]))`:                                            4 * 240,
		`sum(increase(inference_gateway_epp_request_errors_total[4m]))`:                                      7 * 240,
		`inference_gateway_pool_endpoint_ready`:                                                              1,
		`sum(inference_gateway_epp_flow_control_queue_size)`:                                                 8,
		`sum(increase(inference_gateway_epp_request_duration_seconds_count[4m]))`:                            3 * 240,
		`sum(increase(inference_gateway_epp_request_duration_seconds_bucket{le="2"}[4m]))`:                   0.995 * 3 * 240,
		fmt.Sprintf(`sum(increase(inference_gateway_epp_request_errors_total{error_code=%q}[4m]))`, refusal): 6 * 240,
	} {
		assert.InEpsilon(t, want, value(t, h, query, 10*time.Minute), 0.02, query)
	}
}
