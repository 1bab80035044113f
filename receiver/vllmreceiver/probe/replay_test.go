package probe

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/scrape"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/scrapetest"
)

// sent is the metrics as they are sent, so that no difference can hide in how they are shown.
func sent(t *testing.T, metrics pmetric.Metrics) string {
	t.Helper()
	data, err := (&pmetric.ProtoMarshaler{}).MarshalMetrics(metrics)
	require.NoError(t, err)
	return string(data)
}

// lines are the points without the kind of a failure, which a history does not have.
func lines(metrics pmetric.Metrics) []string {
	return slices.DeleteFunc(slices.Sorted(strings.SplitSeq(scrapetest.Render(metrics), "\n")), func(line string) bool {
		return strings.HasPrefix(line, "vllm.scrape.failure ")
	})
}

// The same bodies give the same points to the byte, whether the receiver fetches them or
// they are replayed: through growth, restarts, failures, changed versions and junk.
func TestAReplayEmitsWhatALiveScrapeEmits(t *testing.T) {
	var answer, asked string
	status, now := http.StatusOK, scrapetest.FirstScrape
	cfg := config()
	cfg.Client.Endpoint = scrapetest.Server(t, func(w http.ResponseWriter, request *http.Request) {
		w.Header()["Date"] = nil // A history has none.
		if request.URL.Path == "/version" {
			_, _ = fmt.Fprintf(w, `{"version":%q}`, asked)
			return
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	})
	group, err := newGroup(cfg, componenttest.NewNopTelemetrySettings())
	require.NoError(t, err)
	server := scrape.Configured(cfg)[0]
	server.Now = func() time.Time { return now }
	target := group.NewTarget(server)
	require.NoError(t, target.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { target.Stop(); target.Close() })
	scrapeLive := func() pmetric.Metrics {
		found, _ := target.Scrape(t.Context())
		target.Done()
		return found.Metrics
	}
	replays, err := NewReplays(cfg)
	require.NoError(t, err)
	replay, err := replays.Target(cfg.Client.Endpoint, nil)
	require.NoError(t, err)
	t.Cleanup(replay.Close)

	body := func(name string) string {
		text, err := os.ReadFile("../../../testdata/v1-0.20.0/" + name)
		require.NoError(t, err)
		return string(text)
	}
	points, bytes := 0, 0
	step := func(name, text, version string) {
		t.Helper()
		answer, asked = text, version
		live, again := scrapeLive(), replay.Scrape(now, []byte(text), version)
		now = now.Add(15 * time.Second)
		// The ends of vanished series have no order.
		require.Equal(t, lines(live), lines(again), name)
		if !strings.Contains(scrapetest.Render(live), " end\n") {
			require.Equal(t, sent(t, live), sent(t, again), name)
			bytes++
		}
		points += live.DataPointCount()
	}
	first, later := body("metrics.txt"), body("metrics-2.txt")
	step("first", first, "0.20.0")
	for i := range 12 {
		step(fmt.Sprint("later ", i), fmt.Sprintf("%svllm:lately_total %d\n", later, i*i), "0.20.0")
	}
	step("restart", first, "0.21.0")
	step("junk", "<html>", "0.21.0")
	step("empty", "", "0.21.0")
	step("after junk", later, "0.21.0")
	step("a series less", "vllm:num_requests_running{model_name=\"m\"} 1\n", "0.21.0")
	step("NaN and infinity", "vllm:num_requests_running{model_name=\"m\"} NaN\nvllm:prompt_tokens_total{model_name=\"m\"} +Inf\n", "")
	assert.Greater(t, points, 700)
	assert.GreaterOrEqual(t, bytes, 6)

	// The reason is not recorded; all else is the same.
	status = http.StatusInternalServerError
	live, again := scrapeLive(), replay.Fail(now, "")
	status = http.StatusOK
	assert.Contains(t, scrapetest.Render(again), fmt.Sprintf("vllm.up gauge {state} {} @%v 0\n", now.Sub(scrapetest.FirstScrape).Seconds()))
	assert.Equal(t, lines(live), lines(again))
	assert.Contains(t, scrapetest.Render(replay.Fail(now, "refused")), `outcome="refused"`)
	step("after a failure", later, "0.21.0")
	ends := replay.End(now)
	assert.Positive(t, ends.DataPointCount())
	assert.Contains(t, scrapetest.Render(ends), " end\n")
}

func TestAReplayNeedsAnAddress(t *testing.T) {
	replays, err := NewReplays(config())
	require.NoError(t, err)
	_, err = replays.Target("vllm-0", nil)
	require.ErrorContains(t, err, "endpoint: has no scheme")
}

func TestAReplayReadsOpenMetrics(t *testing.T) {
	replays, err := NewReplays(config())
	require.NoError(t, err)
	replay, err := replays.Target("http://vllm-0:8000", nil)
	require.NoError(t, err)
	t.Cleanup(replay.Close)
	const body = "# TYPE vllm:lately counter\nvllm:lately_total 7 1798761600.5\n"
	points := func(body string) []string {
		return scrapetest.Points(replay.Scrape(scrapetest.FirstScrape, []byte(body), ""), "vllm.lately")
	}
	assert.Empty(t, points(body), "the text format has no fractions of a time")
	assert.Equal(t, []string{"counter  {} from 2027-01-01T00:00:00.000000 @0 7"}, points(body+"# EOF\n"))
}
