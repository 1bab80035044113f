package vllmprocessor

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// stamp gives all points of a request one time.
func stamp(metrics pmetric.Metrics, at uint64) pmetric.Metrics {
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				switch m.Type() {
				case pmetric.MetricTypeGauge:
					for _, p := range m.Gauge().DataPoints().All() {
						p.SetTimestamp(pcommon.Timestamp(at))
					}
				case pmetric.MetricTypeSum:
					for _, p := range m.Sum().DataPoints().All() {
						p.SetTimestamp(pcommon.Timestamp(at))
					}
				case pmetric.MetricTypeHistogram:
					for _, p := range m.Histogram().DataPoints().All() {
						p.SetTimestamp(pcommon.Timestamp(at))
					}
				default:
				}
			}
		}
	}
	return metrics
}

// Times that 64 bits with a sign cannot hold, of a server or of GPUs, are in the future: they neither
// stop the collector nor change what is derived afterwards.
func TestTimesBeyondAllTimesChangeNothing(t *testing.T) {
	t.Parallel()
	derived := func(first uint64) (names int) {
		w := newWorld(run(t, createDefaultConfig().(*Config)), newGPU("GPU-1"))
		metrics, gpus := inPod(w.server.scrape(), w.owner...), w.exporter.scrape(noon)
		if first != 0 {
			w.send(stamp(metrics, first))
			assert.Equal(t, 1, w.logs.FilterMessageSnippet("ahead of this machine's clock").Len())
			w.send(stamp(gpus, first))
			w.send(stamp(gpus, first+1000))
		}
		w.pass(8 * time.Minute)
		return len(pointsByName(w.newest))
	}
	want := derived(0)
	require.Greater(t, want, 10)
	for _, first := range []uint64{math.MaxInt64 + 1, math.MaxUint64 - 5000} {
		assert.Equal(t, want, derived(first))
	}
}
