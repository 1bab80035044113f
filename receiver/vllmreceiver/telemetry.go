package vllmreceiver

import (
	"context"
	"time"

	"go.opentelemetry.io/collector/receiver"
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
	// tally has the counters that every scrape may add to.
	tally    tally
	points   scrapedPoints
	outcomes map[fetch.Outcome]tallied
	lines    map[exposition.Reason]metric.MeasurementOption
	// drops has both those that are lost and those that are omitted on purpose.
	drops              [normalize.NumReasons]tallied
	unknown, conflicts tallied
}

func newTelemetry(builder *metadata.TelemetryBuilder, settings receiver.Settings) (*telemetry, error) {
	t := &telemetry{
		TelemetryBuilder: builder,
		outcomes:         map[fetch.Outcome]tallied{},
		lines:            map[exposition.Reason]metric.MeasurementOption{},
	}
	for _, o := range fetch.Outcomes() {
		t.outcomes[o] = t.tally.newCount(builder.ReceiverVllmScrapes, attributeOption("outcome", o.String()))
	}
	for _, r := range exposition.Reasons() {
		t.lines[r] = attributeOption("reason", r.String())
	}
	for _, r := range normalize.Reasons() {
		counter := builder.ReceiverVllmDroppedPoints
		if isOmission(r) {
			counter = builder.ReceiverVllmOmittedPoints
		}
		t.drops[r] = t.tally.newCount(counter, attributeOption("reason", r.String()))
	}
	t.unknown = t.tally.newCount(builder.ReceiverVllmUnknownFamilies)
	t.conflicts = t.tally.newCount(builder.ReceiverVllmTypeConflicts)
	var err error
	t.points, err = newScrapedPoints(&t.tally, settings)
	return t, err
}

func attributeOption(name, value string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String(name, value)))
}

// scraped counts one scrape.
func (t *telemetry) scraped(outcome fetch.Outcome) { t.tally.add(t.outcomes[outcome], 1) }

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
	t.tally.add(t.unknown, int64(len(plan.Unknown)))
	t.tally.add(t.conflicts, int64(len(plan.Conflicts)))
	for i := range snapshot.Problems {
		t.ReceiverVllmBadLines.Add(ctx, 1, t.lines[snapshot.Problems[i].Reason])
	}
	for reason := range plan.Dropped {
		t.tally.add(t.drops[reason], int64(plan.Dropped[reason]+report.Dropped[reason]))
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
