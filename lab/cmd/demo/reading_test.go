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

// twoEngines is what the exporter would offer for one server with two engines.
const twoEngines = `
# TYPE vllm_num_requests_running gauge
vllm_num_requests_running{engine="0"} 3 1700000010000
vllm_num_requests_running{engine="1"} 4 1700000010500
# TYPE vllm_kv_cache_utilization_ratio gauge
vllm_kv_cache_utilization_ratio{engine="0"} 0.25 1700000010000
vllm_kv_cache_utilization_ratio{engine="1"} 0.75 1700000010000
# TYPE vllm_generation_throughput_per_second gauge
vllm_generation_throughput_per_second{engine="0"} 1000 1700000010000
vllm_generation_throughput_per_second{engine="1"} 500 1700000010000
# TYPE vllm_time_to_first_token_mean_seconds gauge
vllm_time_to_first_token_mean_seconds{engine="0"} 1 1700000010000
vllm_time_to_first_token_mean_seconds{engine="1"} 3 1700000010000
vllm_time_to_first_token_mean_seconds{} 1.5 1700000010000
# TYPE vllm_inter_token_latency_mean_seconds gauge
vllm_inter_token_latency_mean_seconds{instance="a"} 0.1 1700000010000
vllm_inter_token_latency_mean_seconds{instance="b"} 0.2 1700000010000
`

func TestEnginesArePutTogetherAsTheirNumbersAllow(t *testing.T) {
	now, err := interpret(strings.NewReader(twoEngines))
	require.NoError(t, err)

	assert.Equal(t, 7.0, now.running, "requests are added up")
	assert.Equal(t, 0.75, now.kvCache, "the fullest cache counts")
	assert.Equal(t, 1500.0, now.generation, "rates are added up")
	assert.Equal(t, 1.5, now.ttft, "the mean over engines is the processor's")
	assert.True(t, math.IsNaN(now.itl), "the means of two servers cannot be put together")
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
