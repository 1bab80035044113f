package truth

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/network"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
)

// Point is a derived value.
type Point struct {
	Metric     string
	Attributes map[string]string
	Value      float64
}

// Scrape is what was derived at a scrape.
type Scrape struct {
	// At is in seconds since the server was ready.
	At     float64
	Points []Point
}

// Observed is what was derived in a case, and what really happened.
type Observed struct {
	Case    *Case
	Scrapes []Scrape
	// Journal is in the order of time.
	Journal []engine.Event
	// requests are the events of requests.
	requests []engine.Event
}

const host = "vllm-0:8000"

// Play carries out a case in virtual time.
func Play(t *testing.T, c *Case) *Observed {
	t.Helper()
	o := &Observed{Case: c}
	synctest.Test(t, func(t *testing.T) { o.play(t) })
	slices.SortStableFunc(o.Journal, func(a, b engine.Event) int { return cmp.Compare(a.At, b.At) })
	for i := range o.Journal {
		if o.Journal[i].Kind != engine.EventStep {
			o.requests = append(o.requests, o.Journal[i])
		}
	}
	return o
}

func (o *Observed) play(t *testing.T) {
	t.Helper()
	begin := time.Now()
	config := o.Case.Config
	config.Clock, config.Start = time.Now, begin
	config.Journal = func(_ int, e engine.Event) { o.Journal = append(o.Journal, e) }
	server, err := vllmsim.New(config)
	require.NoError(t, err)
	hosts := network.New()
	hosts.Put(host, server.Targets()[0])

	factory := vllmprocessor.NewFactory()
	settings := factory.CreateDefaultConfig().(*vllmprocessor.Config)
	require.NoError(t, confmap.NewFromStringMap(everything(!o.Case.NoBlocks)).Unmarshal(settings))
	require.NoError(t, settings.Validate())
	end, err := consumer.NewMetrics(func(_ context.Context, metrics pmetric.Metrics) error {
		o.take(begin, metrics)
		return nil
	})
	require.NoError(t, err)
	processor, err := factory.CreateMetrics(t.Context(), processortest.NewNopSettings(factory.Type()), settings, end)
	require.NoError(t, err)
	require.NoError(t, processor.Start(t.Context(), hosts))
	next, err := consumer.NewMetrics(func(ctx context.Context, metrics pmetric.Metrics) error {
		if o.Case.Unknown {
			forget(metrics)
		}
		return processor.ConsumeMetrics(ctx, metrics)
	}, consumer.WithCapabilities(consumer.Capabilities{MutatesData: true}))
	require.NoError(t, err)

	source := vllmreceiver.NewFactory()
	from := source.CreateDefaultConfig().(*vllmreceiver.Config)
	section := map[string]any{
		"targets": []any{map[string]any{"endpoint": "http://" + host}}, "collection_interval": o.Case.Every.String(),
		"initial_delay": "1s", "health_check": true, "capacity_from_blocks": !o.Case.NoBlocks,
		"middlewares": []any{map[string]any{"id": network.ID.String()}},
	}
	if o.Case.Unknown {
		section["naming"] = "wire"
	}
	require.NoError(t, confmap.NewFromStringMap(section).Unmarshal(from))
	require.NoError(t, from.Validate())
	receiver, err := source.CreateMetrics(t.Context(), receivertest.NewNopSettings(source.Type()), from, next)
	require.NoError(t, err)
	require.NoError(t, receiver.Start(t.Context(), hosts))
	time.Sleep(o.Case.Length)
	synctest.Wait()
	require.NoError(t, receiver.Shutdown(t.Context()))
	require.NoError(t, processor.Shutdown(t.Context()))
}

var _ http.Handler = (*vllmsim.Target)(nil)

// everything is a configuration of the processor with every derived metric.
func everything(fromBlocks bool) map[string]any {
	metrics := map[string]any{}
	for _, m := range catalog.All() {
		// Pools and objectives are switched on by settings of their own.
		if m.EmittedBy == "processor" && m.Needs != "`pool`" && !strings.HasPrefix(m.Name, "vllm.pool.") && !strings.HasPrefix(m.Name, "vllm.slo.") {
			metrics[m.Name] = map[string]any{"enabled": true}
		}
	}
	return map[string]any{
		"metrics": metrics, "capacity_from_blocks": fromBlocks, "percentiles": map[string]any{"per_engine": true},
		"hardware": []any{map[string]any{"gpu": "H100-SXM"}},
	}
}

// forget removes what a receiver that is not ours does not know.
func forget(metrics pmetric.Metrics) {
	for _, rm := range metrics.ResourceMetrics().All() {
		rm.Resource().Attributes().Remove("service.version")
		for _, sm := range rm.ScopeMetrics().All() {
			sm.Scope().SetName("another receiver")
		}
	}
}

// take keeps what the processor has added to a batch.
func (o *Observed) take(begin time.Time, metrics pmetric.Metrics) {
	scrape := Scrape{At: time.Since(begin).Seconds()}
	const scope = "github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				// The receiver computes one of them where it can.
				if sm.Scope().Name() != scope && m.Name() != "vllm.kv_cache.capacity" {
					continue
				}
				for _, p := range m.Gauge().DataPoints().All() {
					if !p.Flags().NoRecordedValue() {
						scrape.Points = append(scrape.Points, Point{m.Name(), texts(p.Attributes()), number(p)})
					}
				}
			}
		}
	}
	o.Scrapes = append(o.Scrapes, scrape)
}

// number is a point's number: of the two, the one that it does not have is 0.
func number(p pmetric.NumberDataPoint) float64 { return p.DoubleValue() + float64(p.IntValue()) }

func texts(attributes pcommon.Map) map[string]string {
	out := map[string]string{}
	for k, v := range attributes.All() {
		out[k] = v.AsString()
	}
	return out
}
