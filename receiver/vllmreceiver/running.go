package vllmreceiver

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/url"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/otelcol-vllm/otelcol-vllm/internal/refused"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/scrape"
)

var errNotRunning = errors.New("the receiver is not running")

// runningTarget is a target with the times of its scrapes.
type runningTarget struct {
	// key is its address.
	key     string
	scraper *scrape.Target
	turns   *repeater
	// canaries sends them; nil without.
	canaries *repeater
	// metrics is the number of metrics of the last successful scrape.
	metrics int
	sink    *sink
	// refused is true where the last request with its points was refused permanently. Its next one is its own.
	refused bool
	// stop stops it once; gone is closed when it has stopped.
	stop sync.Once
	gone chan struct{}
	err  error
}

// Add starts a target while the receiver runs. A target that is scraped already does not
// change. If a target of the same address is stopping, Add waits for it, so that its end
// is before the first points of the new one.
func (r *vllmReceiver) Add(ctx context.Context, t scrape.Server) error {
	interval := cmp.Or(t.Interval, r.config.Controller.CollectionInterval)
	r.mu.Lock()
	passed := time.Since(r.began)
	r.mu.Unlock()
	return r.add(ctx, t, passed+phaseAt(interval, t.Address.String(), int(r.targets.Load())+1, passed))
}

// Remove stops a target and ends its series. A batch that is being sent may finish until
// ctx ends.
func (r *vllmReceiver) Remove(ctx context.Context, address *url.URL) error {
	r.mu.Lock()
	running, ok := r.running[address.String()]
	r.mu.Unlock()
	if !ok {
		return nil
	}
	return r.end(ctx, address.String(), running, true)
}

// setPod sets what Kubernetes reports about the pod of a target.
func (r *vllmReceiver) setPod(address *url.URL, pod *emit.Pod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if running, ok := r.running[address.String()]; ok {
		running.scraper.SetPod(pod)
	}
}

// add starts one target at an offset to the start of the receiver. It first waits for a target of the same address
// that is stopping.
func (r *vllmReceiver) add(ctx context.Context, t scrape.Server, offset time.Duration) error {
	key := t.Address.String()
	for {
		leaving, err := r.tryAdd(ctx, key, t, offset)
		if err != nil || leaving == nil {
			return err
		}
		select {
		case <-leaving:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tryAdd starts one target. If one of the same address is stopping, it does not, and
// returns a channel that is closed when that has stopped.
func (r *vllmReceiver) tryAdd(ctx context.Context, key string, t scrape.Server, offset time.Duration) (<-chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped || r.host == nil {
		return nil, errNotRunning
	}
	if running, ok := r.running[key]; ok {
		if running.scraper.Context().Err() != nil {
			return running.gone, nil
		}
		return nil, nil
	}
	owed := r.takeOwed(key)
	running, err := r.start(ctx, t, offset, owed)
	if err != nil {
		if len(owed) > 0 {
			r.owed[key] = owed
		}
		return nil, err
	}
	r.running[key] = running
	r.targets.Add(1)
	return nil, nil
}

// start starts one target at an offset to the start of the receiver. owed are the ends of a former target of the
// same address that were refused.
func (r *vllmReceiver) start(ctx context.Context, t scrape.Server, offset time.Duration, owed refused.Ends) (*runningTarget, error) {
	running := &runningTarget{key: t.Address.String(), scraper: r.scrapes.NewTarget(t), sink: newSink(owed), gone: make(chan struct{})}
	r.continues(running)
	if err := running.scraper.Start(ctx, r.host); err != nil {
		return nil, err
	}
	r.status.added(running.key)
	if t.Canary != nil {
		r.startCanary(running, t.Canary)
	}
	first := r.began.Add(r.config.Controller.InitialDelay + offset)
	running.turns = newRepeater(first, cmp.Or(t.Interval, r.config.Controller.CollectionInterval), func(due time.Time) { r.scrape(running, due) })
	return running, nil
}

// startCanary sends canaries to a target from its phase on.
func (r *vllmReceiver) startCanary(t *runningTarget, settings *CanaryConfig) {
	turn := t.scraper.Canary(settings)
	if turn == nil {
		return
	}
	passed := time.Since(r.began)
	phase := phaseAt(settings.Interval, t.key, int(r.targets.Load())+1, passed)
	t.canaries = newRepeater(r.began.Add(r.config.Controller.InitialDelay+passed+phase), settings.Interval, func(time.Time) { turn() })
}

// scrapeSpan is the name that the collector's scrape helper gives to a scrape.
const scrapeSpan = "scraper/vllm/ScrapeMetrics"

// endSpan ends the span of a scrape with what the collector's scrape helper would say of it.
func endSpan(span trace.Span, scraped, errored int, failure error) {
	if span.IsRecording() {
		span.SetAttributes(attribute.String("format", "metrics"),
			attribute.Int("scraped_metric_points", scraped), attribute.Int("errored_metric_points", errored))
		if failure != nil {
			span.SetStatus(codes.Error, failure.Error())
		}
	}
	span.End()
}

// end stops one target. It also ends its series if the target is removed and the
// receiver keeps running. Concurrent calls wait for the first one.
func (r *vllmReceiver) end(ctx context.Context, key string, t *runningTarget, removed bool) error {
	release := context.AfterFunc(ctx, t.sink.close)
	defer release()
	t.stop.Do(func() {
		defer close(t.gone)
		t.scraper.Stop()
		r.targets.Add(-1)
		t.turns.stop()
		if t.canaries != nil {
			t.canaries.stop()
		}
		t.scraper.Close()
		r.mu.Lock()
		stopping := r.stopped
		r.mu.Unlock()
		if removed && !stopping {
			out := pmetric.NewMetrics()
			now := t.scraper.End(out)
			t.err = errors.Join(t.err, r.send(outgoing{t.sink, pcommon.NewTimestampFromTime(now), out}))
			r.storeOwed(key, t.sink.ends.Close())
		}
		t.sink.close()
		r.mu.Lock()
		if removed && !stopping {
			r.remember(t)
		}
		delete(r.running, key)
		r.mu.Unlock()
		r.status.removed(key)
	})
	<-t.gone
	return t.err
}

// stopAll stops every target and waits, also for those that are stopping already.
func (r *vllmReceiver) stopAll(ctx context.Context) error {
	r.mu.Lock()
	if r.stopped {
		r.mu.Unlock()
		return nil
	}
	r.stopped = true
	running := make(map[string]*runningTarget, len(r.running))
	for key, t := range r.running {
		running[key] = t
		t.scraper.Stop()
	}
	r.mu.Unlock()

	var wg sync.WaitGroup
	errs := make(chan error, len(running))
	for key, t := range running {
		wg.Go(func() { errs <- r.end(ctx, key, t, false) })
	}
	wg.Wait()
	r.sending.Wait()
	// Wait for ends that are being sent again.
	r.resending.Lock()
	defer r.resending.Unlock()
	close(errs)
	var all error
	for err := range errs {
		all = errors.Join(all, err)
	}
	r.scrapes.Shutdown()
	return all
}

// remember keeps the series of a target that was removed, within the limit of targets. It needs mu.
func (r *vllmReceiver) remember(t *runningTarget) {
	now := time.Now()
	maps.DeleteFunc(r.left, func(_ string, l scrape.Left) bool { return l.Old(now) })
	if len(r.left)+len(r.running) <= r.config.Limits.Targets {
		r.left[t.key] = t.scraper.Leave()
	}
}

// continues gives a target the series that it had before it was removed, if it is the same one. It
// needs mu.
func (r *vllmReceiver) continues(t *runningTarget) {
	t.scraper.Continue(r.left[t.key])
	delete(r.left, t.key)
}
