package vllmreceiver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/internal/ending"
	"github.com/otelcol-vllm/otelcol-vllm/internal/refused"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/discover"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/metadata"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/scrape"
)

// vllmReceiver scrapes each target at times of its own, so that a slow target delays no
// other. Targets can come and go while it runs (running.go).
type vllmReceiver struct {
	config   *Config
	settings receiver.Settings
	points   scrapedPoints
	scrapes  *scrape.Group
	next     consumer.Metrics

	mu   sync.Mutex
	host component.Host
	// began is when it was started.
	began  time.Time
	rounds rounds
	// sending waits for requests with the points of several targets.
	sending sync.WaitGroup
	// running has the targets by address, including those that are stopping.
	running map[string]*runningTarget
	stopped bool
	// left are the removed targets, by address.
	left map[string]scrape.Left
	// owed are the ends of removed targets that the pipeline refused, by address
	// (owed.go). resending is held while they are sent again.
	owed      map[string]refused.Ends
	resending sync.Mutex
	// loses is true once ends were lost because there was no room for them.
	loses atomic.Bool

	// targets is the number of running targets. Self-telemetry reads it without mu.
	targets atomic.Int64

	// overflow is the number of discovered targets above limits::targets.
	overflow atomic.Int64
	// counts are what discovery has found; nil before it has called back.
	counts atomic.Pointer[discover.Counts]

	// status reports the component status.
	status *receiverStatus
	// observed counts the points that are sent.
	observed *receiverhelper.ObsReport
	tracer   trace.Tracer

	// discovery finds targets; nil if it is not configured.
	discovery *targetDiscovery
}

func newReceiver(cfg *Config, settings receiver.Settings, next consumer.Metrics) (*vllmReceiver, error) {
	scrapes, err := scrape.NewGroup(cfg, settings)
	if err != nil {
		return nil, err
	}
	points, err := newScrapedPoints(settings)
	if err != nil {
		return nil, err
	}
	observed, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: settings.ID, ReceiverCreateSettings: settings,
	})
	if err != nil {
		return nil, err
	}
	return &vllmReceiver{
		config: cfg, settings: settings, points: points, scrapes: scrapes, next: next,
		rounds:  rounds{open: map[time.Time]*round{}},
		running: map[string]*runningTarget{}, left: map[string]scrape.Left{}, owed: map[string]refused.Ends{},
		status: newReceiverStatus(), observed: observed, tracer: settings.TracerProvider.Tracer(helperScope),
	}, nil
}

// Start starts the targets of the configuration. If one of them cannot start, for
// example because its certificate cannot be read, the configuration is wrong and the
// collector does not start.
func (r *vllmReceiver) Start(ctx context.Context, host component.Host) error {
	r.mu.Lock()
	r.host, r.began = host, time.Now()
	r.mu.Unlock()
	r.status.start(host)
	if moved := r.config.Moved; len(moved) > 0 {
		r.settings.Logger.Warn("Settings have moved to another section; the old names work until the Collector removes them",
			zap.Strings("settings", moved[:min(len(moved), 10)]), zap.Int("count", len(moved)))
	}
	if err := r.registerGauges(); err != nil {
		return err
	}
	targets := scrape.Configured(r.config)
	for i, t := range targets {
		if err := r.add(ctx, t, phaseOf(r.config.Controller.CollectionInterval, i, len(targets))); err != nil {
			return errors.Join(fmt.Errorf("%s: %w", scrape.InstanceID(t.Address), err), r.stopAll(ctx))
		}
	}
	discovery, err := startDiscovery(r, targets)
	if err != nil {
		return errors.Join(fmt.Errorf("discovery: %w", err), r.stopAll(ctx))
	}
	r.mu.Lock()
	r.discovery = discovery
	r.mu.Unlock()
	return nil
}

// Shutdown stops every target and waits for it. It is safe without Start and more than
// once. It cancels fetches at once; batches that are being sent may finish until ctx
// ends or the bound of package ending is over.
func (r *vllmReceiver) Shutdown(ctx context.Context) error {
	r.mu.Lock()
	discovery := r.discovery
	r.mu.Unlock()
	r.status.stop()
	ended, err := ending.Within(ctx, func(ctx context.Context) error {
		// Discovery stops first, so that it adds no target after this.
		return errors.Join(discovery.shutdown(ctx), r.stopAll(ctx))
	})
	if !ended {
		r.settings.Logger.Warn("The next component still holds points; the shutdown continues without it. " +
			"Give the exporter a timeout or a sending_queue")
	}
	return err
}

// registerGauges registers the gauges of self-telemetry. Each has the receiver's name, because all
// receivers of a collector share the instruments, and of equal series only the last value counts.
func (r *vllmReceiver) registerGauges() error {
	t := r.scrapes.Telemetry
	name := attribute.String("receiver", r.settings.ID.String())
	named := metric.WithAttributeSet(attribute.NewSet(name))
	observing := func(number func() int64) metric.Int64Callback {
		return func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(number(), named)
			return nil
		}
	}
	return errors.Join(
		t.RegisterReceiverVllmTargetsCallback(observing(r.targets.Load)),
		t.RegisterReceiverVllmLayoutsCallback(observing(func() int64 {
			_, layouts, _ := r.scrapes.Memory.Stats()
			return int64(layouts)
		})),
		t.RegisterReceiverVllmLayoutOverflowCallback(observing(func() int64 {
			_, _, overflow := r.scrapes.Memory.Stats()
			return int64(overflow)
		})),
		t.RegisterReceiverVllmDiscoveredTargetsCallback(func(_ context.Context, o metric.Int64Observer) error {
			observeCounts(o, name, r.counts.Load())
			return nil
		}),
		t.RegisterReceiverVllmTargetOverflowCallback(observing(r.overflow.Load)),
	)
}

// scrapedPoints counts what the collector's scrape helper counts for other receivers, under
// the same names, because dashboards of collectors show it.
type scrapedPoints struct {
	scraped, errored metric.Int64Counter
	of               metric.MeasurementOption
}

// helperScope is the instrumentation scope of the collector's scrape helper.
const helperScope = "go.opentelemetry.io/collector/scraper/scraperhelper"

func newScrapedPoints(settings receiver.Settings) (scrapedPoints, error) {
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
	return scrapedPoints{scraped, errored, attributes}, nil
}
