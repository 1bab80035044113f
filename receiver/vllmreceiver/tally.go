package vllmreceiver

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/metadata"
)

// tally collects what is added to counters in each scrape, and adds it to them about once a
// second. To add to a counter costs a few microseconds on a processor that was idle, because
// the SDK looks its attributes up; six of them were a tenth of a scrape.
type tally struct {
	mu      sync.Mutex
	pending []pendingCount
	flushed time.Time
	// later adds the counts for which it was too early; nil if there are none.
	later *time.Timer
}

// pendingCount is a counter with one set of attributes.
type pendingCount struct {
	counter metric.Int64Counter
	options []metric.AddOption
	count   int64
}

// tallied is the place of a counter in a tally.
type tallied int

// newCount registers a counter with its attributes. It must not be called during a scrape.
func (t *tally) newCount(counter metric.Int64Counter, options ...metric.AddOption) tallied {
	t.pending = append(t.pending, pendingCount{counter: counter, options: options})
	return tallied(len(t.pending) - 1)
}

// add counts.
func (t *tally) add(c tallied, n int64) {
	if n == 0 {
		return
	}
	t.mu.Lock()
	t.pending[c].count += n
	t.mu.Unlock()
}

// flushInterval is how long counts may wait.
const flushInterval = time.Second

// flush adds the counts to their counters. If that was done within the last second, it is done
// when the second is over: the next scrape may be an hour away.
func (t *tally) flush(ctx context.Context, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if passed := at.Sub(t.flushed); passed >= 0 && passed < flushInterval {
		if t.later == nil {
			t.later = time.AfterFunc(flushInterval-passed, t.flushLater)
		}
		return
	}
	t.flushed = at
	t.flushAll(ctx)
}

func (t *tally) flushLater() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.later, t.flushed = nil, time.Now()
	t.flushAll(context.Background())
}

// close adds the last counts. No scrape may follow.
func (t *tally) close(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.later != nil {
		t.later.Stop()
	}
	t.flushAll(ctx)
}

func (t *tally) flushAll(ctx context.Context) {
	for i := range t.pending {
		if p := &t.pending[i]; p.count != 0 {
			p.counter.Add(ctx, p.count, p.options...)
			p.count = 0
		}
	}
}

// scrapedPoints counts what the collector's scrape helper counts for other receivers, under
// the same names, because dashboards of collectors show it.
type scrapedPoints struct{ scraped, errored tallied }

// helperScope is the instrumentation scope of the collector's scrape helper.
const helperScope = "go.opentelemetry.io/collector/scraper/scraperhelper"

func newScrapedPoints(t *tally, settings receiver.Settings) (scrapedPoints, error) {
	meter := settings.MeterProvider.Meter(helperScope)
	scraped, err := meter.Int64Counter("otelcol_scraper_scraped_metric_points",
		metric.WithDescription("Number of metric points successfully scraped. [Alpha]"), metric.WithUnit("{datapoint}"))
	if err != nil {
		return scrapedPoints{}, err
	}
	errored, err := meter.Int64Counter("otelcol_scraper_errored_metric_points",
		metric.WithDescription("Number of metric points that were unable to be scraped. [Alpha]"), metric.WithUnit("{datapoint}"))
	if err != nil {
		return scrapedPoints{}, err
	}
	attributes := metric.WithAttributeSet(attribute.NewSet(
		attribute.String("receiver", settings.ID.String()), attribute.String("scraper", metadata.Type.String())))
	// A rate shows the first error only if the counter was there before.
	scraped.Add(context.Background(), 0, attributes)
	errored.Add(context.Background(), 0, attributes)
	return scrapedPoints{t.newCount(scraped, attributes), t.newCount(errored, attributes)}, nil
}
