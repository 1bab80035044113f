package judge

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// eachNumber changes every number that a server exposes: gauges, totals, and the sums, counts and
// buckets of histograms.
func eachNumber(metrics pmetric.Metrics, change func(float64) float64) {
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() == "vllm.up" {
					continue
				}
				var points pmetric.NumberDataPointSlice
				switch m.Type() {
				case pmetric.MetricTypeGauge:
					points = m.Gauge().DataPoints()
				case pmetric.MetricTypeSum:
					points = m.Sum().DataPoints()
				case pmetric.MetricTypeHistogram:
					for _, p := range m.Histogram().DataPoints().All() {
						p.SetSum(change(p.Sum()))
					}
					continue
				default:
					continue
				}
				for _, p := range points.All() {
					if p.ValueType() == pmetric.NumberDataPointValueTypeDouble {
						p.SetDoubleValue(change(p.DoubleValue()))
					} else if to := change(float64(p.IntValue())); math.Abs(to) < 1e15 {
						p.SetIntValue(int64(to))
					}
				}
			}
		}
	}
}

// A server that exposes what cannot be is one of five in a pool. The others are judged as ever: those
// that are well have no alarm, and the slow one is reported as slow.
func TestALyingReplicaDoesNotChangeTheReportsAboutItsSiblings(t *testing.T) {
	t.Parallel()
	random := 0.0
	for name, change := range map[string]func(float64) float64{
		"not a number":           func(float64) float64 { return math.NaN() },
		"infinite":               func(float64) float64 { return math.Inf(1) },
		"huge":                   func(float64) float64 { return 1e300 },
		"negative":               func(x float64) float64 { return -x },
		"nothing":                func(float64) float64 { return 0 },
		"a thousandth":           func(x float64) float64 { return x / 1000 },
		"a thousand times":       func(x float64) float64 { return x * 1000 },
		"now this and then that": func(x float64) float64 { random++; return x * math.Mod(random*random, 7) },
	} {
		t.Run(name, func(t *testing.T) {
			const length = 30 * 60.0
			var pods []pod
			for i := range 5 {
				pods = append(pods, pod{fmt.Sprint("pod-", i), "0.24.0", 0, length, 1, nil})
			}
			pods[0].lies = func(metrics pmetric.Metrics) { eachNumber(metrics, change) }
			pods[4].clock = 0.6
			reported := recordPods(t, length, pods...)
			for _, p := range pods[1:4] {
				noAlarms(t, reported[p.name], p.name)
			}
			slow := reported["pod-4"]
			first := slices.IndexFunc(slow, func(one reading) bool { return one.primary() == "slow_steps" })
			require.GreaterOrEqual(t, first, 0, "%v", phases(slow))
			assert.LessOrEqual(t, slow[first].at, 15*60.0)
		})
	}
}
