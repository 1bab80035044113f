package emit

import (
	"cmp"
	"sort"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// The names of metrics about the scrape itself that others need. MetricLoad is the answer of /load.
const (
	MetricHealthy = "vllm.healthy"
	MetricLoad    = "vllm.server_load"
)

// ownMetric is one of the metrics about the scrape itself.
type ownMetric int

const (
	ownUp ownMetric = iota
	ownHealthy
	ownDuration
	ownSamples
	ownLoad
	ownFailure
	ownReady
	ownTerminating
	ownCanaryDuration
	ownCanarySuccess
	ownCanaryUnanswered
	numOwn
)

var ownNames = [numOwn]string{
	ownUp: "vllm.up", ownHealthy: MetricHealthy, ownDuration: "vllm.scrape.duration", ownSamples: "vllm.scrape.samples",
	ownLoad: MetricLoad, ownFailure: "vllm.scrape.failure", ownReady: "vllm.pod.ready", ownTerminating: "vllm.pod.terminating",
	ownCanaryDuration: MetricCanaryDuration, ownCanarySuccess: MetricCanarySuccess, ownCanaryUnanswered: MetricCanaryUnanswered,
}

// OwnMetrics returns the names of all metrics about the scrape itself.
func OwnMetrics() []string { return ownNames[:] }

// outcomeAttribute has the kind of a failure, or the outcome of a canary.
const outcomeAttribute = "outcome"

// Own are the numbers about the scrape itself; the zero value ends all of them.
type Own struct {
	Up bool
	// Duration is the time from the request until the points exist.
	Duration time.Duration
	// Samples is the number of lines with a number in the body.
	Samples int
	// Healthy is nil where /health was not asked or did not answer.
	Healthy *bool
	// Load is nil where the server has not shown that it counts its requests.
	Load *float64
	// Failure is the kind of failure of a scrape that failed.
	Failure string
	// Pod is nil where the target is not known to be a pod.
	Pod *Pod
	// Canary is nil where no canaries are sent.
	Canary *Canary
}

// Pod is what Kubernetes reports about the pod of a target.
type Pod struct{ Ready, Terminating bool }

// ownMetrics emits the metrics about the scrape itself.
type ownMetrics struct {
	// metrics has nil for those that are switched off.
	metrics [numOwn]*catalog.Metric
	live    [numOwn]bool
	// outcomes are those of metrics with one series for each; empty for others.
	outcomes [numOwn]string
	// started is the start of the histogram of canaries while it is live; 0 otherwise.
	started pcommon.Timestamp
}

func newOwnMetrics(metrics map[string]*catalog.Metric) (o ownMetrics) {
	for m, name := range ownNames {
		o.metrics[m] = metrics[name]
	}
	return o
}

// emit emits what is known, and ends what is not known now.
func (o *ownMetrics) emit(own Own, now pcommon.Timestamp, metrics pmetric.MetricSlice) {
	set := func(m ownMetric, known bool, value float64, outcome string) {
		o.set(m, known, value, outcome, now, metrics)
	}
	scraped := own != Own{}
	set(ownUp, scraped, truth(own.Up), "")
	set(ownDuration, scraped, own.Duration.Seconds(), "")
	set(ownSamples, scraped, float64(own.Samples), "")
	set(ownHealthy, own.Healthy != nil, truth(own.Healthy != nil && *own.Healthy), "")
	pod := cmp.Or(own.Pod, &Pod{})
	set(ownReady, own.Pod != nil, truth(pod.Ready), "")
	set(ownTerminating, own.Pod != nil, truth(pod.Terminating), "")
	set(ownLoad, own.Load != nil, *cmp.Or(own.Load, new(float64)), "")
	set(ownFailure, own.Failure != "", 1, own.Failure)
	o.emitCanary(own.Canary, now, metrics)
}

// set emits a metric about the scrape, or ends it if it is not known. outcome is that of a metric
// with one series for each outcome, of which that of another one ends.
func (o *ownMetrics) set(m ownMetric, known bool, value float64, outcome string, now pcommon.Timestamp, metrics pmetric.MetricSlice) {
	if o.metrics[m] == nil {
		return
	}
	if o.live[m] && (!known || o.outcomes[m] != outcome) {
		// Like all ends it has no description.
		o.append(m, now, metrics).SetFlags(noRecordedValue)
	}
	o.live[m], o.outcomes[m] = known, outcome
	if known {
		o.append(m, now, metrics).SetDoubleValue(value)
		metrics.At(metrics.Len() - 1).SetDescription(o.metrics[m].Description)
	}
}

// append appends a metric with a point of the current outcome.
func (o *ownMetrics) append(m ownMetric, now pcommon.Timestamp, metrics pmetric.MetricSlice) pmetric.NumberDataPoint {
	to := metrics.AppendEmpty()
	to.SetName(o.metrics[m].Name)
	to.SetUnit(o.metrics[m].Unit)
	point := to.SetEmptyGauge().DataPoints().AppendEmpty()
	point.SetTimestamp(now)
	if o.outcomes[m] != "" {
		point.Attributes().PutStr(outcomeAttribute, o.outcomes[m])
	}
	return point
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

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
