package collect

import (
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/identity"
)

const (
	// maxResourceAttributes and maxResourceBytes bound the attributes of a resource.
	// The SDKs of OpenTelemetry stop at 128 attributes.
	maxResourceAttributes = 512
	maxResourceBytes      = 64 << 10
	// maxPointBytes bounds the attributes of a point. Each derived point has them too.
	maxPointBytes = 8 << 10
)

// tooLarge reports whether the attributes of a resource exceed the limits.
func tooLarge(attributes pcommon.Map) bool {
	if attributes.Len() > maxResourceAttributes {
		return true
	}
	return identity.Size(attributes) > maxResourceBytes
}

// pointsOf returns the number of points of a metric.
func pointsOf(metric pmetric.Metric) int {
	switch metric.Type() {
	case pmetric.MetricTypeGauge:
		return metric.Gauge().DataPoints().Len()
	case pmetric.MetricTypeSum:
		return metric.Sum().DataPoints().Len()
	case pmetric.MetricTypeHistogram:
		return metric.Histogram().DataPoints().Len()
	case pmetric.MetricTypeExponentialHistogram:
		return metric.ExponentialHistogram().DataPoints().Len()
	case pmetric.MetricTypeSummary:
		return metric.Summary().DataPoints().Len()
	case pmetric.MetricTypeEmpty:
	}
	return 0
}
