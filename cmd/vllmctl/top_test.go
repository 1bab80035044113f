package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/live"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/reference"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/status"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// watched is a simulated server on loopback that keeps what it has answered.
type watched struct {
	*httptest.Server
	address string

	mu      sync.Mutex
	bodies  [][]byte
	headers http.Header
}

func watch(t *testing.T) *watched {
	t.Helper()
	return watchLoad(t, 20)
}

// watchLoad watches a server that has had so many requests a second for a minute.
func watchLoad(t *testing.T, rate float64) *watched {
	t.Helper()
	simulated, err := vllmsim.New(vllmsim.Config{
		Workload: &engine.Workload{Rate: rate, Prompt: engine.Lengths{Median: 300}, Output: engine.Lengths{Median: 50}},
		Clock:    time.Now, Start: time.Now().Add(-time.Minute), Seed: 1,
	})
	require.NoError(t, err)
	w := &watched{}
	w.Server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		simulated.Targets()[0].ServeHTTP(answer, r)
		if r.URL.Path == "/metrics" {
			w.mu.Lock()
			w.bodies, w.headers = append(w.bodies, bytes.Clone(answer.Body.Bytes())), r.Header.Clone()
			w.mu.Unlock()
		}
		out.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
		out.WriteHeader(answer.Code)
		_, _ = out.Write(answer.Body.Bytes())
	}))
	t.Cleanup(w.Close)
	w.address = strings.TrimPrefix(w.URL, "http://")
	return w
}

// closedPort is an address at which nothing listens.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

// total is the value of the only series of a family, and for a histogram its sum and count.
func total(t *testing.T, body []byte, family string) (value, count float64) {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	all, err := parser.TextToMetricFamilies(bytes.NewReader(body))
	require.NoError(t, err)
	require.Len(t, all[family].GetMetric(), 1, family)
	series := all[family].GetMetric()[0]
	switch all[family].GetType() {
	case dto.MetricType_GAUGE:
		return series.GetGauge().GetValue(), 0
	case dto.MetricType_COUNTER:
		return series.GetCounter().GetValue(), 0
	default:
		return series.GetHistogram().GetSampleSum(), float64(series.GetHistogram().GetSampleCount())
	}
}

// The expected numbers are those of the two bodies, read by Prometheus's own parser.
func TestTopOnceAsJSONHasTheNumbersOfTheBodies(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent(), goleak.IgnoreAnyFunction("net/http.(*Server).Serve"), goleak.IgnoreAnyFunction("net/http.(*conn).serve"))
	server, down := watch(t), closedPort(t)
	code, out, errs := ctl(t, "top", "--once", "--json", "--interval", "1s", "--window", "2s", "--header", "X-Test: yes", server.URL, "http://"+down)
	assert.Equal(t, status.Problem, code, "one server cannot be read")
	assert.Empty(t, errs)
	var d live.Document
	require.NoError(t, json.Unmarshal([]byte(out), &d))
	assert.Equal(t, 1, strings.Count(out, "\n"), "one document")
	require.Equal(t, "yes", server.headers.Get("X-Test"))

	require.Len(t, d.Engines, 2)
	assert.Equal(t, down, d.Engines[0].Server, "what cannot be read is first")
	e := &d.Engines[1]
	assert.Equal(t, server.address, e.Server)
	assert.Equal(t, "0", e.Engine)
	assert.False(t, e.Early)
	assert.GreaterOrEqual(t, len(server.bodies), 5, "two windows of two seconds")
	assert.LessOrEqual(t, len(server.bodies), 9, "and not much longer")
	last, begin := server.bodies[len(server.bodies)-1], len(server.bodies)-3
	grown := func(family string) float64 {
		a, _ := total(t, server.bodies[begin], family)
		b, _ := total(t, last, family)
		return b - a
	}
	// A millisecond decides whether the window of two seconds has three scrapes or four.
	seconds, ratio := 2.0, *e.Tokens / *e.Prompts
	if math.Abs(grown("vllm:generation_tokens_total")/grown("vllm:prompt_tokens_total")-ratio) > 1e-9 {
		begin, seconds = begin-1, 3
	}
	before := server.bodies[begin]
	gauge := func(family string) float64 { v, _ := total(t, last, family); return v }
	mean := func(family string) float64 {
		a, n := total(t, before, family)
		b, m := total(t, last, family)
		return (b - a) / (m - n)
	}
	assert.InDelta(t, gauge("vllm:num_requests_running"), *e.Running, 0)
	assert.InDelta(t, gauge("vllm:num_requests_waiting"), *e.Waiting, 0)
	assert.InEpsilon(t, mean("vllm:time_to_first_token_seconds"), *e.TTFT, 1e-9)
	assert.InEpsilon(t, mean("vllm:inter_token_latency_seconds"), *e.ITL, 1e-9)
	// Both are over the same time, which only the receiver knows exactly; it is about the window.
	assert.InEpsilon(t, grown("vllm:generation_tokens_total")/grown("vllm:prompt_tokens_total"), ratio, 1e-9)
	assert.InEpsilon(t, grown("vllm:generation_tokens_total")/seconds, *e.Tokens, 0.3)
	for _, s := range d.Servers {
		if s.Address == down {
			assert.False(t, s.Readable)
			assert.Equal(t, "refused", s.Failure.Kind)
			assert.Contains(t, s.Failure.Reason, "connection refused")
		} else {
			assert.True(t, s.Readable)
			assert.NotEmpty(t, s.Version)
		}
	}
}

func TestTopOnceAsText(t *testing.T) {
	t.Parallel()
	server := watch(t)
	code, out, errs := ctl(t, "top", "--once", "--interval", "1s", "--window", "2s", server.URL)
	assert.Equal(t, status.OK, code, out)
	assert.Empty(t, errs)
	assert.NotContains(t, out, "\x1b")
	assert.Contains(t, out, "1 server, 1 engine: 1 healthy\n")
	v, _ := total(t, server.bodies[len(server.bodies)-1], "vllm:num_requests_running")
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) > 5 && fields[0] == server.address {
			assert.Equal(t, "healthy", fields[2])
			assert.InDelta(t, v, atof(t, fields[4]), 0, line)
		}
	}
	assert.Contains(t, out, server.address)
}

func atof(t *testing.T, text string) (v float64) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &v))
	return v
}

func TestTopOnceWhereNothingCanBeRead(t *testing.T) {
	t.Parallel()
	code, out, _ := ctl(t, "top", "--once", "--interval", "1s", "http://"+closedPort(t))
	assert.Equal(t, status.Failed, code)
	assert.Contains(t, out, "No server can be read. The reasons are below.")
	assert.Contains(t, out, "connection refused")
}

func TestTopReadsAConfigurationWithItsAuthenticator(t *testing.T) {
	t.Parallel()
	server := watch(t)
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	require.NoError(t, os.WriteFile(token, []byte("sesame"), 0o600))
	file := filepath.Join(dir, "collector.yaml")
	require.NoError(t, os.WriteFile(file, []byte(`
extensions:
  bearertokenauth: {filename: "`+token+`"}
  bearertokenauth/backend: {token: "${env:VLLMCTL_TEST_NOT_SET}"} # Only the collector has it.
receivers: {vllm: {endpoint: "`+server.URL+`", collection_interval: 1s, auth: {authenticator: bearertokenauth}}}
processors: {vllm: {window: 2s}}
exporters: {debug: {}}
service:
  extensions: [bearertokenauth, bearertokenauth/backend]
  pipelines: {metrics: {receivers: [vllm], processors: [vllm], exporters: [debug]}}
`), 0o600))
	code, out, errs := ctl(t, "top", "--once", "--config", file)
	assert.Equal(t, status.OK, code, out+errs)
	assert.Contains(t, out, server.address)
	assert.Contains(t, out, "over the last 2s")
	assert.Equal(t, "Bearer sesame", server.headers.Get("Authorization"))

	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, bytes.ReplaceAll(text, []byte("authenticator: bearertokenauth"), []byte("authenticator: bearertokenauth/backend")), 0o600))
	code, _, errs = ctl(t, "top", "--once", "--config", file)
	assert.Equal(t, status.Failed, code)
	assert.Contains(t, errs, "extensions::bearertokenauth/backend: no bearer token provided (")
	assert.Contains(t, errs, "VLLMCTL_TEST_NOT_SET", "the reason")
}

// With --json and without --once there is one document a line, until it is interrupted.
func TestTopAsAStreamOfDocuments(t *testing.T) {
	t.Parallel()
	server := watch(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	read, write := io.Pipe()
	ended := make(chan status.Status, 1)
	var errs strings.Builder
	go func() {
		ended <- run(ctx, []string{"top", "--json", "--interval", "1s", server.URL}, strings.NewReader(""), write, &errs)
		_ = write.Close()
	}()
	lines := bufio.NewScanner(read)
	lines.Buffer(nil, 1<<20)
	var last time.Time
	for range 3 {
		require.True(t, lines.Scan())
		var d live.Document
		require.NoError(t, json.Unmarshal(lines.Bytes(), &d))
		assert.Equal(t, 1, d.Version)
		require.Len(t, d.Engines, 1)
		assert.NotNil(t, d.Engines[0].Tokens, "not before two scrapes")
		assert.True(t, d.Time.After(last))
		last = d.Time
	}
	stop()
	go func() { _, _ = io.Copy(io.Discard, read) }()
	select {
	case code := <-ended:
		assert.Equal(t, status.OK, code)
		assert.Empty(t, errs.String())
	case <-time.After(10 * time.Second):
		require.Fail(t, "it does not end")
	}
}

// A reader that goes away ends it with one sentence.
func TestTopWithoutAReader(t *testing.T) {
	t.Parallel()
	server := watch(t)
	for _, args := range [][]string{{"--json"}, {"--once"}} {
		read, write := io.Pipe()
		require.NoError(t, read.CloseWithError(errors.New("the reader is gone")))
		var errs strings.Builder
		code := run(t.Context(), append([]string{"top", "--interval", "1s", "--window", "2s", server.URL}, args...), strings.NewReader(""), write, &errs)
		assert.Equal(t, status.Failed, code, args)
		assert.Equal(t, "vllmctl: the reader is gone\n", errs.String(), args)
	}
}

func TestTopInterruptedWhileItWaits(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	time.AfterFunc(300*time.Millisecond, stop)
	var out, errs strings.Builder
	began := time.Now()
	code := run(ctx, []string{"top", "--once", "http://" + closedPort(t)}, strings.NewReader(""), &out, &errs)
	assert.Equal(t, status.Failed, code)
	assert.Less(t, time.Since(began), 4*time.Second)
	assert.Empty(t, out.String())
	assert.Equal(t, 1, strings.Count(errs.String(), "\n"), errs.String())
}

func TestTopWithWrongArguments(t *testing.T) {
	dir := t.TempDir()
	mistaken := filepath.Join(dir, "mistaken.yaml")
	require.NoError(t, os.WriteFile(mistaken, []byte("receivers: {vllm: {endpoint: a}}\nexporters: {debug: {}}\nservice: {pipelines: {metrics: {receivers: [vllm], exporters: [debug]}}}"), 0o600))
	for want, args := range map[string][]string{
		"name the servers, for example":            {"--once"},
		"either servers or --config":               {"--once", "--config", "x", "http://a:1"},
		"servers, --config or --from":              {"--once", "--from", "http://a:1", "http://b:1"},
		"--window has no effect with --from":       {"--once", "--from", "http://a:1", "--window", "5s"},
		"--interval 20ms is too short":             {"--json", "--from", "http://a:1", "--interval", "20ms"},
		"--from needs the address":                 {"--once", "--from", "ftp://a:1"},
		"--header has no effect with --config":     {"--once", "--config", "x", "--header", "A: b"},
		"--interval 0s must be longer than 0":      {"--once", "--interval", "0s", "http://a:1"},
		"--window -5s must be longer than 0":       {"--once", "--window", "-5s", "http://a:1"},
		"--interval 10ms is too short":             {"--once", "--interval", "10ms", "http://a:1"},
		"--window 1s has fewer than two scrapes":   {"--once", "--window", "1s", "http://a:1"},
		"address 2: has the scheme":                {"--once", "http://a:1", "ftp://b:1"},
		"does not exist; check the path":           {"--once", "--config", filepath.Join(dir, "missing.yaml")},
		"the configuration has mistakes":           {"--once", "--config", mistaken},
		"--timeout 0s must be longer than 0":       {"--once", "--timeout", "0s", "http://a:1"},
		"the output is not a terminal; use --once": {"http://a:1"},
		"--token-file: open":                       {"--once", "--token-file", filepath.Join(dir, "missing"), "http://a:1"},
	} {
		code, out, errs := ctl(t, append([]string{"top"}, args...)...)
		assert.Equal(t, status.Failed, code, want)
		assert.Empty(t, out, want)
		assert.Contains(t, errs, want)
		assert.True(t, strings.HasPrefix(errs, "vllmctl: "), errs)
	}
}

// The reference page takes the meanings of the keys from the comments of the fields.
func TestEachKeyOfTopHasAMeaning(t *testing.T) {
	objects, err := reference.Document("internal/live", "Document")
	require.NoError(t, err)
	var names []string
	for _, o := range objects {
		names = append(names, o.Name)
	}
	assert.ElementsMatch(t, []string{
		"Document", "ServerDocument", "FailureDocument", "EngineDocument", "ShareDocument", "SignalDocument", "QuantileDocument",
	}, names)
}
