package vllmprocessor

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processorhelper"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadata"
)

// NewFactory returns the factory of the vllm processor.
func NewFactory() processor.Factory {
	factory := &factory{}
	return processor.NewFactory(
		metadata.Type,
		createDefaultConfig,
		processor.WithMetrics(factory.createMetricsProcessor, metadata.MetricsStability),
	)
}

// factory has what the instances of one processor in several pipelines share.
type factory struct{ archives archives }

func (f *factory) createMetricsProcessor(
	ctx context.Context, settings processor.Settings, cfg component.Config, next consumer.Metrics,
) (processor.Metrics, error) {
	p, err := newProcessor(cfg.(*Config), settings, next)
	if err == nil {
		err = p.keep(&f.archives)
	}
	if err != nil {
		return nil, err
	}
	return processorhelper.NewMetrics(ctx, settings, cfg, next, p.process,
		processorhelper.WithCapabilities(consumer.Capabilities{MutatesData: true}),
		processorhelper.WithStart(p.start),
		processorhelper.WithShutdown(p.shutdown),
	)
}
