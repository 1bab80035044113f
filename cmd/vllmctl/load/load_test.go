package load

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

func TestAHistogramAndAMarker(t *testing.T) {
	metrics := pmetric.NewMetrics()
	all := metrics.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	all.AppendEmpty().SetEmptyHistogram().DataPoints().AppendEmpty().ExplicitBounds().FromRaw([]float64{1, 2})
	gauge := all.AppendEmpty().SetEmptyGauge().DataPoints()
	gauge.AppendEmpty()
	gauge.AppendEmpty().SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
	got := Of(metrics)
	assert.Equal(t, Load{Points: 2, Series: 3 + 2 + 1, Custom: 5 + 1}, Load{Points: got.Points, Series: got.Series, Custom: got.Custom})
}
