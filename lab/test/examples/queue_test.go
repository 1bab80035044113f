//go:build e2e

package examples

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

// pausing is a vLLM server that can hold a scrape without an answer. The next scrape of a
// target begins only after the pipeline has accepted the one before. So while a scrape
// waits here, all answered ones have been accepted, and this one has not.
type pausing struct {
	vllmServer
	paused  atomic.Bool
	waiting atomic.Int64
}

func (s *pausing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != s.path || !s.paused.Load() {
		s.vllmServer.ServeHTTP(w, r)
		return
	}
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	<-r.Context().Done()
}

func (s *pausing) start(t *testing.T) string {
	t.Helper()
	server := &http.Server{Handler: s, ReadHeaderTimeout: collector.Patience}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return "http://" + listener.Addr().String()
}

// leaving is a backend that stops and starts again at the same address.
type leaving struct {
	backend
	// addr is known after its first start.
	addr string
	// silent accepts requests and never confirms them.
	silent atomic.Bool

	guard  sync.Mutex
	server *http.Server
}

func (l *leaving) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.backend.ServeHTTP(w, r)
	if l.silent.Load() {
		<-r.Context().Done()
	}
}

func (l *leaving) come(t *testing.T) {
	t.Helper()
	l.guard.Lock()
	defer l.guard.Unlock()
	if l.addr == "" {
		l.addr = "127.0.0.1:0"
	}
	var listener net.Listener
	// For a moment, the port may be the other end of somebody's connection.
	require.Eventually(t, func() bool {
		var err error
		listener, err = net.Listen("tcp", l.addr)
		return err == nil
	}, collector.Patience, 50*time.Millisecond)
	l.addr = listener.Addr().String()
	l.server = &http.Server{Handler: l, ReadHeaderTimeout: collector.Patience}
	go func(s *http.Server) { _ = s.Serve(listener) }(l.server)
}

func (l *leaving) leave() {
	l.guard.Lock()
	defer l.guard.Unlock()
	_ = l.server.Close()
}

// ledger counts points: by metric, attributes, time and value.
type ledger map[string]int

func (l ledger) add(metrics pmetric.Metrics) {
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, scope := range rm.ScopeMetrics().All() {
			for _, m := range scope.Metrics().All() {
				add := func(attributes pcommon.Map, at pcommon.Timestamp, value any) {
					l[fmt.Sprint(m.Name(), attributes.AsRaw(), at, value)]++
				}
				switch m.Type() {
				case pmetric.MetricTypeGauge:
					for _, p := range m.Gauge().DataPoints().All() {
						add(p.Attributes(), p.Timestamp(), p.DoubleValue()+float64(p.IntValue()))
					}
				case pmetric.MetricTypeSum:
					for _, p := range m.Sum().DataPoints().All() {
						add(p.Attributes(), p.Timestamp(), p.DoubleValue()+float64(p.IntValue()))
					}
				case pmetric.MetricTypeHistogram:
					for _, p := range m.Histogram().DataPoints().All() {
						add(p.Attributes(), p.Timestamp(), p.BucketCounts().AsRaw())
					}
				case pmetric.MetricTypeSummary:
					for _, p := range m.Summary().DataPoints().All() {
						add(p.Attributes(), p.Timestamp(), p.Count())
					}
				}
			}
		}
	}
}

// scrapes is how many scrapes the points are of.
func (l ledger) scrapes() int {
	n := 0
	for point := range l {
		if strings.HasPrefix(point, "vllm.scrape.samples") {
			n++
		}
	}
	return n
}

// arrived returns what the backend has received, confirmed or not.
func (l *leaving) arrived() ledger {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := ledger{}
	for _, metrics := range l.otlp {
		all.add(metrics)
	}
	return all
}

// scrapeTimes are the times of the scrapes that arrived, and how often each did. A
// scrape that a busy machine answered too late is one too: its vllm.up is 0.
func (l *leaving) scrapeTimes() map[pcommon.Timestamp]int {
	times := map[pcommon.Timestamp]int{}
	for _, m := range l.metrics()["vllm.up"] {
		for _, p := range m.Gauge().DataPoints().All() {
			times[p.Timestamp()]++
		}
	}
	return times
}

// accepted returns what the pipeline passed to its exporters: the file exporter is one of
// them and wrote it. A line that was cut by the end of the process is left out.
func accepted(t *testing.T, files ...string) ledger {
	t.Helper()
	all := ledger{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		for line := range bytes.Lines(content) {
			if !bytes.HasSuffix(line, []byte("\n")) {
				break
			}
			metrics, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(line)
			require.NoError(t, err)
			all.add(metrics)
		}
	}
	return all
}

// The guarantee: what the pipeline has accepted arrives at least once. It does not cover
// the scrape that is in progress when the collector ends.
func TestNothingIsLostWhileABackendIsAway(t *testing.T) {
	const refuses, silent = "refuses connections", "takes requests and never answers"
	for _, row := range []struct{ file, away, end string }{
		{"otlp-vendor.yaml", refuses, "killed"},
		{"otlp-vendor.yaml", silent, "killed"},
		{"otlp-vendor.yaml", refuses, "stopped"},
		{"otlp-vendor.yaml", silent, "stopped"},
		{"delta-vendor.yaml", refuses, "killed"},
	} {
		t.Run(row.file+"/"+row.away+"/"+row.end, func(t *testing.T) {
			t.Parallel()
			outage(t, row.file, row.away == silent, row.end == "killed")
		})
	}
}

// outage stops the backend, ends the collector, starts it again, and only then starts the
// backend again.
func outage(t *testing.T, file string, silent, killed bool) {
	t.Helper()
	vllm := &pausing{vllmServer: vllmServer{path: "/metrics"}}
	vendor := &leaving{}
	vendor.come(t)
	t.Cleanup(vendor.leave)
	dir := t.TempDir()
	env := map[string]string{
		"VLLM_ENDPOINT": vllm.start(t), "OTLP_ENDPOINT": "http://" + vendor.addr,
		"QUEUE_DIR": filepath.Join(dir, "queue"),
	}
	flush := soon
	if !killed {
		// So what it holds and has not yet tried to send is stopped too.
		flush = "exporters::otlp_http::sending_queue::batch::flush_timeout: 2s"
	}
	truth := []string{filepath.Join(dir, "first.json"), filepath.Join(dir, "second.json")}
	start := func(life int) *collector.Process {
		return startExample(t, example(file), env,
			"receivers::vllm::collection_interval: 500ms", "receivers::vllm::initial_delay: 0s",
			"receivers::vllm::timeout: 500ms",
			"exporters::otlp_http::timeout: 500ms", flush,
			"exporters::otlp_http::retry_on_failure::initial_interval: 100ms",
			"exporters::otlp_http::retry_on_failure::max_interval: 300ms",
			"exporters::file::path: "+truth[life], "exporters::file::flush_interval: 20ms",
			"service::pipelines::metrics::exporters: [otlp_http, file]")
	}
	moreScrapes := func(c *collector.Process, n int64) {
		until := vllm.scrapes.Load() + n
		c.WaitFor(t, "more scrapes", func() bool { return vllm.scrapes.Load() >= until })
	}

	first := start(0)
	first.WaitFor(t, "the first points", func() bool { return len(vendor.scrapeTimes()) > 1 })
	if silent {
		vendor.silent.Store(true)
	} else {
		vendor.leave()
	}
	moreScrapes(first, 5)
	vllm.paused.Store(true)
	first.WaitFor(t, "a scrape under way", func() bool { return vllm.waiting.Load() > 0 })
	if killed {
		first.Kill(t)
	} else {
		first.Stop(t)
	}
	before := vllm.scrapes.Load()
	confirmed := len(vendor.scrapeTimes())
	if !silent {
		require.LessOrEqual(t, confirmed, int(before)-5, "the backend was away")
	}
	vllm.paused.Store(false)

	second := start(1)
	moreScrapes(second, 3)
	if silent {
		vendor.silent.Store(false)
	} else {
		vendor.come(t)
	}
	moreScrapes(second, 2)
	vllm.paused.Store(true)
	second.WaitFor(t, "a scrape under way", func() bool { return vllm.waiting.Load() > 0 })
	all := int(vllm.scrapes.Load())
	// At most so long: what is missing then is named below.
	for until := time.Now().Add(collector.Patience / 3); time.Now().Before(until) && len(vendor.scrapeTimes()) < all; {
		time.Sleep(50 * time.Millisecond)
	}
	second.Stop(t)

	assert.GreaterOrEqual(t, len(vendor.scrapeTimes()), all, "a scrape for each answer of the server")
	arrived, want := vendor.arrived(), accepted(t, truth...)
	for point := range want {
		assert.NotZero(t, arrived[point], "lost: %s", point)
	}
	// It may lack what the kill cut, and has a failed scrape too where one was.
	assert.GreaterOrEqual(t, want.scrapes(), all-2, "the truth has nearly all scrapes")
	twice := 0
	for _, times := range vendor.scrapeTimes() {
		twice += times - 1
	}
	t.Logf("%d scrapes, of which %d before the end; %d arrived more than once", all, before, twice)
	if silent {
		assert.Positive(t, twice, "what was taken and not confirmed is sent again")
	}
	assert.Empty(t, vendor.errors())
}
