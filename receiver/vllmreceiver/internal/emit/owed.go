package emit

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Owed are ends of series that no consumer has accepted yet. They are stored as bytes,
// so that their size is known.
type Owed []byte

// EndsOf returns the ends of a batch that fit into room bytes, and the number of those
// that do not fit.
func EndsOf(metrics pmetric.Metrics, room int) (owed Owed, dropped int) {
	var sizer pmetric.ProtoMarshaler
	ends := pmetric.NewMetrics()
	for _, rm := range metrics.ResourceMetrics().All() {
		var to pmetric.MetricSlice
		opened := false
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if !isEnd(m) {
					continue
				}
				if !opened {
					opened = true
					to = copyScope(rm, sm, ends)
					room -= sizer.ResourceMetricsSize(ends.ResourceMetrics().At(ends.ResourceMetrics().Len() - 1))
				}
				// Eight bytes for the framing of the message.
				if size := sizer.MetricSize(m) + 8; size <= room {
					room -= size
					m.CopyTo(to.AppendEmpty())
				} else {
					dropped++
				}
			}
		}
	}
	if ends.DataPointCount() == 0 {
		return nil, dropped
	}
	owed, err := sizer.MarshalMetrics(ends)
	if err != nil {
		return nil, dropped + ends.DataPointCount()
	}
	return owed, dropped
}

// isEnd reports whether a metric is the end of a series: each has a metric of its own.
func isEnd(m pmetric.Metric) bool {
	var flags pmetric.DataPointFlags
	switch m.Type() {
	case pmetric.MetricTypeGauge:
		flags = flagsOf(m.Gauge().DataPoints())
	case pmetric.MetricTypeSum:
		flags = flagsOf(m.Sum().DataPoints())
	case pmetric.MetricTypeHistogram:
		flags = flagsOf(m.Histogram().DataPoints())
	case pmetric.MetricTypeSummary:
		flags = flagsOf(m.Summary().DataPoints())
	}
	return flags.NoRecordedValue()
}

// flagsOf returns the flags of the first point.
func flagsOf[P point](points interface {
	Len() int
	At(i int) P
},
) pmetric.DataPointFlags {
	if points.Len() == 0 {
		return 0
	}
	return points.At(0).Flags()
}

// copyScope appends a resource with one scope to out, without its metrics.
func copyScope(rm pmetric.ResourceMetrics, sm pmetric.ScopeMetrics, out pmetric.Metrics) pmetric.MetricSlice {
	to := out.ResourceMetrics().AppendEmpty()
	rm.Resource().CopyTo(to.Resource())
	to.SetSchemaUrl(rm.SchemaUrl())
	scope := to.ScopeMetrics().AppendEmpty()
	sm.Scope().CopyTo(scope.Scope())
	scope.SetSchemaUrl(sm.SchemaUrl())
	return scope.Metrics()
}

// Count returns the number of the ends.
func (o Owed) Count() int {
	var unmarshaler pmetric.ProtoUnmarshaler
	ends, err := unmarshaler.UnmarshalMetrics(o)
	if err != nil {
		return 0
	}
	return ends.DataPointCount()
}

// AppendTo appends the ends to a batch, with the time of the batch. It omits the ends of
// series that have a point in the batch, and does not change a batch without points.
func (o Owed) AppendTo(out pmetric.Metrics) {
	if len(o) == 0 {
		return
	}
	if at := timeOf(out); at != 0 {
		o.AppendAt(at, out)
	}
}

// AppendAt is AppendTo with a given time.
func (o Owed) AppendAt(at pcommon.Timestamp, out pmetric.Metrics) {
	if len(o) == 0 {
		return
	}
	var unmarshaler pmetric.ProtoUnmarshaler
	ends, err := unmarshaler.UnmarshalMetrics(o)
	if err != nil {
		return
	}
	for _, rm := range ends.ResourceMetrics().All() {
		same := resourceIn(out, rm.Resource())
		for _, sm := range rm.ScopeMetrics().All() {
			there := seriesOf(same, namesOf(sm.Metrics()))
			sm.Metrics().RemoveIf(func(m pmetric.Metric) bool {
				for p := range pointsOf(m) {
					p.SetTimestamp(max(at, p.Timestamp()))
					return there[idOf(m, p)]
				}
				return true
			})
			switch {
			case sm.Metrics().Len() == 0:
			case len(same) > 0 && same[0].ScopeMetrics().Len() > 0:
				sm.Metrics().MoveAndAppendTo(same[0].ScopeMetrics().At(0).Metrics())
			default:
				sm.Metrics().MoveAndAppendTo(copyScope(rm, sm, out))
			}
		}
	}
}

// resourceIn returns the parts of a batch that have this resource.
func resourceIn(metrics pmetric.Metrics, resource pcommon.Resource) (same []pmetric.ResourceMetrics) {
	for _, rm := range metrics.ResourceMetrics().All() {
		if rm.Resource().Attributes().Equal(resource.Attributes()) {
			same = append(same, rm)
		}
	}
	return same
}

func namesOf(metrics pmetric.MetricSlice) map[string]bool {
	names := make(map[string]bool)
	for _, m := range metrics.All() {
		names[m.Name()] = true
	}
	return names
}

// seriesOf returns the series of these names that have a point.
func seriesOf(resources []pmetric.ResourceMetrics, names map[string]bool) map[seriesID]bool {
	series := map[seriesID]bool{}
	for _, rm := range resources {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if !names[m.Name()] {
					continue
				}
				for p := range pointsOf(m) {
					series[idOf(m, p)] = true
				}
			}
		}
	}
	return series
}

// seriesID identifies a series within its resource.
type seriesID struct {
	kind       pmetric.MetricType
	name, unit string
	// attributes are the quoted names and values, in order.
	attributes string
}

func idOf(m pmetric.Metric, p point) seriesID {
	pairs := make([]string, 0, p.Attributes().Len())
	for name, value := range p.Attributes().All() {
		pairs = append(pairs, strconv.Quote(name)+"="+strconv.Quote(value.AsString()))
	}
	slices.Sort(pairs)
	return seriesID{m.Type(), m.Name(), m.Unit(), strings.Join(pairs, ",")}
}

// timeOf returns the newest time in a batch, in Unix nanoseconds; 0 without points.
func timeOf(metrics pmetric.Metrics) (at pcommon.Timestamp) {
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				for p := range pointsOf(m) {
					at = max(at, p.Timestamp())
				}
			}
		}
	}
	return at
}

// point is what the points of all kinds have in common.
type point interface {
	Attributes() pcommon.Map
	Timestamp() pcommon.Timestamp
	SetTimestamp(at pcommon.Timestamp)
	Flags() pmetric.DataPointFlags
}

// pointsOf yields the points of a metric.
func pointsOf(m pmetric.Metric) iter.Seq[point] {
	return func(yield func(point) bool) {
		switch m.Type() {
		case pmetric.MetricTypeGauge:
			each(m.Gauge().DataPoints().All(), yield)
		case pmetric.MetricTypeSum:
			each(m.Sum().DataPoints().All(), yield)
		case pmetric.MetricTypeHistogram:
			each(m.Histogram().DataPoints().All(), yield)
		case pmetric.MetricTypeSummary:
			each(m.Summary().DataPoints().All(), yield)
		}
	}
}

func each[P point](points iter.Seq2[int, P], yield func(point) bool) {
	for _, p := range points {
		if !yield(p) {
			return
		}
	}
}
