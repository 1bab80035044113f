package check

import (
	"context"
	"maps"
	"strings"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/configfile"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
)

// process lets the processor see both scrapes of a target, and adds to what was seen: the
// number of series that the processor adds to the second one by metric, the size of the
// result, and the buckets of its percentiles. A processor that cannot start adds nothing; the
// check of the configuration says why.
func (s *Seen) process(ctx context.Context, cfg *vllmprocessor.Config) {
	first, second := s.First.Emitted, s.Second.Emitted
	own := *cfg
	// What the collector keeps is not touched.
	own.Storage = nil
	own.Metrics = maps.Clone(cfg.Metrics)
	if own.Metrics == nil {
		own.Metrics = map[string]vllmprocessor.MetricConfig{}
	}
	on := true
	for i := range catalog.All() {
		m := &catalog.All()[i]
		quantile, bounds := strings.CutSuffix(m.Name, "_bound")
		of, known := catalog.ByName(quantile)
		if bounds && known && m.Derived() && len(cfg.Derived.Quantiles) > 0 && isOn(of, cfg) {
			own.Metrics[m.Name] = vllmprocessor.MetricConfig{Enabled: &on}
		}
	}
	var last pmetric.Metrics
	sink, err := consumer.NewMetrics(func(_ context.Context, batch pmetric.Metrics) error {
		last = batch
		return nil
	})
	if err != nil {
		return
	}
	factory := vllmprocessor.NewFactory()
	p, err := factory.CreateMetrics(ctx, processor.Settings{
		ID: component.NewID(factory.Type()), TelemetrySettings: configfile.Telemetry(zap.NewNop()),
	}, &own, sink)
	if err != nil {
		return
	}
	if p.Start(ctx, &configfile.Host{}) != nil {
		return
	}
	defer p.Shutdown(context.WithoutCancel(ctx)) //nolint:errcheck // nothing is stored
	for _, batch := range []pmetric.Metrics{first, second} {
		whole := pmetric.NewMetrics()
		batch.CopyTo(whole)
		last = pmetric.NewMetrics()
		if p.ConsumeMetrics(ctx, whole) != nil {
			return
		}
	}
	s.BatchBytes = (&pmetric.ProtoMarshaler{}).MetricsSize(last)
	s.BatchPoints = last.DataPointCount()
	s.Quantiles = quantilesOf(last)
	s.Processed = series(last)
	for name, n := range series(second) {
		if s.Processed[name] -= n; s.Processed[name] <= 0 {
			delete(s.Processed, name)
		}
	}
}
