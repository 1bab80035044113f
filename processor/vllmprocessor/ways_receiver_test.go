package vllmprocessor

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
)

// received lets our receiver read the scrapes from a server on loopback. It
// reads them in a few milliseconds; the times of the points are then set to
// those of the scrapes.
func received(t *testing.T, scrapes []answer, naming vllmreceiver.Naming) []pmetric.Metrics {
	t.Helper()
	server := &replay{scrapes: scrapes, done: make(chan struct{})}
	listening := httptest.NewServer(server)
	defer listening.Close()
	factory := vllmreceiver.NewFactory()
	config := factory.CreateDefaultConfig().(*vllmreceiver.Config)
	config.Client.Endpoint = listening.URL
	config.Controller.CollectionInterval = time.Millisecond
	config.Controller.InitialDelay = 0
	config.Naming = naming
	config.CapacityFromBlocks = true
	receiver, err := factory.CreateMetrics(t.Context(), receivertest.NewNopSettings(factory.Type()), config, server)
	require.NoError(t, err)
	require.NoError(t, receiver.Start(t.Context(), componenttest.NewNopHost()))
	select {
	case <-server.done:
	case <-time.After(time.Minute):
		assert.Fail(t, "the receiver did not read the server")
	}
	require.NoError(t, receiver.Shutdown(t.Context()))
	server.mu.Lock()
	defer server.mu.Unlock()
	require.GreaterOrEqual(t, len(server.received), len(scrapes))
	out := server.received[:len(scrapes)]
	times := map[pcommon.Timestamp]pcommon.Timestamp{}
	for i, metrics := range out {
		everyPoint(metrics, func(p timed) { times[p.Timestamp()] = pcommon.NewTimestampFromTime(scrapes[i].at) })
	}
	require.Len(t, times, len(scrapes), "one time for each scrape")
	for _, metrics := range out {
		everyTime(metrics, func(at pcommon.Timestamp) pcommon.Timestamp {
			if scraped, is := times[at]; is {
				return scraped
			}
			return at
		})
	}
	return out
}

// replay answers each scrape with the next body and takes what is made of it.
type replay struct {
	scrapes []answer
	done    chan struct{}

	mu       sync.Mutex
	asked    int
	received []pmetric.Metrics
}

func (r *replay) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.URL.Path != "/metrics" {
		// No version: what does not come from our receiver has none either.
		http.NotFound(w, request)
		return
	}
	r.mu.Lock()
	answer := r.scrapes[min(r.asked, len(r.scrapes)-1)]
	r.asked++
	r.mu.Unlock()
	w.Header().Set("Content-Type", answer.contentType)
	_, _ = w.Write(answer.body)
}

func (*replay) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (r *replay) ConsumeMetrics(_ context.Context, metrics pmetric.Metrics) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := pmetric.NewMetrics()
	metrics.CopyTo(kept)
	r.received = append(r.received, kept)
	if len(r.received) == len(r.scrapes) {
		close(r.done)
	}
	return nil
}
