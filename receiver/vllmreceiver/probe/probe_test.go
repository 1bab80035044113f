package probe

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/scrape"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/scrapetest"
)

func config() *vllmreceiver.Config {
	return vllmreceiver.NewFactory().CreateDefaultConfig().(*vllmreceiver.Config)
}

// probed reads a server some times with a probe.
func probed(t *testing.T, handler http.Handler, times int, change ...func(*vllmreceiver.Config)) (*Probe, []*Reading) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	cfg := config()
	cfg.Client.Endpoint = server.URL
	for _, c := range change {
		c(cfg)
	}
	probes, err := New(cfg, componenttest.NewNopTelemetrySettings())
	require.NoError(t, err)
	require.Len(t, probes, 1)
	require.NoError(t, probes[0].Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(probes[0].Close)
	var out []*Reading
	for range times {
		out = append(out, probes[0].Read(t.Context()))
	}
	return probes[0], out
}

// probedServer answers as a vLLM server with one counter and a histogram.
type probedServer struct {
	version string
	health  int
	tokens  int
	date    string
	// host is that of the last request.
	host string
}

func (s *probedServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.host = r.Host
	switch r.URL.Path {
	case "/version":
		_, _ = fmt.Fprintf(w, `{"version":%q}`, s.version)
	case "/health":
		w.WriteHeader(s.health)
	case "/load":
		http.NotFound(w, r)
	default:
		s.tokens += 10
		if s.date != "" {
			w.Header().Set("Date", s.date)
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = fmt.Fprintf(w, "process_start_time_seconds 1700000000\n# TYPE vllm:generation_tokens_total counter\nvllm:generation_tokens_total{engine=\"0\"} %d\n"+
			"# TYPE vllm:time_to_first_token_seconds histogram\nvllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"0.5\"} 1\n"+
			"vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"+Inf\"} 2\nvllm:time_to_first_token_seconds_sum{engine=\"0\"} 1\nvllm:time_to_first_token_seconds_count{engine=\"0\"} 2\n"+
			"vllm:odd 1\nvllm:odd 2\nvllm:bad{ 1\n", s.tokens)
	}
}

func TestAProbeReportsWhatTheReceiverFinds(t *testing.T) {
	server := &probedServer{version: "0.20.0", health: http.StatusServiceUnavailable, date: "Thu, 01 Jan 2026 00:00:00 GMT"}
	p, readings := probed(t, server, 2)
	assert.Equal(t, server.host, p.Name)
	assert.Equal(t, "http", p.Scheme)
	assert.False(t, p.Credentials)
	assert.Equal(t, 10*time.Second, p.Timeout)
	for i, r := range readings {
		assert.Equal(t, "ok", r.Outcome)
		assert.Equal(t, "0.20.0", r.Version)
		assert.Equal(t, http.StatusServiceUnavailable, r.Health)
		assert.True(t, r.HealthAsked)
		assert.True(t, r.IsServer)
		assert.Empty(t, r.Kind)
		assert.Equal(t, "text", r.Dialect)
		assert.Equal(t, 1, r.Duplicates)
		assert.Equal(t, map[string]int{"bad_labels": 1}, r.BadLines)
		assert.Equal(t, 11, r.FirstBad)
		assert.Equal(t, int64(1700000000), r.ProcessStart.Unix())
		assert.Equal(t, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), r.Metrics.ServerTime)
		assert.Equal(t, http.StatusOK, r.Metrics.Status)
		assert.Equal(t, "process_start_time", string(r.Metrics.Begin[:18]))
		assert.Positive(t, r.Metrics.Connect, "each read has a connection of its own, so that another replica can answer")
		assert.Positive(t, r.Metrics.FirstByte)
		assert.Zero(t, r.Metrics.TLS)
		assert.Zero(t, r.Redirects)
		assert.Equal(t, []string{"vllm:odd"}, r.Unknown)
		assert.Contains(t, r.Families, Family{Name: "vllm:time_to_first_token_seconds", Source: "vllm:time_to_first_token_seconds", Type: "histogram", Series: 1, Bounds: []float64{0.5}})
		value := 0.0
		for _, rm := range r.Emitted.ResourceMetrics().All() {
			for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
				if m.Name() == "vllm.generation_tokens" {
					value = m.Sum().DataPoints().At(0).DoubleValue()
				}
			}
		}
		assert.Equal(t, float64(10*(i+1)), value)
	}
	assert.Equal(t, http.StatusOK, readings[0].VersionStatus)
	assert.Zero(t, readings[1].VersionStatus, "the version is asked once in a run of the process")
}

// A configuration that asks for the health does not make the request twice.
func TestAProbeAsksForTheHealthOnce(t *testing.T) {
	asked := 0
	server := &probedServer{version: "0.20.0", health: http.StatusOK}
	_, readings := probed(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/health" {
			asked++
		}
		server.ServeHTTP(w, r)
	}), 1, func(c *vllmreceiver.Config) { c.HealthCheck = true })
	assert.Equal(t, http.StatusOK, readings[0].Health)
	assert.Equal(t, 1, asked)
}

// Unlike the receiver, a probe asks once for each read, and shows a 0 as well.
func TestAProbeAsksForTheLoad(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]float64{`{"server_load":3}`: 3, `{"server_load":0}`: 0, `<html>`: -1} {
		server := &probedServer{version: "0.20.0", health: http.StatusOK}
		_, readings := probed(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/load" {
				_, _ = io.WriteString(w, answer)
				return
			}
			server.ServeHTTP(w, r)
		}), 2)
		for _, r := range readings {
			assert.Equal(t, "/metrics", r.Metrics.Path, "the exchange of the metrics, not of the load before")
			assert.Equal(t, http.StatusOK, r.Health)
			if want < 0 {
				assert.Nil(t, r.Load, answer)
			} else if assert.NotNil(t, r.Load, answer) {
				assert.InDelta(t, want, *r.Load, 0)
			}
		}
	}
}

func TestAProbeDoesNotAskForALoadThatIsOff(t *testing.T) {
	t.Parallel()
	off := false
	server := &probedServer{version: "0.20.0", health: http.StatusOK}
	_, readings := probed(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.NotEqual(t, "/load", r.URL.Path)
		server.ServeHTTP(w, r)
	}), 1, func(c *vllmreceiver.Config) {
		c.Metrics = map[string]vllmreceiver.MetricConfig{"vllm.server_load": {Enabled: &off}}
	})
	assert.Nil(t, readings[0].Load)
}

func TestAProbeCountsRedirects(t *testing.T) {
	server := &probedServer{version: "0.20.0", health: http.StatusOK}
	_, readings := probed(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/metrics":
			http.Redirect(w, r, "/metrics/", http.StatusFound)
		case "/version":
			http.Redirect(w, r, "/version/", http.StatusFound)
		default:
			server.ServeHTTP(w, r)
		}
	}), 1)
	assert.Equal(t, 1, readings[0].Redirects)
	assert.Equal(t, "/metrics/", readings[0].Metrics.Path)
	assert.Equal(t, http.StatusOK, readings[0].Metrics.Status)
}

func TestAProbeOfAServerThatRefuses(t *testing.T) {
	p, readings := probed(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "no", http.StatusUnauthorized)
	}), 1, func(c *vllmreceiver.Config) {
		c.Client.Headers = configopaque.MapList{{Name: "Authorization", Value: "secret"}}
		c.Client.TLS.InsecureSkipVerify = true
	})
	assert.True(t, p.Credentials)
	assert.True(t, p.Skips)
	r := readings[0]
	assert.Equal(t, "unauthorized", r.Outcome)
	assert.Contains(t, r.Message, "401")
	assert.Equal(t, http.StatusUnauthorized, r.Metrics.Status)
	assert.False(t, r.HealthAsked)
	assert.False(t, r.IsServer)
	assert.Positive(t, r.Emitted.DataPointCount(), "vllm.up is 0")
}

func TestAProbeThatIsCanceledIsNoSuccess(t *testing.T) {
	server := httptest.NewServer(&probedServer{version: "0.20.0"})
	defer server.Close()
	cfg := config()
	cfg.Client.Endpoint = server.URL
	probes, err := New(cfg, componenttest.NewNopTelemetrySettings())
	require.NoError(t, err)
	require.NoError(t, probes[0].Start(t.Context(), componenttest.NewNopHost()))
	defer probes[0].Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	assert.Equal(t, "canceled", probes[0].Read(ctx).Outcome)
}

// Two processes that answer in turns are seen by the second read.
func TestAProbeSeesAnotherProcess(t *testing.T) {
	n := 0
	_, readings := probed(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" {
			http.NotFound(w, r)
			return
		}
		n++
		_, _ = fmt.Fprintf(w, "process_start_time_seconds %d\n# TYPE vllm:generation_tokens_total counter\nvllm:generation_tokens_total %d\n", 1700000000-n*1000, 100/n)
	}), 2)
	assert.Positive(t, readings[1].Dropped["other_process"])
	assert.NotEqual(t, readings[0].ProcessStart, readings[1].ProcessStart)
	assert.Equal(t, http.StatusNotFound, readings[0].VersionStatus)
}

func TestDiscoverFindsTheTargetsOfAList(t *testing.T) {
	list := filepath.Join(t.TempDir(), "targets.json")
	require.NoError(t, os.WriteFile(list, []byte(`[{"targets":["127.0.0.1:1","127.0.0.1:2","127.0.0.1:3"],"labels":{"zone":"a"}}]`), 0o600))
	cfg := discovering(t, "file_sd_configs: [{files: ["+list+"]}]", func(c *vllmreceiver.Config) {
		c.Targets = []vllmreceiver.TargetConfig{{Client: c.Client}}
		c.Targets[0].Client.Endpoint = "http://127.0.0.1:2"
		c.Limits.Targets = 2
	})
	began := time.Now()
	found, err := Discover(t.Context(), cfg, componenttest.NewNopTelemetrySettings(), 20*time.Second)
	require.NoError(t, err)
	assert.Less(t, time.Since(began), 15*time.Second, "it does not wait until the end where it has found something")
	assert.Equal(t, 1, found.Over)
	require.Len(t, found.Probes, 1, "one is configured, and one is above the limit")
	assert.Equal(t, "127.0.0.1:1", found.Probes[0].Name)
	require.Len(t, found.Warnings, 1)
	assert.Contains(t, found.Warnings[0], "limits::targets")
}

func TestDiscoverReportsAListThatCannotBeRead(t *testing.T) {
	list := filepath.Join(t.TempDir(), "targets.json")
	require.NoError(t, os.WriteFile(list, []byte(`nonsense`), 0o600))
	found, err := Discover(t.Context(), discovering(t, "file_sd_configs: [{files: ["+list+"]}]"), componenttest.NewNopTelemetrySettings(), 500*time.Millisecond)
	require.NoError(t, err)
	assert.Empty(t, found.Probes)
	assert.NotEmpty(t, found.Warnings)
}

func TestDiscoverFailsWhereItCanNeverWork(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	_, err := Discover(t.Context(), discovering(t, "kubernetes: {selector: a=b}"), componenttest.NewNopTelemetrySettings(), time.Second)
	assert.ErrorContains(t, err, "not a pod")
}

func TestPermissionsAreThoseOfTheDiscovery(t *testing.T) {
	type want struct{ group, resource, namespace string }
	for section, wants := range map[string][]want{
		"kubernetes: {selector: a=b}":                             {{"", "pods", ""}},
		"kubernetes: {selector: a=b, namespaces: [x, y]}":         {{"", "pods", "x"}, {"", "pods", "y"}},
		"kubernetes_sd_configs: [{role: node}]":                   {{"", "nodes", ""}},
		"kubernetes_sd_configs: [{role: pod}, {role: endpoints}]": {{"", "pods", ""}, {"", "endpoints", ""}, {"", "services", ""}},
		"inference_pool: {name: p, namespace: x}": {
			{"", "pods", "x"}, {"inference.networking.k8s.io", "inferencepools", "x"}, {"inference.networking.x-k8s.io", "inferencepools", "x"},
		},
		"static_configs: [{targets: ['a:1']}]": {},
	} {
		var got []want
		choices := 0
		permissions := discovering(t, section).Discovery.Permissions()
		for i := range permissions {
			got = append(got, want{permissions[i].Group, permissions[i].Resource, permissions[i].Namespace})
			choices += permissions[i].Choice
		}
		assert.ElementsMatch(t, wants, got, section)
		assert.Equal(t, strings.Contains(section, "inference_pool"), choices == 2, section)
	}
}

// discovering is a configuration with a discovery, which is written in YAML.
func discovering(t *testing.T, section string, change ...func(*vllmreceiver.Config)) *vllmreceiver.Config {
	t.Helper()
	retrieved, err := confmap.NewRetrievedFromYAML([]byte("discovery: {" + section + "}"))
	require.NoError(t, err)
	conf, err := retrieved.AsConf()
	require.NoError(t, err)
	cfg := config()
	require.NoError(t, conf.Unmarshal(cfg))
	for _, c := range change {
		c(cfg)
	}
	require.NoError(t, cfg.Validate())
	return cfg
}

// Neither a probe of vllmctl nor a replay asks a server for tokens.
func TestProbesAndReplaysSendNoCanary(t *testing.T) {
	var posted atomic.Bool
	address := scrapetest.Server(t, func(w http.ResponseWriter, request *http.Request) {
		posted.Store(posted.Load() || request.Method == http.MethodPost)
		_, _ = io.WriteString(w, scrapetest.Idle(0))
	})
	cfg, canary := config(), scrape.DefaultCanary()
	canary.Interval = time.Millisecond
	cfg.Client.Endpoint, cfg.Canary = address, configoptional.Some(canary)
	probes, err := New(cfg, componenttest.NewNopTelemetrySettings())
	require.NoError(t, err)
	require.NoError(t, probes[0].Start(t.Context(), componenttest.NewNopHost()))
	for range 3 {
		reading := probes[0].Read(t.Context())
		assert.Equal(t, "ok", reading.Outcome)
		assert.Empty(t, scrapetest.CanaryPoints(reading.Emitted))
		time.Sleep(5 * time.Millisecond)
	}
	probes[0].Close()
	replays, err := NewReplays(cfg)
	require.NoError(t, err)
	replay, err := replays.Target(address, nil)
	require.NoError(t, err)
	for i := range 3 {
		assert.Empty(t, scrapetest.CanaryPoints(replay.Scrape(scrapetest.FirstScrape.Add(time.Duration(i)*time.Minute), []byte(scrapetest.Idle(0)), "")))
	}
	replay.Close()
	assert.False(t, posted.Load())
}
