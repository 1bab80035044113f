package stages

import (
	"context"
	"errors"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/gpu"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadata"
)

// Telemetry is the processor's own telemetry. It makes its attribute sets in advance.
type Telemetry struct {
	*metadata.TelemetryBuilder
	named      metric.MeasurementOption
	unreadable [collect.NumReasons]metric.MeasurementOption
	ignored    [window.NumReasons]metric.MeasurementOption
	absences   [derive.NumReasons]metric.MeasurementOption
	steps      [NumUncounted]metric.MeasurementOption
	devices    [gpu.NumOutcomes]metric.MeasurementOption
}

// Uncounted is why a step did not count for an objective.
type Uncounted uint8

const (
	// StepLimit means: there are too many trackers.
	StepLimit Uncounted = iota
	// StepLate means: the step is older than the budget window.
	StepLate
	// StepUnsound means: its counts contradict each other.
	StepUnsound

	// NumUncounted is the number of reasons, for arrays over them.
	NumUncounted
)

// String is the reason as an attribute value.
func (u Uncounted) String() string {
	return [NumUncounted]string{"tracker_limit", "late", "unsound"}[u]
}

// NewTelemetry returns the telemetry of one processor. Its gauges have the name of the processor, because all
// processors of a collector share the instruments, and of equal series only the last value counts.
func NewTelemetry(settings component.TelemetrySettings, name component.ID) (*Telemetry, error) {
	builder, err := metadata.NewTelemetryBuilder(settings)
	if err != nil {
		return nil, err
	}
	t := &Telemetry{
		TelemetryBuilder: builder,
		named:            metric.WithAttributeSet(attribute.NewSet(attribute.String("processor", name.String()))),
	}
	for r := range collect.NumReasons {
		t.unreadable[r] = reason(r.String())
	}
	for r := range window.NumReasons {
		t.ignored[r] = reason(r.String())
	}
	for r := range derive.NumReasons {
		t.absences[r] = reason(r.String())
	}
	for u := range NumUncounted {
		t.steps[u] = reason(u.String())
	}
	for o := range gpu.NumOutcomes {
		t.devices[o] = reason(o.String())
	}
	return t, nil
}

// Devices counts the readings of GPUs that are not used.
func (t *Telemetry) Devices(ctx context.Context, report *gpu.Report) {
	for o, n := range report {
		if n > 0 && gpu.Outcome(o) != gpu.Used {
			t.ProcessorVllmUnusedDeviceReadings.Add(ctx, int64(n), t.devices[o])
		}
	}
}

func reason(value string) metric.MeasurementOption {
	return metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", value)))
}

// ObserveState registers the gauges of series, resources and GPUs.
func (t *Telemetry) ObserveState(series, resources, devices func() int) error {
	return errors.Join(
		t.RegisterProcessorVllmSeriesCallback(t.observing(series)),
		t.RegisterProcessorVllmResourcesCallback(t.observing(resources)),
		t.RegisterProcessorVllmDevicesCallback(t.observing(devices)),
	)
}

// ObserveTrackers registers the gauge of the trackers of objectives.
func (t *Telemetry) ObserveTrackers(trackers func() int) error {
	return t.RegisterProcessorVllmObjectiveTrackersCallback(t.observing(trackers))
}

func (t *Telemetry) observing(number func() int) metric.Int64Callback {
	return func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(int64(number()), t.named)
		return nil
	}
}

// Unread counts the points that could not be read.
func (t *Telemetry) Unread(ctx context.Context, report *collect.Report) {
	for r, n := range report {
		if n > 0 {
			t.ProcessorVllmIgnoredPoints.Add(ctx, int64(n), t.unreadable[r])
		}
	}
}

// Observed counts the points that the window ignored, and the resets that it found.
func (t *Telemetry) Observed(ctx context.Context, report *window.Report) {
	for r, n := range report.Ignored {
		if n > 0 {
			t.ProcessorVllmIgnoredPoints.Add(ctx, int64(n), t.ignored[r])
		}
	}
	if report.Resets > 0 {
		t.ProcessorVllmResets.Add(ctx, int64(report.Resets))
	}
}

// Absent counts values that could not be derived, and clears counts.
func (t *Telemetry) Absent(ctx context.Context, counts *[derive.NumReasons]int) {
	for r, n := range counts {
		// A metric that a server never had is not worth counting.
		if n > 0 && derive.Reason(r) != derive.Missing {
			t.ProcessorVllmAbsentValues.Add(ctx, int64(n), t.absences[r])
		}
	}
	clear(counts[:])
}

// Derived counts the values and the ends that were written.
func (t *Telemetry) Derived(ctx context.Context, values, ends int) {
	t.ProcessorVllmDerivedPoints.Add(ctx, int64(values))
	t.ProcessorVllmEndedSeries.Add(ctx, int64(ends))
}

// DroppedEnds counts ends that were refused and are not sent again.
func (t *Telemetry) DroppedEnds(ends int) {
	if ends > 0 {
		t.ProcessorVllmDroppedEnds.Add(context.Background(), int64(ends))
	}
}

// Uncounted counts a step that did not count for an objective.
func (t *Telemetry) Uncounted(ctx context.Context, why Uncounted) {
	t.ProcessorVllmUncountedSteps.Add(ctx, 1, t.steps[why])
}
