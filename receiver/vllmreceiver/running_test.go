package vllmreceiver

import (
	"context"
	"fmt"
	"net/http"
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

// stubborn is a consumer that ignores the end of its context for a while, as one
// that is writing to a disk does.
type stubborn struct {
	entered chan struct{}
	release chan struct{}
	after   atomic.Int32
	stopped atomic.Bool
	inside  atomic.Int32
	once    sync.Once
}

func (s *stubborn) consumer(t *testing.T) consumer.Metrics {
	t.Helper()
	next, err := consumer.NewMetrics(func(context.Context, pmetric.Metrics) error {
		if s.stopped.Load() {
			s.after.Add(1)
		}
		s.inside.Add(1)
		defer s.inside.Add(-1)
		s.once.Do(func() { close(s.entered) })
		<-s.release
		return nil
	})
	require.NoError(t, err)
	return next
}

// startStubborn returns a receiver whose first batch is blocked by the consumer, with its
// only target.
func startStubborn(t *testing.T) (*vllmReceiver, *stubborn, scrape.Server) {
	t.Helper()
	s := &stubborn{entered: make(chan struct{}), release: make(chan struct{})}
	cfg := scrape.DefaultConfig()
	cfg.Client.Endpoint = metricsServer(t, quick)
	cfg.Controller.InitialDelay = 0
	r, err := newReceiver(cfg, receivertest.NewNopSettings(metadata.Type), s.consumer(t))
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	<-s.entered
	return r, s, scrape.Configured(cfg)[0]
}

// The collector stops the next component after this one, so nothing may be sent
// once Shutdown has returned; not even by a Remove that is in progress.
func TestNothingIsSentAfterShutdownByARemoveInProgress(t *testing.T) {
	t.Parallel()
	r, s, only := startStubborn(t)
	address := only.Address
	removed := make(chan error, 1)
	go func() { removed <- r.Remove(context.Background(), address) }()
	require.Eventually(t, func() bool { return r.targets.Load() == 0 }, within, time.Millisecond)

	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	down := make(chan error, 1)
	go func() { down <- r.Shutdown(ctx) }()
	early := false
	select {
	case <-down:
		early = true
	case <-time.After(500 * time.Millisecond):
	}
	s.stopped.Store(true)
	assert.False(t, early && s.inside.Load() > 0, "Shutdown returned while a scrape of this receiver was still sending")
	close(s.release)
	<-removed
	if !early {
		<-down
	}
	assert.Zero(t, s.after.Load(), "a batch was sent after Shutdown had returned")
}

// The end of a target must be before the first points of a new target of the same address,
// or a backend takes the new one for dead until its next scrape.
func TestAnAddressThatComesBackAtOnceDoesNotEndAfterItsNewPoints(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	entered := make(chan struct{})
	var once sync.Once
	var mu sync.Mutex
	var got []string
	next, err := consumer.NewMetrics(func(_ context.Context, m pmetric.Metrics) error {
		first := false
		once.Do(func() { first = true; close(entered) })
		if first {
			<-release
		}
		mu.Lock()
		defer mu.Unlock()
		for _, line := range points(m, "vllm.up") {
			got = append(got, line[strings.LastIndexByte(line, ' ')+1:])
		}
		return nil
	})
	require.NoError(t, err)
	cfg := scrape.DefaultConfig()
	cfg.Client.Endpoint = metricsServer(t, quick)
	cfg.Controller.InitialDelay = 0
	cfg.Controller.CollectionInterval = 100 * time.Millisecond
	r, err := newReceiver(cfg, receivertest.NewNopSettings(metadata.Type), next)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	<-entered
	it := scrape.Configured(cfg)[0]
	removed := make(chan error, 1)
	go func() { removed <- r.Remove(context.Background(), it.Address) }()
	require.Eventually(t, func() bool { return r.targets.Load() == 0 }, within, time.Millisecond)
	added := make(chan error, 1)
	go func() { added <- r.Add(t.Context(), it) }()
	time.Sleep(400 * time.Millisecond)
	close(release)
	require.NoError(t, <-removed)
	require.NoError(t, <-added)
	require.NoError(t, r.Shutdown(t.Context()))
	mu.Lock()
	defer mu.Unlock()
	ended, live := -1, -1
	for i, v := range got {
		switch v {
		case "end":
			ended = i
		case "1":
			if live < 0 && i > 0 {
				live = i
			}
		}
	}
	t.Log(got)
	assert.False(t, live >= 0 && ended > live, "the end was after the first point of the new target")
}

// Remove has a context: a consumer that hangs must not hold it for ever, as it
// does not hold Shutdown.
func TestRemoveEndsWhenItsOwnTimeIsUp(t *testing.T) {
	t.Parallel()
	cfg := scrape.DefaultConfig()
	cfg.Client.Endpoint = metricsServer(t, quick)
	cfg.Controller.InitialDelay = 0
	next := &blocked{Consumer: consumertest.NewNop(), entered: make(chan struct{})}
	r, err := newReceiver(cfg, receivertest.NewNopSettings(metadata.Type), next)
	require.NoError(t, err)
	require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
	<-next.entered
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- r.Remove(ctx, scrape.Configured(cfg)[0].Address) }()
	select {
	case <-done:
	case <-time.After(2 * time.Second):
		t.Error("Remove hangs long after its context has ended")
	}
	ctx2, cancel2 := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel2()
	require.NoError(t, r.Shutdown(ctx2))
}

// Add, Remove and Shutdown in any order: no race, no panic, no deadlock.
func TestAddRemoveShutdownInAnyOrder(t *testing.T) {
	t.Parallel()
	var addresses []string
	for range 4 {
		addresses = append(addresses, metricsServer(t, quick))
	}
	for range 10 {
		sink := new(consumertest.MetricsSink)
		cfg := scrape.DefaultConfig()
		cfg.Client.Endpoint = addresses[0]
		cfg.Controller.CollectionInterval = 5 * time.Millisecond
		cfg.Controller.InitialDelay = 0
		r, err := newReceiver(cfg, receivertest.NewNopSettings(metadata.Type), sink)
		require.NoError(t, err)
		require.NoError(t, r.Start(t.Context(), componenttest.NewNopHost()))
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				address, _ := scrape.ParseEndpoint(addresses[i%4])
				for range 5 {
					_ = r.Add(context.Background(), scrape.Server{Address: address, Client: cfg.Client})
					time.Sleep(time.Millisecond)
					_ = r.Remove(context.Background(), address)
				}
			})
		}
		time.Sleep(5 * time.Millisecond)
		require.NoError(t, r.Shutdown(t.Context()))
		wg.Wait()
	}
}

// A version request that hangs does not hold Shutdown.
func TestShutdownCancelsAVersionRequest(t *testing.T) {
	asked := make(chan struct{}, 10)
	address := metricsServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			asked <- struct{}{}
			<-r.Context().Done()
			return
		}
		_, _ = fmt.Fprint(w, gauge("1"))
	})
	sink := new(consumertest.MetricsSink)
	r := start(t, sink, func(cfg *Config) { cfg.Targets[0].Client.Timeout = time.Hour }, address)
	<-asked
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	require.NoError(t, r.Shutdown(ctx))
	require.NoError(t, ctx.Err())
	assert.Empty(t, sink.AllMetrics())
}

// While a target is stopping, one of the same address waits for it and then starts: it is
// neither dropped nor started too early.
func TestAddWaitsForATargetThatIsStopping(t *testing.T) {
	t.Parallel()
	r, s, same := startStubborn(t)
	removed, added := make(chan error, 1), make(chan error, 1)
	go func() { removed <- r.Remove(context.Background(), same.Address) }()
	require.Eventually(t, func() bool { return r.targets.Load() == 0 }, within, time.Millisecond)

	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, r.Add(short, same), context.DeadlineExceeded, "it waits, as long as its context lasts")

	go func() { added <- r.Add(context.Background(), same) }()
	close(s.release)
	require.NoError(t, <-removed)
	require.NoError(t, <-added)
	assert.EqualValues(t, 1, r.targets.Load())
	r.mu.Lock()
	again := r.running[same.Address.String()]
	r.mu.Unlock()
	require.NotNil(t, again)
	require.NoError(t, again.scraper.Context().Err(), "the new one runs")
	require.NoError(t, r.Shutdown(t.Context()))
}

// A scrape that was canceled because its target stops is neither a success nor a failure.
func TestACanceledScrapeDoesNotChangeTheStatus(t *testing.T) {
	p := newDelivery(t)
	host := newStatusHost()
	p.receiver.status.start(host)
	p.receiver.status.added(p.scraper.Name())
	p.deliverFailure()
	require.Len(t, host.seen(), 1)
	p.deliver(gaugeOf("num_requests_running", "1"))
	require.Len(t, host.seen(), 2)
	require.Equal(t, "StatusOK", host.seen()[1])
	p.deliverFailure()
	require.Len(t, host.seen(), 3)
	p.scraper.Stop()
	p.deliver(gaugeOf("num_requests_running", "1"))
	assert.Len(t, host.seen(), 3)
}
