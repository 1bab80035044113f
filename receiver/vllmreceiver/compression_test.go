package vllmreceiver

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/metadata"
)

// Each target may be asked in its own way: the setting reaches the request, and the request
// itself has no compression.
func TestCompressionIsThatOfTheTarget(t *testing.T) {
	var mu sync.Mutex
	asked := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked[r.URL.Path] = r.Header.Get("Accept-Encoding") + r.Header.Get("Content-Encoding")
		_, _ = w.Write([]byte(gauge("1")))
	}))
	defer server.Close()
	cfg, err := decode(t, `{compression: gzip, collection_interval: 1s, targets: [{endpoint: "`+server.URL+`/slow"}, {endpoint: "`+server.URL+`/near", compression: none}]}`)
	require.NoError(t, err)
	require.NoError(t, cfg.Validate())
	r, err := newReceiver(cfg, receivertest.NewNopSettings(metadata.Type), consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return asked["/slow"] != "" && asked["/near"] != ""
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, r.Shutdown(t.Context()))
	mu.Lock()
	defer mu.Unlock()
	assert.Equal(t, "gzip", asked["/slow"])
	assert.Equal(t, "identity", asked["/near"])
}
