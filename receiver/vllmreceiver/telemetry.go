package vllmreceiver

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/fetch"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/metadata"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

// telemetry is the self-telemetry of the receiver. It creates the attribute sets once.
type telemetry struct {
	*metadata.TelemetryBuilder
	outcomes map[fetch.Outcome]metric.MeasurementOption
	lines    map[exposition.Reason]metric.MeasurementOption
	drops    [normalize.NumReasons]metric.MeasurementOption
}

func newTelemetry(builder *metadata.TelemetryBuilder) *telemetry {
	t := &telemetry{
		TelemetryBuilder: builder,
		outcomes:         map[fetch.Outcome]metric.MeasurementOption{},
		lines:            map[exposition.Reason]metric.MeasurementOption{},
	}
	for _, o := range fetch.Outcomes() {
		t.outcomes[o] = attributeOption("outcome", o.String())
	}
	for _, r := range exposition.Reasons() {
		t.lines[r] = attributeOption("reason", r.String())
	}
	for _, r := range normalize.Reasons() {
		t.drops[r] = attributeOption("reason", r.String())
	}
	return t
}

func attributeOption(name, value string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String(name, value)))
}

// scraped counts one scrape.
func (t *telemetry) scraped(ctx context.Context, outcome fetch.Outcome) {
	t.ReceiverVllmScrapes.Add(ctx, 1, t.outcomes[outcome])
}

// resets counts one restart of a server process.
func (t *telemetry) resets(ctx context.Context) { t.ReceiverVllmResets.Add(ctx, 1) }

// read records the facts of one body.
func (t *telemetry) read(
	ctx context.Context, snapshot *exposition.Snapshot, plan *normalize.Plan, report *emit.Report,
	size int, took time.Duration,
) {
	t.ReceiverVllmBodySize.Record(ctx, int64(size))
	t.ReceiverVllmParseDuration.Record(ctx, took.Seconds())
	if snapshot.Duplicates > 0 {
		t.ReceiverVllmDuplicateSamples.Add(ctx, int64(snapshot.Duplicates))
	}
	if n := len(plan.Unknown); n > 0 {
		t.ReceiverVllmUnknownFamilies.Add(ctx, int64(n))
	}
	if n := len(plan.Conflicts); n > 0 {
		t.ReceiverVllmTypeConflicts.Add(ctx, int64(n))
	}
	for i := range snapshot.Problems {
		t.ReceiverVllmBadLines.Add(ctx, 1, t.lines[snapshot.Problems[i].Reason])
	}
	for reason := range plan.Dropped {
		n := int64(plan.Dropped[reason] + report.Dropped[reason])
		switch {
		case n == 0:
		case isOmission(normalize.Reason(reason)):
			t.ReceiverVllmOmittedPoints.Add(ctx, n, t.drops[reason])
		default:
			t.ReceiverVllmDroppedPoints.Add(ctx, n, t.drops[reason])
		}
	}
}

// isOmission reports whether points that are left out for this reason are not a loss:
// they are switched off, emitted under another name, or have no value.
func isOmission(reason normalize.Reason) bool {
	switch reason {
	case normalize.ReasonDisabled, normalize.ReasonAlias, normalize.ReasonInfo, normalize.ReasonTypeConflict, normalize.ReasonSentinel:
		return true
	}
	return false
}
