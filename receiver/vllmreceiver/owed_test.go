package vllmreceiver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configauth"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/otelcol-vllm/otelcol-vllm/internal/refused"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/discover"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/metadata"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/scrape"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/scrapetest"
)

// backend is a next consumer that refuses while the test wants it, and has what is live
// according to what it took. It changes what it is passed, as it may.
type backend struct {
	mu      sync.Mutex
	refuses bool
	refused int
	live    map[string]bool
	ends    []string
}

func newBackend() *backend { return &backend{live: map[string]bool{}} }

func (*backend) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: true} }

func (b *backend) refuse(refuses bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.refuses = refuses
}

func (b *backend) ConsumeMetrics(_ context.Context, metrics pmetric.Metrics) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer func() { pmetric.NewMetrics().MoveTo(metrics) }()
	if b.refuses {
		b.refused++
		return errors.New("the queue is full")
	}
	for _, rm := range metrics.ResourceMetrics().All() {
		resource := attributes(rm.Resource().Attributes())
		for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
			for _, line := range renderMetric(m) {
				series := resource + m.Name() + line[:strings.Index(line, "}")+1]
				if strings.HasSuffix(line, " end") {
					delete(b.live, series)
					b.ends = append(b.ends, series)
				} else {
					b.live[series] = true
				}
			}
		}
	}
	return nil
}

// lives returns the live series of a metric.
func (b *backend) lives(name string) (out []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for series := range b.live {
		if strings.Contains(series, "}"+name+"{") {
			out = append(out, series)
		}
	}
	slices.Sort(out)
	return out
}

// delivery sends what a rig scrapes to a backend.
type delivery struct {
	*rig
	to      *backend
	running *runningTarget
}

func newDelivery(t *testing.T, change ...func(*Config)) *delivery {
	t.Helper()
	p := &delivery{rig: newRig(t, change...), to: newBackend()}
	p.receiver.next = p.to
	p.running = &runningTarget{key: p.scraper.Name(), scraper: p.scraper, sink: newSink(nil), gone: make(chan struct{})}
	return p
}

func (p *delivery) deliver(body string) {
	p.t.Helper()
	p.mu.Lock()
	p.body = body
	p.mu.Unlock()
	p.receiver.scrape(p.running, time.Now())
	p.now = p.now.Add(15 * time.Second)
}

func (p *delivery) deliverFailure() {
	p.t.Helper()
	p.mu.Lock()
	p.status = 500
	p.mu.Unlock()
	p.deliver("")
	p.mu.Lock()
	p.status = 200
	p.mu.Unlock()
}

func gaugeOf(name, value string) string {
	return fmt.Sprintf("# TYPE vllm:%[1]s gauge\nvllm:%[1]s{engine=\"0\",model_name=\"m\"} %[2]s\n", name, value)
}

// A batch with ends is refused. The ends are in the next batches until one of
// them is taken.
func TestEndsOfSeriesAreRepeatedUntilABatchWasTaken(t *testing.T) {
	both := gaugeOf("num_requests_running", "1") + gaugeOf("num_requests_waiting", "2")
	one := gaugeOf("num_requests_running", "1")
	p := newDelivery(t)
	p.deliver(both)
	require.Len(t, p.to.lives("vllm.num_requests.waiting"), 1)
	p.to.refuse(true)
	for range 5 {
		p.deliver(one)
	}
	p.deliverFailure()
	p.deliver(one)
	require.Equal(t, 7, p.to.refused)
	p.to.refuse(false)
	p.deliver(one)
	assert.Empty(t, p.to.lives("vllm.num_requests.waiting"))
	assert.Len(t, p.to.lives("vllm.num_requests.running"), 1, "it is live again")
	assert.Empty(t, p.to.lives("vllm.scrape.failure"))
	ends := len(p.to.ends)
	p.deliver(one)
	assert.Len(t, p.to.ends, ends, "an end that was taken is not repeated")
}

// The ends of a failed scrape are refused, and it fails on.
func TestEndsOfAFailedScrapeAreRepeated(t *testing.T) {
	p := newDelivery(t, func(cfg *Config) { cfg.GenAI.Enabled = true })
	p.deliver(scrapetest.BodyWithEveryKind(t, "../.."))
	require.NotEmpty(t, p.to.lives("vllm.time_to_first_token"))
	p.to.refuse(true)
	p.deliverFailure()
	p.deliverFailure()
	p.to.refuse(false)
	p.deliverFailure()
	for series := range p.to.live {
		assert.True(t, strings.Contains(series, "}vllm.up{") || strings.Contains(series, "}vllm.scrape."), series)
	}
}

// A series that has a value again has not ended, also where the batch with the value
// was refused, too.
func TestAnEndIsNotRepeatedAfterANewValue(t *testing.T) {
	both := gaugeOf("num_requests_running", "1") + gaugeOf("num_requests_waiting", "2")
	one := gaugeOf("num_requests_running", "1")
	p := newDelivery(t)
	p.deliver(both)
	p.to.refuse(true)
	p.deliver(one)
	p.to.refuse(false)
	p.deliver(both)
	assert.Len(t, p.to.lives("vllm.num_requests.waiting"), 1)
	assert.Empty(t, p.to.ends)
	p.to.refuse(true)
	p.deliver(one)
	p.deliver(both)
	p.to.refuse(false)
	p.deliver(both)
	assert.Len(t, p.to.lives("vllm.num_requests.waiting"), 1)
	assert.Empty(t, p.to.ends)
}

// A resource that changes ends the series of the old one.
func TestEndsOfAnOldResourceAreRepeated(t *testing.T) {
	body := func(process string) string {
		return counter("10") + process + gaugeOf("num_requests_running", "1")
	}
	p := newDelivery(t)
	p.version = "0.10.0"
	p.deliver(body(process(unix(-3600))))
	p.mu.Lock()
	p.version = "0.11.0"
	p.mu.Unlock()
	p.to.refuse(true)
	p.deliver(body(process(unix(10))))
	p.deliver(body(process(unix(10))))
	p.to.refuse(false)
	p.deliver(body(process(unix(10))))
	for _, name := range []string{"vllm.num_requests.running", "vllm.up"} {
		lives := p.to.lives(name)
		require.Len(t, lives, 1, name)
		assert.Contains(t, lives[0], `service.version="0.11.0"`)
	}
}

// What is kept is bounded in bytes, the rest is counted and reported once.
func TestStoredEndsAreBounded(t *testing.T) {
	wide := func(n int) string {
		var b strings.Builder
		b.WriteString("# TYPE something gauge\n")
		for i := range n {
			fmt.Fprintf(&b, "something{a=\"%s%d\"} 1\n", strings.Repeat("x", 1000), i)
		}
		return b.String()
	}
	p := newDelivery(t)
	p.deliver(wide(2000))
	p.to.refuse(true)
	for i := range 5 {
		p.deliver(wide(i + 1))
	}
	assert.Equal(t, 1, p.logs.FilterMessageSnippet("The pipeline refuses points").Len())
	p.to.refuse(false)
	p.deliver(wide(1))
	// An end has a kilobyte and some bytes.
	assert.Greater(t, len(p.to.ends), 900)
	assert.Less(t, len(p.to.ends), 1024)
}

// discovered returns a receiver that is asked for targets by the test.
func discovered(t *testing.T, to consumer.Metrics) (*targetDiscovery, *vllmReceiver) {
	t.Helper()
	cfg := scrape.DefaultConfig()
	cfg.Controller.CollectionInterval = 10 * time.Millisecond
	cfg.Controller.InitialDelay = 0
	r, err := newReceiver(cfg, receivertest.NewNopSettings(metadata.Type), to)
	require.NoError(t, err)
	r.host = componenttest.NewNopHost()
	t.Cleanup(func() { require.NoError(t, r.Shutdown(context.Background())) })
	return &targetDiscovery{receiver: r, configured: map[string]bool{}, scraped: map[string]discover.Target{}}, r
}

func discoveredAt(t *testing.T, address string) discover.Target {
	t.Helper()
	u, err := scrape.ParseEndpoint(address)
	require.NoError(t, err)
	return discover.Target{URL: u, Timeout: within}
}

// The end of a removed target is refused. It is sent when discovery asks again, also
// where no target is left.
func TestTheEndOfARemovedTargetIsSentAgain(t *testing.T) {
	to := newBackend()
	d, r := discovered(t, to)
	it := discoveredAt(t, metricsServer(t, quick))
	require.True(t, d.reconcile(t.Context(), []discover.Target{it}, 0))
	require.Eventually(t, func() bool { return len(to.lives("vllm.up")) == 1 }, within, time.Millisecond)
	to.refuse(true)
	assert.False(t, d.reconcile(t.Context(), nil, 0), "to be asked again")
	assert.False(t, d.reconcile(t.Context(), nil, 0))
	require.NotEmpty(t, to.lives("vllm.up"))
	to.refuse(false)
	assert.True(t, d.reconcile(t.Context(), nil, 0))
	assert.Empty(t, to.live)
	assert.Empty(t, r.owed)
}

// A removed target returns before its end was accepted: the end is no longer true,
// except of series that it has no more.
func TestARemovedTargetThatReturnsSendsItsStoredEnds(t *testing.T) {
	to := newBackend()
	d, r := discovered(t, to)
	it := discoveredAt(t, metricsServer(t, quick))
	it.Attributes = map[string]string{"k8s.pod.name": "a"}
	require.True(t, d.reconcile(t.Context(), []discover.Target{it}, 0))
	require.Eventually(t, func() bool { return len(to.lives("vllm.up")) == 1 }, within, time.Millisecond)
	to.refuse(true)
	again := it
	again.Attributes = map[string]string{"k8s.pod.name": "b"}
	require.True(t, d.reconcile(t.Context(), []discover.Target{again}, 0))
	assert.Empty(t, r.owed)
	to.refuse(false)
	require.Eventually(t, func() bool {
		lives := to.lives("vllm.up")
		return len(lives) == 1 && strings.Contains(lives[0], `"b"`)
	}, within, time.Millisecond)
}

// A removed target returns and cannot be started: its end is still owed, and sent the next time.
func TestATargetThatCannotReturnStillOwesItsEnds(t *testing.T) {
	to := newBackend()
	d, r := discovered(t, to)
	it := discoveredAt(t, metricsServer(t, quick))
	require.True(t, d.reconcile(t.Context(), []discover.Target{it}, 0))
	require.Eventually(t, func() bool { return len(to.lives("vllm.up")) == 1 }, within, time.Millisecond)
	to.refuse(true)
	require.False(t, d.reconcile(t.Context(), nil, 0))
	r.config.Client.Auth = configoptional.Some(configauth.Config{AuthenticatorID: component.MustNewID("gone")})
	require.False(t, d.reconcile(t.Context(), []discover.Target{it}, 0))
	to.refuse(false)
	require.True(t, d.reconcile(t.Context(), nil, 0))
	assert.Empty(t, to.live)
}

// The ends of many removed targets are bounded in bytes.
func TestEndsOfRemovedTargetsAreBounded(t *testing.T) {
	p := newDelivery(t)
	p.deliver(gaugeOf("num_requests_running", "1"))
	p.to.refuse(true)
	p.deliverFailure()
	owed := p.running.sink.ends.Close()
	require.NotEmpty(t, owed)
	for i := range 2 * maxOwedRemoved / len(owed) {
		p.receiver.owed[fmt.Sprint(i)] = owed
		if (i+2)*len(owed) > maxOwedRemoved {
			break
		}
	}
	before := len(p.receiver.owed)
	p.receiver.storeOwed("one more", owed)
	p.receiver.storeOwed("another", owed)
	assert.LessOrEqual(t, len(p.receiver.owed), before+1)
	assert.Equal(t, 1, p.logs.FilterMessageSnippet("The pipeline refuses points").Len())
}

// The bound is 8 MiB, exactly.
func TestTheBoundOfTheEndsOfRemovedTargets(t *testing.T) {
	p := newDelivery(t)
	p.deliver(gaugeOf("num_requests_running", "1"))
	p.to.refuse(true)
	p.deliverFailure()
	owed := p.running.sink.ends.Close()
	require.NotEmpty(t, owed)
	p.receiver.owed["others"] = make(refused.Ends, 8<<20-len(owed)+1)
	p.receiver.storeOwed("too much", owed)
	assert.NotContains(t, p.receiver.owed, "too much")
	p.receiver.owed["others"] = make(refused.Ends, 8<<20-len(owed))
	p.receiver.storeOwed("enough", owed)
	assert.Contains(t, p.receiver.owed, "enough")
	clear(p.receiver.owed)
}
