package collect

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// body is what a server with several engines says: every input once for each
// engine, three times where it has labels.
func body(engines int, name func(input.Metric) string) pmetric.Metrics {
	metrics := pmetric.NewMetrics()
	rm := metrics.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.instance.id", "a")
	sm := rm.ScopeMetrics().AppendEmpty()
	for in := range input.NumMetrics {
		if in.Define().Name == "" {
			continue
		}
		m := sm.Metrics().AppendEmpty()
		m.SetName(name(in))
		about := func(p interface {
			SetTimestamp(pcommon.Timestamp)
			Attributes() pcommon.Map
		}, engine int, label string,
		) {
			p.SetTimestamp(1e9)
			p.Attributes().PutStr("engine", strconv.Itoa(engine))
			p.Attributes().PutStr("model_name", "meta-llama/Llama-3.1-8B-Instruct")
			for _, l := range in.Define().Labels {
				p.Attributes().PutStr(l, label)
			}
		}
		switch in.Define().Kind {
		case input.Counter:
			m.SetEmptySum().SetIsMonotonic(true)
			m.Sum().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		case input.Gauge:
			m.SetEmptyGauge()
		case input.Distribution:
			m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		}
		for engine := range engines {
			for i := range 1 + 2*min(1, len(in.Define().Labels)) {
				switch in.Define().Kind {
				case input.Counter:
					about(m.Sum().DataPoints().AppendEmpty(), engine, strconv.Itoa(i))
				case input.Gauge:
					about(m.Gauge().DataPoints().AppendEmpty(), engine, strconv.Itoa(i))
				case input.Distribution:
					p := m.Histogram().DataPoints().AppendEmpty()
					about(p, engine, strconv.Itoa(i))
					for b := range 20 {
						p.ExplicitBounds().Append(float64(b))
						p.BucketCounts().Append(0)
					}
					p.BucketCounts().Append(0)
				}
			}
		}
	}
	return metrics
}

func newest(in input.Metric) string {
	metric, _ := catalog.ByName(in.String())
	for _, source := range slices.Backward(metric.Sources) {
		if source.Label == "" {
			return source.Family
		}
	}
	return in.String()
}

func BenchmarkRead(b *testing.B) {
	for _, engines := range []int{1, 8, 256} {
		for naming, name := range map[string]func(input.Metric) string{"canonical": input.Metric.String, "wire": newest} {
			metrics := body(engines, name)
			b.Run(fmt.Sprintf("engines=%d/%s", engines, naming), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					Read(metrics)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(engines), "ns/engine")
			})
		}
	}
}

// shuffled returns the numbers up to n in a random order.
func shuffled(n int) []int { return rand.New(rand.NewPCG(1, 2)).Perm(n) }

// hostile bodies have n points that differ in an attribute, in another order for
// each metric.
func hostile(n int) map[string]pmetric.Metrics {
	groups, labels, twins := newInput(), newInput(), newInput()
	for _, in := range []input.Metric{input.PromptTokens, input.GenerationTokens, input.Preemptions} {
		for _, i := range shuffled(n) {
			groups.counter(in.String(), 1, "engine", strconv.Itoa(i))
		}
	}
	for _, i := range shuffled(n) {
		labels.counter("http_requests", 1, "status", "2xx", "handler", strconv.Itoa(i))
	}
	for _, name := range []string{"vllm:gpu_cache_usage_perc", "vllm:kv_cache_usage_perc", "vllm.kv_cache.utilization"} {
		for _, i := range shuffled(n) {
			twins.gauge(name, 1, "engine", strconv.Itoa(i), "pid", strconv.Itoa(i))
		}
	}
	return map[string]pmetric.Metrics{"groups": groups.metrics, "labels": labels.metrics, "twins": twins.metrics}
}

// It takes some hundredths of a second. A search through all groups or twins for
// each point would take many seconds.
func TestAHostileBodyCostsInProportionToItsSize(t *testing.T) {
	for name, metrics := range hostile(30000) {
		began := time.Now()
		batches, _ := Read(metrics)
		require.Len(t, batches, 1)
		assert.Less(t, time.Since(began), 3*time.Second, name)
	}
}
