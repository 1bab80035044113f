package check

import (
	"context"
	"maps"
	"strings"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.uber.org/zap"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/configfile"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/load"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
)

// poolInterval is that of pools here, and mostPools how long they are waited for.
const poolInterval, mostPools = 10 * time.Millisecond, 10 * time.Second

// process lets the processor see both scrapes of a target, and adds to what was seen: the
// number of series that the processor adds to the second one by metric, what the result and its
// pools cost, and the buckets of its percentiles. A processor that cannot start adds nothing; the
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
	if pool := own.Pool.Get(); pool != nil {
		pool.Interval = poolInterval
	}
	var last pmetric.Metrics
	pools := make(chan map[string]load.Load)
	sink, err := consumer.NewMetrics(func(ctx context.Context, batch pmetric.Metrics) error {
		// The resource of a pool is the collector.
		if _, is := batch.ResourceMetrics().At(0).Resource().Attributes().Get("otelcol.component.id"); is {
			select {
			case pools <- poolsOf(batch, cfg.Pool.Get().GroupBy):
			case <-ctx.Done():
			}
			return nil
		}
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
	if own.Pool.HasValue() && hasEngine(s.First) {
		waiting, cancel := context.WithTimeout(ctx, mostPools)
		defer cancel()
		for range 2 { // The first may have been made before the second scrape.
			select {
			case s.Pools = <-pools:
			case <-waiting.Done():
			}
		}
	}
	s.Quantiles = quantilesOf(last)
	s.Processed = series(last)
	removeUnless(last, func(name string) bool {
		m, known := catalog.ByName(name)
		return !known || !m.Derived() || isOn(m, cfg)
	})
	s.Batch = load.Of(last)
	for name, n := range series(second) {
		if s.Processed[name] -= n; s.Processed[name] <= 0 {
			delete(s.Processed, name)
		}
	}
}

// removeUnless removes the metrics that are not kept.
func removeUnless(batch pmetric.Metrics, keep func(name string) bool) {
	for _, resource := range batch.ResourceMetrics().All() {
		for _, scope := range resource.ScopeMetrics().All() {
			scope.Metrics().RemoveIf(func(m pmetric.Metric) bool { return !keep(m.Name()) })
		}
	}
}

// poolsOf returns what each pool of a batch costs, by the attributes that make it.
func poolsOf(batch pmetric.Metrics, groupBy []string) map[string]load.Load {
	out, all := map[string]load.Load{}, load.Of(batch)
	for m := range metricsOf(batch) {
		for _, p := range m.Gauge().DataPoints().All() { // All of pools are gauges.
			key := pcommon.NewMap()
			for _, name := range groupBy {
				key.PutStr(name, attribute(p.Attributes(), name))
			}
			l := out[keyOf(key)]
			l.Points, l.Series = l.Points+1, l.Series+1
			l.Raw, l.Packed = all.Raw*l.Points/max(1, all.Points), all.Packed*l.Points/max(1, all.Points)
			out[keyOf(key)] = l
		}
	}
	return out
}
