package vllmreceiver

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/metadata"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/scrape"
)

func quick(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, gauge("1")) }

// start runs a receiver for these addresses, with a scrape every 20 ms.
func start(t *testing.T, sink *consumertest.MetricsSink, change func(*Config), addresses ...string) *vllmReceiver {
	t.Helper()
	cfg := scrape.DefaultConfig()
	cfg.Controller.CollectionInterval = 20 * time.Millisecond
	cfg.Controller.InitialDelay = 0
	for _, address := range addresses {
		cfg.Targets = append(cfg.Targets, TargetConfig{Client: cfg.Client})
		cfg.Targets[len(cfg.Targets)-1].Client.Endpoint = address
	}
	if change != nil {
		change(cfg)
	}
	r, err := newReceiver(cfg, receivertest.NewNopSettings(metadata.Type), sink)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	t.Cleanup(func() { assert.NoError(t, r.Shutdown(context.Background())) })
	return r
}

// resources are what came, each resource alone: a request has the points of several targets.
func resources(sink *consumertest.MetricsSink) (all []pmetric.Metrics) {
	for _, m := range sink.AllMetrics() {
		for _, rm := range m.ResourceMetrics().All() {
			one := pmetric.NewMetrics()
			rm.CopyTo(one.ResourceMetrics().AppendEmpty())
			all = append(all, one)
		}
	}
	return all
}

// batches are those of one target.
func batches(sink *consumertest.MetricsSink, address string) []pmetric.Metrics {
	u, _ := url.Parse(address)
	var out []pmetric.Metrics
	for _, m := range resources(sink) {
		if strings.Contains(render(m), `service.instance.id="`+u.Host) {
			out = append(out, m)
		}
	}
	return out
}

func TestManyTargets(t *testing.T) {
	sink := new(consumertest.MetricsSink)
	addresses := []string{metricsServer(t, quick), metricsServer(t, quick), metricsServer(t, quick)}
	r := start(t, sink, nil, addresses...)
	assert.EqualValues(t, 3, r.targets.Load())
	for _, address := range addresses {
		assert.Eventually(t, func() bool { return len(batches(sink, address)) >= 2 }, within, 5*time.Millisecond)
	}
}

// A server that hangs, one that drips and one that is too large must not delay
// the one next to them.
func TestASlowTargetDelaysNoOther(t *testing.T) {
	t.Parallel()
	hang := metricsServer(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	drip := metricsServer(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = fmt.Fprint(w, "#\n")
			_ = http.NewResponseController(w).Flush()
			time.Sleep(5 * time.Millisecond)
		}
	})
	huge := metricsServer(t, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	})
	good := metricsServer(t, quick)
	sink := new(consumertest.MetricsSink)
	start(t, sink, func(cfg *Config) { cfg.Limits.BodySize = 1 << 20 }, hang, drip, huge, good)
	assert.Eventually(t, func() bool { return len(batches(sink, good)) >= 10 }, within, 5*time.Millisecond)
	assert.Empty(t, batches(sink, hang))
}

// Shutdown gives up what is being fetched instead of waiting for its deadline.
func TestShutdownCancelsFetches(t *testing.T) {
	asked := make(chan struct{}, 10)
	hang := metricsServer(t, func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	})
	sink := new(consumertest.MetricsSink)
	r := start(t, sink, func(cfg *Config) { cfg.Targets[0].Client.Timeout = time.Hour }, hang)
	<-asked
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	require.NoError(t, r.Shutdown(ctx))
	require.NoError(t, ctx.Err())
	// A canceled scrape reports nothing about the server.
	assert.Empty(t, sink.AllMetrics())
	require.NoError(t, r.Shutdown(ctx), "once more")
}

// blocked is a consumer that hangs until its context ends.
type blocked struct {
	consumertest.Consumer
	entered chan struct{}
	once    sync.Once
}

func (b *blocked) ConsumeMetrics(ctx context.Context, _ pmetric.Metrics) error {
	b.once.Do(func() { close(b.entered) })
	<-ctx.Done()
	return ctx.Err()
}

func TestShutdownEndsASendThatBlocksWhenItsOwnTimeIsUp(t *testing.T) {
	cfg := scrape.DefaultConfig()
	cfg.Client.Endpoint = metricsServer(t, quick)
	cfg.Controller.InitialDelay = 0
	next := &blocked{Consumer: consumertest.NewNop(), entered: make(chan struct{})}
	r, err := newReceiver(cfg, receivertest.NewNopSettings(metadata.Type), next)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	<-next.entered
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- r.Shutdown(ctx) }()
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(within):
		t.Fatal("Shutdown hangs")
	}
}

// A slow consumer is not cut off by the deadline of the fetch.
func TestSendingDoesNotShareTheDeadlineOfTheFetch(t *testing.T) {
	t.Parallel()
	var failed atomic.Bool
	var sent atomic.Int32
	next, err := consumertestFunc(func(ctx context.Context) {
		select {
		case <-ctx.Done():
			failed.Store(true)
		case <-time.After(200 * time.Millisecond):
		}
		sent.Add(1)
	})
	require.NoError(t, err)
	cfg := scrape.DefaultConfig()
	cfg.Client.Endpoint = metricsServer(t, quick)
	cfg.Client.Timeout = 50 * time.Millisecond
	cfg.Controller.Timeout = 50 * time.Millisecond
	cfg.Controller.InitialDelay = 0
	r, err := newReceiver(cfg, receivertest.NewNopSettings(metadata.Type), next)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	assert.Eventually(t, func() bool { return sent.Load() > 0 }, within, 5*time.Millisecond)
	require.NoError(t, r.Shutdown(t.Context()))
	assert.False(t, failed.Load())
}

func TestTargetsComeAndGoWhileRunning(t *testing.T) {
	t.Parallel()
	first, second := metricsServer(t, quick), metricsServer(t, quick)
	sink := new(consumertest.MetricsSink)
	r := start(t, sink, nil, first)
	address, err := scrape.ParseEndpoint(second)
	require.NoError(t, err)
	added := scrape.Server{Address: address, Client: r.config.Targets[0].Client}
	require.NoError(t, r.Add(t.Context(), added))
	require.NoError(t, r.Add(t.Context(), added), "a target that is there stays")
	assert.EqualValues(t, 2, r.targets.Load())
	assert.Eventually(t, func() bool { return len(batches(sink, second)) >= 2 }, within, 5*time.Millisecond)

	require.NoError(t, r.Remove(t.Context(), address))
	all := batches(sink, second)
	assert.ElementsMatch(t, []string{
		"vllm.num_requests.running", "vllm.up", "vllm.scrape.duration", "vllm.scrape.samples",
	}, ends(all[len(all)-1]))
	require.NoError(t, r.Remove(t.Context(), address), "a target that is not there is gone already")
	count := len(batches(sink, first))
	assert.Eventually(t, func() bool { return len(batches(sink, first)) > count+2 }, within, 5*time.Millisecond)
	assert.Len(t, batches(sink, second), len(all), "no point after the end")
}

func TestAddNeedsARunningReceiver(t *testing.T) {
	cfg := scrape.DefaultConfig()
	cfg.Client.Endpoint = "http://127.0.0.1:1"
	r, err := newReceiver(cfg, receivertest.NewNopSettings(metadata.Type), consumertest.NewNop())
	require.NoError(t, err)
	it := scrape.Configured(cfg)[0]
	require.ErrorIs(t, r.Add(t.Context(), it), errNotRunning)
	require.NoError(t, r.Shutdown(t.Context()), "without Start")
	require.ErrorIs(t, r.Add(t.Context(), it), errNotRunning)
}

// A certificate that cannot be read is a mistake of the configuration: the
// collector does not start, and what had started ends.
func TestStartFailsOnAMissingCertificate(t *testing.T) {
	cfg := scrape.DefaultConfig()
	cfg.Targets = []TargetConfig{{Client: cfg.Client}, {Client: cfg.Client}}
	cfg.Targets[0].Client.Endpoint = metricsServer(t, quick)
	cfg.Targets[1].Client.Endpoint = "https://user:hunter2@127.0.0.1:1"
	cfg.Targets[1].Client.TLS.CAFile = "testdata/missing.pem"
	r, err := newReceiver(cfg, receivertest.NewNopSettings(metadata.Type), consumertest.NewNop())
	require.NoError(t, err)
	err = r.Start(t.Context(), componenttest.NewNopHost())
	require.ErrorContains(t, err, "missing.pem")
	assert.NotContains(t, err.Error(), "hunter2")
	require.NoError(t, r.Shutdown(t.Context()))
}

// Replicas of a model have bodies of one layout, so they share its memory.
func TestReplicasShareTheirLayout(t *testing.T) {
	var addresses []string
	for i := range 5 {
		addresses = append(addresses, metricsServer(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprint(w, gauge(fmt.Sprint(i))+counter(fmt.Sprint(i*100)))
		}))
	}
	sink := new(consumertest.MetricsSink)
	r := start(t, sink, nil, addresses...)
	for _, address := range addresses {
		assert.Eventually(t, func() bool { return len(batches(sink, address)) >= 2 }, within, 5*time.Millisecond)
	}
	_, layouts, _ := r.scrapes.Memory.Stats()
	assert.Equal(t, 1, layouts)
}

func TestTargetsStartAtAnOffsetSpreadOverTheInterval(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	first := map[string]time.Time{}
	handler := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			if _, ok := first[name]; !ok {
				first[name] = time.Now()
			}
			mu.Unlock()
			quick(w, r)
		}
	}
	a, b := metricsServer(t, handler("a")), metricsServer(t, handler("b"))
	sink := new(consumertest.MetricsSink)
	start(t, sink, func(cfg *Config) { cfg.Controller.CollectionInterval = 3 * time.Second }, a, b)
	assert.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(first) == 2
	}, within, 5*time.Millisecond)
	// The second waits for half the interval, less what makes whole seconds of it; a slow
	// machine only makes it more.
	assert.Greater(t, first["b"].Sub(first["a"]), 600*time.Millisecond)
}

// consumertestFunc is a consumer that calls f for each batch.
func consumertestFunc(f func(context.Context)) (consumer.Metrics, error) {
	return consumer.NewMetrics(func(ctx context.Context, _ pmetric.Metrics) error {
		f(ctx)
		return nil
	})
}
