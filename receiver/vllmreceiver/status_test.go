package vllmreceiver

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componentstatus"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/receiver/receivertest"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/kubeapi"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/metadata"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/metadatatest"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/scrape"
)

// statusHost keeps the status events.
type statusHost struct {
	component.Host
	mu     sync.Mutex
	events []*componentstatus.Event
	// slow is how long a watcher of the status takes.
	slow time.Duration
}

func (h *statusHost) Report(event *componentstatus.Event) {
	time.Sleep(h.slow)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, event)
}

func (h *statusHost) seen() (out []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.events {
		line := e.Status().String()
		if e.Err() != nil {
			line += " " + e.Err().Error()
		}
		out = append(out, line)
	}
	return out
}

func newStatusHost() *statusHost { return &statusHost{Host: componenttest.NewNopHost()} }

func TestTheStatusFollowsTheTargets(t *testing.T) {
	host := newStatusHost()
	s := newReceiverStatus()
	s.start(host)
	s.added("a")
	s.added("b")
	s.failed("a", "a:8000", errors.New("refused"))
	assert.Empty(t, host.seen(), "b was not scraped yet")
	s.failed("b", "b:8000", errors.New("timeout"))
	s.failed("a", "a:8000", errors.New("refused"))
	s.added("c")
	s.failed("c", "c:8000", errors.New("refused"))
	s.succeeded("b")
	s.failed("a", "a:8000", errors.New("refused"))
	s.removed("b")
	s.removed("a")
	s.removed("c")
	assert.Equal(t, []string{
		"StatusRecoverableError none of the 2 targets can be scraped; the newest failure: b:8000: timeout",
		"StatusOK",
		"StatusRecoverableError none of the 2 targets can be scraped; the newest failure: a:8000: refused",
		"StatusOK",
	}, host.seen())
	s.added("d")
	s.failed("d", "d:8000", errors.New("refused"))
	s.stop()
	s.succeeded("d")
	assert.Equal(t, "StatusRecoverableError the only target cannot be scraped: d:8000: refused", host.seen()[4])
	assert.Len(t, host.seen(), 5, "nothing after the shutdown has begun")
}

// What is reported last must be the state, in whatever order targets change it.
func TestConcurrentChangesEndWithTheRightStatus(t *testing.T) {
	t.Parallel()
	for range 50 {
		host := newStatusHost()
		host.slow = 100 * time.Microsecond
		s := newReceiverStatus()
		s.start(host)
		var wg sync.WaitGroup
		for _, key := range []string{"a", "b", "c", "d"} {
			s.added(key)
			wg.Go(func() {
				for i := range 21 {
					if i%2 == 0 {
						s.failed(key, key, errors.New("refused"))
					} else {
						s.succeeded(key)
					}
				}
			})
		}
		wg.Wait()
		seen := host.seen()
		require.NotEmpty(t, seen)
		assert.Contains(t, seen[len(seen)-1], "StatusRecoverableError", "all fail in the end")
		for i := 1; i < len(seen); i++ {
			assert.NotEqual(t, seen[i-1] == "StatusOK", seen[i] == "StatusOK", "only changes")
		}
	}
}

// mortalServer answers 404 where dead, which is called for each request, returns true.
func mortalServer(t *testing.T, dead func() bool) string {
	t.Helper()
	return metricsServer(t, func(w http.ResponseWriter, r *http.Request) {
		if dead() {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		quick(w, r)
	})
}

// A dead target has points, and they are sent; but it was not scraped.
func TestADeadTargetCountsAsErroredAndItsPointsArrive(t *testing.T) {
	t.Parallel()
	recorded := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, recorded.Shutdown(context.Background())) })
	var dead atomic.Bool
	address := mortalServer(t, dead.Load)
	cfg := scrape.DefaultConfig()
	cfg.Client.Endpoint = address
	cfg.Controller.InitialDelay = 0
	cfg.Controller.CollectionInterval = 50 * time.Millisecond
	cfg.Client.Timeout = within // longer than a scrape takes on a busy machine
	sink := new(consumertest.MetricsSink)
	r, err := newReceiver(cfg, metadatatest.NewSettings(recorded), sink)
	require.NoError(t, err)
	host := newStatusHost()
	require.NoError(t, r.Start(t.Context(), host))
	require.Eventually(t, func() bool { return len(sink.AllMetrics()) > 2 }, within, time.Millisecond)
	dead.Store(true)
	isDown := func() bool {
		all := sink.AllMetrics()
		return len(points(all[len(all)-1], "vllm.scrape.failure")) == 1
	}
	require.Eventually(t, isDown, within, time.Millisecond)
	batches := len(sink.AllMetrics())
	require.Eventually(t, func() bool { return len(sink.AllMetrics()) > batches+2 }, within, time.Millisecond)
	require.NoError(t, r.Shutdown(t.Context()))

	value := func(name string) (sum int64) {
		metric, err := recorded.GetMetric(name)
		require.NoError(t, err)
		for _, p := range metric.Data.(metricdata.Sum[int64]).DataPoints {
			sum += p.Value
		}
		return sum
	}
	good, lost, arrived := 0, 0, 0
	perScrape := 0
	for _, m := range sink.AllMetrics() {
		arrived += m.DataPointCount()
		if len(points(m, "vllm.scrape.failure")) == 0 {
			good += m.MetricCount()
			perScrape = m.MetricCount()
		} else {
			lost += perScrape
		}
	}
	assert.EqualValues(t, good, value("otelcol_scraper_scraped_metric_points"))
	assert.EqualValues(t, lost, value("otelcol_scraper_errored_metric_points"), "each time what the last success had")
	assert.EqualValues(t, arrived, value("otelcol_receiver_accepted_metric_points"))
	assert.Equal(t, []string{"StatusRecoverableError the only target cannot be scraped: " + address[len("http://"):] +
		": the server answered 404 Not Found: there are no metrics at this path; vLLM serves them at /metrics of its API port"}, host.seen())
}

// As with the collector's scrape helper, both counters are there from the beginning: the first
// error is then an increase that a rate shows.
func TestTheCountersOfAReceiverBeginAtZero(t *testing.T) {
	recorded := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, recorded.Shutdown(context.Background())) })
	cfg := scrape.DefaultConfig()
	cfg.Client.Endpoint = "http://127.0.0.1:1"
	r, err := newReceiver(cfg, metadatatest.NewSettings(recorded), consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	for _, name := range []string{"otelcol_scraper_scraped_metric_points", "otelcol_scraper_errored_metric_points"} {
		metric, err := recorded.GetMetric(name)
		require.NoError(t, err, name)
		points := metric.Data.(metricdata.Sum[int64]).DataPoints
		require.Len(t, points, 1, name)
		assert.Zero(t, points[0].Value, name)
		of, _ := points[0].Attributes.Value("receiver")
		assert.Equal(t, "vllm", of.AsString()[:4], name)
	}
	require.NoError(t, r.Shutdown(t.Context()))
}

// The span of a scrape says what the collector's scrape helper would say.
func TestTheSpanOfAScrapeSaysWhatItDid(t *testing.T) {
	recorded := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, recorded.Shutdown(context.Background())) })
	var dead atomic.Bool
	address := mortalServer(t, func() bool { return dead.Swap(true) })
	cfg := scrape.DefaultConfig()
	cfg.Client.Endpoint = address
	cfg.Controller.InitialDelay = 0
	cfg.Controller.CollectionInterval = 20 * time.Millisecond
	cfg.Client.Timeout = within // longer than a scrape takes on a busy machine
	sink := new(consumertest.MetricsSink)
	r, err := newReceiver(cfg, metadatatest.NewSettings(recorded), sink)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	require.Eventually(t, func() bool { return len(sink.AllMetrics()) > 1 }, within, time.Millisecond)
	require.NoError(t, r.Shutdown(t.Context()))
	all := recorded.SpanRecorder.Ended()
	spans := all[:0]
	for _, span := range all {
		if span.Name() == "scraper/vllm/ScrapeMetrics" {
			spans = append(spans, span)
		}
	}
	require.GreaterOrEqual(t, len(spans), 2)
	metrics := int64(sink.AllMetrics()[0].MetricCount())
	assert.Equal(t, codes.Unset, spans[0].Status().Code)
	assert.Equal(t, []attribute.KeyValue{
		attribute.String("format", "metrics"),
		attribute.Int64("scraped_metric_points", metrics), attribute.Int64("errored_metric_points", 0),
	}, spans[0].Attributes())
	assert.Equal(t, codes.Error, spans[1].Status().Code)
	assert.Contains(t, spans[1].Status().Description, "404 Not Found")
	assert.Equal(t, []attribute.KeyValue{
		attribute.String("format", "metrics"),
		attribute.Int64("scraped_metric_points", 0), attribute.Int64("errored_metric_points", metrics),
	}, spans[1].Attributes())
}

// A target that was never reached has at least one point that is missing.
func TestATargetThatWasNeverReachedCountsAsErrored(t *testing.T) {
	recorded := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, recorded.Shutdown(context.Background())) })
	cfg := scrape.DefaultConfig()
	cfg.Client.Endpoint = "http://127.0.0.1:1"
	cfg.Controller.InitialDelay = 0
	sink := new(consumertest.MetricsSink)
	r, err := newReceiver(cfg, metadatatest.NewSettings(recorded), sink)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	require.Eventually(t, func() bool { return len(sink.AllMetrics()) == 1 }, within, time.Millisecond)
	require.NoError(t, r.Shutdown(t.Context()))
	metric, err := recorded.GetMetric("otelcol_scraper_errored_metric_points")
	require.NoError(t, err)
	assert.EqualValues(t, 1, metric.Data.(metricdata.Sum[int64]).DataPoints[0].Value)
}

func TestShutdownWithoutStartReportsNoStatus(t *testing.T) {
	cfg := scrape.DefaultConfig()
	cfg.Client.Endpoint = "http://127.0.0.1:1"
	r, err := newReceiver(cfg, receivertest.NewNopSettings(metadata.Type), consumertest.NewNop())
	require.NoError(t, err)
	require.NoError(t, r.Shutdown(t.Context()))
}

// A collector that may not ask for targets has none that could fail.
func TestTheStatusFollowsTheDiscovery(t *testing.T) {
	host := newStatusHost()
	s := newReceiverStatus()
	s.start(host)
	s.hindered("Kubernetes is away")
	s.hindered("Kubernetes is still away")
	s.hindered("")
	s.added("a")
	s.succeeded("a")
	s.hindered("Kubernetes is away again")
	assert.Equal(t, []string{
		"StatusRecoverableError no target is discovered: Kubernetes is away", "StatusOK",
	}, host.seen(), "a server that is scraped does not need Kubernetes")
	s.removed("a")
	s.added("b")
	assert.Len(t, host.seen(), 3)
	s.succeeded("b")
	assert.Equal(t, []string{"StatusRecoverableError no target is discovered: Kubernetes is away again", "StatusOK"}, host.seen()[2:])
}

// Readiness fails a minute after this, so it must not wait for anything.
func TestADiscoveryThatIsDeniedIsReportedAtOnce(t *testing.T) {
	t.Parallel()
	api := kubeapi.New(t)
	api.Forbid(kubeapi.Pods, true)
	cfg, err := decode(t, "discovery: {kubernetes: {namespaces: [models], selector: a=b, api_server: "+api.URL+"}}")
	require.NoError(t, err)
	r, err := newReceiver(cfg, receivertest.NewNopSettings(metadata.Type), consumertest.NewNop())
	require.NoError(t, err)
	host := newStatusHost()
	require.NoError(t, r.Start(t.Context(), host))
	require.Eventually(t, func() bool { return len(host.seen()) > 0 }, within, time.Millisecond)
	assert.Contains(t, host.seen()[0], `StatusRecoverableError no target is discovered: Kubernetes does not let this collector list and watch pods in the namespace "models"`)
	require.NoError(t, r.Shutdown(t.Context()))
}
