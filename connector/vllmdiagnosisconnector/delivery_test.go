package vllmdiagnosisconnector

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/connector/connectortest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"

	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector/internal/metadata"
	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector/internal/metadatatest"
	"github.com/otelcol-vllm/otelcol-vllm/internal/ending"
)

// refused gives a batch to a connector whose next component refuses it.
func (b *bench) refused(t *testing.T, second float64, parts ...pmetric.Metrics) {
	t.Helper()
	b.sink.refuses = true
	b.second = second
	require.ErrorIs(t, b.ConsumeMetrics(t.Context(), joined(parts...)), errRefused)
	b.sink.refuses = false
}

// ended are the points of a server that say that its series have ended.
func (s *server) ended(second float64) pmetric.Metrics {
	all := joined(s.reports(second, healthy)...)
	for _, rm := range all.ResourceMetrics().All() {
		rm.ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	}
	return all
}

// What happened has happened, also when it is over before anybody takes the record.
func TestARefusedRecordIsNotLostWhenItIsOver(t *testing.T) {
	b, s := newBench(t, nil), newServer("a")
	b.consume(t, 0, s.reports(0, healthy)...)
	b.refused(t, 15, s.reports(15, degraded)...)
	b.consume(t, 30, s.reports(30, healthy)...)
	require.Equal(t, []string{"degraded", "healthy"}, b.sink.conditions())
	assert.Equal(t, epoch.Add(15*time.Second), b.sink.records()[0].Timestamp().AsTime())
	assert.Equal(t, epoch.Add(15*time.Second), b.sink.records()[0].ObservedTimestamp().AsTime())
	assert.Equal(t, "degraded", text(b.sink.records()[1], "vllm.diagnosis.previous_condition"))
}

func TestSeveralRefusedRecordsKeepTheirOrder(t *testing.T) {
	b, s := newBench(t, nil), newServer("a")
	b.consume(t, 0, s.reports(0, healthy)...)
	b.refused(t, 30, append(s.reports(15, degraded), s.reports(30, stalled)...)...)
	b.refused(t, 45, s.reports(45, degraded)...)
	b.consume(t, 60, s.reports(60, degraded)...)
	assert.Equal(t, []string{"degraded", "stalled", "degraded"}, b.sink.conditions())
	require.Len(t, b.sink.batches, 1)
	assert.Equal(t, 1, b.sink.batches[0].ResourceLogs().Len(), "those of a server are in one place")
}

// The server may be gone by then; any other one brings its record along.
func TestARefusedRecordOutlivesItsServer(t *testing.T) {
	b, s, other := newBench(t, nil), newServer("a"), newServer("b")
	metrics := joined(s.reports(0, stalled)...)
	b.refused(t, 0, metrics)
	b.sink.refuses = true
	b.second = 15
	require.NoError(t, b.ConsumeMetrics(t.Context(), s.ended(15)), "these points have nothing to do with it")
	b.sink.refuses = false
	b.consume(t, 400, other.reports(400, healthy)...)
	require.Equal(t, []string{"stalled"}, b.sink.conditions())
	resource := b.sink.batches[0].ResourceLogs().At(0)
	assert.Equal(t, map[string]any{"service.instance.id": "a"}, resource.Resource().Attributes().AsRaw())
	assert.Equal(t, "https://opentelemetry.io/schemas/1.30.0", resource.SchemaUrl())
	b.consume(t, 401, other.reports(401, healthy)...)
	assert.Len(t, b.sink.records(), 1, "once")
	assert.Len(t, b.sentences(), 1, "two refusals without a success between them are logged once")
}

func TestTheSameMetricsAgainMakeNoSecondRecord(t *testing.T) {
	for name, metrics := range map[string]func() pmetric.Metrics{
		"one time": func() pmetric.Metrics { return joined(newServer("a").reports(15, stalled)...) },
		"two times": func() pmetric.Metrics {
			s := newServer("a")
			return joined(append(s.reports(15, degraded), s.reports(30, stalled)...)...)
		},
		"with its end": func() pmetric.Metrics {
			s := newServer("a")
			return joined(append(s.reports(15, stalled), s.ended(30))...)
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := newBench(t, nil)
			want.consume(t, 30, metrics())
			require.NotEmpty(t, want.sink.records())

			b := newBench(t, nil)
			b.refused(t, 30, metrics())
			b.refused(t, 30, append([]pmetric.Metrics{newServer("b").reports(30, stalled)[0], newServer("b").reports(30, stalled)[1]}, metrics())...)
			for range 3 {
				b.consume(t, 40, metrics())
			}
			assert.Equal(t, append(want.sink.conditions(), "stalled"), b.sink.conditions())
		})
	}
}

func TestARecordThatIsRefusedForGoodIsCountedAndNotRepeated(t *testing.T) {
	telemetry := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, telemetry.Shutdown(context.Background())) })
	b, s := newBenchWith(t, metadatatest.NewSettings(telemetry), nil), newServer("a")
	b.sink.refusal = consumererror.NewPermanent(errRefused)
	b.refused(t, 0, s.reports(0, stalled)...)
	b.consume(t, 15, s.reports(15, healthy)...)
	assert.Equal(t, []string{"healthy"}, b.sink.conditions())
	metadatatest.AssertEqualConnectorVllmDiagnosisDroppedEvents(t, telemetry, []metricdata.DataPoint[int64]{
		{Attributes: attribute.NewSet(attribute.Int("severity", 3)), Value: 1},
	}, metricdatatest.IgnoreTimestamp())
	assert.Contains(t, fmt.Sprint(b.sentences()), "the next component refused events of the diagnosis permanently, and they are lost")
}

func TestWhatIsRefusedUntilTheEndIsReported(t *testing.T) {
	b, s := newBench(t, nil), newServer("a")
	b.refused(t, 0, s.reports(0, stalled)...)
	b.sink.refuses = true
	require.NoError(t, b.Shutdown(t.Context()))
	assert.Contains(t, fmt.Sprint(b.sentences()), "could not be delivered until the end and are lost")

	b = newBench(t, nil)
	b.refused(t, 0, newServer("a").reports(0, stalled)...)
	require.NoError(t, b.Shutdown(t.Context()))
	assert.Equal(t, []string{"stalled"}, b.sink.conditions(), "the end is one more try")
}

// Otherwise a backend of logs that is slow to refuse holds up the metrics of all servers.
func TestRefusedRecordsAreNotTriedWithEachCall(t *testing.T) {
	tries := 0
	next, err := consumer.NewLogs(func(context.Context, plog.Logs) error { tries++; return errRefused })
	require.NoError(t, err)
	c, err := newConnector(createDefaultConfig().(*Config), connectortest.NewNopSettings(metadata.Type), next)
	require.NoError(t, err)
	s, second := newServer("a"), 0.0
	c.now = func() time.Time { return epoch.Add(time.Duration(second * float64(time.Second))) }
	require.ErrorIs(t, c.ConsumeMetrics(t.Context(), joined(s.reports(0, stalled)...)), errRefused)
	var at []float64
	for second = 1; second <= 300; second++ {
		before := tries
		require.NoError(t, c.ConsumeMetrics(t.Context(), joined(s.reports(second, stalled)...)))
		if tries > before {
			at = append(at, second)
		}
	}
	assert.Equal(t, []float64{1, 6, 16, 36, 76, 136, 196, 256}, at)
	// What is new does not wait.
	require.ErrorIs(t, c.ConsumeMetrics(t.Context(), joined(s.reports(second, healthy)...)), errRefused)
	before := tries
	require.NoError(t, c.Shutdown(t.Context()))
	assert.Equal(t, before+1, tries, "the end is one more try")
}

// The service sets no deadline, and an exporter may have none either.
func TestShutdownEndsWithoutADeadline(t *testing.T) {
	for name, heeds := range map[string]bool{"the consumer heeds its context": true, "it does not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refuses, leave := true, make(chan struct{})
			next, err := consumer.NewLogs(func(ctx context.Context, _ plog.Logs) error {
				if refuses {
					return errRefused
				}
				if heeds {
					<-ctx.Done()
				} else {
					<-leave
				}
				return ctx.Err()
			})
			require.NoError(t, err)
			c, err := newConnector(createDefaultConfig().(*Config), connectortest.NewNopSettings(metadata.Type), next)
			require.NoError(t, err)
			require.Error(t, c.ConsumeMetrics(t.Context(), joined(newServer("a").reports(0, stalled)...)))
			refuses = false
			ended := make(chan error, 1)
			go func() { ended <- c.Shutdown(context.Background()) }()
			select {
			case err := <-ended:
				assert.NoError(t, err)
			case <-time.After(2*ending.Wait + 20*time.Second):
				t.Error("Shutdown hangs")
			}
			close(leave)
		})
	}
}

// gate is a next component that takes its time with the records of one server.
type gate struct {
	entered, leave chan struct{}
	taken          chan string
}

func (*gate) Capabilities() consumer.Capabilities { return consumer.Capabilities{MutatesData: true} }

func (g *gate) ConsumeLogs(_ context.Context, logs plog.Logs) error {
	instance, _ := logs.ResourceLogs().At(0).Resource().Attributes().Get("service.instance.id")
	if instance.Str() == "slow" {
		close(g.entered)
		<-g.leave
	}
	g.taken <- instance.Str()
	return nil
}

func TestNothingWaitsForADelivery(t *testing.T) {
	g := &gate{entered: make(chan struct{}), leave: make(chan struct{}), taken: make(chan string, 2)}
	c, err := newConnector(createDefaultConfig().(*Config), connectortest.NewNopSettings(metadata.Type), g)
	require.NoError(t, err)
	c.now = func() time.Time { return epoch }
	done := make(chan error, 1)
	go func() {
		done <- c.ConsumeMetrics(context.Background(), joined(newServer("slow").reports(0, stalled)...))
	}()
	<-g.entered
	// A lock that is held now would stop this until the test's own timeout.
	require.NoError(t, c.ConsumeMetrics(t.Context(), joined(newServer("fast").reports(0, stalled)...)))
	assert.Equal(t, "fast", <-g.taken)
	close(g.leave)
	require.NoError(t, <-done)
	assert.Equal(t, "slow", <-g.taken)
}

func TestWhatIsKeptOfRefusedRecordsIsBoundedAndShared(t *testing.T) {
	b := newBench(t, nil)
	b.pending.limit = 200_000
	quiet := newServer("quiet")
	b.refused(t, 0, quiet.reports(0, stalled)...)
	noisy := newServer("noisy")
	noisy.attributes["model_name"] = strings.Repeat("m", 1500)
	for second := 1.0; second < 200; second++ {
		state := degraded
		if int(second)%2 == 0 {
			state = stalled
		}
		b.refused(t, second, noisy.reports(second, state)...)
	}
	kept := 0
	for _, r := range b.pending.records {
		kept += r.size
	}
	assert.LessOrEqual(t, kept, 200_000)
	assert.Greater(t, kept, 150_000, "the room is used")
	b.consume(t, 260, newServer("other").reports(200, healthy)...)
	records := b.sink.records()
	assert.Equal(t, "m", text(records[0], "model_name"), "the quiet server's record")
	assert.Equal(t, epoch.Add(199*time.Second), records[len(records)-1].Timestamp().AsTime(), "the newest of the noisy one")
	assert.Contains(t, fmt.Sprint(b.sentences()), "no more refused events of the diagnosis can be kept")
}

func TestSharesOfALimit(t *testing.T) {
	for _, c := range []struct {
		limit int
		sizes []int
		want  int
	}{
		{100, []int{200}, 100},
		{100, []int{10, 200}, 90},
		{100, []int{60, 70}, 50},
		{100, []int{10, 20, 100, 100}, 35},
	} {
		assert.Equal(t, c.want, shareOf(c.limit, c.sizes), "%v", c.sizes)
	}
}

// A resource can be as large as its sender likes; what is kept of it is not.
func TestWhatIsKeptOfAResourceIsBounded(t *testing.T) {
	origin := emit.Origin{Resource: pmetric.NewResourceMetrics().Resource(), SchemaURL: strings.Repeat("u", 1<<20)}
	origin.Resource.Attributes().PutStr("service.instance.id", "a")
	origin.Resource.Attributes().PutStr("large", strings.Repeat("x", 4<<20))
	raw := map[string]any{}
	for i := range 50_000 {
		raw[fmt.Sprint("a", i)] = ""
	}
	many := emit.Origin{Resource: pmetric.NewResourceMetrics().Resource()}
	require.NoError(t, many.Resource.Attributes().FromRaw(raw))
	kept := origin.Keep()
	assert.Equal(t, map[string]any{"service.instance.id": "a"}, kept.Resource.Attributes().AsRaw())
	assert.LessOrEqual(t, len(kept.SchemaURL), 16<<10)
	assert.Less(t, many.Keep().Resource.Attributes().Len(), 1000)
	assert.Equal(t, 50_000, many.Resource.Attributes().Len(), "the metrics are not changed")
}
