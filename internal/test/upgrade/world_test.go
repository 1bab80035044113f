//go:build e2e

package upgrade

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
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
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/collector"
)

// serve answers on loopback until the test ends.
func serve(t *testing.T, handler http.Handler) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: collector.Patience}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return listener.Addr().String()
}

// counted is a server of which every request is known. The first slow requests of its life were
// too slow; all others were fast. A scrape reads the count and adds step fast ones after it.
type counted struct {
	mu     sync.Mutex
	born   time.Time
	fast   int
	slow   int
	step   int
	served []int
}

func (c *counted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/version":
		fmt.Fprint(w, `{"version":"0.11.0"}`)
	case "/metrics":
		c.mu.Lock()
		defer c.mu.Unlock()
		c.served = append(c.served, c.fast)
		all := c.fast + c.slow
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		fmt.Fprintf(w, `# TYPE process_start_time_seconds gauge
process_start_time_seconds %d
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m"} 0
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="m"} 0
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{engine="0",model_name="m",le="1.0"} %d
vllm:time_to_first_token_seconds_bucket{engine="0",model_name="m",le="2.5"} %d
vllm:time_to_first_token_seconds_bucket{engine="0",model_name="m",le="10.0"} %d
vllm:time_to_first_token_seconds_bucket{engine="0",model_name="m",le="+Inf"} %d
vllm:time_to_first_token_seconds_sum{engine="0",model_name="m"} %d
vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} %d
`, c.born.Unix(), c.fast, c.fast, all, all, c.fast/2+c.slow*5, all)
		c.fast += c.step
	default:
		http.NotFound(w, r)
	}
}

// change lets something happen to the server between two scrapes.
func (c *counted) change(do func(*counted)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do(c)
}

func (c *counted) scrapes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.served)
}

// backend takes OTLP, or refuses it while it is away.
type backend struct {
	away atomic.Bool
	mu   sync.Mutex
	got  []pmetric.Metrics
}

func (b *backend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if b.away.Load() {
		http.Error(w, "away", http.StatusServiceUnavailable)
		return
	}
	var reader io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		reader = unpacked
	}
	body, err := io.ReadAll(reader)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if strings.HasSuffix(r.URL.Path, "/metrics") {
		request := pmetricotlp.NewExportRequest()
		if err := request.UnmarshalProto(body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		b.mu.Lock()
		b.got = append(b.got, request.Metrics())
		b.mu.Unlock()
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// points are those that arrived, of at most this time.
func (b *backend) points(until pcommon.Timestamp) points {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := points{}
	for _, metrics := range b.got {
		all.add(metrics, 0, until)
	}
	return all
}

// points counts how often each gauge and counter arrived, by server, name, attributes and time.
type points map[string]int

func (p points) add(metrics pmetric.Metrics, since, until pcommon.Timestamp) {
	for _, rm := range metrics.ResourceMetrics().All() {
		server := instance(rm.Resource().Attributes())
		for _, scope := range rm.ScopeMetrics().All() {
			for _, m := range scope.Metrics().All() {
				var numbers pmetric.NumberDataPointSlice
				switch m.Type() {
				case pmetric.MetricTypeGauge:
					numbers = m.Gauge().DataPoints()
				case pmetric.MetricTypeSum:
					numbers = m.Sum().DataPoints()
				default:
					continue
				}
				for _, n := range numbers.All() {
					if n.Timestamp() < since || n.Timestamp() > until {
						continue
					}
					p[fmt.Sprint(server, " ", m.Name(), n.Attributes().AsRaw(), n.Timestamp(), n.DoubleValue(), n.IntValue(), n.Flags())]++
				}
			}
		}
	}
}

// written reads what the file exporter wrote.
func written(t *testing.T, file string) (all []pmetric.Metrics) {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	for line := range bytes.Lines(content) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		metrics, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(line)
		require.NoError(t, err)
		all = append(all, metrics)
	}
	return all
}

// oldBinary is the program of the release before this tree.
func oldBinary(t *testing.T) string {
	t.Helper()
	file := os.Getenv("OTELCOL_VLLM_OLD_BIN")
	if file == "" {
		if os.Getenv("OTELCOL_VLLM_UPGRADE_REQUIRED") != "" {
			require.NotEmpty(t, file, "OTELCOL_VLLM_OLD_BIN must name the binary of %s", released)
		}
		t.Skip("OTELCOL_VLLM_OLD_BIN names no binary of " + released + "; \"make upgrade\" builds it from the history and runs this test")
	}
	file, err := filepath.Abs(file)
	require.NoError(t, err)
	return file
}

// life is one run of a collector on a storage.
type life struct {
	process *collector.Process
	out     string
}

// start runs a program with a configuration and further settings.
func start(t *testing.T, program, config, out string, env map[string]string, settings ...string) *life {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	args := []string{"--config", file}
	for _, setting := range append(settings, "service::telemetry::metrics::level: none") {
		args = append(args, "--config", "yaml:"+setting)
	}
	all := map[string]string{"OUT": out}
	maps.Copy(all, env)
	l := &life{collector.Start(t, all, program, args...), out}
	l.process.WaitFor(t, "the start of all components", l.process.Ready)
	return l
}

// noErrors checks that the log has no line of the level error. While the backend is away, the
// exporter calls what it leaves in its queue on disk dropped.
func (l *life) noErrors(t *testing.T) {
	t.Helper()
	for _, line := range l.process.Errors() {
		assert.Contains(t, line, "interrupted due to shutdown")
	}
}
