package scrape

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-vllm/otelcol-vllm/internal/defectlog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/fetch"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/metadata"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/scrapetest"
)

const within = scrapetest.Within

var (
	render        = scrapetest.Render
	renderMetric  = scrapetest.RenderMetric
	points        = scrapetest.Points
	attributes    = scrapetest.Attributes
	kindOf        = scrapetest.KindOf
	firstScrape   = scrapetest.FirstScrape
	hangs         = scrapetest.Hangs
	metricsServer = scrapetest.Server
	gauge         = scrapetest.Gauge
	ends          = scrapetest.Ends
	unix          = scrapetest.Unix
	counter       = scrapetest.Counter
	engineCounter = scrapetest.EngineCounter
	process       = scrapetest.Process
	idle          = scrapetest.Idle
	answers       = scrapetest.Answers
	canaryPoints  = scrapetest.CanaryPoints
	fields        = scrapetest.Fields
)

// rig scrapes one server, which answers what the test says, with a clock that
// the test turns.
type rig struct {
	t       *testing.T
	scraper *Target
	group   *Group
	logs    *observer.ObservedLogs
	now     time.Time
	// ahead is by how much the server's clock is ahead of ours; without is true for a
	// server that does not report its time.
	ahead   time.Duration
	without bool

	mu          sync.Mutex
	date        string
	always      string
	body        string
	contentType string
	status      int
	version     string
	asked       map[string]int
	// metrics answers /metrics; nil answers body.
	metrics http.Handler
	// health answers /health; nil answers status.
	health http.HandlerFunc
	// load answers /load; nil answers 404.
	load http.HandlerFunc
}

// newRig returns a rig with this configuration, on which change
// may set more than the default.
func newRig(t *testing.T, change ...func(*Config)) *rig {
	t.Helper()
	r := &rig{t: t, now: firstScrape, status: http.StatusOK, asked: map[string]int{}}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	cfg := DefaultConfig()
	cfg.Client.Endpoint = server.URL
	for _, c := range change {
		c(cfg)
	}
	require.NoError(t, cfg.Validate())
	core, logs := observer.New(zap.DebugLevel)
	r.logs = logs
	settings := receivertest.NewNopSettings(metadata.Type)
	settings.Logger = zap.New(core)
	settings.BuildInfo.Version = "test"
	group, err := NewGroup(cfg, settings)
	require.NoError(t, err)
	r.group = group
	// Most tests are not about the line of the known defects, so it waits.
	group.defects = defectlog.New(settings.Logger, math.MaxInt64)
	of := Configured(cfg)[0]
	of.Now = func() time.Time { return r.now }
	r.scraper = group.NewTarget(of)
	require.NoError(t, r.scraper.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() {
		r.scraper.Stop()
		r.scraper.Close()
		group.Shutdown()
	})
	// The points name a fixed server, so that they can be compared.
	r.scraper.identity.address = &url.URL{Scheme: "http", Host: "vllm-0:8000", Path: "/metrics"}
	return r
}

func (r *rig) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked[request.URL.Path]++
	w.Header()["Date"] = nil
	if r.always != "" {
		w.Header().Set("Date", r.always)
	} else if r.date != "" {
		w.Header().Set("Date", r.date)
	}
	switch request.URL.Path {
	case "/metrics":
		if r.metrics != nil {
			r.metrics.ServeHTTP(w, request)
			return
		}
		if r.contentType != "" {
			w.Header().Set("Content-Type", r.contentType)
		}
		w.WriteHeader(r.status)
		_, _ = w.Write([]byte(r.body))
	case "/version":
		if r.version == "" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = fmt.Fprintf(w, `{"version":%q}`, r.version)
	case "/load":
		if r.load == nil {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		r.load(w, request)
	case "/health":
		if r.health != nil {
			r.health(w, request)
			return
		}
		w.WriteHeader(r.status)
	}
}

// answerHealth sets what answers /health from now on.
func (r *rig) answerHealth(with http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.health = with
}

// answerLoad sets what answers /load from now on.
func (r *rig) answerLoad(with http.HandlerFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.load = with
}

// scrape answers one scrape with a body and then turns the clock by 15 s.
func (r *rig) scrape(body string) pmetric.Metrics {
	r.t.Helper()
	r.mu.Lock()
	r.body, r.date = body, ""
	if !r.without {
		r.date = r.now.Add(r.ahead).UTC().Format(http.TimeFormat)
	}
	r.mu.Unlock()
	out, err := scrapeOnce(r.t.Context(), r.scraper)
	if err != nil {
		require.ErrorAs(r.t, err, new(*fetch.Error))
	}
	r.now = r.now.Add(15 * time.Second)
	return out
}

func scrapeOnce(ctx context.Context, s *Target) (pmetric.Metrics, error) {
	found, err := s.Scrape(ctx)
	s.Done()
	return found.Metrics, err
}

// fail answers one scrape with a status.
func (r *rig) fail(status int) pmetric.Metrics {
	r.t.Helper()
	r.mu.Lock()
	before := r.status
	r.status = status
	r.mu.Unlock()
	out := r.scrape("")
	r.mu.Lock()
	r.status = before
	r.mu.Unlock()
	return out
}

// dialect is how the reader takes the body.
func (r *rig) dialect() exposition.Dialect { return exposition.DialectOf(r.contentType) }

// logged returns the messages at a level.
func (r *rig) logged(level string) []string {
	var out []string
	for _, entry := range r.logs.All() {
		if entry.Level.String() == level {
			out = append(out, entry.Message)
		}
	}
	return out
}

// golden compares text with a checked-in file, or writes it with -update.
func golden(t *testing.T, path, got string) {
	t.Helper()
	path = filepath.Join("testdata", filepath.FromSlash(path))
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run go test ./receiver/vllmreceiver/internal/scrape -update and review the diff")
	require.Equal(t, string(want), got, "run go test ./receiver/vllmreceiver/internal/scrape -update and review the diff")
}
