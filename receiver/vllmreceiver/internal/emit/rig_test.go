package emit

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/scrapetest"
)

// These tests make their plans by hand, so that they depend on no other package.

const none = exposition.NoSlot

var keySeed = maphash.MakeSeed()

// planOf makes a plan of metrics.
func planOf(metrics ...normalize.Metric) *normalize.Plan {
	plan := &normalize.Plan{Metrics: slices.Clone(metrics), ProcessStart: none}
	for i := range plan.Metrics {
		plan.Metrics[i].Points = slices.Clone(plan.Metrics[i].Points)
	}
	for metric, point := range plan.All() {
		point.Index = plan.Points
		point.Key = normalize.SeriesKey(maphash.String(keySeed, fmt.Sprint(metric.Name, metric.Kind, point.Attributes)))
		plan.Points++
	}
	return plan
}

// withProcessStart sets the slot of the process's start.
func withProcessStart(plan *normalize.Plan, slot int) *normalize.Plan {
	plan.ProcessStart = slot
	return plan
}

func metricOf(kind catalog.Kind, name string, points ...normalize.Point) normalize.Metric {
	return normalize.Metric{Name: name, Family: name, Unit: "u", Description: "d", Kind: kind, Engine: true, Points: points}
}

func pointWith(engine string, series exposition.Series) normalize.Point {
	return normalize.Point{
		Attributes: []exposition.Label{{Name: "engine", Value: engine}}, Parts: []exposition.Series{series},
	}
}

// value is a series with one number.
func value(slot int) exposition.Series {
	return exposition.Series{Value: slot, Sum: none, Count: none, Created: none}
}

func createdValue(slot, created int) exposition.Series {
	return exposition.Series{Value: slot, Sum: none, Count: none, Created: created}
}

// counter is a sum with one series, at a slot.
func counter(name string, slot int) normalize.Metric {
	return metricOf(catalog.KindSum, name, pointWith("0", value(slot)))
}

// buckets is a histogram with the bounds 1, 2 and +Inf at the slots 0 to 2, its sum at 3
// and its count at 4.
func buckets() exposition.Series {
	return exposition.Series{
		Value: none, Sum: 3, Count: 4, Created: none,
		Buckets: []exposition.Bucket{{UpperBound: 1, Slot: 0}, {UpperBound: 2, Slot: 1}, {UpperBound: inf, Slot: 2}},
	}
}

var midnight = time.Date(2027, time.January, 1, 0, 0, 0, 0, time.UTC)

// seconds is a time in seconds after midnight.
func seconds(n float64) pcommon.Timestamp {
	return pcommon.NewTimestampFromTime(midnight.Add(time.Duration(n * float64(time.Second))))
}

// unix is the same in Unix seconds, as bodies write it.
func unix(n float64) float64 { return float64(midnight.Unix()) + n }

// rig scrapes one target. Times are in seconds after midnight.
type rig struct {
	*testing.T
	target *Target
	report Report
}

func newRig(t *testing.T, settings Settings) *rig {
	t.Helper()
	return &rig{T: t, target: New(settings)}
}

func scrapeAt(at float64, plan *normalize.Plan, values ...float64) Scrape {
	return Scrape{
		Time: midnight.Add(time.Duration(at * float64(time.Second))), Plan: plan,
		Snapshot: &exposition.Snapshot{Values: values},
	}
}

func (r *rig) emit(s Scrape) pmetric.MetricSlice {
	r.Helper()
	out := pmetric.NewMetrics()
	r.report = r.target.Emit(s, Own{}, out)
	return metricsOf(r.T, out)
}

func (r *rig) scrape(at float64, plan *normalize.Plan, values ...float64) pmetric.MetricSlice {
	r.Helper()
	return r.emit(scrapeAt(at, plan, values...))
}

// startsOf scrapes, and returns the start of each sum in seconds after midnight.
func (r *rig) starts(s Scrape) []float64 {
	r.Helper()
	var starts []float64
	for _, m := range r.emit(s).All() {
		for _, p := range m.Sum().DataPoints().All() {
			if !p.Flags().NoRecordedValue() {
				starts = append(starts, p.StartTimestamp().AsTime().Sub(midnight).Seconds())
			}
		}
	}
	return starts
}

func metricsOf(t *testing.T, out pmetric.Metrics) pmetric.MetricSlice {
	t.Helper()
	require.Equal(t, 1, out.ResourceMetrics().Len())
	return out.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
}

// ends lists the series that end, as "name engine".
func ends(metrics pmetric.MetricSlice) []string { return seriesOf(metrics, true) }

// seriesOf lists the series that end or have a value, as "name engine".
func seriesOf(metrics pmetric.MetricSlice, ended bool) (out []string) {
	for _, m := range metrics.All() {
		for _, line := range scrapetest.RenderMetric(m) {
			if strings.HasSuffix(line, " end") == ended {
				_, engine, _ := strings.Cut(line, `engine="`)
				engine, _, _ = strings.Cut(engine, `"`)
				out = append(out, m.Name()+" "+engine)
			}
		}
	}
	return out
}
