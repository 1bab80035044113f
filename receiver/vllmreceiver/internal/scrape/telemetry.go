package scrape

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

// telemetry counts what the scrapes of a receiver find. It creates the attribute sets once.
type telemetry struct {
	*metadata.TelemetryBuilder
	outcomes map[fetch.Outcome]*labelled
	lines    map[exposition.Reason]metric.MeasurementOption
	// drops has both those that are lost and those that are omitted on purpose.
	drops              [normalize.NumReasons]labelled
	unknown, conflicts labelled
}

// labelled is a counter with one set of attributes.
type labelled struct {
	metric.Int64Counter
	attributes metric.MeasurementOption
}

// add counts. A counter has no series before there is something to count.
func (c *labelled) add(ctx context.Context, n int) {
	if n != 0 {
		c.Add(ctx, int64(n), c.attributes)
	}
}

func newTelemetry(builder *metadata.TelemetryBuilder) *telemetry {
	t := &telemetry{
		TelemetryBuilder: builder,
		outcomes:         map[fetch.Outcome]*labelled{},
		lines:            map[exposition.Reason]metric.MeasurementOption{},
	}
	for _, o := range fetch.Outcomes() {
		t.outcomes[o] = &labelled{builder.ReceiverVllmScrapes, attributeOption("outcome", o.String())}
	}
	for _, r := range exposition.Reasons() {
		t.lines[r] = attributeOption("reason", r.String())
	}
	for _, r := range normalize.Reasons() {
		points := builder.ReceiverVllmDroppedPoints
		if isOmission(r) {
			points = builder.ReceiverVllmOmittedPoints
		}
		t.drops[r] = labelled{points, attributeOption("reason", r.String())}
	}
	t.unknown = labelled{builder.ReceiverVllmUnknownFamilies, metric.WithAttributes()}
	t.conflicts = labelled{builder.ReceiverVllmTypeConflicts, metric.WithAttributes()}
	return t
}

func attributeOption(name, value string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String(name, value)))
}

// scraped counts one scrape.
func (t *telemetry) scraped(outcome fetch.Outcome) { t.outcomes[outcome].add(context.Background(), 1) }

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
	t.unknown.add(ctx, len(plan.Unknown))
	t.conflicts.add(ctx, len(plan.Conflicts))
	for i := range snapshot.Problems {
		t.ReceiverVllmBadLines.Add(ctx, 1, t.lines[snapshot.Problems[i].Reason])
	}
	for reason := range plan.Dropped {
		t.drops[reason].add(ctx, plan.Dropped[reason]+report.Dropped[reason])
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
