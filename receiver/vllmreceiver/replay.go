package vllmreceiver

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/fetch"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/metadata"
)

// Replays turn bodies that were recorded into what the receiver would have emitted for them
// at their times. They take the way of a live scrape after the fetch. The targets of one
// Replays share the memory of layouts, as the targets of a receiver do.
type Replays struct{ receiver *vllmReceiver }

// NewReplays returns replays with the settings of a receiver; version is that of the scope
// of the points.
func NewReplays(config *Config, version string) (*Replays, error) {
	settings := receiver.Settings{
		ID: component.NewID(metadata.Type),
		TelemetrySettings: component.TelemetrySettings{
			Logger: zap.NewNop(), TracerProvider: tracenoop.NewTracerProvider(), MeterProvider: metricnoop.NewMeterProvider(),
			Resource: pcommon.NewResource(),
		},
		BuildInfo: component.BuildInfo{Version: version},
	}
	nowhere, err := consumer.NewMetrics(func(context.Context, pmetric.Metrics) error { return nil })
	if err != nil {
		return nil, err
	}
	r, err := newReceiver(config, settings, nowhere)
	if err != nil {
		return nil, err
	}
	return &Replays{r}, nil
}

// Replay is one target whose recorded bodies are replayed in the order of their times. It is
// not safe for concurrent use; those of several targets may run at the same time.
type Replay struct {
	scraper *targetScraper
	now     time.Time
	version string
}

// Target begins the replay of one target, whose endpoint is written as in the configuration.
// The attributes are added to its resource, as resource_attributes are.
func (r *Replays) Target(endpoint string, attributes map[string]any) (*Replay, error) {
	address, err := parseEndpoint(endpoint)
	if err != nil {
		return nil, fmt.Errorf("endpoint: %w", err)
	}
	one := &Replay{scraper: r.receiver.newScraper(target{address: address, attributes: attributes})}
	one.scraper.now = func() time.Time { return one.now }
	one.scraper.askedVersion = func(context.Context) (string, error) { return one.version, nil }
	return one, nil
}

// Scrape returns the points of a body in the Prometheus text format that the server showed
// at a time. version is what GET /version answered, empty if that is not known. A body that
// is no metrics is a failed scrape, and its points say so.
func (r *Replay) Scrape(at time.Time, body []byte, version string) pmetric.Metrics {
	r.now, r.version = at, version
	out := pmetric.NewMetrics()
	// The error repeats what the points of a failed scrape show.
	_ = r.scraper.take(context.Background(), at, nil, &fetch.Answer{ContentType: fetch.Accept}, bytes.NewBuffer(body), out)
	return out
}

// Fail returns the points of a scrape that failed at a time. outcome is a value of the
// attribute of vllm.scrape.failure, "refused" for example; other if it is unknown or empty.
func (r *Replay) Fail(at time.Time, outcome string) pmetric.Metrics {
	r.now = at
	failed := &fetch.Error{Outcome: fetch.OutcomeOther, Message: "the scrape failed"}
	for _, o := range fetch.Outcomes() {
		if o.String() == outcome {
			failed.Outcome = o
		}
	}
	out := pmetric.NewMetrics()
	_ = r.scraper.fail(failed, at, nil, out)
	return out
}

// End returns the ends of all series, as for a target that is no longer scraped.
func (r *Replay) End(at time.Time) pmetric.Metrics {
	out := pmetric.NewMetrics()
	r.scraper.emitter.End(at, out)
	return out
}

// Close frees the memory of the target.
func (r *Replay) Close() {
	r.scraper.cancel()
	r.scraper.reader.Release()
}
