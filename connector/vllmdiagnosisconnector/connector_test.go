package vllmdiagnosisconnector

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector/internal/metadatatest"
)

func TestARecordHasAllOfTheDiagnosis(t *testing.T) {
	b := newBench(t, nil)
	s := newServer("a")
	b.consume(t, 0, s.reports(0, healthy)...)
	b.consume(t, 15.5, s.reports(15, diagnosis{
		severity: 2, condition: "degraded",
		causes: []cause{
			{"prefill_heavy", "primary", "reuse_fell"},
			{"kv_pressure", "contributing", ""},
			{"decode_load", "contributing", "longer_outputs"},
			{"workload_shift", "notice", ""},
		},
		said: said(),
	})...)

	require.Len(t, b.sink.batches, 1)
	require.Equal(t, 1, b.sink.batches[0].ResourceLogs().Len())
	resource := b.sink.batches[0].ResourceLogs().At(0)
	assert.Equal(t, map[string]any{"service.instance.id": "a"}, resource.Resource().Attributes().AsRaw(),
		"the metrics' resource without what the record has")
	assert.Equal(t, "https://opentelemetry.io/schemas/1.30.0", resource.SchemaUrl())
	scope := resource.ScopeLogs().At(0)
	assert.Equal(t, "github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector", scope.Scope().Name())
	assert.Equal(t, "1.2.3", scope.Scope().Version())
	require.Equal(t, 1, scope.LogRecords().Len())
	record := scope.LogRecords().At(0)
	assert.Equal(t, "vllm.diagnosis.changed", record.EventName())
	assert.Equal(t, epoch.Add(15*time.Second), record.Timestamp().AsTime(), "when it was so")
	assert.Equal(t, epoch.Add(15500*time.Millisecond), record.ObservedTimestamp().AsTime(), "when we saw it")
	assert.Equal(t, plog.SeverityNumberWarn, record.SeverityNumber())
	assert.Equal(t, "WARN", record.SeverityText())
	assert.Equal(t, "Users wait 3.2 s.", record.Body().AsString())
	assert.Equal(t, map[string]any{
		"engine": "0", "model_name": "m",
		"vllm.diagnosis.condition": "degraded", "vllm.diagnosis.previous_condition": "healthy",
		"vllm.diagnosis.severity": int64(2), "vllm.diagnosis.cause": "prefill_heavy", "vllm.diagnosis.detail": "reuse_fell",
		"vllm.diagnosis.contributing_causes":  []any{"decode_load", "kv_pressure"},
		"vllm.diagnosis.notices":              []any{"workload_shift"},
		"vllm.diagnosis.next_steps":           []any{"Look.", "Act."},
		"vllm.diagnosis.runbook":              "https://wiki.example.com/prefill_heavy.md",
		"vllm.diagnosis.board":                "https://grafana.example.com/d/vllm-engine?var-model=m",
		"vllm.diagnosis.since":                "2026-03-01T12:00:03Z",
		"vllm.diagnosis.evidence":             []any{"running 12 requests (usual 6)", "waiting 7 requests"},
		"vllm.diagnosis.signal.running":       12.0,
		"vllm.diagnosis.signal_usual.running": 6.0,
		"vllm.diagnosis.signal.waiting":       7.0,
	}, record.Attributes().AsRaw())
}

// Where the words of the processor are lost on the way, those of the catalogue are said.
func TestARecordWithoutTheProcessorsWordsHasThoseOfTheCatalogue(t *testing.T) {
	b := newBench(t, nil)
	b.consume(t, 0, newServer("a").reports(0, diagnosis{
		severity: 2, condition: "degraded", causes: []cause{{"prefill_heavy", "primary", "reuse_fell"}, {"workload_shift", "notice", ""}},
	})...)
	require.Len(t, b.sink.records(), 1)
	record := b.sink.records()[0]
	assert.Regexp(t, `^Users wait .* Prompts need more computation .* come from the prefix cache\. The work has changed`, record.Body().AsString())
	next, there := record.Attributes().Get("vllm.diagnosis.next_steps")
	require.True(t, there)
	assert.Equal(t, 4, next.Slice().Len())
	assert.Contains(t, next.Slice().At(0).Str(), "`vllm.prefix_cache.hit_ratio`")
	assert.Equal(t, "https://github.com/otelcol-vllm/otelcol-vllm/blob/main/docs/runbooks/prefill_heavy.md", text(record, "vllm.diagnosis.runbook"))
	assert.NotContains(t, record.Attributes().AsRaw(), "vllm.diagnosis.evidence")
}

func TestTheFirstStateIsEmittedWhereItMatters(t *testing.T) {
	for name, test := range map[string]struct {
		initial bool
		first   diagnosis
		want    []string
	}{
		"healthy":            {false, healthy, nil},
		"notice":             {false, diagnosis{severity: 1, condition: "unknown"}, nil},
		"warning":            {false, degraded, []string{"degraded"}},
		"page":               {false, stalled, []string{"stalled"}},
		"healthy, if wanted": {true, healthy, []string{"healthy"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, func(c *Config) { c.Initial = test.initial })
			b.consume(t, 0, newServer("a").reports(0, test.first)...)
			assert.Equal(t, test.want, b.sink.conditions())
			for _, record := range b.sink.records() {
				_, there := record.Attributes().Get("vllm.diagnosis.previous_condition")
				assert.False(t, there, "there was none")
			}
		})
	}
}

func TestEnginesModelsServersAndPoolsAreDistinguished(t *testing.T) {
	b := newBench(t, nil)
	first, second, other, pool := newServer("a"), newServer("a"), newServer("b"), newServer("a")
	second.attributes["engine"] = "1"
	pool.prefix = "vllm.pool.diagnosis."
	pool.attributes = map[string]any{"model_name": "m"}
	var parts []pmetric.Metrics
	for _, s := range []*server{first, second, other, pool} {
		parts = append(parts, s.reports(0, stalled)...)
	}
	b.consume(t, 0, parts...)

	assert.Equal(t, 4, b.engines.live())
	require.Len(t, b.sink.batches, 1)
	assert.Equal(t, 2, b.sink.batches[0].ResourceLogs().Len(), "one for each server")
	var events, engines []string
	for _, record := range b.sink.records() {
		events = append(events, record.EventName())
		engines = append(engines, text(record, "engine"))
	}
	assert.Equal(t, []string{"vllm.diagnosis.changed", "vllm.diagnosis.changed", "vllm.pool.diagnosis.changed", "vllm.diagnosis.changed"}, events)
	assert.Equal(t, []string{"0", "1", "", "0"}, engines)
}

func TestAnEndForgetsTheEngine(t *testing.T) {
	b := newBench(t, nil)
	s := newServer("a")
	b.consume(t, 0, s.reports(0, degraded)...)
	ended := joined(s.reports(15, healthy)...)
	for _, rm := range ended.ResourceMetrics().All() {
		rm.ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	}
	b.consume(t, 15, ended)
	assert.Zero(t, b.engines.live())
	b.consume(t, 30, s.reports(30, healthy)...)
	assert.Equal(t, []string{"degraded"}, b.sink.conditions(), "it is a first state again")
}

func TestASilentEngineIsForgotten(t *testing.T) {
	b := newBench(t, nil)
	silent, alive := newServer("a"), newServer("b")
	b.consume(t, 0, joined(silent.reports(0, stalled)...), joined(alive.reports(0, degraded)...))
	b.consume(t, 200, alive.reports(200, degraded)...)
	assert.Equal(t, 2, b.engines.live())
	b.consume(t, 301, alive.reports(301, degraded)...)
	assert.Equal(t, 1, b.engines.live())
	b.consume(t, 302, silent.reports(302, stalled)...)
	assert.Equal(t, []string{"stalled", "degraded", "stalled"}, b.sink.conditions(), "it alone has a new record")
}

// The clock of a replay runs faster than its points.
func TestAGapInThePointsForgetsTheEngineToo(t *testing.T) {
	b := newBench(t, nil)
	s := newServer("a")
	b.consume(t, 1000, s.reports(0, stalled)...)
	b.consume(t, 1000, s.reports(301, stalled)...)
	assert.Equal(t, []string{"stalled", "stalled"}, b.sink.conditions())
}

func TestABatchThatWasSplitIsEmittedOnce(t *testing.T) {
	b := newBench(t, nil)
	s := newServer("a")
	b.consume(t, 0, s.reports(0, degraded)...)
	for _, part := range s.reports(15, stalled) {
		b.consume(t, 15, part)
	}
	assert.Equal(t, []string{"degraded", "stalled"}, b.sink.conditions())
	assert.Empty(t, text(b.sink.records()[1], "vllm.diagnosis.cause"))
}

func TestAWaitingPartIsEmittedWithTheNextPointsOrAtShutdown(t *testing.T) {
	lacking := func(s *server, second float64) []pmetric.Metrics {
		all := s.reports(second, stalled)
		return all[:len(all)-1] // without the cause that there was
	}
	t.Run("next points", func(t *testing.T) {
		b, s := newBench(t, nil), newServer("a")
		b.consume(t, 0, s.reports(0, degraded)...)
		b.consume(t, 15, lacking(s, 15)...)
		assert.Equal(t, []string{"degraded"}, b.sink.conditions())
		b.consume(t, 30, s.reports(30, stalled)...)
		assert.Equal(t, []string{"degraded", "stalled"}, b.sink.conditions())
		assert.Equal(t, epoch.Add(15*time.Second), b.sink.records()[1].Timestamp().AsTime())
	})
	t.Run("forgotten", func(t *testing.T) {
		b, s := newBench(t, nil), newServer("a")
		b.consume(t, 0, s.reports(0, degraded)...)
		metrics := joined(lacking(s, 15)...)
		b.second = 15
		require.NoError(t, b.ConsumeMetrics(t.Context(), metrics))
		for _, rm := range metrics.ResourceMetrics().All() {
			rm.Resource().Attributes().PutStr("service.instance.id", "of another server by now")
		}
		b.consume(t, 400)
		assert.Equal(t, []string{"degraded", "stalled"}, b.sink.conditions())
		assert.Equal(t, "a", b.sink.batches[1].ResourceLogs().At(0).Resource().Attributes().AsRaw()["service.instance.id"])
	})
	t.Run("shutdown", func(t *testing.T) {
		b, s := newBench(t, nil), newServer("a")
		b.consume(t, 0, s.reports(0, degraded)...)
		b.consume(t, 15, lacking(s, 15)...)
		require.NoError(t, b.Shutdown(t.Context()))
		assert.Equal(t, []string{"degraded", "stalled"}, b.sink.conditions())
	})
}

func TestARecordThatIsRefusedIsTriedAgain(t *testing.T) {
	b, s := newBench(t, nil), newServer("a")
	b.consume(t, 0, s.reports(0, healthy)...)
	b.sink.refuses = true
	b.second = 15
	require.ErrorIs(t, b.ConsumeMetrics(t.Context(), joined(s.reports(15, degraded)...)), errRefused)
	b.sink.refuses = false
	b.consume(t, 30, s.reports(30, degraded)...)
	b.consume(t, 45, s.reports(45, degraded)...)
	require.Equal(t, []string{"degraded"}, b.sink.conditions())
	assert.Equal(t, "healthy", text(b.sink.records()[0], "vllm.diagnosis.previous_condition"))
}

// The receiver ends the series under the old attributes and begins them under the
// new ones, in one batch.
func TestAServerThatWasUpdatedInPlaceContinues(t *testing.T) {
	for _, endFirst := range []bool{true, false} {
		b, s := newBench(t, nil), newServer("a")
		b.consume(t, 0, s.reports(0, healthy)...)
		ended, begun := joined(s.reports(15, healthy)...), joined(s.reports(15, stalled)...)
		for _, rm := range ended.ResourceMetrics().All() {
			rm.ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		}
		for _, rm := range begun.ResourceMetrics().All() {
			rm.Resource().Attributes().PutStr("service.version", "2")
		}
		if endFirst {
			b.consume(t, 15, ended, begun)
		} else {
			b.consume(t, 15, begun, ended)
		}
		require.Equal(t, []string{"stalled"}, b.sink.conditions())
		assert.Equal(t, "healthy", text(b.sink.records()[0], "vllm.diagnosis.previous_condition"))
		assert.Equal(t, "2", b.sink.batches[0].ResourceLogs().At(0).Resource().Attributes().AsRaw()["service.version"])
	}
}

// Other consumers of the metrics must not find them changed.
func TestTheMetricsAreNotChanged(t *testing.T) {
	b := newBench(t, nil)
	metrics := joined(newServer("a").reports(0, degraded)...)
	metrics.MarkReadOnly() // a change would panic
	require.NoError(t, b.ConsumeMetrics(t.Context(), metrics))
	assert.False(t, b.Capabilities().MutatesData)
	assert.Len(t, b.sink.records(), 1)
}

func TestItCountsWhatItDoes(t *testing.T) {
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, telemetry.Shutdown(context.Background())) })
	b := newBenchWith(t, metadatatest.NewSettings(telemetry), func(c *Config) { c.MaxEngines = 1 })
	s := newServer("a")
	b.consume(t, 15, s.reports(15, degraded)...)
	b.consume(t, 16, s.reports(14, healthy)...)                  // severity, two conditions, one cause: too old
	b.consume(t, 17, newServer("b").reports(17, healthy)...)     // severity, condition: no room
	b.consume(t, 18, newServer("c").reports(18+301, healthy)...) // severity, condition: from the future
	b.consume(t, 19, s.point(19, "severity", 7, nil))            // no such severity
	b.consume(t, 20, s.point(20, "severity", 0, nil))            // the rest never arrives
	b.consume(t, 30, s.reports(30, healthy)...)                  // so that it is given up
	b.sink.refuses = true
	require.Error(t, b.ConsumeMetrics(t.Context(), joined(s.reports(31, stalled)...)))

	point := func(value int64, attributes ...attribute.KeyValue) metricdata.DataPoint[int64] {
		return metricdata.DataPoint[int64]{Attributes: attribute.NewSet(attributes...), Value: value}
	}
	reason := func(value int64, reason string) metricdata.DataPoint[int64] {
		return point(value, attribute.String("reason", reason))
	}
	ignoring := metricdatatest.IgnoreTimestamp()
	metadatatest.AssertEqualConnectorVllmDiagnosisIgnoredPoints(t, telemetry, []metricdata.DataPoint[int64]{
		reason(4, "out_of_order"), reason(2, "engine_limit"), reason(2, "future"), reason(1, "bad_value"), reason(1, "incomplete"),
	}, ignoring)
	metadatatest.AssertEqualConnectorVllmDiagnosisEvents(t, telemetry, []metricdata.DataPoint[int64]{
		point(1, attribute.Int("severity", 2)), point(1, attribute.Int("severity", 0)),
	}, ignoring)
	metadatatest.AssertEqualConnectorVllmDiagnosisFailedEvents(t, telemetry, []metricdata.DataPoint[int64]{
		point(1, attribute.Int("severity", 3)),
	}, ignoring)
	metadatatest.AssertEqualConnectorVllmDiagnosisEngines(t, telemetry, []metricdata.DataPoint[int64]{point(1, attribute.String("connector", "vllm_diagnosis"))}, ignoring)
	b.sink.refuses = false
	b.consume(t, 400)
	metadatatest.AssertEqualConnectorVllmDiagnosisEngines(t, telemetry, []metricdata.DataPoint[int64]{point(0, attribute.String("connector", "vllm_diagnosis"))}, ignoring)
	metadatatest.AssertEqualConnectorVllmDiagnosisExpiredEngines(t, telemetry, []metricdata.DataPoint[int64]{point(1)}, ignoring)
	for _, sentence := range []string{
		"ahead of this machine's clock", "more engines and pools than max_engines (1)", "without its severity or its present condition",
		"events of the diagnosis were refused; they are kept",
	} {
		assert.Contains(t, fmt.Sprint(b.sentences()), sentence)
	}
	assert.Len(t, b.sentences(), 4)
}

func TestAMissingDiagnosisIsLoggedOnce(t *testing.T) {
	running := func(name string) pmetric.Metrics {
		s := newServer("a")
		s.prefix = ""
		return s.point(0, name, 1, nil)
	}
	for name, test := range map[string]struct {
		metrics func() pmetric.Metrics
		want    string
	}{
		"no processor":  {func() pmetric.Metrics { return running("vllm.num_requests.running") }, "put the vllm processor before this connector"},
		"other metrics": {func() pmetric.Metrics { return running("process.cpu.time") }, ""},
		"all is well":   {func() pmetric.Metrics { return joined(newServer("a").reports(0, healthy)...) }, ""},
		"other names":   {func() pmetric.Metrics { return running("vllm_diagnosis_severity") }, "this connector reads only those of OTLP"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			for range patience - 1 {
				b.consume(t, 0, test.metrics())
			}
			if name == "no processor" {
				assert.Empty(t, b.sentences(), "some batches prove nothing")
			}
			for range 3 {
				b.consume(t, 0, test.metrics())
			}
			if test.want == "" {
				assert.Empty(t, b.sentences())
				return
			}
			require.Len(t, b.sentences(), 1)
			assert.Contains(t, b.sentences()[0], test.want)
		})
	}
}

// Each engine's batches come in order from a goroutine of its own, while others
// come, too, and the collector reads its own metrics.
func TestBatchesMayArriveAtTheSameTime(t *testing.T) {
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, telemetry.Shutdown(context.Background())) })
	b := newBenchWith(t, metadatatest.NewSettings(telemetry), nil)
	b.second = 1000
	const servers, rounds = 8, 50
	var group sync.WaitGroup
	for i := range servers {
		group.Go(func() {
			s := newServer(fmt.Sprint(i))
			for round := range rounds {
				state := healthy
				if round%2 == 0 {
					state = degraded
				}
				for _, part := range s.reports(float64(round), state) {
					assert.NoError(t, b.ConsumeMetrics(t.Context(), part))
				}
			}
		})
	}
	group.Go(func() {
		for range 20 {
			_, _ = telemetry.GetMetric("otelcol_connector_vllm_diagnosis_engines")
		}
	})
	group.Wait()
	// The first frame's cause is in a later part, after the state was reported
	// without it: one more for each server.
	assert.Len(t, b.sink.records(), servers*(rounds+1))
}
