package vllmreceiver

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/metadata"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/scrape"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/scrapetest"
)

const within = scrapetest.Within

var (
	render        = scrapetest.Render
	renderMetric  = scrapetest.RenderMetric
	points        = scrapetest.Points
	attributes    = scrapetest.Attributes
	firstScrape   = scrapetest.FirstScrape
	metricsServer = scrapetest.Server
	gauge         = scrapetest.Gauge
	ends          = scrapetest.Ends
	unix          = scrapetest.Unix
	counter       = scrapetest.Counter
	process       = scrapetest.Process
	idle          = scrapetest.Idle
	answers       = scrapetest.Answers
	hangs         = scrapetest.Hangs
	canaryPoints  = scrapetest.CanaryPoints
	fields        = scrapetest.Fields
)

func decode(t *testing.T, text string) (*Config, error) {
	t.Helper()
	raw, err := confmap.NewRetrievedFromYAML([]byte(text))
	require.NoError(t, err)
	read, err := raw.AsConf()
	require.NoError(t, err)
	cfg := scrape.DefaultConfig()
	return cfg, read.Unmarshal(cfg)
}

// rig is a receiver with one server, which answers what the test says, and a clock that the test
// turns.
type rig struct {
	t        *testing.T
	receiver *vllmReceiver
	scraper  *scrape.Target
	logs     *observer.ObservedLogs
	now      time.Time

	mu            sync.Mutex
	body, version string
	status        int
}

func newRig(t *testing.T, change ...func(*Config)) *rig {
	t.Helper()
	r := &rig{t: t, now: firstScrape, status: http.StatusOK}
	cfg := scrape.DefaultConfig()
	cfg.Client.Endpoint = metricsServer(t, r.answer)
	for _, c := range change {
		c(cfg)
	}
	core, logs := observer.New(zap.DebugLevel)
	r.logs = logs
	settings := receivertest.NewNopSettings(metadata.Type)
	settings.Logger = zap.New(core)
	var err error
	r.receiver, err = newReceiver(cfg, settings, consumertest.NewNop())
	require.NoError(t, err)
	server := scrape.Configured(cfg)[0]
	server.Now = func() time.Time { return r.now }
	r.scraper = r.receiver.scrapes.NewTarget(server)
	require.NoError(t, r.scraper.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() {
		r.scraper.Close()
		require.NoError(t, r.receiver.Shutdown(t.Context()))
	})
	return r
}

func (r *rig) answer(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.Header()["Date"] = nil // That of the machine is not that of the test.
	switch {
	case request.URL.Path == "/metrics":
		w.WriteHeader(r.status)
		_, _ = fmt.Fprint(w, r.body)
	case request.URL.Path == "/version" && r.version != "":
		_, _ = fmt.Fprintf(w, `{"version":%q}`, r.version)
	default:
		http.NotFound(w, request)
	}
}
