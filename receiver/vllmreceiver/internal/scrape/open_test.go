package scrape

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// A server that declares no length and closes the connection inside a number:
// 2,005,000 tokens are not read as 200, which would be a restart.
func TestABodyThatIsCutInANumber(t *testing.T) {
	var mu sync.Mutex
	body := ""
	address := metricsServer(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, buffered, err := http.NewResponseController(w).Hijack()
		if !assert.NoError(t, err) {
			return
		}
		defer func() { _ = conn.Close() }()
		mu.Lock()
		defer mu.Unlock()
		_, _ = buffered.WriteString("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + body)
		_ = buffered.Flush()
	})
	r := newRig(t, func(cfg *Config) { cfg.Client.Endpoint = address })
	scrape := func(text string) pmetric.Metrics {
		mu.Lock()
		body = text
		mu.Unlock()
		out, err := scrapeOnce(t.Context(), r.scraper)
		require.NoError(t, err)
		r.now = r.now.Add(15 * time.Second)
		return out
	}
	whole := func(n int) string { return alive + engineCounter("0", fmt.Sprint(n)) }
	first, ok := sums(t, scrape(whole(2_000_000)), "vllm.prompt_tokens")["0"]
	require.True(t, ok)
	cut := whole(2_005_000)
	gone, ok := sums(t, scrape(cut[:len(cut)-5]), "vllm.prompt_tokens")["0"]
	require.True(t, ok)
	assert.True(t, gone.Flags().NoRecordedValue(), "200 is not a value")
	again, ok := sums(t, scrape(whole(2_007_000)), "vllm.prompt_tokens")["0"]
	require.True(t, ok)
	assert.InDelta(t, 2_007_000, again.DoubleValue(), 0)
	assert.Equal(t, first.StartTimestamp(), again.StartTimestamp(), "no restart")
	assert.Equal(t, 1, countLogged(r, "ended within a line"))

	// What a cut body lacks is not absent: its first value is a baseline.
	late := sums(t, scrape(whole(2_007_001)+`vllm:prompt_tokens_total{engine="1",model_name="m"} 1000`+"\n"), "vllm.prompt_tokens")["1"]
	assert.Equal(t, late.Timestamp(), late.StartTimestamp())

	// Without one whole line there is no scrape.
	_, err := scrapeOnce(t.Context(), r.scraper)
	require.NoError(t, err)
	mu.Lock()
	body = "vllm:x 1"
	mu.Unlock()
	out, _ := scrapeOnce(t.Context(), r.scraper)
	assert.Contains(t, fmt.Sprint(points(out, "vllm.up")), "0")
	assert.NotContains(t, fmt.Sprint(r.logged("warn")), "--disable-log-stats")
}
