package stages

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadata"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadatatest"
)

// bench is the stage with servers, a clock and a consumer that the test chooses.
type bench struct {
	*Pools
	servers []*Server
	now     time.Time
	logs    *observer.ObservedLogs
	counted *componenttest.Telemetry
	// consume is the next consumer; calls counts its calls.
	consume func(ctx context.Context) error
	calls   int
}

func newBench(t *testing.T, config PoolsConfig) *bench {
	t.Helper()
	core, logs := observer.New(zapcore.InfoLevel)
	b := &bench{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), logs: logs, counted: componenttest.NewTelemetry()}
	t.Cleanup(func() { assert.NoError(t, b.counted.Shutdown(context.WithoutCancel(t.Context()))) })
	b.consume = func(context.Context) error { return nil }
	settings := processortest.NewNopSettings(metadata.Type)
	settings.TelemetrySettings = b.counted.NewTelemetrySettings()
	settings.Logger = zap.New(core)
	own, err := NewTelemetry(settings.TelemetrySettings, settings.ID)
	require.NoError(t, err)
	next, err := consumer.NewMetrics(func(ctx context.Context, _ pmetric.Metrics) error {
		b.calls++
		return b.consume(ctx)
	})
	require.NoError(t, err)
	p := &Processor{
		Settings: settings, Next: next, Window: time.Minute, MaxStaleness: 5 * time.Minute, Telemetry: own,
		Now: func() time.Time { return b.now }, Every: func(time.Duration, func()) func() { return func() {} }, Enabled: func(string) bool { return true }, Emits: func(string) bool { return true },
		Each: func(visit func(*Server)) {
			for _, server := range b.servers {
				visit(server)
			}
		},
	}
	engines := DefaultDiagnosisConfig()
	b.Pools = NewPools(&config, &Derived{settings: derive.Settings{Enabled: make([]bool, len(derive.Rows()))}}, NewDiagnosis(&engines, nil, p), p)
	return b
}

// add makes a server that has reported one engine of a model just now.
func (b *bench) add(key, model string) *Server {
	server := &Server{
		Key: key, Attributes: pcommon.NewMap(), Arrived: b.now,
		Window: window.NewResource(window.Settings{Window: time.Minute, MaxStaleness: 5 * time.Minute}),
	}
	server.Attributes.PutStr("cluster", "c1")
	batch := &input.Batch{Resource: key, Time: b.now.UnixNano(), Groups: []input.Group{
		input.GroupOf([]input.Attribute{{Name: "engine", Value: "0"}, {Name: "model_name", Value: model}}),
	}, Samples: []input.Sample{{Input: input.Running, Value: 1}, {Input: input.Waiting}, {Input: input.GenerationTokens, Value: 5}}}
	server.Window.Observe(batch, 1000)
	engines := DefaultDiagnosisConfig()
	state := b.engines(&engines).Begin(server, &emit.Memory{})
	server.States = []State{state}
	state.Observe(context.Background(), &Batch{Batch: batch, Now: b.now})
	b.Begin(server, nil).Observe(context.Background(), &Batch{Batch: batch, Now: b.now})
	b.servers = append(b.servers, server)
	return server
}

func (b *bench) engines(config *DiagnosisConfig) *Diagnosis {
	return NewDiagnosis(config, nil, b.Processor)
}

// Nothing is sent without pools. What the next consumer refuses is counted, and one line in
// a minute says how often it refused.
func TestRefusedPoolsAreCountedAndReportedOnceAMinute(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultPoolsConfig())
	b.tick(t.Context())
	assert.Zero(t, b.calls, "there is nothing to send")

	b.add("one", "m")
	b.tick(t.Context())
	assert.Equal(t, 1, b.calls)
	assert.Zero(t, b.logs.Len(), "it was accepted")

	b.consume = func(context.Context) error { return errors.New("the queue is full") }
	var failures []any
	began := b.now.Add(15 * time.Second)
	for _, after := range []time.Duration{0, time.Second, time.Minute - 1, time.Minute, time.Minute + 1} {
		b.now = began.Add(after)
		b.tick(t.Context())
	}
	assert.Equal(t, 6, b.calls)
	for _, line := range b.logs.FilterMessage("the next component did not take the metrics of the pools").All() {
		failures = append(failures, line.ContextMap()["failures_since_last_message"])
	}
	assert.Equal(t, []any{int64(1), int64(3)}, failures)
	lost, err := b.counted.GetMetric("otelcol_processor_vllm_pool_lost_points")
	require.NoError(t, err)
	assert.Positive(t, lost.Data.(metricdata.Sum[int64]).DataPoints[0].Value)
}

// A consumer that gives up because the collector shuts down lost nothing that it should
// have taken.
func TestAShutdownIsNoRefusal(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultPoolsConfig())
	b.add("one", "m")
	ctx, cancel := context.WithCancel(t.Context())
	b.consume = func(ctx context.Context) error { cancel(); return ctx.Err() }
	b.tick(ctx)
	assert.Equal(t, 1, b.calls)
	assert.Zero(t, b.logs.Len())
}

// A pool has the attributes of the engine, else those of its server.
func TestAnEngineBelongsToThePoolOfItsOwnAttributesFirst(t *testing.T) {
	t.Parallel()
	config := DefaultPoolsConfig()
	config.GroupBy = []string{"model_name", "cluster", "zone"}
	b := newBench(t, config)
	server := &Server{Attributes: pcommon.NewMap()}
	server.Attributes.PutStr("model_name", "of the server")
	server.Attributes.PutStr("cluster", "c1")
	assert.Equal(t, []input.Attribute{{Name: "model_name", Value: "m"}, {Name: "cluster", Value: "c1"}},
		b.attributesOf(server)(nil, []input.Attribute{{Name: "engine", Value: "0"}, {Name: "model_name", Value: "m"}}))
	assert.Equal(t, []input.Attribute{{Name: "model_name", Value: "of the server"}, {Name: "cluster", Value: "c1"}},
		b.attributesOf(server)(nil, []input.Attribute{{Name: "engine", Value: "0"}}))
}

// Warnings about what a user can correct are logged once; what is left out is counted each
// time.
func TestWarningsAboutPoolsAreLoggedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultPoolsConfig())
	b.warn(t.Context(), 0, nil)
	assert.Zero(t, b.logs.Len())
	for range 3 {
		b.warn(t.Context(), 2, []string{"zone", "region"})
	}
	assert.Equal(t, 1, b.logs.FilterMessageSnippet("there are more than 1000 pools").Len())
	assert.Equal(t, 1, b.logs.FilterMessageSnippet("no server has an attribute zone or region").Len())
	assert.Equal(t, 2, b.logs.Len())
	metadatatest.AssertEqualProcessorVllmPoolLeftOut(t, b.counted, []metricdata.DataPoint[int64]{{Value: 6}}, metricdatatest.IgnoreTimestamp())
}

// A server counts for the diagnosis of its pools until it has been silent for max_staleness.
func TestASilentServerLeavesTheDiagnosisOfItsPoolsAfterMaxStaleness(t *testing.T) {
	t.Parallel()
	b := newBench(t, DefaultPoolsConfig())
	b.add("one", "m")
	diagnosed := func() bool {
		metrics := b.Collect(t.Context(), nil)
		for _, rm := range metrics.ResourceMetrics().All() {
			for _, scope := range rm.ScopeMetrics().All() {
				for _, metric := range scope.Metrics().All() {
					if metric.Name() == "vllm.pool.diagnosis.severity" {
						return !metric.Gauge().DataPoints().At(0).Flags().NoRecordedValue()
					}
				}
			}
		}
		return false
	}
	assert.True(t, diagnosed())
	b.now = b.servers[0].Arrived.Add(5 * time.Minute)
	assert.True(t, diagnosed())
	b.now = b.now.Add(1)
	assert.False(t, diagnosed())
}

func TestAStageShutsDownWithoutAStart(t *testing.T) {
	t.Parallel()
	require.NoError(t, newBench(t, DefaultPoolsConfig()).Shutdown(t.Context()))
	s := newBench(t, DefaultPoolsConfig())
	require.NoError(t, s.Start(t.Context(), nil))
	require.NoError(t, s.Shutdown(t.Context()))
}
