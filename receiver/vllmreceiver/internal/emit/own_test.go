package emit

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

func ownSettings() Settings {
	own := map[string]*catalog.Metric{}
	for _, name := range OwnMetrics() {
		own[name] = &catalog.Metric{Name: name, Unit: "u", Description: "d"}
	}
	return Settings{Own: own}
}

// ownLines are the points of a batch as "name value outcome", or "name end outcome".
func ownLines(metrics pmetric.MetricSlice) (lines []string) {
	for _, m := range metrics.All() {
		for _, p := range m.Gauge().DataPoints().All() {
			line := fmt.Sprint(m.Name(), " ", p.DoubleValue())
			if p.Flags().NoRecordedValue() {
				line = m.Name() + " end"
			}
			if outcome, ok := p.Attributes().Get("outcome"); ok {
				line += " " + outcome.Str()
			}
			lines = append(lines, line)
		}
	}
	return lines
}

func TestTheScrapeHasPointsOfItsOwn(t *testing.T) {
	target := New(ownSettings())
	plan := planOf()
	yes, no := true, false
	emit := func(at float64, own Own) []string {
		out := pmetric.NewMetrics()
		target.Emit(scrapeAt(at, plan), own, out)
		return ownLines(metricsOf(t, out))
	}
	fail := func(at float64, own Own) []string {
		out := pmetric.NewMetrics()
		target.Fail(midnight.Add(time.Duration(at)*time.Second), own, out)
		return ownLines(metricsOf(t, out))
	}
	assert.Equal(t, []string{
		"vllm.up 1", "vllm.scrape.duration 0.25", "vllm.scrape.samples 7", "vllm.healthy 1", "vllm.pod.ready 1", "vllm.pod.terminating 0",
	}, emit(0, Own{Up: true, Duration: 250 * time.Millisecond, Samples: 7, Healthy: &yes, Pod: &Pod{Ready: true}}))
	assert.Equal(t, []string{
		"vllm.up 1", "vllm.scrape.duration 0", "vllm.scrape.samples 0", "vllm.healthy 0", "vllm.pod.ready end", "vllm.pod.terminating end",
	}, emit(15, Own{Up: true, Healthy: &no}))
	// A failure ends what is not known now; its own series ends when the kind changes.
	assert.Equal(t, []string{
		"vllm.up 0", "vllm.scrape.duration 0", "vllm.scrape.samples 0", "vllm.healthy end", "vllm.scrape.failure 1 timeout",
	}, fail(30, Own{Failure: "timeout"}))
	assert.Equal(t, []string{
		"vllm.up 0", "vllm.scrape.duration 0", "vllm.scrape.samples 0", "vllm.scrape.failure 1 timeout",
	}, fail(45, Own{Failure: "timeout"}))
	assert.Equal(t, []string{
		"vllm.up 0", "vllm.scrape.duration 0", "vllm.scrape.samples 0", "vllm.scrape.failure end timeout", "vllm.scrape.failure 1 refused",
	}, fail(60, Own{Failure: "refused"}))
	assert.Equal(t, []string{
		"vllm.up 1", "vllm.scrape.duration 0", "vllm.scrape.samples 0", "vllm.scrape.failure end refused",
	}, emit(75, Own{Up: true}))
	out := pmetric.NewMetrics()
	target.End(midnight.Add(90*time.Second), out)
	assert.Equal(t, []string{"vllm.up end", "vllm.scrape.duration end", "vllm.scrape.samples end"}, ownLines(metricsOf(t, out)))
	target.End(midnight.Add(90*time.Second), pmetric.NewMetrics())
}

func TestPointsOfTheScrapeHaveATimeAndADescription(t *testing.T) {
	target := New(ownSettings())
	out := pmetric.NewMetrics()
	target.Emit(scrapeAt(15, planOf()), Own{Up: true, Failure: "x"}, out)
	for _, m := range metricsOf(t, out).All() {
		assert.Equal(t, "u d", m.Unit()+" "+m.Description())
		assert.Equal(t, seconds(15), m.Gauge().DataPoints().At(0).Timestamp())
	}
	out = pmetric.NewMetrics()
	target.End(midnight.Add(30*time.Second), out)
	for _, m := range metricsOf(t, out).All() {
		assert.Equal(t, "u ", m.Unit()+" "+m.Description())
		assert.Equal(t, seconds(30), m.Gauge().DataPoints().At(0).Timestamp())
	}
}

func TestMetricsThatAreSwitchedOffAreNotEmitted(t *testing.T) {
	target := New(Settings{})
	out := pmetric.NewMetrics()
	yes := true
	target.Emit(scrapeAt(0, planOf()), Own{Up: true, Healthy: &yes, Failure: "x", Pod: &Pod{}}, out)
	assert.Zero(t, metricsOf(t, out).Len())
}

func TestAChangedResourceEndsAllSeriesUnderTheOldOne(t *testing.T) {
	target := New(ownSettings())
	resource := func(name string) pcommon.Resource {
		r := pcommon.NewResource()
		r.Attributes().PutStr("name", name)
		return r
	}
	out := pmetric.NewMetrics()
	target.SetResource(resource("old"), midnight, out)
	assert.Zero(t, out.ResourceMetrics().Len(), "nothing is live")
	plan := planOf(counter("c", 0))
	target.Emit(scrapeAt(0, plan, 5), Own{Up: true}, pmetric.NewMetrics())
	target.SetResource(resource("old"), midnight.Add(time.Second), out)
	assert.Zero(t, out.ResourceMetrics().Len(), "it is the same")
	target.SetResource(resource("new"), midnight.Add(10*time.Second), out)
	require.Equal(t, []string{"c 0", "vllm.up ", "vllm.scrape.duration ", "vllm.scrape.samples "}, ends(metricsOf(t, out)))
	assert.Equal(t, map[string]any{"name": "old"}, out.ResourceMetrics().At(0).Resource().Attributes().AsRaw())
	out = pmetric.NewMetrics()
	target.Emit(scrapeAt(15, plan, 5), Own{Up: true}, out)
	assert.Equal(t, map[string]any{"name": "new"}, out.ResourceMetrics().At(0).Resource().Attributes().AsRaw())
}

// endsOf is a batch in which the series of two counters end and a gauge has a value.
func endsOf(t *testing.T) pmetric.Metrics {
	t.Helper()
	r := newRig(t, Settings{ScopeName: "scope", SchemaURL: "url"})
	r.target.resource.Attributes().PutStr("name", "server")
	all := planOf(counter("a", 0), counter("b", 1), metricOf(catalog.KindGauge, "g", pointWith("0", value(2))))
	r.scrape(0, all, 1, 2, 3)
	out := pmetric.NewMetrics()
	r.target.Emit(scrapeAt(15, planOf(metricOf(catalog.KindGauge, "g", pointWith("0", value(0)))), 3), Own{}, out)
	require.Equal(t, 3, out.DataPointCount())
	return out
}

func TestOwedEndsAreRepeatedAtTheTimeOfTheBatch(t *testing.T) {
	owed, dropped := EndsOf(endsOf(t), 10_000)
	assert.Equal(t, 2, owed.Count())
	assert.Zero(t, dropped)
	// Into an empty batch nothing can go, for it has no time.
	empty := pmetric.NewMetrics()
	owed.AppendTo(empty)
	assert.Zero(t, empty.ResourceMetrics().Len())
	owed.AppendAt(seconds(20), empty)
	metrics := metricsOf(t, empty)
	assert.ElementsMatch(t, []string{"a 0", "b 0"}, ends(metrics))
	assert.Equal(t, "url", empty.ResourceMetrics().At(0).SchemaUrl())
	assert.Equal(t, "scope", empty.ResourceMetrics().At(0).ScopeMetrics().At(0).Scope().Name())
	assert.Equal(t, map[string]any{"name": "server"}, empty.ResourceMetrics().At(0).Resource().Attributes().AsRaw())
	for _, m := range metrics.All() {
		assert.Equal(t, seconds(20), m.Sum().DataPoints().At(0).Timestamp())
		assert.Equal(t, seconds(0), m.Sum().DataPoints().At(0).StartTimestamp())
	}
	// An end is not set back.
	earlier := pmetric.NewMetrics()
	owed.AppendAt(seconds(10), earlier)
	assert.Equal(t, seconds(15), metricsOf(t, earlier).At(0).Sum().DataPoints().At(0).Timestamp())
}

// A series that has a point in the batch lives again, and its end is no longer owed.
func TestOwedEndsOfSeriesInTheBatchAreOmitted(t *testing.T) {
	owed, _ := EndsOf(endsOf(t), 10_000)
	for name, tc := range map[string]struct {
		change func(pmetric.Metric, pcommon.Resource)
		want   []string
	}{
		"the same series":   {func(pmetric.Metric, pcommon.Resource) {}, []string{"b 0"}},
		"another unit":      {func(m pmetric.Metric, _ pcommon.Resource) { m.SetUnit("v") }, []string{"a 0", "b 0"}},
		"another attribute": {func(m pmetric.Metric, _ pcommon.Resource) { m.Sum().DataPoints().At(0).Attributes().PutStr("x", "y") }, []string{"a 0", "b 0"}},
		"another value": {func(m pmetric.Metric, _ pcommon.Resource) {
			m.Sum().DataPoints().At(0).Attributes().PutStr("engine", "1")
		}, []string{"a 0", "b 0"}},
		"another kind of metric": {func(m pmetric.Metric, _ pcommon.Resource) {
			p := m.SetEmptyGauge().DataPoints().AppendEmpty()
			p.SetTimestamp(seconds(30))
			p.Attributes().PutStr("engine", "0")
		}, []string{"a 0", "b 0"}},
		"another resource": {func(_ pmetric.Metric, r pcommon.Resource) { r.Attributes().PutStr("name", "other") }, []string{"a 0", "b 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			batch := pmetric.NewMetrics()
			rm := batch.ResourceMetrics().AppendEmpty()
			rm.Resource().Attributes().PutStr("name", "server")
			m := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
			m.SetName("a")
			m.SetUnit("u")
			p := m.SetEmptySum().DataPoints().AppendEmpty()
			p.SetTimestamp(seconds(30))
			p.Attributes().PutStr("engine", "0")
			tc.change(m, rm.Resource())
			owed.AppendTo(batch)
			var found []string
			for _, rm := range batch.ResourceMetrics().All() {
				for _, sm := range rm.ScopeMetrics().All() {
					found = append(found, ends(sm.Metrics())...)
				}
			}
			assert.ElementsMatch(t, tc.want, found)
			resources := 1
			if name == "another resource" {
				resources = 2
			}
			assert.Equal(t, resources, batch.ResourceMetrics().Len())
		})
	}
}

// Room is in bytes: as many ends as fit, and never more bytes than that.
func TestOwedEndsFitTheirRoom(t *testing.T) {
	batch := endsOf(t)
	all, _ := EndsOf(batch, 10_000)
	least := 0
	for room := range len(all) + 100 {
		owed, dropped := EndsOf(batch, room)
		require.LessOrEqual(t, len(owed), room)
		require.Equal(t, 2, owed.Count()+dropped)
		require.GreaterOrEqual(t, owed.Count(), least, "more room is never worse")
		least = owed.Count()
	}
	assert.Equal(t, 2, least)
	// One that does not fit does not make others go away.
	none, dropped := EndsOf(pmetric.NewMetrics(), 10_000)
	assert.Empty(t, none)
	assert.Zero(t, dropped)
	assert.Zero(t, Owed("no protobuf").Count())
	broken := pmetric.NewMetrics()
	Owed("no protobuf").AppendAt(seconds(1), broken)
	assert.Zero(t, broken.ResourceMetrics().Len())
}
