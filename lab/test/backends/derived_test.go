//go:build e2e

package backends

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
)

// moving is a stand-in vLLM server whose time advances by seven seconds at every scrape.
type moving struct {
	simulated *vllmsim.Server
	mu        sync.Mutex
}

func (m *moving) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.URL.Path == "/metrics" {
		m.simulated.Advance(7 * time.Second)
	}
	m.simulated.Targets()[0].ServeHTTP(w, r)
}

// The increase of a series over a window, as the processor defines it: "offset" finds the
// newest sample that is at least as old as the window. Prometheus's own increase() would
// extrapolate.
const (
	increase = "(NAME - NAME offset 4500ms)"
	elapsed  = "(timestamp(NAME) - timestamp(NAME offset 4500ms))"
)

func grew(name string) string { return strings.ReplaceAll(increase, "NAME", name) }

func perSecond(name string) string {
	return "sum by (model_name, engine) (" + grew(name) + " / " + strings.ReplaceAll(elapsed, "NAME", name) + ")"
}

func quotient(over, under string) string {
	return "sum by (model_name) (" + grew(over) + ") / sum by (model_name) (" + grew(under) + ")"
}

func quantileOf(rank, histogram string) string {
	return "histogram_quantile(" + rank + ", sum by (le, model_name) (" + grew(histogram+"_bucket") + "))"
}

// derivations have each derived metric with its PromQL query over the raw series.
var derivations = []struct {
	derived, promql string
	// tolerance is relative. Prometheus keeps times in milliseconds only.
	tolerance float64
}{
	{`vllm_prefix_cache_hit_ratio{engine=""}`, quotient("vllm_prefix_cache_hits_total", "vllm_prefix_cache_queries_total"), 1e-9},
	{`vllm_time_to_first_token_mean_seconds{engine=""}`, quotient("vllm_time_to_first_token_seconds_sum", "vllm_time_to_first_token_seconds_count"), 1e-9},
	{`vllm_request_queue_time_ratio{engine=""}`, quotient("vllm_request_queue_time_seconds_sum", "vllm_e2e_request_latency_seconds_sum"), 1e-9},
	{`vllm_time_to_first_token_quantile_seconds{quantile="0.95"}`, quantileOf("0.95", "vllm_time_to_first_token_seconds"), 1e-9},
	{`vllm_inter_token_latency_quantile_seconds{quantile="0.5"}`, quantileOf("0.5", "vllm_inter_token_latency_seconds"), 1e-9},
	{`vllm_e2e_request_latency_quantile_seconds{quantile="0.99"}`, quantileOf("0.99", "vllm_e2e_request_latency_seconds"), 1e-9},
	{`vllm_generation_throughput_per_second{engine!=""}`, perSecond("vllm_generation_tokens_total"), 1e-3},
	{`vllm_prompt_throughput_per_second{engine!=""}`, perSecond("vllm_prompt_tokens_total"), 1e-3},
	{`vllm_first_token_rate_per_second{engine!=""}`, perSecond("vllm_time_to_first_token_seconds_count"), 1e-3},
}

// A real Prometheus stores the raw series and the derived ones, each with the time of its
// scrape, and computes the second from the first.
func TestDerivedValuesEqualWhatPrometheusComputes(t *testing.T) {
	t.Parallel()
	simulated, err := vllmsim.New(vllmsim.Config{Engines: 2, Rate: 5, KVCacheTokens: 24000})
	require.NoError(t, err)
	simulated.Advance(5 * time.Minute)
	server := &moving{simulated: simulated}
	vllm := httptest.NewServer(server)
	t.Cleanup(vllm.Close)
	exporter := collector.FreeAddr(t)
	prometheus, addr := collector.Prometheus(t, fmt.Sprintf("global: {scrape_interval: 150ms, scrape_timeout: 150ms}\n"+
		"scrape_configs: [{job_name: collector, static_configs: [{targets: [%q]}]}]\n", exporter))
	c := collector.Collector(t, map[string]string{"VLLM_ENDPOINT": vllm.URL, "PROMETHEUS_ADDR": exporter},
		filepath.Join(root, "examples", "quickstart.yaml"),
		"yaml:receivers::vllm::collection_interval: 1s", "yaml:receivers::vllm::timeout: 900ms",
		// It ends between two scrapes, so that their jitter does not decide.
		"yaml:processors::vllm::window: 4500ms", "yaml:exporters::prometheus::send_timestamps: true")
	var times []time.Time
	c.WaitFor(t, "ten scrapes in Prometheus", func() bool {
		times = stamps(t, addr, `vllm_num_requests_running{engine="0"}`)
		return len(times) > 10
	})
	c.Stop(t)

	compared := 0
	// Prometheus may have seen a part of the last one.
	for _, at := range times[:len(times)-1] {
		for _, d := range derivations {
			want := ask(t, addr, d.promql, at, at)
			got := ask(t, addr, "sum by (model_name, engine) ("+d.derived+")", at, at)
			for series, values := range want {
				for when, value := range values {
					other, found := got[series][when]
					assert.True(t, found, "%s%s at %s", d.derived, series, when)
					assert.LessOrEqual(t, math.Abs(other-value), d.tolerance*math.Abs(value), "%s%s at %s is %v, and Prometheus says %v", d.derived, series, when, other, value)
					compared++
				}
			}
		}
	}
	t.Logf("%d values at %d times compared", compared, len(times)-1)
	assert.Greater(t, compared, 4*len(derivations))
	prometheus.Stop(t)
}

// stamps returns the times of the samples of a series in the last minute.
func stamps(t *testing.T, addr, series string) []time.Time {
	t.Helper()
	body := collector.Get(t, "http://"+addr+"/api/v1/query?"+url.Values{"query": {series + "[1m]"}}.Encode())
	var decoded struct {
		Data struct {
			Result []struct{ Values [][2]any }
		}
	}
	require.NoError(t, json.Unmarshal(body, &decoded))
	var times []time.Time
	for _, series := range decoded.Data.Result {
		for _, pair := range series.Values {
			seconds, ok := pair[0].(float64)
			require.True(t, ok)
			times = append(times, time.UnixMilli(int64(math.Round(seconds*1000))))
		}
	}
	return times
}
