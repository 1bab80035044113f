package vllmprocessor

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// diagnosisToCome are the metrics of the diagnosis that the catalogue promises and
// the processor does not send yet. Whoever sends one takes it out; the test below
// fails until then, and with an empty list it fails where one is not sent.
var diagnosisToCome = []string{}

// Both servers of a pool are busy and well for some minutes; then twice as many
// requests come as before, and more of them than are served wait.
func TestEveryMetricOfTheDiagnosisIsSentOrToCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := new(consumertest.MetricsSink)
		p := pooled(t, sink, func(c *Config, _ *processor.Settings) {
			on := true
			c.Diagnosis.Enabled = true
			c.Metrics = map[string]MetricConfig{"vllm.diagnosis.signal": {Enabled: &on}, "vllm.diagnosis.signal_ratio": {Enabled: &on}}
		})
		require.NoError(t, p.Start(t.Context(), host()))
		requests, waiting := 0.0, 0.0
		for n := range 120 {
			requests += 60
			if n >= 80 {
				requests, waiting = requests+60, waiting+20
			}
			for _, server := range []string{"a", "b"} {
				require.NoError(t, p.ConsumeMetrics(t.Context(), busy(server, requests, waiting)))
			}
			time.Sleep(15 * time.Second)
			synctest.Wait()
		}
		require.NoError(t, p.Shutdown(t.Context()))

		var promised []string
		for _, m := range catalog.All() {
			if strings.Contains(m.Name, ".diagnosis.") {
				promised = append(promised, m.Name)
			}
		}
		require.Len(t, promised, 12)
		sent := slices.Sorted(maps.Keys(attributesSent(sink.AllMetrics(), ".diagnosis.")))
		assert.Equal(t, promised, slices.Sorted(slices.Values(append(sent, diagnosisToCome...))),
			"each metric of the diagnosis is either sent or to come, and not both")
		all := attributesSent(sink.AllMetrics(), ".diagnosis.")
		for _, name := range []string{"vllm.diagnosis.cause", "vllm.pool.diagnosis.cause"} {
			for _, attribute := range []string{"model_name", "cause", "role", "detail"} {
				assert.Contains(t, all[name], attribute, name)
			}
		}
		for name, attributes := range all {
			described, _ := catalog.ByName(name)
			for attribute := range attributes {
				assert.Contains(t, described.Attributes, attribute, name)
			}
		}
	})
}

// busy is a batch of a server that has served so many requests, while others wait.
func busy(server string, requests, waiting float64) pmetric.Metrics {
	metrics := gauges(server, map[string]float64{
		"vllm.num_requests.running": 8, "vllm.num_requests.waiting": waiting,
		"vllm.prompt_tokens": 1000 * requests, "vllm.generation_tokens": 100 * requests, "vllm.num_preemptions": 0,
	})
	scope := metrics.ResourceMetrics().At(0).ScopeMetrics().At(0)
	success := scope.Metrics().AppendEmpty()
	success.SetName("vllm.request.success")
	sum := success.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	for reason, count := range map[string]float64{"stop": requests, "error": 0} {
		point := sum.DataPoints().AppendEmpty()
		mark(point.Attributes())
		point.Attributes().PutStr("finished_reason", reason)
		point.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
		point.SetDoubleValue(count)
	}
	for name, count := range map[string]float64{"vllm.time_to_first_token": requests, "vllm.inter_token_latency": 99 * requests} {
		metric := scope.Metrics().AppendEmpty()
		metric.SetName(name)
		histogram := metric.SetEmptyHistogram()
		histogram.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		point := histogram.DataPoints().AppendEmpty()
		mark(point.Attributes())
		point.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
		point.ExplicitBounds().FromRaw([]float64{0.1})
		point.BucketCounts().FromRaw([]uint64{uint64(count), 0})
		point.SetCount(uint64(count))
		point.SetSum(0.02 * count)
	}
	return metrics
}

func mark(attributes pcommon.Map) {
	attributes.PutStr("engine", "0")
	attributes.PutStr("model_name", "m")
}

// attributesSent returns the attributes of the metrics whose name contains part.
func attributesSent(batches []pmetric.Metrics, part string) map[string]map[string]bool {
	all := map[string]map[string]bool{}
	for _, batch := range batches {
		for _, rm := range batch.ResourceMetrics().All() {
			for _, sm := range rm.ScopeMetrics().All() {
				for _, m := range sm.Metrics().All() {
					if !strings.Contains(m.Name(), part) {
						continue
					}
					if all[m.Name()] == nil {
						all[m.Name()] = map[string]bool{}
					}
					for _, point := range m.Gauge().DataPoints().All() {
						for attribute := range point.Attributes().All() {
							all[m.Name()][attribute] = true
						}
					}
				}
			}
		}
	}
	return all
}
