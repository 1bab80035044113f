package vllmprocessor

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadatatest"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/stages"
)

// silent is what the receiver sends of a server that it cannot read: the ends of its
// series at first, and that it does not answer.
func silent(server string, ends bool) pmetric.Metrics {
	metrics := gauges(server, map[string]float64{})
	if ends {
		metrics = gauges(server, map[string]float64{"vllm.num_requests.running": gone, "vllm.generation_tokens": gone})
	}
	up := metrics.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().AppendEmpty()
	up.SetName("vllm.up")
	point := up.SetEmptyGauge().DataPoints().AppendEmpty()
	point.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
	point.SetDoubleValue(0)
	return metrics
}

// lastOfPools is what the pools emitted last, as poolPoints has it.
func lastOfPools(t *testing.T, sink *consumertest.MetricsSink) map[string]string {
	t.Helper()
	for _, metrics := range slices.Backward(sink.AllMetrics()) {
		if _, own := metrics.ResourceMetrics().At(0).Resource().Attributes().Get("otelcol.component.id"); own {
			return poolPoints(t, metrics)
		}
	}
	return nil
}

// The sums of a pool lose a server that cannot be read at once. The diagnosis counts
// it for as long as its target is there, and max_staleness longer.
func TestAServerThatCannotBeReadStillCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := new(consumertest.MetricsSink)
		p := pooled(t, sink, withDiagnosis)
		require.NoError(t, p.Start(t.Context(), host()))
		working := 0.0
		// Servers are read for so many minutes, a second before each tick of the pools.
		time.Sleep(14 * time.Second)
		read := func(minutes int, b func(n int) pmetric.Metrics) map[string]string {
			sink.Reset()
			for n := range 4 * minutes {
				working++
				require.NoError(t, p.ConsumeMetrics(t.Context(), gauges("a", map[string]float64{"vllm.num_requests.running": 3, "vllm.generation_tokens": working})))
				if b != nil {
					require.NoError(t, p.ConsumeMetrics(t.Context(), b(n)))
				}
				time.Sleep(time.Second)
				synctest.Wait()
				if n == 4*minutes-1 {
					break
				}
				time.Sleep(14 * time.Second)
			}
			emitted := lastOfPools(t, sink)
			time.Sleep(14 * time.Second)
			return emitted
		}
		answers := func(int) pmetric.Metrics {
			return gauges("b", map[string]float64{"vllm.num_requests.running": 3, "vllm.generation_tokens": working})
		}
		emitted := read(3, answers)
		assert.Equal(t, "2", emitted["replicas m"])
		assert.Equal(t, "1", emitted["diagnosis.severity m"], "without latencies nothing can be judged")

		emitted = read(10, func(n int) pmetric.Metrics { return silent("b", n == 0) })
		assert.Equal(t, "1", emitted["replicas m"])
		assert.Equal(t, "1", emitted["diagnosis.condition m unreachable"])
		assert.Equal(t, "3", emitted["diagnosis.severity m"], "it is half of them")

		emitted = read(4, nil)
		assert.Equal(t, "1", emitted["diagnosis.condition m unreachable"], "it may come back")
		emitted = read(2, nil)
		assert.Equal(t, "0", emitted["diagnosis.condition m unreachable"], "nothing has arrived for more than five minutes")
		assert.Equal(t, "1", emitted["diagnosis.severity m"])
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

// A value of a point goes before that of its resource, and one that is missing makes
// a pool without it.
func TestDiagnosedPoolsHaveTheAttributesOfGroupBy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := new(consumertest.MetricsSink)
		p := pooled(t, sink, withDiagnosis, func(c *Config, _ *processor.Settings) { c.Pool.Get().GroupBy = []string{"model_name", "zone"} })
		require.NoError(t, p.Start(t.Context(), host()))
		time.Sleep(14 * time.Second)
		for server, zone := range map[string]string{"a": "north", "b": "north", "c": "south", "d": ""} {
			metrics := gauges(server, map[string]float64{"vllm.num_requests.running": 3})
			resource := metrics.ResourceMetrics().At(0).Resource().Attributes()
			resource.PutStr("model_name", "not this")
			if zone != "" {
				resource.PutStr("zone", zone)
			}
			require.NoError(t, p.ConsumeMetrics(t.Context(), metrics))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		emitted := lastOfPools(t, sink)
		for _, attributes := range []string{"m north", "m south", "m"} {
			assert.Equal(t, "1", emitted["diagnosis.severity "+attributes], attributes)
			assert.NotEmpty(t, emitted["replicas "+attributes], "the sums have the same pools")
			delete(emitted, "diagnosis.severity "+attributes)
		}
		for key := range emitted {
			assert.NotContains(t, key, "severity")
		}
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

// Servers that have no place are counted once, not for the sums and the diagnosis
// each.
func TestServersLeftOutAreCounted(t *testing.T) {
	for _, change := range []func(*Config, *processor.Settings){withDiagnosis, func(*Config, *processor.Settings) {}} {
		synctest.Test(t, func(t *testing.T) {
			telemetry := componenttest.NewTelemetry()
			p := pooled(t, consumertest.NewNop(), change, func(c *Config, s *processor.Settings) {
				c.Pool.Get().GroupBy = []string{"service.instance.id"}
				s.TelemetrySettings = telemetry.NewTelemetrySettings()
			})
			require.NoError(t, p.Start(t.Context(), host()))
			for n := range stages.MaxPools + 5 {
				require.NoError(t, p.ConsumeMetrics(t.Context(), gauges(fmt.Sprint("server-", n), map[string]float64{"vllm.num_requests.running": 3})))
			}
			time.Sleep(31 * time.Second)
			synctest.Wait()
			metadatatest.AssertEqualProcessorVllmPoolLeftOut(t, telemetry,
				[]metricdata.DataPoint[int64]{{Value: 2 * 5}}, metricdatatest.IgnoreTimestamp())
			require.NoError(t, p.Shutdown(t.Context()))
			require.NoError(t, telemetry.Shutdown(t.Context()))
		})
	}
}

// The servers that have no place for the diagnosis alone are counted as well: those
// that cannot be read are in no sum.
func TestServersLeftOutOfTheDiagnosisAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		telemetry := componenttest.NewTelemetry()
		p := pooled(t, consumertest.NewNop(), withDiagnosis, func(c *Config, s *processor.Settings) {
			c.Pool.Get().GroupBy = []string{"service.instance.id"}
			s.TelemetrySettings = telemetry.NewTelemetrySettings()
		})
		require.NoError(t, p.Start(t.Context(), host()))
		for _, all := range []func(n int) pmetric.Metrics{
			func(n int) pmetric.Metrics {
				return gauges(fmt.Sprint("server-", n), map[string]float64{"vllm.num_requests.running": 3, "vllm.generation_tokens": 0})
			},
			func(n int) pmetric.Metrics { return silent(fmt.Sprint("server-", n), true) },
		} {
			for n := range stages.MaxPools + 5 {
				require.NoError(t, p.ConsumeMetrics(t.Context(), all(n)))
			}
			time.Sleep(time.Second)
		}
		time.Sleep(14 * time.Second)
		synctest.Wait()
		metadatatest.AssertEqualProcessorVllmPoolLeftOut(t, telemetry,
			[]metricdata.DataPoint[int64]{{Value: 5}}, metricdatatest.IgnoreTimestamp())
		require.NoError(t, p.Shutdown(t.Context()))
		require.NoError(t, telemetry.Shutdown(t.Context()))
	})
}
