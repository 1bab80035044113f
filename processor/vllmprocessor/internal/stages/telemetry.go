package stages

import (
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/gpu"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadata"
)

// Telemetry is the processor's own telemetry. It makes its attribute sets in advance: reasons by their
// numbers, nil for one that is not worth counting.
type Telemetry struct {
	*metadata.TelemetryBuilder
	named                                            metric.MeasurementOption
	unreadable, ignored, absences, uncounted, unused []metric.MeasurementOption
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
		unreadable:       reasons(collect.NumReasons), ignored: reasons(window.NumReasons), absences: reasons(derive.NumReasons),
		uncounted: reasons(NumUncounted), unused: reasons(gpu.NumOutcomes),
	}
	t.unused[gpu.Used] = nil
	t.absences[derive.Missing] = nil // A server never had the metric.
	return t, nil
}

func reasons[R interface {
	~uint8
	fmt.Stringer
}](number R) (all []metric.MeasurementOption) {
	for r := range number {
		all = append(all, metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", r.String()))))
	}
	return all
}

// count adds what was counted by reason.
func count(ctx context.Context, to metric.Int64Counter, counted []int, reasons []metric.MeasurementOption) {
	for r, n := range counted {
		if n > 0 && reasons[r] != nil {
			to.Add(ctx, int64(n), reasons[r])
		}
	}
}

// Devices counts the readings of GPUs that are not used.
func (t *Telemetry) Devices(ctx context.Context, report *gpu.Report) {
	count(ctx, t.ProcessorVllmUnusedDeviceReadings, report[:], t.unused)
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
	count(ctx, t.ProcessorVllmIgnoredPoints, report[:], t.unreadable)
}

// Observed counts the points that the window ignored, and the resets that it found.
func (t *Telemetry) Observed(ctx context.Context, report *window.Report) {
	count(ctx, t.ProcessorVllmIgnoredPoints, report.Ignored[:], t.ignored)
	if report.Resets > 0 {
		t.ProcessorVllmResets.Add(ctx, int64(report.Resets))
	}
}

// Absent counts values that could not be derived, and clears counts.
func (t *Telemetry) Absent(ctx context.Context, counts *[derive.NumReasons]int) {
	count(ctx, t.ProcessorVllmAbsentValues, counts[:], t.absences)
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
	t.ProcessorVllmUncountedSteps.Add(ctx, 1, t.uncounted[why])
}
