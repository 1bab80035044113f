package vllmprocessor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/archive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/stages"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadata"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadatatest"
)

// pooled makes a processor with pools and without a diagnosis, whose consumer is next.
func pooled(t *testing.T, next consumer.Metrics, change ...func(*Config, *processor.Settings)) processor.Metrics {
	t.Helper()
	config := createDefaultConfig().(*Config)
	config.Pool = configoptional.Some(stages.DefaultPoolsConfig())
	config.Diagnosis.Enabled = false
	settings := processortest.NewNopSettings(metadata.Type)
	for _, c := range change {
		c(config, &settings)
	}
	require.NoError(t, config.Validate())
	p, err := NewFactory().CreateMetrics(t.Context(), settings, config, next)
	require.NoError(t, err)
	return p
}

// gauges is one server's batch at this time: states and counters by name.
func gauges(server string, values map[string]float64) pmetric.Metrics {
	metrics := pmetric.NewMetrics()
	rm := metrics.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("service.name", "vllm")
	rm.Resource().Attributes().PutStr("service.instance.id", server)
	scope := rm.ScopeMetrics().AppendEmpty()
	for name, value := range values {
		metric := scope.Metrics().AppendEmpty()
		metric.SetName(name)
		var point pmetric.NumberDataPoint
		if strings.Contains(name, "num_requests") {
			point = metric.SetEmptyGauge().DataPoints().AppendEmpty()
		} else {
			sum := metric.SetEmptySum()
			sum.SetIsMonotonic(true)
			sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
			point = sum.DataPoints().AppendEmpty()
		}
		point.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
		point.Attributes().PutStr("engine", "0")
		point.Attributes().PutStr("model_name", "m")
		if value < 0 {
			point.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
			continue
		}
		point.SetDoubleValue(value)
	}
	return metrics
}

const gone = -1

// withDiagnosis has the pools diagnosed, too.
func withDiagnosis(c *Config, _ *processor.Settings) { c.Diagnosis.Enabled = true }

// poolPoints reads what a pool emits: metric and own attributes to value, "end"
// for a point without one.
func poolPoints(t *testing.T, metrics pmetric.Metrics) map[string]string {
	t.Helper()
	require.Equal(t, 1, metrics.ResourceMetrics().Len())
	rm := metrics.ResourceMetrics().At(0)
	require.Equal(t, 1, rm.ScopeMetrics().Len())
	assert.Equal(t, metadata.ScopeName, rm.ScopeMetrics().At(0).Scope().Name())
	all := map[string]string{}
	for _, metric := range rm.ScopeMetrics().At(0).Metrics().All() {
		assert.NotEmpty(t, metric.Unit())
		points := metric.Gauge().DataPoints()
		ends := points.At(0).Flags().NoRecordedValue()
		assert.Equal(t, !ends, metric.Description() != "", "an end carries no description")
		for _, point := range points.All() {
			assert.Equal(t, time.Now().UTC(), point.Timestamp().AsTime())
			key := strings.TrimPrefix(metric.Name(), "vllm.pool.")
			for _, value := range point.Attributes().All() {
				key += " " + value.AsString()
			}
			assert.NotContains(t, all, key)
			all[key] = fmt.Sprint(point.DoubleValue())
			if point.Flags().NoRecordedValue() {
				all[key] = "end"
				assert.Equal(t, 1, points.Len(), "an end is a metric entry of its own")
			}
		}
	}
	return all
}

func host() component.Host { return componenttest.NewNopHost() }

func TestPoolsAreSentAtEveryInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := new(consumertest.MetricsSink)
		p := pooled(t, sink, func(_ *Config, s *processor.Settings) {
			s.Resource.Attributes().PutStr("service.name", "otelcol-vllm")
			s.Resource.Attributes().PutStr("service.instance.id", "collector-1")
			s.Resource.Attributes().PutStr("host.name", "node")
			s.BuildInfo.Version = "1.2.3"
		})
		require.NoError(t, p.Start(t.Context(), host()))
		time.Sleep(14 * time.Second)
		for server, running := range map[string]float64{"a": 3, "b": 5} {
			require.NoError(t, p.ConsumeMetrics(t.Context(), gauges(server, map[string]float64{
				"vllm.num_requests.running": running, "vllm.generation_tokens": 0,
			})))
		}
		sink.Reset()
		time.Sleep(time.Second)
		synctest.Wait()
		require.Len(t, sink.AllMetrics(), 1)
		sent := sink.AllMetrics()[0]
		assert.Equal(t, map[string]string{
			"replicas m": "2", "running m": "8",
			"imbalance.stddev_ratio m running": "0.25", "imbalance.max_ratio m running": "1.25",
		}, poolPoints(t, sent))
		assert.Equal(t, map[string]any{
			"service.name": "otelcol-vllm", "service.instance.id": "collector-1", "otelcol.component.id": "vllm",
		}, sent.ResourceMetrics().At(0).Resource().Attributes().AsRaw())
		assert.Empty(t, sent.ResourceMetrics().At(0).ScopeMetrics().At(0).Scope().Version(), "an upgrade renames no series")

		time.Sleep(14 * time.Second)
		require.NoError(t, p.ConsumeMetrics(t.Context(), gauges("a", map[string]float64{
			"vllm.num_requests.running": 0, "vllm.generation_tokens": 150,
		})))
		require.NoError(t, p.ConsumeMetrics(t.Context(), gauges("b", map[string]float64{
			"vllm.num_requests.running": 0, "vllm.generation_tokens": 300,
		})))
		sink.Reset()
		time.Sleep(time.Second)
		synctest.Wait()
		require.Len(t, sink.AllMetrics(), 1)
		assert.Equal(t, map[string]string{
			"replicas m": "2", "running m": "0", "generation_throughput m": "30",
			"imbalance.stddev_ratio m running": "end", "imbalance.max_ratio m running": "end",
			"imbalance.stddev_ratio m generation_throughput": fmt.Sprint(1.0 / 3),
			"imbalance.max_ratio m generation_throughput":    fmt.Sprint(4.0 / 3),
		}, poolPoints(t, sink.AllMetrics()[0]))
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

func TestThePoolOfServersThatHaveEndedEndsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := new(consumertest.MetricsSink)
		p := pooled(t, sink, withDiagnosis)
		require.NoError(t, p.Start(t.Context(), host()))
		require.NoError(t, p.ConsumeMetrics(t.Context(), gauges("a", map[string]float64{"vllm.num_requests.running": 3})))
		time.Sleep(16 * time.Second)
		require.NoError(t, p.ConsumeMetrics(t.Context(), gauges("a", map[string]float64{"vllm.num_requests.running": gone})))
		synctest.Wait()
		sink.Reset()
		time.Sleep(14 * time.Second)
		synctest.Wait()
		require.Len(t, sink.AllMetrics(), 1)
		assert.Equal(t, map[string]string{
			"replicas m": "end", "running m": "end", "diagnosis.severity m": "end", "diagnosis.condition m unknown": "end",
		}, poolPoints(t, sink.AllMetrics()[0]))
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Len(t, sink.AllMetrics(), 1, "nothing is left to say")
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

func TestAServerWithoutAWordLeavesItsPoolAfterMaxStaleness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := new(consumertest.MetricsSink)
		p := pooled(t, sink, withDiagnosis)
		require.NoError(t, p.Start(t.Context(), host()))
		require.NoError(t, p.ConsumeMetrics(t.Context(), gauges("a", map[string]float64{"vllm.num_requests.running": 3})))
		sink.Reset()
		time.Sleep(5*time.Minute + time.Second)
		synctest.Wait()
		require.Len(t, sink.AllMetrics(), 20)
		sink.Reset()
		// Nothing comes in at all, so that only the ticker can notice.
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Len(t, sink.AllMetrics(), 1)
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

func TestWithoutAConfigurationThereAreNoPools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := new(consumertest.MetricsSink)
		p := pooled(t, sink, func(c *Config, _ *processor.Settings) { *c = *createDefaultConfig().(*Config) })
		require.NoError(t, p.Start(t.Context(), host()))
		require.NoError(t, p.ConsumeMetrics(t.Context(), gauges("a", map[string]float64{"vllm.num_requests.running": 3})))
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		assert.Len(t, sink.AllMetrics(), 1)
		require.NoError(t, p.Shutdown(t.Context()))
	})
	inner, err := newProcessor(createDefaultConfig().(*Config), processortest.NewNopSettings(metadata.Type), consumertest.NewNop(), &archive.Shared{}, realClock{})
	require.NoError(t, err)
	assert.Nil(t, inner.pools())
}

func TestPoolsStopWithTheProcessorAndStartWithTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := new(consumertest.MetricsSink)
		for range 2 {
			p := pooled(t, sink)
			require.NoError(t, p.Start(t.Context(), host()))
			require.NoError(t, p.ConsumeMetrics(t.Context(), gauges("a", map[string]float64{"vllm.num_requests.running": 3})))
			sink.Reset()
			time.Sleep(20 * time.Second)
			require.NoError(t, p.Shutdown(t.Context()))
			assert.Len(t, sink.AllMetrics(), 1)
			time.Sleep(time.Minute)
			assert.Len(t, sink.AllMetrics(), 1)
		}
		// One that never starts has nothing to stop.
		require.NoError(t, pooled(t, sink).Shutdown(t.Context()))
	})
}

// stubborn is a consumer that does not return before it is released.
type stubborn struct {
	heeds   bool // its context
	calls   atomic.Int64
	release chan struct{}
}

func (*stubborn) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

func (s *stubborn) ConsumeMetrics(ctx context.Context, metrics pmetric.Metrics) error {
	if _, own := metrics.ResourceMetrics().At(0).Resource().Attributes().Get("otelcol.component.id"); !own {
		return nil
	}
	s.calls.Add(1)
	if !s.heeds {
		<-s.release
		return nil
	}
	select {
	case <-s.release:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestAConsumerThatBlocksHoldsUpNeitherInputNorShutdown(t *testing.T) {
	for name, heeds := range map[string]bool{"heeds its context": true, "ignores its context": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				core, logs := observer.New(zap.WarnLevel)
				next := &stubborn{heeds: heeds, release: make(chan struct{})}
				p := pooled(t, next, func(_ *Config, s *processor.Settings) { s.Logger = zap.New(core) })
				require.NoError(t, p.Start(t.Context(), host()))
				input := func() {
					require.NoError(t, p.ConsumeMetrics(t.Context(), gauges("a", map[string]float64{"vllm.num_requests.running": 3})))
				}
				input()
				time.Sleep(16 * time.Second)
				synctest.Wait()
				assert.EqualValues(t, 1, next.calls.Load())
				input() // the pools wait for the consumer, without the lock
				before := time.Now()
				require.NoError(t, p.Shutdown(t.Context()))
				if heeds {
					assert.Zero(t, time.Since(before))
					assert.Zero(t, logs.Len(), "what is called off has not failed")
				} else {
					assert.Equal(t, 5*time.Second, time.Since(before))
					assert.Equal(t, 1, logs.FilterMessageSnippet("still holds the metrics").Len())
				}
				close(next.release)
			})
		})
	}
}

func TestAConsumerThatTakesNothingIsGivenUpAtTheNextInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := &stubborn{heeds: true, release: make(chan struct{})}
		p := pooled(t, next)
		require.NoError(t, p.Start(t.Context(), host()))
		require.NoError(t, p.ConsumeMetrics(t.Context(), gauges("a", map[string]float64{"vllm.num_requests.running": 3})))
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		assert.EqualValues(t, 4, next.calls.Load())
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

func TestServersAreNotTakenForOneAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := new(consumertest.MetricsSink)
		p := pooled(t, sink, func(c *Config, _ *processor.Settings) { c.Pool.Get().GroupBy = []string{"zone"} })
		require.NoError(t, p.Start(t.Context(), host()))
		time.Sleep(15*time.Second - 1)
		both := gauges("a", map[string]float64{"vllm.num_requests.running": 3})
		both.ResourceMetrics().At(0).Resource().Attributes().PutStr("zone", "north")
		gauges("b", map[string]float64{"vllm.num_requests.running": 4}).ResourceMetrics().MoveAndAppendTo(both.ResourceMetrics())
		require.NoError(t, p.ConsumeMetrics(t.Context(), both))
		sink.Reset()
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		require.Len(t, sink.AllMetrics(), 1)
		assert.Equal(t, map[string]string{
			"replicas north": "1", "running north": "3", "replicas": "1", "running": "4",
		}, poolPoints(t, sink.AllMetrics()[0]))
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

func TestTheShutdownsOwnDeadlineCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := &stubborn{release: make(chan struct{})}
		p := pooled(t, next)
		require.NoError(t, p.Start(t.Context(), host()))
		require.NoError(t, p.ConsumeMetrics(t.Context(), gauges("a", map[string]float64{"vllm.num_requests.running": 3})))
		time.Sleep(16 * time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		before := time.Now()
		require.NoError(t, p.Shutdown(ctx))
		assert.Equal(t, time.Second, time.Since(before))
		close(next.release)
	})
}

func TestWhatIsNotTakenIsCountedAndSaidNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.WarnLevel)
		telemetry := componenttest.NewTelemetry()
		fails := errors.New("queue is full")
		var calls int
		next, err := consumer.NewMetrics(func(_ context.Context, metrics pmetric.Metrics) error {
			if _, own := metrics.ResourceMetrics().At(0).Resource().Attributes().Get("otelcol.component.id"); !own {
				return nil
			}
			calls++
			return fails
		})
		require.NoError(t, err)
		p := pooled(t, next, func(_ *Config, s *processor.Settings) {
			s.TelemetrySettings = telemetry.NewTelemetrySettings()
			s.Logger = zap.New(core)
		})
		require.NoError(t, p.Start(t.Context(), host()))
		require.NoError(t, p.ConsumeMetrics(t.Context(), gauges("a", map[string]float64{"vllm.num_requests.running": 3})))
		time.Sleep(2*time.Minute + 16*time.Second)
		synctest.Wait()
		assert.Equal(t, 9, calls, "it continues to try")
		logged := logs.FilterMessageSnippet("did not take the metrics of the pools").All()
		require.Len(t, logged, 3)
		assert.EqualValues(t, 1, logged[0].ContextMap()["failures_since_last_message"])
		assert.EqualValues(t, 4, logged[1].ContextMap()["failures_since_last_message"])
		metadatatest.AssertEqualProcessorVllmPoolLostPoints(t, telemetry,
			[]metricdata.DataPoint[int64]{{Value: 2 * 9}}, metricdatatest.IgnoreTimestamp())
		require.NoError(t, p.Shutdown(t.Context()))
		require.NoError(t, telemetry.Shutdown(t.Context()))
	})
}

// The end of a pool is refused, and another pool has its number when it is sent again.
func TestAnEndOfAPoolThatWasRefusedIsSentAgainWhenItsNumberIsTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sink := &fickle{}
		p := pooled(t, sink, withDiagnosis, func(c *Config, _ *processor.Settings) { c.Pool.Get().GroupBy = []string{"service.instance.id"} })
		require.NoError(t, p.Start(t.Context(), host()))
		send := func(server string, running float64) {
			sink.refuse(false)
			require.NoError(t, p.ConsumeMetrics(t.Context(), gauges(server, map[string]float64{"vllm.num_requests.running": running})))
		}
		tick := func(refuses bool) map[string]string {
			sink.refuse(refuses)
			time.Sleep(15 * time.Second)
			synctest.Wait()
			return poolPoints(t, sink.last)
		}
		send("a", 3)
		assert.Equal(t, "3", tick(false)["running a"])
		send("a", gone)
		assert.Equal(t, "end", tick(true)["running a"])
		assert.Equal(t, "end", tick(true)["running a"], "its number is free now")
		send("b", 5)
		for range 2 {
			got := tick(true)
			assert.Equal(t, "5", got["running b"])
			assert.Equal(t, "end", got["running a"])
			assert.Equal(t, "end", got["diagnosis.severity a"])
		}
		assert.Equal(t, "end", tick(false)["running a"])
		assert.NotContains(t, tick(false), "running a")
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

func TestWhatAUserCanMendIsSaidOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.WarnLevel)
		p := pooled(t, consumertest.NewNop(), func(c *Config, s *processor.Settings) {
			c.Pool.Get().GroupBy = []string{"zone", "service.instance.id"}
			s.Logger = zap.New(core)
		})
		require.NoError(t, p.Start(t.Context(), host()))
		for n := range stages.MaxPools + 5 {
			require.NoError(t, p.ConsumeMetrics(t.Context(), gauges(fmt.Sprint("server-", n), map[string]float64{"vllm.num_requests.running": 3})))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		assert.Equal(t, 1, logs.FilterMessageSnippet("more than 1000 pools").Len())
		assert.Equal(t, 1, logs.FilterMessageSnippet("no server has an attribute zone").Len())
		require.NoError(t, p.Shutdown(t.Context()))
	})
}

func TestPoolsAndInputAtTheSameTime(t *testing.T) {
	var sent atomic.Int64
	next, err := consumer.NewMetrics(func(_ context.Context, metrics pmetric.Metrics) error {
		sent.Add(int64(metrics.DataPointCount()))
		return nil
	})
	require.NoError(t, err)
	config := createDefaultConfig().(*Config)
	config.Pool = configoptional.Some(stages.PoolsConfig{GroupBy: []string{"model_name"}, Interval: time.Millisecond})
	p, err := NewFactory().CreateMetrics(t.Context(), processortest.NewNopSettings(metadata.Type), config, next)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), host()))
	var wait sync.WaitGroup
	for worker := range 4 {
		wait.Go(func() {
			for n := range 200 {
				batch := gauges(fmt.Sprint("server-", worker), map[string]float64{
					"vllm.num_requests.running": float64(n), "vllm.generation_tokens": float64(n),
				})
				assert.NoError(t, p.ConsumeMetrics(context.Background(), batch))
			}
		})
	}
	wait.Wait()
	require.NoError(t, p.Shutdown(t.Context()))
	assert.Positive(t, sent.Load())
}
