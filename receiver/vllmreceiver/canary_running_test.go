package vllmreceiver

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configopaque"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/metadata"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/scrape"
)

// withCanaries sends one every 20 ms, which no configuration can have.
func withCanaries(change ...func(*CanaryConfig)) configoptional.Optional[CanaryConfig] {
	settings := scrape.DefaultCanary()
	settings.Interval, settings.Timeout, settings.Model = 20*time.Millisecond, time.Hour, "m"
	for _, c := range change {
		c(&settings)
	}
	return configoptional.Some(settings)
}

// canaryServer is an idle server at each path, whose canaries are answered by a handler. It returns
// the addresses of some of its paths.
func canaryServer(t *testing.T, canaries http.HandlerFunc, servers int) (addresses []string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/metrics"):
			_, _ = io.WriteString(w, idle(0))
		case r.Method == http.MethodPost:
			canaries(w, r)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	for i := range servers {
		addresses = append(addresses, fmt.Sprintf("%s/%d/metrics", server.URL, i))
	}
	return addresses
}

// startCanaries runs a receiver with canaries for these targets.
func startCanaries(t *testing.T, canaries configoptional.Optional[CanaryConfig], addresses ...string) (*vllmReceiver, *consumertest.MetricsSink) {
	t.Helper()
	sink := new(consumertest.MetricsSink)
	return start(t, sink, func(cfg *Config) {
		cfg.Client.Timeout = within
		for i := range cfg.Targets {
			cfg.Targets[i].Client.Timeout, cfg.Targets[i].Canary = within, canaries
		}
	}, addresses...), sink
}

// last are the newest points about canaries of a target.
func last(sink *consumertest.MetricsSink, address string) []string {
	_, path, _ := strings.Cut(strings.TrimPrefix(address, "http://"), "/")
	for _, batch := range slices.Backward(resources(sink)) {
		if strings.Contains(render(batch), "/"+path+`"`) && points(batch, "vllm.up") != nil {
			return canaryPoints(batch)
		}
	}
	return nil
}

// The limit is for all targets of a receiver. Those that come later have their turn when one ends.
func TestCanariesOfAllTargetsAreBounded(t *testing.T) {
	var mu sync.Mutex
	open, most, asked := 0, 0, map[string]bool{}
	release := make(chan struct{})
	addresses := canaryServer(t, func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		open++
		most = max(most, open)
		asked[r.URL.Path] = true
		mu.Unlock()
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-release:
		case <-r.Context().Done():
		}
		mu.Lock()
		open--
		mu.Unlock()
		panic(http.ErrAbortHandler)
	}, scrape.MaxCanaries+4)
	startCanaries(t, withCanaries(), addresses...)
	now := func() (int, int) {
		mu.Lock()
		defer mu.Unlock()
		return open, len(asked)
	}
	require.Eventually(t, func() bool { n, _ := now(); return n == scrape.MaxCanaries }, within, time.Millisecond)
	time.Sleep(200 * time.Millisecond) // The others would come now.
	n, targets := now()
	assert.Equal(t, scrape.MaxCanaries, n)
	assert.Equal(t, scrape.MaxCanaries, targets, "one at a time for each target")
	close(release)
	require.Eventually(t, func() bool { _, targets := now(); return targets == scrape.MaxCanaries+4 }, within, time.Millisecond)
	mu.Lock()
	defer mu.Unlock()
	assert.LessOrEqual(t, most, scrape.MaxCanaries)
}

// A canary that hangs, and one that waits for its turn, end with the receiver and with their target.
func TestShutdownDoesNotWaitForACanary(t *testing.T) {
	var open atomic.Int32
	addresses := canaryServer(t, func(w http.ResponseWriter, r *http.Request) {
		open.Add(1)
		hangs(w, r)
	}, scrape.MaxCanaries+2)
	r, _ := startCanaries(t, withCanaries(), addresses...)
	require.Eventually(t, func() bool { return open.Load() >= scrape.MaxCanaries }, within, time.Millisecond)
	for _, target := range scrape.Configured(r.config)[:2] {
		begun := time.Now()
		require.NoError(t, r.Remove(t.Context(), target.Address))
		assert.Less(t, time.Since(begun), within)
	}
	begun := time.Now()
	require.NoError(t, r.Shutdown(context.Background()))
	assert.Less(t, time.Since(begun), within, "the deadline of a canary is an hour")
}

// A server that lies or hangs disturbs neither its own scrapes nor the next server.
func TestAHostileServerBesideAHealthyOne(t *testing.T) {
	endless := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, strings.Repeat("[{\"choices\":", 1000)); err != nil {
				return
			}
		}
	}
	for name, hostile := range map[string]http.HandlerFunc{"hangs": hangs, "endless": endless} {
		t.Run(name, func(t *testing.T) {
			healthy, bad := canaryServer(t, answers, 1)[0], canaryServer(t, hostile, 1)[0]
			_, sink := startCanaries(t, withCanaries(), healthy, strings.Replace(bad, "/0/", "/bad/", 1))
			ok := func() bool {
				points := last(sink, healthy)
				return len(points) == 2 && points[0] == "success ok 1" && points[1] == "unanswered  0"
			}
			require.Eventually(t, ok, within, 5*time.Millisecond)
			before := len(batches(sink, bad))
			require.Eventually(t, func() bool { return len(batches(sink, bad)) > before+3 && ok() }, within, 5*time.Millisecond)
			assert.NotContains(t, last(sink, "http://x/bad/metrics"), "success ok 1")
		})
	}
}

// The end of a target ends what is known of its canaries.
func TestARemovedTargetEndsItsCanaries(t *testing.T) {
	address := canaryServer(t, answers, 1)[0]
	r, sink := startCanaries(t, withCanaries(), address)
	require.Eventually(t, func() bool { return len(last(sink, address)) == 2 }, within, 5*time.Millisecond)
	require.NoError(t, r.Remove(t.Context(), scrape.Configured(r.config)[0].Address))
	all := sink.AllMetrics()
	ended := all[len(all)-1]
	assert.Equal(t, []string{"success ok end", "unanswered  end"}, canaryPoints(ended))
	assert.Len(t, points(ended, emit.MetricCanaryDuration), 1)
}

// The key goes to the server and into no log and no point, whatever the server answers.
func TestTheKeyOfACanaryIsInNoLog(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"answers": answers,
		"rejects": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) },
		"repeats": func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Header.Get("Authorization")) },
		"to there": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/?"+r.Header.Get("Authorization"), http.StatusFound)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var keys sync.Map
			address := canaryServer(t, func(w http.ResponseWriter, r *http.Request) {
				keys.Store(r.Header.Get("Authorization"), true)
				handler(w, r)
			}, 1)[0]
			cfg := scrape.DefaultConfig()
			cfg.Client.Endpoint, cfg.Controller.CollectionInterval, cfg.Controller.InitialDelay = address, 20*time.Millisecond, 0
			cfg.Canary = withCanaries(func(c *CanaryConfig) { c.APIKey = "hunter2" })
			core, logs := observer.New(zap.DebugLevel)
			settings := receivertest.NewNopSettings(metadata.Type)
			settings.Logger = zap.New(core)
			sink := new(consumertest.MetricsSink)
			r, err := newReceiver(cfg, settings, sink)
			require.NoError(t, err)
			require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
			require.Eventually(t, func() bool { _, got := keys.Load("Bearer hunter2"); return got }, within, time.Millisecond)
			seen := len(sink.AllMetrics())
			require.Eventually(t, func() bool { return len(sink.AllMetrics()) > seen+2 }, within, time.Millisecond)
			require.NoError(t, r.Shutdown(t.Context()))
			for _, entry := range logs.All() {
				assert.NotContains(t, entry.Message+fields(entry.ContextMap()), "hunter2")
			}
			for _, batch := range sink.AllMetrics() {
				assert.NotContains(t, render(batch), "hunter2")
			}
		})
	}
}

func TestAKeyOverPlainHTTPIsWarnedOf(t *testing.T) {
	for key, want := range map[configopaque.String]int{"": 0, "hunter2": 1} {
		cfg := scrape.DefaultConfig()
		cfg.Client.Endpoint = "http://vllm.invalid:8000"
		cfg.Canary = withCanaries(func(c *CanaryConfig) { c.APIKey = key })
		core, logs := observer.New(zap.WarnLevel)
		settings := receivertest.NewNopSettings(metadata.Type)
		settings.Logger = zap.New(core)
		r, err := newReceiver(cfg, settings, consumertest.NewNop())
		require.NoError(t, err)
		require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
		require.NoError(t, r.Shutdown(t.Context()))
		assert.Equal(t, want, logs.FilterMessageSnippet("plain HTTP").Len())
	}
}

// Discovered targets have the canary of the receiver.
func TestDiscoveredTargetsGetCanaries(t *testing.T) {
	address := canaryServer(t, answers, 1)[0]
	host := strings.Split(strings.TrimPrefix(address, "http://"), "/")[0]
	sink := new(consumertest.MetricsSink)
	startWith(t, sink, fmt.Sprintf("canary: {model: m, interval: 1s}\ndiscovery: {static_configs: [{targets: [%q]}]}\n", host))
	require.Eventually(t, func() bool {
		for _, batch := range sink.AllMetrics() {
			if points := canaryPoints(batch); len(points) == 2 && points[0] == "success ok 1" {
				return true
			}
		}
		return false
	}, within, 20*time.Millisecond)
}
