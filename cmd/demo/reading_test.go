package main

import (
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// twoEngines is what the exporter would offer for one server with two engines,
// of which only the gauges of the second differ.
const twoEngines = `
# TYPE vllm_up gauge
vllm_up{instance="a"} 1 1700000010000
vllm_up{instance="b"} 0 1700000010000
# TYPE vllm_num_requests_running gauge
vllm_num_requests_running{engine="0"} 3 1700000010000
vllm_num_requests_running{engine="1"} 4 1700000010500
# TYPE vllm_kv_cache_utilization_ratio gauge
vllm_kv_cache_utilization_ratio{engine="0"} 0.25 1700000010000
vllm_kv_cache_utilization_ratio{engine="1"} 0.75 1700000010000
# TYPE vllm_generation_tokens_total counter
vllm_generation_tokens_total{engine="0"} 1000 1700000010000
vllm_generation_tokens_total{engine="1"} 500 1700000010000
# TYPE vllm_time_to_first_token_seconds histogram
vllm_time_to_first_token_seconds_bucket{engine="0",le="+Inf"} 4 1700000010000
vllm_time_to_first_token_seconds_sum{engine="0"} 1 1700000010000
vllm_time_to_first_token_seconds_count{engine="0"} 4 1700000010000
`

func TestEnginesAreAddedUpAndTheFullestCacheCounts(t *testing.T) {
	now, err := interpret(strings.NewReader(twoEngines))
	require.NoError(t, err)

	assert.Equal(t, 1, now.up)
	assert.Equal(t, 2, now.targets)
	assert.Equal(t, 7.0, now.running)
	assert.Equal(t, 0.75, now.kvCache)
	assert.Equal(t, 1500.0, now.generation)
	assert.Equal(t, totals{sum: 1, count: 4}, now.firstToken)
	assert.Equal(t, time.UnixMilli(1700000010500), now.at, "the newest sample dates the reading")
	assert.True(t, math.IsNaN(now.waiting), "what is not in the body is NaN, not 0")
}

func TestNothingIsReadBeforeTheFirstScrape(t *testing.T) {
	for name, body := range map[string]string{
		"an empty body":              "",
		"only the target's up gauge": "# TYPE vllm_up gauge\nvllm_up 0\n",
		"no Prometheus text at all":  "<html>",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := interpret(strings.NewReader(body))
			assert.Error(t, err)
		})
	}
}

func TestAnErrorOfTheEndpointIsReported(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	r := newReader(server.URL)

	_, err := r.read(t.Context())

	require.ErrorContains(t, err, "404")
	assert.Equal(t, err, r.lastError)
}

func TestAReadingWithoutTimestampsIsDatedByTheClock(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("# TYPE vllm_num_requests_running gauge\nvllm_num_requests_running 2\n"))
	}))
	defer server.Close()

	now, err := newReader(server.URL).read(t.Context())

	require.NoError(t, err)
	assert.WithinDuration(t, time.Now(), now.at, time.Minute)
}
