package refused

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// batchOf is a batch of one server. Each line is a point of a gauge: a value of "a", an end of
// "-a".
func batchOf(at pcommon.Timestamp, series ...string) pmetric.Metrics {
	batch := pmetric.NewMetrics()
	rm := batch.ResourceMetrics().AppendEmpty()
	rm.Resource().Attributes().PutStr("name", "server")
	rm.SetSchemaUrl("url")
	sm := rm.ScopeMetrics().AppendEmpty()
	sm.Scope().SetName("scope")
	sm.Scope().SetVersion("1")
	for _, name := range series {
		end := name[0] == '-'
		if end {
			name = name[1:]
		}
		m := sm.Metrics().AppendEmpty()
		m.SetName(name)
		m.SetUnit("u")
		p := m.SetEmptyGauge().DataPoints().AppendEmpty()
		p.SetTimestamp(at)
		p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(end))
		p.Attributes().PutStr("engine", "0")
	}
	return batch
}

// seriesIn lists the points of a batch as batchOf takes them.
func seriesIn(batch pmetric.Metrics) (all []string) {
	for _, rm := range batch.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				name := m.Name()
				if isEnd(m) {
					name = "-" + name
				}
				all = append(all, name)
			}
		}
	}
	return all
}

func TestEndsAreAppendedWithTheTimeOfTheBatch(t *testing.T) {
	t.Parallel()
	ends, dropped := Of(batchOf(15, "-a", "-b", "g"), 10_000)
	assert.Equal(t, 2, ends.Count())
	assert.Zero(t, dropped)
	out := pmetric.NewMetrics()
	ends.AppendTo(20, out)
	assert.Equal(t, []string{"-a", "-b"}, seriesIn(out))
	rm := out.ResourceMetrics().At(0)
	assert.Equal(t, "url", rm.SchemaUrl())
	assert.Equal(t, "scope", rm.ScopeMetrics().At(0).Scope().Name())
	assert.Equal(t, map[string]any{"name": "server"}, rm.Resource().Attributes().AsRaw())
	for _, m := range rm.ScopeMetrics().At(0).Metrics().All() {
		assert.Equal(t, pcommon.Timestamp(20), m.Gauge().DataPoints().At(0).Timestamp())
	}
	// An end is not set back.
	earlier := pmetric.NewMetrics()
	ends.AppendTo(10, earlier)
	assert.Equal(t, pcommon.Timestamp(15), earlier.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).Timestamp())
}

// Each kind of metric has ends, and only the points without a recorded value are ends.
func TestEndsOfEachKind(t *testing.T) {
	t.Parallel()
	for kind, add := range map[string]func(pmetric.Metric, pmetric.DataPointFlags){
		"gauge": func(m pmetric.Metric, f pmetric.DataPointFlags) {
			m.SetEmptyGauge().DataPoints().AppendEmpty().SetFlags(f)
		},
		"sum": func(m pmetric.Metric, f pmetric.DataPointFlags) {
			m.SetEmptySum().DataPoints().AppendEmpty().SetFlags(f)
		},
		"histogram": func(m pmetric.Metric, f pmetric.DataPointFlags) {
			m.SetEmptyHistogram().DataPoints().AppendEmpty().SetFlags(f)
		},
		"summary": func(m pmetric.Metric, f pmetric.DataPointFlags) {
			m.SetEmptySummary().DataPoints().AppendEmpty().SetFlags(f)
		},
	} {
		batch := batchOf(0)
		metrics := batch.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
		add(metrics.AppendEmpty(), pmetric.DefaultDataPointFlags)
		ended := metrics.AppendEmpty()
		ended.SetName("ended")
		add(ended, pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		ends, _ := Of(batch, 10_000)
		out := pmetric.NewMetrics()
		ends.AppendTo(1, out)
		assert.Equal(t, []string{"-ended"}, seriesIn(out), kind)
	}
}

// A series that has a point in the batch lives again, and its end is not repeated.
func TestEndsOfSeriesInTheBatchAreOmitted(t *testing.T) {
	t.Parallel()
	ends, _ := Of(batchOf(15, "-a", "-b"), 10_000)
	for name, tc := range map[string]struct {
		change    func(pmetric.Metric, pmetric.ResourceMetrics)
		want      []string
		resources int
	}{
		"the same series": {func(pmetric.Metric, pmetric.ResourceMetrics) {}, []string{"a", "-b"}, 1},
		"another unit":    {func(m pmetric.Metric, _ pmetric.ResourceMetrics) { m.SetUnit("v") }, []string{"a", "-a", "-b"}, 1},
		"another attribute": {func(m pmetric.Metric, _ pmetric.ResourceMetrics) {
			m.Gauge().DataPoints().At(0).Attributes().PutStr("x", "y")
		}, []string{"a", "-a", "-b"}, 1},
		"another value": {func(m pmetric.Metric, _ pmetric.ResourceMetrics) {
			m.Gauge().DataPoints().At(0).Attributes().PutStr("engine", "1")
		}, []string{"a", "-a", "-b"}, 1},
		"another kind of metric": {func(m pmetric.Metric, _ pmetric.ResourceMetrics) {
			m.SetEmptySum().DataPoints().AppendEmpty().Attributes().PutStr("engine", "0")
		}, []string{"a", "-a", "-b"}, 1},
		"another resource": {func(_ pmetric.Metric, rm pmetric.ResourceMetrics) {
			rm.Resource().Attributes().PutStr("name", "other")
		}, []string{"a", "-a", "-b"}, 2},
		"another scope": {func(_ pmetric.Metric, rm pmetric.ResourceMetrics) {
			rm.ScopeMetrics().At(0).Scope().SetVersion("2")
		}, []string{"a", "-b"}, 1},
	} {
		batch := batchOf(30, "a")
		rm := batch.ResourceMetrics().At(0)
		tc.change(rm.ScopeMetrics().At(0).Metrics().At(0), rm)
		ends.AppendTo(30, batch)
		assert.Equal(t, tc.want, seriesIn(batch), name)
		assert.Equal(t, tc.resources, batch.ResourceMetrics().Len(), name)
	}
}

// The resource has other scopes: of the server itself, say, before those of the processor.
func TestEndsAreAppendedToTheirScope(t *testing.T) {
	t.Parallel()
	ends, _ := Of(batchOf(15, "-a"), 10_000)
	for name, last := range map[string]string{"there": "1", "not there": "2"} {
		batch := batchOf(30)
		scopes := batch.ResourceMetrics().At(0).ScopeMetrics()
		scopes.At(0).Scope().SetName("of the server")
		own := scopes.AppendEmpty().Scope()
		own.SetName("scope")
		own.SetVersion(last)
		ends.AppendTo(30, batch)
		for _, sm := range scopes.All() {
			want := 0
			if sm.Scope().Name() == "scope" && sm.Scope().Version() == "1" {
				want = 1
			}
			assert.Equal(t, want, sm.Metrics().Len(), "%s: %s %s", name, sm.Scope().Name(), sm.Scope().Version())
		}
		assert.Equal(t, []string{"-a"}, seriesIn(batch), name)
	}
}

// Room is in bytes: as many ends as fit, and never more bytes than that.
func TestEndsFitTheirRoom(t *testing.T) {
	t.Parallel()
	batch := batchOf(15, "-a", "-b", "g")
	all, _ := Of(batch, 10_000)
	least := 0
	for room := range len(all) + 100 {
		ends, dropped := Of(batch, room)
		require.LessOrEqual(t, len(ends), room)
		require.Equal(t, 2, ends.Count()+dropped)
		require.GreaterOrEqual(t, ends.Count(), least, "more room is never worse")
		least = ends.Count()
	}
	assert.Equal(t, 2, least)
	none, dropped := Of(batchOf(15, "g"), 10_000)
	assert.Empty(t, none)
	assert.Zero(t, dropped)
}

// 32 MiB for all, and 64 KiB to 1 MiB for each.
func TestSharesOfManySources(t *testing.T) {
	t.Parallel()
	for sources, want := range map[int]int{0: 1 << 20, 1: 1 << 20, 32: 1 << 20, 64: 512 << 10, 512: 64 << 10, 10_000: 64 << 10} {
		assert.Equal(t, want, Share(sources), fmt.Sprint(sources))
	}
}

// The attributes of a resource whose ends do not fit are not kept either.
func TestManyResourcesFitTheirRoom(t *testing.T) {
	t.Parallel()
	batch := pmetric.NewMetrics()
	for i := range 100 {
		batchOf(15, "-a").ResourceMetrics().MoveAndAppendTo(batch.ResourceMetrics())
		batch.ResourceMetrics().At(i).Resource().Attributes().PutStr("long", strings.Repeat("x", 10*i))
	}
	for _, room := range []int{0, 100, 1000, 5000} {
		ends, dropped := Of(batch, room)
		assert.LessOrEqual(t, len(ends), room)
		assert.Equal(t, 100, ends.Count()+dropped)
	}
}
