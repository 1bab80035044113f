// Package cost measures what the presets of the receiver and the processor cost a backend, and writes
// docs/reference/cost.md.
package cost

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"

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
	replays, err := probe.NewReplays(receiver)
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
	w.processor, err = factory.CreateMetrics(ctx, processortest.NewNopSettings(factory.Type()), config, w)
	if err != nil {
		return nil, err
	}
	return w, w.processor.Start(ctx, componenttest.NewNopHost())
}

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
