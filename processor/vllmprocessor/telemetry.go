package vllmprocessor

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadata"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// telemetry counts what the processor does, with the attribute sets made
// beforehand.
type telemetry struct {
	*metadata.TelemetryBuilder
	unreadable [collect.NumReasons]metric.MeasurementOption
	ignored    [window.NumReasons]metric.MeasurementOption
	absences   [derive.NumReasons]metric.MeasurementOption
	steps      [numUncounted]metric.MeasurementOption
}

// uncounted says why a step did not count for an objective.
type uncounted uint8

const (
	// stepLimit: there are too many trackers.
	stepLimit uncounted = iota
	// stepLate: it is older than the budget window.
	stepLate
	// stepUnsound: its counts cannot be.
	stepUnsound

	numUncounted
)

func (u uncounted) String() string {
	return [numUncounted]string{"tracker_limit", "late", "unsound"}[u]
}

func newTelemetry(builder *metadata.TelemetryBuilder) *telemetry {
	t := &telemetry{TelemetryBuilder: builder}
	for r := range collect.NumReasons {
		t.unreadable[r] = reason(r.String())
	}
	for r := range window.NumReasons {
		t.ignored[r] = reason(r.String())
	}
	for r := range derive.NumReasons {
		t.absences[r] = reason(r.String())
	}
	for u := range numUncounted {
		t.steps[u] = reason(u.String())
	}
	return t
}

func reason(value string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", value)))
}

// observe registers what is read when the collector's own metrics are.
func (t *telemetry) observe(p *vllmProcessor) error {
	return errors.Join(
		t.RegisterProcessorVllmSeriesCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(p.series.Used()))
			return nil
		}),
		t.RegisterProcessorVllmResourcesCallback(func(_ context.Context, o metric.Int64Observer) error {
			p.mu.Lock()
			defer p.mu.Unlock()
			o.Observe(int64(len(p.resources)))
			return nil
		}),
		t.RegisterProcessorVllmObjectiveTrackersCallback(func(_ context.Context, o metric.Int64Observer) error {
			if p.objectives != nil {
				o.Observe(int64(p.objectives.trackers.Used()))
			}
			return nil
		}),
	)
}

func (t *telemetry) unread(ctx context.Context, report *collect.Report) {
	for r, n := range report {
		if n > 0 {
			t.ProcessorVllmIgnoredPoints.Add(ctx, int64(n), t.unreadable[r])
		}
	}
}

func (t *telemetry) observed(ctx context.Context, report *window.Report) {
	for r, n := range report.Ignored {
		if n > 0 {
			t.ProcessorVllmIgnoredPoints.Add(ctx, int64(n), t.ignored[r])
		}
	}
	if report.Resets > 0 {
		t.ProcessorVllmResets.Add(ctx, int64(report.Resets))
	}
}

// absent counts and clears.
func (t *telemetry) absent(ctx context.Context, counts *[derive.NumReasons]int) {
	for r, n := range counts {
		// What a server never says is no news.
		if n > 0 && derive.Reason(r) != derive.Missing {
			t.ProcessorVllmAbsentValues.Add(ctx, int64(n), t.absences[r])
		}
	}
	clear(counts[:])
}

func (t *telemetry) derived(ctx context.Context, points, ends int) {
	t.ProcessorVllmDerivedPoints.Add(ctx, int64(points))
	t.ProcessorVllmEndedSeries.Add(ctx, int64(ends))
}

// unmeasured counts a step that did not count for an objective.
func (t *telemetry) unmeasured(ctx context.Context, why uncounted) {
	t.ProcessorVllmUncountedSteps.Add(ctx, 1, t.steps[why])
}
