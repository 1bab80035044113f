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
	// MetricFailure has the kind of the failure as an attribute.
	MetricFailure = "vllm.scrape.failure"
	// MetricReady and MetricTerminating are about the pod of the target.
	MetricReady       = "vllm.pod.ready"
	MetricTerminating = "vllm.pod.terminating"
)

// OwnMetrics returns the names of all metrics about the scrape itself.
func OwnMetrics() []string {
	return []string{MetricUp, MetricHealthy, MetricDuration, MetricSamples, MetricFailure, MetricReady, MetricTerminating}
}

// failureAttribute has the kind of a failure.
const failureAttribute = "outcome"

// Own are the numbers about the scrape itself.
type Own struct {
	Up bool
	// Duration is the time from the request until the points exist.
	Duration time.Duration
	// Samples is the number of lines with a number in the body.
	Samples int
	// Healthy is nil where /health was not asked or did not answer.
	Healthy *bool
	// Failure is the kind of failure of a scrape that failed.
	Failure string
	// Pod is nil where the target is not known to be a pod.
	Pod *Pod
}

// Pod is what Kubernetes reports about the pod of a target.
type Pod struct{ Ready, Terminating bool }

// ownMetrics emits the metrics about the scrape itself.
type ownMetrics struct {
	metrics map[string]*catalog.Metric
	live    map[string]bool
	// failure is the kind of failure whose series is live; empty without one.
	failure string
}

func (o *ownMetrics) emit(own Own, now pcommon.Timestamp, metrics pmetric.MetricSlice) {
	o.put(MetricUp, truth(own.Up), now, metrics)
	o.put(MetricDuration, own.Duration.Seconds(), now, metrics)
	o.put(MetricSamples, float64(own.Samples), now, metrics)
	o.optional(MetricHealthy, own.Healthy, now, metrics)
	var ready, terminating *bool
	if own.Pod != nil {
		ready, terminating = &own.Pod.Ready, &own.Pod.Terminating
	}
	o.optional(MetricReady, ready, now, metrics)
	o.optional(MetricTerminating, terminating, now, metrics)
	o.emitFailure(own.Failure, now, metrics)
}

// optional emits a metric that not every scrape has, or ends it if this scrape lacks
// it.
func (o *ownMetrics) optional(name string, value *bool, now pcommon.Timestamp, metrics pmetric.MetricSlice) {
	if value != nil {
		o.put(name, truth(*value), now, metrics)
	} else {
		o.finish(name, now, metrics)
	}
}

// emitFailure emits the series of this kind of failure, and ends that of another.
func (o *ownMetrics) emitFailure(kind string, now pcommon.Timestamp, metrics pmetric.MetricSlice) {
	if o.metrics[MetricFailure] == nil {
		return
	}
	if o.failure != "" && o.failure != kind {
		o.endOf(MetricFailure, now, metrics).Attributes().PutStr(failureAttribute, o.failure)
	}
	o.failure = kind
	if kind != "" {
		o.appendValue(MetricFailure, 1, now, metrics).Attributes().PutStr(failureAttribute, kind)
	}
}

func (o *ownMetrics) put(name string, value float64, now pcommon.Timestamp, metrics pmetric.MetricSlice) {
	if o.metrics[name] == nil {
		return
	}
	o.appendValue(name, value, now, metrics)
	o.live[name] = true
}

// end ends the metrics that are live.
func (o *ownMetrics) end(now pcommon.Timestamp, metrics pmetric.MetricSlice) {
	for _, name := range OwnMetrics() {
		o.finish(name, now, metrics)
	}
	o.emitFailure("", now, metrics)
}

// finish ends a metric that is live.
func (o *ownMetrics) finish(name string, now pcommon.Timestamp, metrics pmetric.MetricSlice) {
	if o.live[name] {
		o.endOf(name, now, metrics)
		o.live[name] = false
	}
}

// endOf appends the end of a metric. Like all ends it has no description.
func (o *ownMetrics) endOf(name string, now pcommon.Timestamp, metrics pmetric.MetricSlice) pmetric.NumberDataPoint {
	point := o.append(name, now, metrics)
	point.SetFlags(noRecordedValue)
	return point
}

func (o *ownMetrics) append(name string, now pcommon.Timestamp, metrics pmetric.MetricSlice) pmetric.NumberDataPoint {
	to := metrics.AppendEmpty()
	to.SetName(o.metrics[name].Name)
	to.SetUnit(o.metrics[name].Unit)
	point := to.SetEmptyGauge().DataPoints().AppendEmpty()
	point.SetTimestamp(now)
	return point
}

// appendValue appends a metric with a value.
func (o *ownMetrics) appendValue(
	name string, value float64, now pcommon.Timestamp, metrics pmetric.MetricSlice,
) pmetric.NumberDataPoint {
	point := o.append(name, now, metrics)
	metrics.At(metrics.Len() - 1).SetDescription(o.metrics[name].Description)
	point.SetDoubleValue(value)
	return point
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
