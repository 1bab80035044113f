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
)

// Own are the numbers about the scrape itself.
type Own struct {
	Up bool
	// Duration is from the request to the points, without sending them.
	Duration time.Duration
	// Samples is the number of lines with a number in the body.
	Samples int
	// Healthy is nil where /health was not asked or did not answer.
	Healthy *bool
}

// ownMetrics emits the metrics about the scrape itself.
type ownMetrics struct {
	metrics map[string]*catalog.Metric
	live    map[string]bool
}

func (o *ownMetrics) emit(own Own, now pcommon.Timestamp, metrics pmetric.MetricSlice) {
	o.put(MetricUp, truth(own.Up), now, metrics)
	o.put(MetricDuration, own.Duration.Seconds(), now, metrics)
	o.put(MetricSamples, float64(own.Samples), now, metrics)
	switch {
	case own.Healthy != nil:
		o.put(MetricHealthy, truth(*own.Healthy), now, metrics)
	case o.live[MetricHealthy]:
		o.endOne(MetricHealthy, now, metrics)
	}
}

func (o *ownMetrics) put(name string, value float64, now pcommon.Timestamp, metrics pmetric.MetricSlice) {
	if o.metrics[name] == nil {
		return
	}
	to, point := o.append(name, now, metrics)
	to.SetDescription(o.metrics[name].Description)
	point.SetDoubleValue(value)
	o.live[name] = true
}

// end ends the metrics that are live.
func (o *ownMetrics) end(now pcommon.Timestamp, metrics pmetric.MetricSlice) {
	for _, name := range []string{MetricUp, MetricHealthy, MetricDuration, MetricSamples} {
		if o.live[name] {
			o.endOne(name, now, metrics)
		}
	}
}

func (o *ownMetrics) endOne(name string, now pcommon.Timestamp, metrics pmetric.MetricSlice) {
	_, point := o.append(name, now, metrics)
	point.SetFlags(noRecordedValue)
	o.live[name] = false
}

func (o *ownMetrics) append(
	name string, now pcommon.Timestamp, metrics pmetric.MetricSlice,
) (pmetric.Metric, pmetric.NumberDataPoint) {
	to := metrics.AppendEmpty()
	to.SetName(o.metrics[name].Name)
	to.SetUnit(o.metrics[name].Unit)
	point := to.SetEmptyGauge().DataPoints().AppendEmpty()
	point.SetTimestamp(now)
	return to, point
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
