package vllmprocessor

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// cached is a server whose prompts are 4000 tokens, of which most are found in the
// cache. Requests come once a second, and computing a token takes 0.1 ms.
type cached struct {
	requests, found, prefill float64
	// evicted are blocks, and reuses how often they had been used again before.
	evicted, reuses float64
	// measures is true with --kv-cache-metrics.
	measures bool
}

// pass is 15 s in which a share of the prompts is found in the cache, and each evicted
// block had been used again so many times.
func (c *cached) pass(share, reuses float64) {
	c.requests += 15
	c.found += 15 * 4000 * share
	c.prefill += 15 * 4000 * (1 - share) * 1e-4
	c.evicted += 100
	c.reuses += 100 * reuses
}

func (c *cached) scrape() pmetric.Metrics {
	metrics := gauges("a", map[string]float64{
		"vllm.num_requests.running": 3, "vllm.num_requests.waiting": 0, "vllm.num_preemptions": 0,
		"vllm.prompt_tokens": 4000 * c.requests, "vllm.prompt_tokens_cached": c.found, "vllm.generation_tokens": 100 * c.requests,
	})
	scope := metrics.ResourceMetrics().At(0).ScopeMetrics().At(0)
	histogram := func(name string, count, sum float64) {
		metric := scope.Metrics().AppendEmpty()
		metric.SetName(name)
		to := metric.SetEmptyHistogram()
		to.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		point := to.DataPoints().AppendEmpty()
		mark(point.Attributes())
		point.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
		point.BucketCounts().FromRaw([]uint64{uint64(count)})
		point.SetCount(uint64(count))
		point.SetSum(sum)
	}
	histogram("vllm.time_to_first_token", c.requests, c.prefill+0.01*c.requests)
	histogram("vllm.request.prefill_time", c.requests, c.prefill)
	histogram("vllm.request.queue_time", c.requests, 0)
	histogram("vllm.inter_token_latency", 99*c.requests, 99*c.requests*0.02)
	if c.measures {
		histogram("vllm.kv_block.idle_before_evict", c.evicted, 60*c.evicted)
		histogram("vllm.kv_block.reuse_gap", c.reuses, 20*c.reuses)
	}
	return metrics
}

// Prompts are found in the cache less than they were. Only where the server measures
// its blocks does one know whether the cache forgets what is useful: what it evicts
// had been used again.
func TestThrashIsReportedWhereBlocksAreMeasured(t *testing.T) {
	for name, test := range map[string]struct {
		measures bool
		reuses   float64
		cause    string
	}{
		"what is evicted had been of use": {true, 0.5, "cache_thrash primary"},
		"what is evicted was of no use":   {true, 0, "prefill_heavy primary reuse_fell"},
		"not measured":                    {false, 0.5, "prefill_heavy primary reuse_fell"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sink := new(consumertest.MetricsSink)
				p := pooled(t, sink, withDiagnosis)
				require.NoError(t, p.Start(t.Context(), host()))
				server := &cached{measures: test.measures}
				for n := range 80 {
					if n < 48 {
						server.pass(0.9, 0)
					} else {
						server.pass(0.1, test.reuses)
					}
					require.NoError(t, p.ConsumeMetrics(t.Context(), server.scrape()))
					time.Sleep(15 * time.Second)
				}
				synctest.Wait()
				require.NoError(t, p.Shutdown(t.Context()))
				// While the window still has blocks of before, the mean says nothing yet. A pool is not harmed by
				// what its users ask for.
				assert.Equal(t, []string{test.cause}, causesReported(sink, "vllm.diagnosis.cause"))
				assert.Empty(t, causesReported(sink, "vllm.pool.diagnosis.cause"))
			})
		})
	}
}

// causesReported are the last causes of a metric, as cause, role and detail.
func causesReported(sink *consumertest.MetricsSink, name string) (last []string) {
	for _, batch := range sink.AllMetrics() {
		for _, m := range batch.ResourceMetrics().At(0).ScopeMetrics().All() {
			for _, metric := range m.Metrics().All() {
				if metric.Name() != name {
					continue
				}
				last = nil
				for _, p := range metric.Gauge().DataPoints().All() {
					emitted := ""
					for _, attribute := range []string{"cause", "role", "detail"} {
						if value, has := p.Attributes().Get(attribute); has {
							emitted += " " + value.AsString()
						}
					}
					if p.DoubleValue() == 1 {
						last = append(last, emitted[1:])
					}
				}
			}
		}
	}
	return last
}
