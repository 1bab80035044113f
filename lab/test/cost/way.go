// Package cost measures what the presets of the receiver and the processor cost a backend, and writes
// docs/reference/cost.md.
package cost

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/probe"
)

// way is the receiver and the processor in the time of recorded answers.
type way struct {
	servers   []*probe.Replay
	clock     *vllmprocessor.ManualClock
	processor processor.Metrics
	// left is what left the processor for servers since it was read, and pools what left it for pools last.
	left, pools pmetric.Metrics
}

// newWay returns a way for some servers, with settings of the two components.
func newWay(ctx context.Context, servers int, begin time.Time, receives, processes map[string]any) (*way, error) {
	w := &way{clock: vllmprocessor.NewManualClock(begin), left: pmetric.NewMetrics(), pools: pmetric.NewMetrics()}
	receiver := vllmreceiver.NewFactory().CreateDefaultConfig().(*vllmreceiver.Config)
	if err := confmap.NewFromStringMap(receives).Unmarshal(receiver); err != nil {
		return nil, err
	}
	replays, err := probe.NewReplays(receiver, "test")
	if err != nil {
		return nil, err
	}
	for i := range servers {
		replay, err := replays.Target(fmt.Sprintf("http://vllm-%d:8000", i), nil)
		if err != nil {
			return nil, err
		}
		w.servers = append(w.servers, replay)
	}
	factory := vllmprocessor.NewFactoryWithClock(w.clock)
	config := factory.CreateDefaultConfig().(*vllmprocessor.Config)
	if err := confmap.NewFromStringMap(processes).Unmarshal(config); err != nil {
		return nil, err
	}
	if err := config.Validate(); err != nil {
		return nil, err
	}
	w.processor, err = factory.CreateMetrics(ctx, processor.Settings{
		ID: component.NewID(factory.Type()),
		TelemetrySettings: component.TelemetrySettings{
			Logger: zap.NewNop(), TracerProvider: tracenoop.NewTracerProvider(), MeterProvider: metricnoop.NewMeterProvider(),
			Resource: pcommon.NewResource(),
		},
	}, config, w)
	if err != nil {
		return nil, err
	}
	return w, w.processor.Start(ctx, nobody{})
}

// nobody is a host without extensions.
type nobody struct{}

func (nobody) GetExtensions() map[component.ID]component.Component { return nil }

// Capabilities implements consumer.Metrics.
func (*way) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: true} }

// ConsumeMetrics implements consumer.Metrics.
func (w *way) ConsumeMetrics(_ context.Context, metrics pmetric.Metrics) error {
	if _, pools := metrics.ResourceMetrics().At(0).Resource().Attributes().Get("otelcol.component.id"); pools {
		w.pools = pmetric.NewMetrics()
		metrics.CopyTo(w.pools)
		return nil
	}
	metrics.ResourceMetrics().MoveAndAppendTo(w.left.ResourceMetrics())
	return nil
}

// scrape sends what all servers answer at a time, and returns what leaves the processor for them. An empty body is
// a server that refuses.
func (w *way) scrape(ctx context.Context, at time.Time, body, version string) (pmetric.Metrics, error) {
	w.clock.Advance(at)
	for _, server := range w.servers {
		var scraped pmetric.Metrics
		if body == "" {
			scraped = server.Fail(at, "refused")
		} else {
			scraped = server.Scrape(at, []byte(body), version)
		}
		if err := w.processor.ConsumeMetrics(ctx, scraped); err != nil {
			return pmetric.Metrics{}, err
		}
	}
	left := w.left
	w.left = pmetric.NewMetrics()
	return left, nil
}

// load is what some metrics cost.
type load struct {
	// series are those of OTLP, where a histogram is one; prometheus those with one for each bucket, the sum and the
	// count.
	series, prometheus int
	// custom are Datadog's custom metrics: a distribution counts as five.
	custom int
	// bytes are those of a request of OTLP, packed those with gzip.
	bytes, packed int
}

// loadOf returns what metrics cost. Staleness markers cost nothing, because the examples remove them or Prometheus
// counts no series for them.
func loadOf(metrics pmetric.Metrics) (l load) {
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				switch m.Type() {
				case pmetric.MetricTypeHistogram:
					for _, p := range m.Histogram().DataPoints().All() {
						l.add(p.Flags(), p.ExplicitBounds().Len()+3, 5)
					}
				case pmetric.MetricTypeSummary:
					for _, p := range m.Summary().DataPoints().All() {
						l.add(p.Flags(), p.QuantileValues().Len()+2, 2)
					}
				case pmetric.MetricTypeGauge:
					for _, p := range m.Gauge().DataPoints().All() {
						l.add(p.Flags(), 1, 1)
					}
				case pmetric.MetricTypeSum:
					for _, p := range m.Sum().DataPoints().All() {
						l.add(p.Flags(), 1, 1)
					}
				}
			}
		}
	}
	wire, _ := (&pmetric.ProtoMarshaler{}).MarshalMetrics(metrics)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(wire)
	_ = z.Close()
	l.bytes, l.packed = len(wire), packed.Len()
	return l
}

func (l *load) add(flags pmetric.DataPointFlags, prometheus, custom int) {
	if !flags.NoRecordedValue() {
		l.series, l.prometheus, l.custom = l.series+1, l.prometheus+prometheus, l.custom+custom
	}
}
