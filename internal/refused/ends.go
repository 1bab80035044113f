// Package refused keeps the ends of series, the points without a recorded value, that the next
// consumer refused. They are in the following batches of their source until one is accepted:
// nothing else would end these series in a backend.
package refused

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// Ends are ends of series, as bytes, so that their size is known. Two Ends can be
// concatenated.
type Ends []byte

// framing is more than what a message within another one takes besides its own bytes.
const framing = 12

// Of returns the ends of a batch that fit into room bytes, and the number of those that do
// not fit.
func Of(batch pmetric.Metrics, room int) (ends Ends, dropped int) {
	kept := pmetric.NewMetrics()
	for _, rm := range batch.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			left, over := appendEnds(kept, rm, sm, room)
			room, dropped = left, dropped+over
		}
	}
	return bytesOf(kept), dropped
}

// appendEnds appends the ends of a scope that fit into room bytes, and the attributes of their
// resource where one does. It returns the room that is left, and the number of ends that do not fit.
func appendEnds(kept pmetric.Metrics, rm pmetric.ResourceMetrics, sm pmetric.ScopeMetrics, room int) (left, dropped int) {
	var sizer pmetric.ProtoMarshaler
	var part pmetric.Metrics
	var to pmetric.MetricSlice
	left = room
	for _, m := range sm.Metrics().All() {
		if !isEnd(m) {
			continue
		}
		if part == (pmetric.Metrics{}) {
			part = pmetric.NewMetrics()
			to = copyScope(rm, sm, part)
			left -= sizer.MetricsSize(part) + framing
		}
		if size := sizer.MetricSize(m) + framing; size <= left {
			left -= size
			m.CopyTo(to.AppendEmpty())
		} else {
			dropped++
		}
	}
	if part == (pmetric.Metrics{}) || to.Len() == 0 {
		return room, dropped
	}
	part.ResourceMetrics().MoveAndAppendTo(kept.ResourceMetrics())
	return left, dropped
}

func bytesOf(ends pmetric.Metrics) Ends {
	if ends.DataPointCount() == 0 {
		return nil
	}
	var marshaler pmetric.ProtoMarshaler
	bytes, _ := marshaler.MarshalMetrics(ends) // it fails for no metrics of our own
	return bytes
}

func (e Ends) metrics() pmetric.Metrics {
	var unmarshaler pmetric.ProtoUnmarshaler
	ends, _ := unmarshaler.UnmarshalMetrics(e) // they are the bytes of bytesOf
	return ends
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
func flagsOf[S interface {
	Len() int
	At(i int) P
}, P point](points S,
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
func (e Ends) Count() int { return e.metrics().DataPointCount() }

// AppendTo appends the ends to a batch, with the time at. It omits the ends of series that
// have a point in the batch.
func (e Ends) AppendTo(at pcommon.Timestamp, batch pmetric.Metrics) {
	if len(e) == 0 {
		return
	}
	for _, rm := range e.metrics().ResourceMetrics().All() {
		same := resourceIn(batch, rm.Resource())
		for _, sm := range rm.ScopeMetrics().All() {
			removeSeriesOf(same, sm.Metrics())
			for _, m := range sm.Metrics().All() {
				for p := range pointsOf(m) {
					p.SetTimestamp(max(at, p.Timestamp()))
				}
			}
			if sm.Metrics().Len() > 0 {
				sm.Metrics().MoveAndAppendTo(scopeIn(same, rm, sm, batch))
			}
		}
	}
}

// without returns the ends of series that have no point in a batch.
func (e Ends) without(batch pmetric.Metrics) Ends {
	ends := e.metrics()
	for _, rm := range ends.ResourceMetrics().All() {
		same := resourceIn(batch, rm.Resource())
		for _, sm := range rm.ScopeMetrics().All() {
			removeSeriesOf(same, sm.Metrics())
		}
	}
	return bytesOf(ends)
}

// removeSeriesOf removes the ends of series that have a point in some resources.
func removeSeriesOf(same []pmetric.ResourceMetrics, ends pmetric.MetricSlice) {
	there := seriesOf(same, namesOf(ends))
	ends.RemoveIf(func(m pmetric.Metric) bool {
		for p := range pointsOf(m) {
			return there[idOf(m, p)]
		}
		return true
	})
}

// scopeIn returns the metrics of a scope in the parts of a batch that have its resource. It adds
// the scope, and the resource, where they are missing.
func scopeIn(same []pmetric.ResourceMetrics, rm pmetric.ResourceMetrics, sm pmetric.ScopeMetrics, batch pmetric.Metrics) pmetric.MetricSlice {
	for _, part := range same {
		for _, scope := range part.ScopeMetrics().All() {
			if scope.Scope().Name() == sm.Scope().Name() && scope.Scope().Version() == sm.Scope().Version() {
				return scope.Metrics()
			}
		}
	}
	if len(same) == 0 {
		return copyScope(rm, sm, batch)
	}
	to := same[0].ScopeMetrics().AppendEmpty()
	sm.Scope().CopyTo(to.Scope())
	to.SetSchemaUrl(sm.SchemaUrl())
	return to.Metrics()
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
