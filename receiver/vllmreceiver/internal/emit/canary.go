package emit

import (
	"cmp"
	"sort"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// The names of the metrics about canaries.
const (
	MetricCanaryDuration   = "vllm.canary.duration"
	MetricCanarySuccess    = "vllm.canary.success"
	MetricCanaryUnanswered = "vllm.canary.unanswered"
)

// answeredOutcome is the outcome of a canary that was answered.
const answeredOutcome = "ok"

// canaryBounds are those of vLLM's time to the first token.
var canaryBounds = [...]float64{
	0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560,
}

// Canary is what is known of the canaries that were sent to a target.
type Canary struct {
	// Outcome is that of the newest one; empty where that is not known.
	Outcome string
	// Unanswered is in seconds; nil where it is not known.
	Unanswered *float64
	// Durations are those of all that were answered.
	Durations CanaryDurations
}

// CanaryDurations counts how long answers took.
type CanaryDurations struct {
	Start  time.Time
	Count  uint64
	sum    float64
	counts [len(canaryBounds) + 1]uint64
}

// Add adds an answer.
func (d *CanaryDurations) Add(took time.Duration) {
	d.Count++
	d.sum += took.Seconds()
	d.counts[sort.SearchFloat64s(canaryBounds[:], took.Seconds())]++
}

// emitCanary emits what is known of the canaries, and ends what is not known now.
func (o *ownMetrics) emitCanary(canary *Canary, now pcommon.Timestamp, metrics pmetric.MetricSlice) {
	canary = cmp.Or(canary, &Canary{})
	o.set(ownCanarySuccess, canary.Outcome != "", truth(canary.Outcome == answeredOutcome), canary.Outcome, now, metrics)
	o.set(ownCanaryUnanswered, canary.Unanswered != nil, *cmp.Or(canary.Unanswered, new(float64)), "", now, metrics)
	d := &canary.Durations
	switch {
	case o.metrics[ownCanaryDuration] == nil:
	case d.Count > 0:
		o.started = min(pcommon.NewTimestampFromTime(d.Start), now)
		o.appendDurations(d, now, metrics)
		metrics.At(metrics.Len() - 1).SetDescription(o.metrics[ownCanaryDuration].Description)
	case o.started != 0:
		o.appendDurations(d, now, metrics).SetFlags(noRecordedValue)
		o.started = 0
	}
}

// appendDurations appends the histogram. An end has all bounds as well, since each is a
// series of a Prometheus backend.
func (o *ownMetrics) appendDurations(d *CanaryDurations, now pcommon.Timestamp, metrics pmetric.MetricSlice) pmetric.HistogramDataPoint {
	to := metrics.AppendEmpty()
	to.SetName(o.metrics[ownCanaryDuration].Name)
	to.SetUnit(o.metrics[ownCanaryDuration].Unit)
	histogram := to.SetEmptyHistogram()
	histogram.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	point := histogram.DataPoints().AppendEmpty()
	point.SetStartTimestamp(o.started)
	point.SetTimestamp(now)
	point.SetCount(d.Count)
	point.SetSum(d.sum)
	point.ExplicitBounds().FromRaw(canaryBounds[:])
	point.BucketCounts().FromRaw(d.counts[:])
	return point
}
