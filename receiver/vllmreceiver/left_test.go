package vllmreceiver

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/scrape"
)

// A series appears while its server is watched, and starts then. The target leaves discovery and returns: the series does
// not start with its process now, an hour before its own points.
func TestStartTimesDoNotGoBackWhereATargetReturns(t *testing.T) {
	t.Parallel()
	var appeared atomic.Bool
	began := time.Now().Add(-time.Hour).Unix()
	address := metricsServer(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = fmt.Fprintf(w, "process_start_time_seconds %d\nvllm:num_preemptions_total{engine=\"0\"} 5\n", began)
		if appeared.Load() {
			_, _ = fmt.Fprint(w, "vllm:generation_tokens_total{engine=\"0\"} 7\n")
		}
	})
	sink := new(consumertest.MetricsSink)
	r := start(t, sink, nil, metricsServer(t, quick))
	parsed, err := scrape.ParseEndpoint(address)
	require.NoError(t, err)
	same := scrape.Server{Address: parsed, Client: r.config.Targets[0].Client, Discovered: map[string]string{"rack": "7"}}
	// starts are the start times of a metric since the last call.
	starts := func(name string) (all []pcommon.Timestamp) {
		for _, m := range batches(sink, address) {
			for _, metric := range m.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
				if metric.Name() == name {
					all = append(all, metric.Sum().DataPoints().At(0).StartTimestamp())
				}
			}
		}
		return all
	}
	waitFor := func(name string, n int) []pcommon.Timestamp {
		assert.Eventually(t, func() bool { return len(starts(name)) >= n }, within, 5*time.Millisecond, name)
		return starts(name)
	}
	require.NoError(t, r.Add(t.Context(), same))
	waitFor("vllm.num_preemptions", 1)
	appeared.Store(true)
	first := waitFor("vllm.generation_tokens", 1)[0]
	require.Greater(t, first, pcommon.Timestamp(began*1e9))
	require.NoError(t, r.Remove(t.Context(), parsed))
	gone := len(starts("vllm.generation_tokens"))
	require.NoError(t, r.Add(t.Context(), same))
	for _, at := range waitFor("vllm.generation_tokens", gone+2)[gone:] {
		assert.Equal(t, first, at)
	}
	for _, at := range starts("vllm.num_preemptions") {
		assert.Equal(t, pcommon.Timestamp(began*1e9), at)
	}

	// Another pod at this address is another target.
	require.NoError(t, r.Remove(t.Context(), parsed))
	gone = len(starts("vllm.generation_tokens"))
	same.Discovered = map[string]string{"rack": "8"}
	require.NoError(t, r.Add(t.Context(), same))
	assert.Equal(t, pcommon.Timestamp(began*1e9), waitFor("vllm.generation_tokens", gone+1)[gone])
}
