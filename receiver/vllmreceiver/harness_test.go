package vllmreceiver

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-vllm/otelcol-vllm/internal/defectlog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/fetch"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/metadata"
)

// firstScrape is the time of a rig's first scrape. It lies after the start
// times in the project's own bodies and in the captures.
var firstScrape = time.Date(2027, time.January, 1, 0, 0, 0, 0, time.UTC)

// rig scrapes one server, which answers what the test says, with a clock that
// the test turns.
type rig struct {
	t        *testing.T
	scraper  *targetScraper
	receiver *vllmReceiver
	logs     *observer.ObservedLogs
	now      time.Time
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
	// health answers /health; nil answers status.
	health http.HandlerFunc
	// load answers /load; nil answers 404.
	load http.HandlerFunc
}

// newRig returns a rig for a receiver with this configuration, on which change
// may set more than the default.
func newRig(t *testing.T, change ...func(*Config)) *rig {
	t.Helper()
	r := &rig{t: t, now: firstScrape, status: http.StatusOK, asked: map[string]int{}}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	cfg := createDefaultConfig().(*Config)
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
	receiver, err := newReceiver(cfg, settings, consumertest.NewNop())
	require.NoError(t, err)
	r.receiver = receiver
	// Most tests are not about the line of the known defects, so it waits.
	receiver.shared.defects = defectlog.New(settings.Logger, math.MaxInt64)
	r.scraper = receiver.newScraper(configuredTargets(cfg)[0])
	r.scraper.now = func() time.Time { return r.now }
	require.NoError(t, r.scraper.start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() {
		r.scraper.shutdown()
		require.NoError(t, receiver.Shutdown(t.Context()))
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
	out, err := r.scraper.scrape(r.t.Context())
	if err != nil {
		require.ErrorAs(r.t, err, new(*fetch.Error))
	}
	r.now = r.now.Add(15 * time.Second)
	return out
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

// render writes metrics as one line for each point, so that a golden file reads
// as a table and its diff as a list of what changed.
func render(metrics pmetric.Metrics) string {
	var b strings.Builder
	for _, rm := range metrics.ResourceMetrics().All() {
		fmt.Fprintf(&b, "resource %s\n", attributes(rm.Resource().Attributes()))
		for _, sm := range rm.ScopeMetrics().All() {
			fmt.Fprintf(&b, "scope %s %s\n", sm.Scope().Name(), sm.Scope().Version())
			for _, m := range sm.Metrics().All() {
				for _, line := range renderMetric(m) {
					fmt.Fprintf(&b, "%s %s %s %s\n", m.Name(), kindOf(m), m.Unit(), line)
				}
			}
		}
	}
	return b.String()
}

func kindOf(m pmetric.Metric) string {
	kind := strings.ToLower(m.Type().String())
	switch m.Type() {
	case pmetric.MetricTypeSum:
		if m.Sum().IsMonotonic() {
			kind = "counter"
		}
		if m.Sum().AggregationTemporality() != pmetric.AggregationTemporalityCumulative {
			kind += "?"
		}
	case pmetric.MetricTypeHistogram:
		if m.Histogram().AggregationTemporality() != pmetric.AggregationTemporalityCumulative {
			kind += "?"
		}
	}
	return kind
}

func renderMetric(m pmetric.Metric) []string {
	var out []string
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		for _, p := range m.Gauge().DataPoints().All() {
			out = append(out, renderNumber(p))
		}
	case pmetric.MetricTypeSum:
		for _, p := range m.Sum().DataPoints().All() {
			out = append(out, renderNumber(p))
		}
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			line := attributes(p.Attributes()) + times(p.StartTimestamp(), p.Timestamp())
			if p.Flags().NoRecordedValue() {
				out = append(out, line+" end")
				continue
			}
			line += fmt.Sprintf(" count=%d", p.Count())
			if p.HasSum() {
				line += fmt.Sprintf(" sum=%v", p.Sum())
			}
			for i, count := range p.BucketCounts().All() {
				if i < p.ExplicitBounds().Len() {
					line += fmt.Sprintf(" %v:%d", p.ExplicitBounds().At(i), count)
				} else {
					line += fmt.Sprintf(" inf:%d", count)
				}
			}
			out = append(out, line+exemplars(p.Exemplars()))
		}
	case pmetric.MetricTypeSummary:
		for _, p := range m.Summary().DataPoints().All() {
			line := attributes(p.Attributes()) + times(p.StartTimestamp(), p.Timestamp())
			if p.Flags().NoRecordedValue() {
				out = append(out, line+" end")
				continue
			}
			line += fmt.Sprintf(" count=%d sum=%v", p.Count(), p.Sum())
			for _, q := range p.QuantileValues().All() {
				line += fmt.Sprintf(" q%v:%v", q.Quantile(), q.Value())
			}
			out = append(out, line)
		}
	}
	return out
}

func renderNumber(p pmetric.NumberDataPoint) string {
	line := attributes(p.Attributes()) + times(p.StartTimestamp(), p.Timestamp())
	if p.Flags().NoRecordedValue() {
		return line + " end"
	}
	return line + fmt.Sprintf(" %v", p.DoubleValue()) + exemplars(p.Exemplars())
}

func exemplars(es pmetric.ExemplarSlice) string {
	line := ""
	for _, e := range es.All() {
		line += fmt.Sprintf(" exemplar=%v%s", e.DoubleValue(), attributes(e.FilteredAttributes()))
		if !e.TraceID().IsEmpty() {
			line += " trace=" + e.TraceID().String()
		}
	}
	return line
}

func attributes(m pcommon.Map) string {
	var out []string
	for name, value := range m.All() {
		out = append(out, fmt.Sprintf("%s=%q", name, value.AsString()))
	}
	slices.Sort(out)
	return "{" + strings.Join(out, ",") + "}"
}

// times writes a start time as an absolute time and the scrape's as seconds
// since the first.
func times(start, at pcommon.Timestamp) string {
	line := fmt.Sprintf(" @%v", at.AsTime().Sub(firstScrape).Seconds())
	if start != 0 {
		line = fmt.Sprintf(" from %s", start.AsTime().Format("2006-01-02T15:04:05.000000")) + line
	}
	return line
}

// points returns the rendered points of one metric, without its name.
func points(metrics pmetric.Metrics, name string) []string {
	var out []string
	for _, line := range strings.Split(render(metrics), "\n") {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			out = append(out, rest)
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
	require.NoError(t, err, "run go test ./receiver/vllmreceiver -update and review the diff")
	require.Equal(t, string(want), got, "run go test ./receiver/vllmreceiver -update and review the diff")
}
