package judge

import (
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/observed"
)

// batch builds the points of one scrape.
type batch struct {
	to         pmetric.MetricSlice
	now, start pcommon.Timestamp
	engine     string
}

// metric returns the metric of that name, which is the last one or new.
func (b *batch) metric(name string) pmetric.Metric {
	if n := b.to.Len(); n > 0 && b.to.At(n-1).Name() == name {
		return b.to.At(n - 1)
	}
	m := b.to.AppendEmpty()
	m.SetName(name)
	return m
}

func (b *batch) row(r row, st *observed.Stats) {
	m := b.metric(r.name)
	var p pmetric.NumberDataPoint
	if r.counter {
		p = b.sum(m)
	} else {
		if m.Type() == pmetric.MetricTypeEmpty {
			m.SetEmptyGauge()
		}
		p = m.Gauge().DataPoints().AppendEmpty()
		p.SetTimestamp(b.now)
	}
	p.SetDoubleValue(r.read(st))
	b.attributes(p.Attributes())
	if r.label != "" {
		p.Attributes().PutStr(r.label, r.value)
	}
}

func (b *batch) sum(m pmetric.Metric) pmetric.NumberDataPoint {
	if m.Type() == pmetric.MetricTypeEmpty {
		sum := m.SetEmptySum()
		sum.SetIsMonotonic(true)
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	}
	p := m.Sum().DataPoints().AppendEmpty()
	p.SetTimestamp(b.now)
	p.SetStartTimestamp(b.start)
	return p
}

func (b *batch) attributes(to pcommon.Map) {
	to.EnsureCapacity(3)
	to.PutStr("engine", b.engine)
	to.PutStr("model_name", modelName)
}

// bare adds a gauge of an engine without the attribute model_name.
func (b *batch) bare(name string, value float64) {
	p := b.metric(name).SetEmptyGauge().DataPoints().AppendEmpty()
	p.SetTimestamp(b.now)
	p.SetDoubleValue(value)
	p.Attributes().PutStr("engine", b.engine)
}

// gauge adds a gauge of the whole server.
func (b *batch) gauge(name string, value float64) {
	p := b.metric(name).SetEmptyGauge().DataPoints().AppendEmpty()
	p.SetTimestamp(b.now)
	p.SetDoubleValue(value)
}

func (b *batch) histogram(family string, h *observed.Histogram, bounds []float64) {
	m := b.metric(catalog.BySource(family)[0].Metric.Name)
	if m.Type() == pmetric.MetricTypeEmpty {
		m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	}
	p := m.Histogram().DataPoints().AppendEmpty()
	p.SetTimestamp(b.now)
	p.SetStartTimestamp(b.start)
	b.attributes(p.Attributes())
	p.SetCount(h.Count)
	p.SetSum(h.Sum)
	cumulative, err := h.Cumulative(bounds, false)
	if err != nil {
		panic(err) // The bounds are those of the surface, which the histogram keeps.
	}
	counts := make([]uint64, len(bounds)+1)
	before := uint64(0)
	for i, n := range cumulative {
		counts[i] = n - before
		before = n
	}
	counts[len(bounds)] = h.Count - before
	p.ExplicitBounds().FromRaw(bounds)
	p.BucketCounts().FromRaw(counts)
}

// http adds up the counts of the one API server.
func (b *batch) http(engines []*observed.Stats) {
	type key struct{ path, status string }
	counts := map[key]float64{}
	for _, st := range engines {
		for _, h := range st.HTTP {
			for status, n := range h.ByStatus {
				counts[key{h.Path, status}] += n
			}
		}
	}
	keys := make([]key, 0, len(counts))
	for k := range counts {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(x, y key) int { return strings.Compare(x.path+x.status, y.path+y.status) })
	for _, k := range keys {
		p := b.sum(b.metric("http_requests"))
		p.SetDoubleValue(counts[k])
		p.Attributes().PutStr("handler", k.path)
		p.Attributes().PutStr("method", "POST")
		p.Attributes().PutStr("status", k.status)
	}
}

// ends ends every series of the last scrape.
func (s *scraper) ends(b *batch) {
	gone := pmetric.DefaultDataPointFlags.WithNoRecordedValue(true)
	last := s.last.ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics()
	for _, m := range last.All() {
		switch m.Type() {
		case pmetric.MetricTypeGauge:
			for _, p := range m.Gauge().DataPoints().All() {
				p.SetTimestamp(b.now)
				p.SetDoubleValue(0)
				p.SetFlags(gone)
			}
		case pmetric.MetricTypeSum:
			for _, p := range m.Sum().DataPoints().All() {
				p.SetTimestamp(b.now)
				p.SetDoubleValue(0)
				p.SetFlags(gone)
			}
		case pmetric.MetricTypeHistogram:
			for _, p := range m.Histogram().DataPoints().All() {
				attributes := pcommon.NewMap()
				p.Attributes().CopyTo(attributes)
				start := p.StartTimestamp()
				pmetric.NewHistogramDataPoint().CopyTo(p)
				attributes.CopyTo(p.Attributes())
				p.SetStartTimestamp(start)
				p.SetTimestamp(b.now)
				p.SetFlags(gone)
			}
		default:
		}
	}
	last.MoveAndAppendTo(b.to)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
