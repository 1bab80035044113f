package judge

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
)

// diagnosis is the processor as a black box, in the time of a story, which begins at begin.
type diagnosis struct {
	begin     time.Time
	clock     *vllmprocessor.ManualClock
	config    *vllmprocessor.Config
	processor processor.Metrics
	// last is what it emitted last for a server, and pool what it emitted last for pools.
	last, pools pmetric.Metrics
	pool        *report
}

// begin is when stories begin: a Monday.
var begin = time.Date(2026, time.January, 5, 0, 0, 0, 0, time.UTC)

func newDiagnosis(ctx context.Context, config *vllmprocessor.Config, begin time.Time) (*diagnosis, error) {
	d := &diagnosis{begin: begin, clock: vllmprocessor.NewManualClock(begin), config: config, last: pmetric.NewMetrics(), pools: pmetric.NewMetrics()}
	factory := vllmprocessor.NewFactoryWithClock(d.clock)
	settings := processor.Settings{
		ID: component.NewID(factory.Type()),
		TelemetrySettings: component.TelemetrySettings{
			Logger: zap.NewNop(), TracerProvider: tracenoop.NewTracerProvider(), MeterProvider: metricnoop.NewMeterProvider(),
			Resource: pcommon.NewResource(),
		},
	}
	var err error
	if d.processor, err = factory.CreateMetrics(ctx, settings, config, output{d}); err != nil {
		return nil, fmt.Errorf("processor: %w", err)
	}
	if err := d.processor.Start(ctx, host{}); err != nil {
		return nil, fmt.Errorf("processor: %w", err)
	}
	return d, nil
}

// host has no extensions: nothing outlives a story.
type host struct{}

func (host) GetExtensions() map[component.ID]component.Component { return nil }

// output receives what the processor emits.
type output struct{ *diagnosis }

func (output) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (o output) ConsumeMetrics(_ context.Context, metrics pmetric.Metrics) error {
	if metrics.ResourceMetrics().Len() > 0 {
		if _, pools := metrics.ResourceMetrics().At(0).Resource().Attributes().Get("otelcol.component.id"); pools {
			r := readReport(metrics, poolPrefix)
			o.pool, o.pools = &r, metrics
			return nil
		}
	}
	o.last = metrics
	return nil
}

// advance moves the time to so many seconds after the beginning.
func (d *diagnosis) advance(to float64) { d.clock.Advance(d.begin.Add(seconds(to))) }

// observe gives the processor a scrape, and returns what it reports about the server.
func (d *diagnosis) observe(ctx context.Context, metrics pmetric.Metrics) (report, error) {
	d.last = pmetric.NewMetrics()
	if err := d.processor.ConsumeMetrics(ctx, metrics); err != nil {
		return report{}, fmt.Errorf("processor: %w", err)
	}
	return readReport(d.last, serverPrefix), nil
}
