package vllmdiagnosisconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector/internal/metadata"
)

// ignored says why readable points were not used.
type ignored uint8

const (
	// outOfOrder: they are older than what is known of their engine.
	outOfOrder ignored = iota
	// future: they are far ahead of our clock.
	future
	// engineLimit: there are too many engines.
	engineLimit
	// incomplete: they came without a severity or a present condition.
	incomplete

	numIgnored
)

func (i ignored) String() string {
	return [numIgnored]string{"out_of_order", "future", "engine_limit", "incomplete"}[i]
}

// numSeverities is the number of severities of a diagnosis, from 0 on.
const numSeverities = 4

// telemetry counts what the connector does, with the attribute sets made
// beforehand.
type telemetry struct {
	*metadata.TelemetryBuilder
	named      metric.MeasurementOption
	unreadable [collect.NumReasons]metric.MeasurementOption
	ignored    [numIgnored]metric.MeasurementOption
	severities [numSeverities]metric.MeasurementOption
}

// newTelemetry returns the telemetry of one connector. Its gauge has the name of the connector, because
// all connectors of a collector share the instrument, and of equal series only the last value counts.
func newTelemetry(builder *metadata.TelemetryBuilder, name component.ID) *telemetry {
	t := &telemetry{TelemetryBuilder: builder, named: with(attribute.String("connector", name.String()))}
	for r := range collect.NumReasons {
		t.unreadable[r] = with(attribute.String("reason", r.String()))
	}
	for i := range numIgnored {
		t.ignored[i] = with(attribute.String("reason", i.String()))
	}
	for s := range t.severities {
		t.severities[s] = with(attribute.Int("severity", s))
	}
	return t
}

func with(value attribute.KeyValue) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(value))
}

// observe registers what is read when the collector's own metrics are.
func (t *telemetry) observe(c *diagnosisConnector) error {
	return t.RegisterConnectorVllmDiagnosisEnginesCallback(func(_ context.Context, o metric.Int64Observer) error {
		c.mu.Lock()
		defer c.mu.Unlock()
		o.Observe(int64(c.engines.live()), t.named)
		return nil
	})
}

func (t *telemetry) unread(ctx context.Context, report *collect.Report) {
	for r, n := range report {
		if n > 0 {
			t.ConnectorVllmDiagnosisIgnoredPoints.Add(ctx, int64(n), t.unreadable[r])
		}
	}
}

func (t *telemetry) ignore(ctx context.Context, why ignored, points int) {
	t.ConnectorVllmDiagnosisIgnoredPoints.Add(ctx, int64(points), t.ignored[why])
}

// deliver counts records that the next component took, fail those that it refused for
// the first time, and drop those that are lost.
func (t *telemetry) deliver(ctx context.Context, records []record) {
	t.count(ctx, t.ConnectorVllmDiagnosisEvents, records)
}

func (t *telemetry) fail(ctx context.Context, records []record) {
	t.count(ctx, t.ConnectorVllmDiagnosisFailedEvents, records)
}

func (t *telemetry) drop(ctx context.Context, records []record) {
	t.count(ctx, t.ConnectorVllmDiagnosisDroppedEvents, records)
}

func (t *telemetry) count(ctx context.Context, to metric.Int64Counter, records []record) {
	for i := range records {
		to.Add(ctx, 1, t.severities[records[i].severity])
	}
}
