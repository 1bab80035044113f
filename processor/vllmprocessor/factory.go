package vllmprocessor

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processorhelper"

	"github.com/otelcol-vllm/otelcol-vllm/internal/refused"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadata"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/stages"
)

// NewFactory returns the factory of the vllm processor.
func NewFactory() processor.Factory { return NewFactoryWithClock(realClock{}) }

// NewFactoryWithClock returns a factory of processors that take the time from a clock other
// than that of the machine, for simulations and for tests on recorded metrics: there, days
// pass in seconds. The points of a batch must not be ahead of the clock. A clock that moves
// only when its owner says so can call what Every was given at that moment, in the
// goroutine of its owner.
func NewFactoryWithClock(by Clock) processor.Factory {
	factory := &factory{clock: by}
	return processor.NewFactory(
		metadata.Type,
		createDefaultConfig,
		processor.WithMetrics(factory.createMetricsProcessor, metadata.MetricsStability),
	)
}

// factory has what the instances of one processor in several pipelines share.
type factory struct {
	clock    Clock
	archives archive.Shared
}

func (f *factory) createMetricsProcessor(
	ctx context.Context, settings processor.Settings, cfg component.Config, next consumer.Metrics,
) (processor.Metrics, error) {
	p, err := newProcessor(cfg.(*Config), settings, next, &f.archives, f.clock)
	if err != nil {
		return nil, err
	}
	return p.component(ctx, settings, next)
}

// component returns the processor as a pipeline runs it.
func (p *vllmProcessor) component(ctx context.Context, settings processor.Settings, next consumer.Metrics) (processor.Metrics, error) {
	inner, err := processorhelper.NewMetrics(ctx, settings, p.config, next, p.process,
		processorhelper.WithCapabilities(consumer.Capabilities{MutatesData: true}),
		processorhelper.WithStart(p.start),
		processorhelper.WithShutdown(p.shutdown),
	)
	if err != nil {
		return nil, err
	}
	room := func() int { return refused.Share(p.numResources()) }
	return emit.Reporting{Metrics: inner, Room: room, Dropped: p.telemetry.DroppedEnds}, nil
}

// addStages makes the list of stages that the configuration asks for. This is the one
// place that a new stage is added to. Every stage observes a batch, and then every stage
// appends what it derives, both in this order.
func (p *vllmProcessor) addStages(shared *stages.Processor) error {
	config := p.config
	values, err := stages.NewDerived(&config.Derived, shared)
	if err != nil {
		return err
	}
	p.stages = []stages.Stage{values, stages.NewGPUs(shared)}
	if len(config.Objectives) > 0 {
		promises, err := stages.NewObjectives(config.Objectives, config.BudgetWindow, config.BurnWindows, shared)
		if err != nil {
			return err
		}
		p.window.Steps = promises.Steps()
		p.stages = append(p.stages, promises)
	}
	var engines *stages.Diagnosis
	if config.Diagnosis.Enabled {
		engines = stages.NewDiagnosis(&config.Diagnosis, config.Objectives, shared)
		p.stages = append(p.stages, engines)
	}
	if pool := config.Pool.Get(); pool != nil {
		p.stages = append(p.stages, stages.NewPools(pool, values, engines, shared))
	}
	return nil
}
