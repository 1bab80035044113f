package vllmreceiver

import (
	"context"

	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/metadata"
)

// scrapedPoints counts what the collector's scrape helper counts for other receivers, under
// the same names, because dashboards of collectors show it.
type scrapedPoints struct {
	scraped, errored metric.Int64Counter
	of               metric.MeasurementOption
}

// add counts one scrape.
func (p *scrapedPoints) add(ctx context.Context, scraped, errored int) {
	p.scraped.Add(ctx, int64(scraped), p.of)
	p.errored.Add(ctx, int64(errored), p.of)
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
