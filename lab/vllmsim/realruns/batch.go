package realruns

import (
	"sort"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// batch builds the points of one scrape.
type batch struct {
	to            pmetric.MetricSlice
	now, start    pcommon.Timestamp
	engine, model string
}

func (b *batch) metric(name string) pmetric.Metric {
	m := b.to.AppendEmpty()
	m.SetName(name)
	return m
}

func (b *batch) attributes(to pcommon.Map) {
	to.PutStr("engine", b.engine)
	to.PutStr("model_name", b.model)
}

// gauge adds a gauge of the whole server.
func (b *batch) gauge(name string, value float64) pmetric.NumberDataPoint {
	p := b.metric(name).SetEmptyGauge().DataPoints().AppendEmpty()
	p.SetTimestamp(b.now)
	p.SetDoubleValue(value)
	return p
}

func (b *batch) labelled(name, label, value string, number float64) pmetric.NumberDataPoint {
	p := b.gauge(name, number)
	p.Attributes().PutStr(label, value)
	return p
}

func (b *batch) gone(name, label, value string) {
	p := b.labelled(name, label, value, 0)
	p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
}

func (b *batch) ofEngine(name string, value float64) { b.attributes(b.gauge(name, value).Attributes()) }

func (b *batch) counter(c counter, value float64) {
	sum := b.metric(c.name).SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	p := sum.DataPoints().AppendEmpty()
	p.SetTimestamp(b.now)
	p.SetStartTimestamp(b.start)
	p.SetDoubleValue(value)
	b.attributes(p.Attributes())
	if c.label[0] != "" {
		p.Attributes().PutStr(c.label[0], c.label[1])
	}
}

// sums is a histogram that grows.
type sums struct {
	bounds []float64
	counts []uint64
	count  uint64
	sum    float64
}

func (s *sums) add(observed []observation) {
	if s.counts == nil {
		s.counts = make([]uint64, len(s.bounds)+1)
	}
	for _, o := range observed {
		n := uint64(o.n)
		s.counts[sort.SearchFloat64s(s.bounds, o.value)] += n
		s.count += n
		s.sum += o.value * o.n
	}
}

func (b *batch) histogram(name string, s *sums) {
	h := b.metric(name).SetEmptyHistogram()
	h.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	p := h.DataPoints().AppendEmpty()
	p.SetTimestamp(b.now)
	p.SetStartTimestamp(b.start)
	b.attributes(p.Attributes())
	p.SetCount(s.count)
	p.SetSum(s.sum)
	p.ExplicitBounds().FromRaw(s.bounds)
	p.BucketCounts().FromRaw(s.counts)
}

// end ends every series of a scrape.
func (b *batch) end(last pmetric.Metrics) {
	gone := pmetric.DefaultDataPointFlags.WithNoRecordedValue(true)
	metrics := last.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
	for _, m := range metrics.All() {
		switch m.Type() {
		case pmetric.MetricTypeGauge:
			number(m.Gauge().DataPoints(), b.now, gone)
		case pmetric.MetricTypeSum:
			number(m.Sum().DataPoints(), b.now, gone)
		case pmetric.MetricTypeHistogram:
			for _, p := range m.Histogram().DataPoints().All() {
				attributes, start := pcommon.NewMap(), p.StartTimestamp()
				p.Attributes().CopyTo(attributes)
				pmetric.NewHistogramDataPoint().CopyTo(p)
				attributes.CopyTo(p.Attributes())
				p.SetStartTimestamp(start)
				p.SetTimestamp(b.now)
				p.SetFlags(gone)
			}
		default:
		}
	}
	metrics.MoveAndAppendTo(b.to)
}

func number(points pmetric.NumberDataPointSlice, now pcommon.Timestamp, gone pmetric.DataPointFlags) {
	for _, p := range points.All() {
		p.SetTimestamp(now)
		p.SetDoubleValue(0)
		p.SetFlags(gone)
	}
}
