package vllmsim

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/surface"
)

func newServer(t *testing.T, cfg Config) *Server {
	t.Helper()
	s, err := New(cfg)
	require.NoError(t, err)
	return s
}

// every returns one configuration per dialect and version that matters.
func every() map[string]Config {
	out := map[string]Config{}
	for dialect, versions := range map[string]string{
		"v0": "0.5.0 0.6.6 0.9.1", "v1": "0.8.5 0.10.2 0.13.0 0.20.0 0.24.0 0.28.0", "v1-multiproc": "0.8.5 0.10.2 0.24.0",
		"ray-old": "0.6.3 0.6.6", "ray-new": "0.13.0 0.20.0 0.28.0", "rust": "0.24.0 0.28.0",
	} {
		for _, version := range strings.Fields(versions) {
			out[dialect+" "+version] = Config{Dialect: dialect, Version: version}
			engines := 2
			if dialect == "v0" || dialect == "ray-old" {
				engines = 1 // The first engine has no data parallel ranks.
			}
			out[dialect+" "+version+" with everything"] = Config{
				Dialect: dialect, Version: version, Engines: engines, LoRA: true, SpecDecode: true, FlopsCounters: true, APIServers: 3,
			}
			simulated := out[dialect+" "+version+" with everything"]
			simulated.Hardware, simulated.KVCacheTokens, simulated.NaNCounter = "8b-h100", 65536, true
			simulated.Transfer = engine.Transfer{Share: 0.2, Latency: 0.01, BytesPerSecond: 10e9}
			out[dialect+" "+version+" simulated"] = simulated
		}
	}
	return out
}

func parseText(t *testing.T, body []byte) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(string(body)))
	require.NoError(t, err)
	return families
}

func TestEveryBodyIsAcceptedByAPrometheusParser(t *testing.T) {
	for name, cfg := range every() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, cfg)
			for range 2 {
				body, contentType, err := s.Targets()[0].Body()
				require.NoError(t, err)
				if cfg.Dialect != "rust" {
					assert.NotEmpty(t, parseText(t, body))
				}
				assert.Positive(t, countSamples(t, body, contentType))
				s.Advance(time.Minute)
			}
		})
	}
}

// countSamples parses strictly, OpenMetrics included, and refuses duplicates.
func countSamples(t *testing.T, body []byte, contentType string) int {
	t.Helper()
	p, err := textparse.New(body, contentType, labels.NewSymbolTable(), textparse.ParserOptions{})
	require.NoError(t, err)
	seen := map[string]bool{}
	for {
		entry, err := p.Next()
		if errors.Is(err, io.EOF) {
			return len(seen)
		}
		require.NoError(t, err)
		if entry == textparse.EntrySeries {
			var l labels.Labels
			p.Labels(&l)
			require.False(t, seen[l.String()], "series twice: %s", l)
			seen[l.String()] = true
		}
	}
}

func TestCountersOfTheBodyNeverFallAndHistogramsStaySound(t *testing.T) {
	for name, cfg := range every() {
		if cfg.Dialect == "rust" {
			continue // Its text needs another parser; the numbers are the same.
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, cfg)
			before := map[string]float64{}
			for range 5 {
				s.Advance(23 * time.Second)
				body, _, err := s.Targets()[0].Body()
				require.NoError(t, err)
				for _, f := range parseText(t, body) {
					for _, m := range f.GetMetric() {
						checkMetric(t, f, m, before)
					}
				}
			}
		})
	}
}

func checkMetric(t *testing.T, f *dto.MetricFamily, m *dto.Metric, before map[string]float64) {
	t.Helper()
	key := f.GetName()
	for _, l := range m.GetLabel() {
		key += "|" + l.GetName() + "=" + l.GetValue()
	}
	value := m.GetCounter().GetValue()
	if h := m.GetHistogram(); h != nil {
		value = float64(h.GetSampleCount())
		last, lower, least, most := uint64(0), 0.0, 0.0, 0.0
		for _, b := range h.GetBucket() {
			require.GreaterOrEqual(t, b.GetCumulativeCount(), last, key)
			n := float64(b.GetCumulativeCount() - last)
			least += n * lower
			if n > 0 {
				most += n * b.GetUpperBound()
			}
			last, lower = b.GetCumulativeCount(), b.GetUpperBound()
		}
		require.True(t, math.IsInf(lower, 1), "%s ends in +Inf", key)
		require.Equal(t, h.GetSampleCount(), last, key)
		require.GreaterOrEqual(t, h.GetSampleSum(), least*(1-1e-9), "%s: sum within its buckets", key)
		require.LessOrEqual(t, h.GetSampleSum(), most*(1+1e-9), "%s: sum within its buckets", key)
	}
	require.GreaterOrEqual(t, value, before[key], "%s never falls", key)
	before[key] = value
}

func TestCreationTimesLieBetweenTheProcessAndTheScrape(t *testing.T) {
	s := newServer(t, Config{Version: "0.20.0"})
	s.Advance(time.Hour)
	body, _, err := s.Targets()[0].Body()
	require.NoError(t, err)
	families := parseText(t, body)
	started := families["process_start_time_seconds"].GetMetric()[0].GetGauge().GetValue()
	created := 0
	for name, f := range families {
		if !strings.HasSuffix(name, "_created") {
			continue
		}
		created++
		for _, m := range f.GetMetric() {
			assert.Greater(t, m.GetGauge().GetValue(), started, name)
			assert.Less(t, m.GetGauge().GetValue(), started+74+3600, name)
		}
	}
	assert.Equal(t, 35, created, "as many as a real v0.20 server has")
}

func TestEndpointsAnswerLikeTheServersOwn(t *testing.T) {
	for _, c := range []struct {
		name    string
		cfg     Config
		method  string
		path    string
		status  int
		content string
	}{
		{"metrics", Config{}, "GET", "/metrics", 200, "vllm:num_requests_running"},
		{"metrics with a slash", Config{}, "GET", "/metrics/", 200, "vllm:num_requests_running"},
		{"health", Config{}, "GET", "/health", 200, ""},
		{"ping", Config{}, "POST", "/ping", 200, ""},
		{"ping before it existed", Config{Dialect: "v0", Version: "0.6.6"}, "GET", "/ping", 404, ""},
		{"version", Config{Version: "v0.20"}, "GET", "/version", 200, `{"version":"0.20.0"}`},
		{"models", Config{Model: "a/b"}, "GET", "/v1/models", 200, `"id":"a/b"`},
		{"unknown path", Config{}, "GET", "/nothing", 404, ""},
		{"writing", Config{}, "POST", "/metrics", 405, ""},
		{"Rust knows the exact path only", Config{Dialect: "rust"}, "GET", "/metrics/", 404, ""},
		{"a Ray agent has no version", Config{Dialect: "ray-new"}, "GET", "/version", 404, ""},
		{"a Ray agent has metrics", Config{Dialect: "ray-new"}, "GET", "/metrics", 200, "ray_vllm_num_requests_running"},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer := httptest.NewRecorder()
			newServer(t, c.cfg).Targets()[0].ServeHTTP(answer, httptest.NewRequest(c.method, c.path, http.NoBody))
			assert.Equal(t, c.status, answer.Code)
			assert.Contains(t, answer.Body.String(), c.content)
		})
	}
}

func TestTargetsHaveTheSameShapeAndTheirOwnNumbersAndStart(t *testing.T) {
	s := newServer(t, Config{Targets: 3, Version: "0.20.0"})
	s.Advance(5 * time.Minute)
	starts, tokens := map[float64]bool{}, map[float64]bool{}
	var order []string
	for _, target := range s.Targets() {
		body, _, err := target.Body()
		require.NoError(t, err)
		families := parseText(t, body)
		starts[families["process_start_time_seconds"].GetMetric()[0].GetGauge().GetValue()] = true
		tokens[families["vllm:prompt_tokens_total"].GetMetric()[0].GetCounter().GetValue()] = true
		_, names := shapes(t, string(body))
		if order != nil {
			assert.Equal(t, order, names)
		}
		order = names
	}
	assert.Len(t, starts, 3)
	assert.Len(t, tokens, 3)
}

func TestWithAClockTheNumbersFollowIt(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := newServer(t, Config{Clock: func() time.Time { return now }})
	value := func() float64 {
		body, _, err := s.Targets()[0].Body()
		require.NoError(t, err)
		return parseText(t, body)["vllm:generation_tokens_total"].GetMetric()[0].GetCounter().GetValue()
	}
	assert.Zero(t, value())
	s.Advance(time.Hour)
	assert.Zero(t, value(), "the servers' own clock is not in use")
	now = now.Add(time.Minute)
	later := value()
	assert.Positive(t, later)
	now = now.Add(-time.Minute)
	assert.InDelta(t, later, value(), 0, "a clock that is set back does not take anything back")
}

func TestServeListensOnConsecutiveAddressesUntilTheContextEnds(t *testing.T) {
	s := newServer(t, Config{Targets: 3, Clock: time.Now, Start: time.Now().Add(-time.Minute)})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	urls := make(chan []string, 1)
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, "127.0.0.1:0", func(u []string) { urls <- u }) }()
	var got []string
	select {
	case got = <-urls:
	case err := <-done:
		require.NoError(t, err)
	}
	require.Len(t, got, 3)
	for i, u := range got {
		assert.Contains(t, u, []string{"127.0.0.1:", "127.0.0.2:", "127.0.0.3:"}[i])
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, u+"/metrics", http.NoBody)
		require.NoError(t, err)
		response, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		body, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, 200, response.StatusCode)
		assert.Contains(t, string(body), "vllm:generation_tokens_total")
	}
	http.DefaultClient.CloseIdleConnections()
	cancel()
	assert.NoError(t, <-done)
}

func TestOnlyLoopbackIsServed(t *testing.T) {
	for address, want := range map[string]string{
		"0.0.0.0:18000":     "is not on loopback",
		":18000":            "is not on loopback",
		"192.168.1.5:18000": "is not on loopback",
		"example.com:18000": "is not on loopback",
		"[::]:18000":        "is not on loopback",
		"127.0.0.1":         "want host:port",
		"127.0.0.1:http":    "not a number",
		"127.0.0.1:70000":   "not a number",
	} {
		listeners, err := Listen(t.Context(), address, 1)
		assert.ErrorContains(t, err, want, address)
		assert.Empty(t, listeners)
	}
	_, err := Listen(t.Context(), "127.255.255.255:0", 2)
	assert.ErrorContains(t, err, "loopback addresses end")
}

func TestAPortInUseIsReported(t *testing.T) {
	first, err := Listen(t.Context(), "localhost:0", 1)
	require.NoError(t, err)
	defer closeAll(first)
	_, err = Listen(t.Context(), first[0].Addr().String(), 1)
	assert.ErrorContains(t, err, "cannot listen on 127.0.0.1:")
}

func TestMistakenConfigurationsAreExplained(t *testing.T) {
	for want, cfg := range map[string]Config{
		"unknown dialect":         {Dialect: "v2"},
		"want three numbers":      {Version: "newest"},
		"too old":                 {Dialect: "ray-new", Version: "0.9.0"},
		"one engine per server":   {Dialect: "v0", Engines: 2},
		"engines: 65":             {Engines: 65},
		"targets: -1":             {Targets: -1},
		"cannot hold one request": {KVCacheTokens: 1000},
		"rate -1":                 {Rate: -1},
		"period":                  {Period: -time.Second},
		"unknown hardware":        {Hardware: "abacus"},
		"cannot hold":             {Hardware: "8b-h100", KVCacheTokens: 1000},
		"unknown parameter":       {Hardware: "8b-h100", Changes: []engine.Change{{Parameter: -1}}},
	} {
		_, err := New(cfg)
		assert.ErrorContains(t, err, want)
	}
	for _, dialect := range surface.Dialects() {
		_, err := New(Config{Dialect: dialect})
		assert.NoError(t, err, dialect)
	}
}
