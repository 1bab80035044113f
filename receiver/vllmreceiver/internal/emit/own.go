package emit

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// The names of the metrics about the scrape itself.
const (
	MetricUp       = "vllm.up"
	MetricHealthy  = "vllm.healthy"
	MetricDuration = "vllm.scrape.duration"
	MetricSamples  = "vllm.scrape.samples"
	// MetricLoad is the answer of /load.
	MetricLoad = "vllm.server_load"
	// MetricFailure has the kind of the failure as an attribute.
	MetricFailure = "vllm.scrape.failure"
	// MetricReady and MetricTerminating are about the pod of the target.
	MetricReady       = "vllm.pod.ready"
	MetricTerminating = "vllm.pod.terminating"
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
	ownUp: MetricUp, ownHealthy: MetricHealthy, ownDuration: MetricDuration, ownSamples: MetricSamples,
	ownLoad: MetricLoad, ownFailure: MetricFailure, ownReady: MetricReady, ownTerminating: MetricTerminating,
	ownCanaryDuration: MetricCanaryDuration, ownCanarySuccess: MetricCanarySuccess, ownCanaryUnanswered: MetricCanaryUnanswered,
}

// OwnMetrics returns the names of all metrics about the scrape itself.
func OwnMetrics() []string { return ownNames[:] }

// outcomeAttribute has the kind of a failure, or the outcome of a canary.
const outcomeAttribute = "outcome"

// Own are the numbers about the scrape itself.
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
	// outcomes are those whose series are live, of metrics with one series for each outcome;
	// empty without one.
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

func (o *ownMetrics) emit(own Own, now pcommon.Timestamp, metrics pmetric.MetricSlice) {
	o.put(ownUp, truth(own.Up), now, metrics)
	o.put(ownDuration, own.Duration.Seconds(), now, metrics)
	o.put(ownSamples, float64(own.Samples), now, metrics)
	o.optional(ownHealthy, own.Healthy, now, metrics)
	if own.Load != nil {
		o.put(ownLoad, *own.Load, now, metrics)
	} else {
		o.finish(ownLoad, now, metrics)
	}
	var ready, terminating *bool
	if own.Pod != nil {
		ready, terminating = &own.Pod.Ready, &own.Pod.Terminating
	}
	o.optional(ownReady, ready, now, metrics)
	o.optional(ownTerminating, terminating, now, metrics)
	o.emitOutcome(ownFailure, 1, own.Failure, now, metrics)
	o.emitCanary(own.Canary, now, metrics)
}

// optional emits a metric that not every scrape has, or ends it if this scrape lacks
// it.
func (o *ownMetrics) optional(m ownMetric, value *bool, now pcommon.Timestamp, metrics pmetric.MetricSlice) {
	if value != nil {
		o.put(m, truth(*value), now, metrics)
	} else {
		o.finish(m, now, metrics)
	}
}

// emitOutcome emits the series of this outcome, and ends that of another.
func (o *ownMetrics) emitOutcome(m ownMetric, value float64, outcome string, now pcommon.Timestamp, metrics pmetric.MetricSlice) {
	if o.metrics[m] == nil {
		return
	}
	if live := o.outcomes[m]; live != "" && live != outcome {
		o.endOf(m, now, metrics).Attributes().PutStr(outcomeAttribute, live)
	}
	o.outcomes[m] = outcome
	if outcome != "" {
		o.appendValue(m, value, now, metrics).Attributes().PutStr(outcomeAttribute, outcome)
	}
}

func (o *ownMetrics) put(m ownMetric, value float64, now pcommon.Timestamp, metrics pmetric.MetricSlice) {
	if o.metrics[m] == nil {
		return
	}
	o.appendValue(m, value, now, metrics)
	o.live[m] = true
}

// end ends the metrics that are live.
func (o *ownMetrics) end(now pcommon.Timestamp, metrics pmetric.MetricSlice) {
	for m := range numOwn {
		o.finish(m, now, metrics)
	}
	o.emitOutcome(ownFailure, 1, "", now, metrics)
	o.emitCanary(nil, now, metrics)
}

// finish ends a metric that is live.
func (o *ownMetrics) finish(m ownMetric, now pcommon.Timestamp, metrics pmetric.MetricSlice) {
	if o.live[m] {
		o.endOf(m, now, metrics)
		o.live[m] = false
	}
}

// endOf appends the end of a metric. Like all ends it has no description.
func (o *ownMetrics) endOf(m ownMetric, now pcommon.Timestamp, metrics pmetric.MetricSlice) pmetric.NumberDataPoint {
	point := o.append(m, now, metrics)
	point.SetFlags(noRecordedValue)
	return point
}

func (o *ownMetrics) append(m ownMetric, now pcommon.Timestamp, metrics pmetric.MetricSlice) pmetric.NumberDataPoint {
	to := metrics.AppendEmpty()
	to.SetName(o.metrics[m].Name)
	to.SetUnit(o.metrics[m].Unit)
	point := to.SetEmptyGauge().DataPoints().AppendEmpty()
	point.SetTimestamp(now)
	return point
}

// appendValue appends a metric with a value.
func (o *ownMetrics) appendValue(
	m ownMetric, value float64, now pcommon.Timestamp, metrics pmetric.MetricSlice,
) pmetric.NumberDataPoint {
	point := o.append(m, now, metrics)
	metrics.At(metrics.Len() - 1).SetDescription(o.metrics[m].Description)
	point.SetDoubleValue(value)
	return point
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
