package vllmreceiver

import (
	"context"
	"errors"
	"hash/fnv"
	"net/url"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/scraper"
	"go.opentelemetry.io/collector/scraper/scrapererror"
	"go.opentelemetry.io/collector/scraper/scraperhelper"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/metadata"
)

var errNotRunning = errors.New("the receiver is not running")

// runningTarget is a target with its controller.
type runningTarget struct {
	scraper    *targetScraper
	controller receiver.Metrics
	sink       *sink
	// stop stops it once; gone is closed when it has stopped.
	stop sync.Once
	gone chan struct{}
	err  error
}

// Add starts a target while the receiver runs. A target that is scraped already does not
// change. If a target of the same address is stopping, Add waits for it, so that its end
// is before the first points of the new one.
func (r *vllmReceiver) Add(ctx context.Context, t target) error {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(t.address.String()))
	interval := t.interval
	if interval == 0 {
		interval = r.shared.config.Controller.CollectionInterval
	}
	return r.add(ctx, t, time.Duration(hash.Sum64()%uint64(interval)))
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
		running.scraper.pod.Store(pod)
	}
}

// add starts one target after an offset. It first waits for a target of the same address
// that is stopping.
func (r *vllmReceiver) add(ctx context.Context, t target, offset time.Duration) error {
	key := t.address.String()
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
func (r *vllmReceiver) tryAdd(ctx context.Context, key string, t target, offset time.Duration) (<-chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped || r.host == nil {
		return nil, errNotRunning
	}
	if running, ok := r.running[key]; ok {
		if running.scraper.stopped.Err() != nil {
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

// start starts one target after an offset. owed are the ends of a former target of the
// same address that were refused.
func (r *vllmReceiver) start(ctx context.Context, t target, offset time.Duration, owed emit.Owed) (*runningTarget, error) {
	running := &runningTarget{scraper: r.newScraper(t), sink: r.newSink(), gone: make(chan struct{})}
	running.sink.owed = owed
	s := running.scraper
	scrape := func(ctx context.Context) (pmetric.Metrics, error) { return r.scrape(ctx, running) }
	metrics, err := scraper.NewMetrics(scrape, scraper.WithStart(s.start), scraper.WithShutdown(s.shutdown))
	if err != nil {
		return nil, err
	}
	config := r.shared.config.Controller
	config.InitialDelay += offset
	if t.interval > 0 {
		config.CollectionInterval = t.interval
	}
	// The deadline of the helper would include sending; fetch has its own deadline.
	config.Timeout = 0
	settings := r.shared.settings
	// The helper would log every failed scrape; the scraper logs only changes.
	settings.Logger = zap.NewNop()
	running.controller, err = scraperhelper.NewMetricsController(
		&config, settings, running.sink, scraperhelper.AddMetricsScraper(metadata.Type, metrics))
	if err != nil {
		return nil, err
	}
	r.status.added(t.address.String())
	if err := running.controller.Start(ctx, r.host); err != nil {
		r.status.removed(t.address.String())
		return nil, err
	}
	return running, nil
}

// scrape returns the points of a successful scrape, and the helper sends them. It sends
// the points of a failed scrape itself: the helper would drop them if there is an error,
// and would count them as scraped if there is none.
func (r *vllmReceiver) scrape(ctx context.Context, t *runningTarget) (pmetric.Metrics, error) {
	out, failure := t.scraper.scrape(ctx)
	t.sink.appendOwed(out)
	if failure == nil && t.scraper.stopped.Err() != nil {
		// The scrape may have been canceled.
		return out, nil
	}
	address := t.scraper.identity.address
	if failure == nil || !t.scraper.draining() {
		r.status.scraped(address.String(), instanceID(address), failure)
	}
	if failure == nil {
		return out, nil
	}
	// The pipeline counts the points that the next consumer refuses.
	_ = r.send(ctx, t.sink, out)
	return pmetric.NewMetrics(), scrapererror.NewPartialScrapeError(failure, max(1, t.scraper.metrics))
}

// send sends points that the helper does not send, and counts them as the helper does.
func (r *vllmReceiver) send(ctx context.Context, to *sink, out pmetric.Metrics) error {
	points := out.DataPointCount()
	if points == 0 {
		return nil
	}
	ctx = r.observed.StartMetricsOp(ctx)
	err := to.ConsumeMetrics(ctx, out)
	r.observed.EndMetricsOp(ctx, "", points, err)
	return err
}

// end stops one target. It also ends its series if the target is removed and the
// receiver keeps running. Concurrent calls wait for the first one.
func (r *vllmReceiver) end(ctx context.Context, key string, t *runningTarget, removed bool) error {
	release := context.AfterFunc(ctx, t.sink.close)
	defer release()
	t.stop.Do(func() {
		defer close(t.gone)
		t.scraper.cancel()
		r.targets.Add(-1)
		t.err = t.controller.Shutdown(ctx)
		r.mu.Lock()
		stopping := r.stopped
		r.mu.Unlock()
		if removed && !stopping {
			out := pmetric.NewMetrics()
			now := t.scraper.now()
			t.scraper.emitter.End(now, out)
			t.sink.owed.AppendAt(pcommon.NewTimestampFromTime(now), out)
			t.err = errors.Join(t.err, r.send(ctx, t.sink, out))
			r.storeOwed(key, t.sink.owed)
		}
		t.sink.close()
		r.mu.Lock()
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
		t.scraper.cancel()
	}
	r.mu.Unlock()

	var wg sync.WaitGroup
	errs := make(chan error, len(running))
	for key, t := range running {
		wg.Go(func() { errs <- r.end(ctx, key, t, false) })
	}
	wg.Wait()
	// Wait for ends that are being sent again.
	r.resending.Lock()
	defer r.resending.Unlock()
	close(errs)
	var all error
	for err := range errs {
		all = errors.Join(all, err)
	}
	r.shared.defects.Close()
	r.shared.telemetry.Shutdown()
	return all
}
