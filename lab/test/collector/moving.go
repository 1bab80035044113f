package collector

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
)

// Moving is a stand-in vLLM server whose time advances by Step at every scrape.
type Moving struct {
	Simulated *vllmsim.Server
	Step      time.Duration
	mu        sync.Mutex
}

func (m *Moving) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.URL.Path == "/metrics" {
		m.Simulated.Advance(m.Step)
	}
	m.Simulated.Targets()[0].ServeHTTP(w, r)
}

// Busy returns the address of a moving server that has worked for five minutes.
func Busy(t *testing.T, engines int, step time.Duration) string {
	t.Helper()
	simulated, err := vllmsim.New(vllmsim.Config{Engines: engines, Rate: 5, KVCacheTokens: 24000})
	require.NoError(t, err)
	simulated.Advance(5 * time.Minute)
	server := httptest.NewServer(&Moving{Simulated: simulated, Step: step})
	t.Cleanup(server.Close)
	return server.URL
}
