package replay

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/prometheus/prometheus/model/labels"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/backtest/history"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// stored is a name in a backend, of a metric of the catalogue.
type stored struct {
	metric *catalog.Metric
	// part is _bucket, _sum or _count of a histogram, else empty.
	part string
}

// storedNames has the names of all metrics that the receiver emits, in every spelling.
var storedNames = sync.OnceValue(func() map[string]stored {
	index := map[string]stored{}
	all := catalog.All()
	for i := range all {
		m := &all[i]
		if m.EmittedBy != "receiver" {
			continue
		}
		for _, to := range spelling.All() {
			name, err := spelling.Name(m, to)
			if err != nil {
				continue // A test of the catalogue proves that every name can be translated.
			}
			switch m.Kind {
			case catalog.KindHistogram:
				for _, part := range []string{"_bucket", "_sum", "_count"} {
					index[name+part] = stored{m, part}
				}
			case catalog.KindSummary: // The processor uses none.
			default:
				if _, taken := index[name]; !taken {
					index[name] = stored{m, ""}
				}
			}
		}
	}
	return index
})

// ours builds the points that a collector with our receiver had stored again.
type ours struct {
	points []*point
	// known are the points of earlier parts by their keys, for their ends.
	known map[string]*point
}

// point is one data point of a scrape: one series, or all those of a histogram.
type point struct {
	metric     *catalog.Metric
	attributes []labels.Label
	resource   string
	of         []labels.Label
	value      *cursor
	sum, count *cursor
	buckets    []*cursor
	bounds     []float64
	// live is true while the last point had a value.
	live bool
}

// cursor walks over the samples of a series.
type cursor struct {
	times  []int64
	values []float64
	next   int
	bound  float64
}

// at returns the sample of a time. Times only grow.
func (c *cursor) at(t int64) (float64, bool) {
	if c == nil {
		return 0, false
	}
	for c.next < len(c.times) && c.times[c.next] < t {
		c.next++
	}
	if c.next == len(c.times) || c.times[c.next] != t {
		return 0, false
	}
	return c.values[c.next], true
}

// use takes the series of the next part. Series that the catalogue does not know are left
// out.
func (o *ours) use(p *history.Part, instance, job string) {
	if o.known == nil {
		o.known = map[string]*point{}
	}
	for _, one := range o.known {
		one.value, one.sum, one.count, one.buckets, one.bounds = nil, nil, nil, nil, nil
	}
	for i := range p.Series {
		s := &p.Series[i]
		of, known := storedNames()[s.Labels.Get("__name__")]
		if !known {
			continue
		}
		attributes, resource := split(s.Labels, of.metric, instance, job)
		key := of.metric.Name + "\x00" + flat(attributes) + "\x00" + flat(resource)
		one := o.known[key]
		if one == nil {
			if len(o.known) >= maxPoints {
				continue
			}
			one = &point{metric: of.metric, attributes: attributes, of: resource, resource: flat(resource)}
			o.known[key] = one
		}
		c := &cursor{times: s.Times, values: s.Values}
		switch of.part {
		case "_bucket":
			var err error
			if c.bound, err = strconv.ParseFloat(s.Labels.Get("le"), 64); err == nil {
				one.buckets = append(one.buckets, c)
			}
		case "_sum":
			one.sum = c
		case "_count":
			one.count = c
		default:
			one.value = c
		}
	}
	o.points = o.points[:0]
	for key, one := range o.known {
		if one.value == nil && one.count == nil && !one.live {
			delete(o.known, key)
			continue
		}
		slices.SortFunc(one.buckets, func(a, b *cursor) int { return cmp.Compare(a.bound, b.bound) })
		one.buckets = slices.CompactFunc(one.buckets, func(a, b *cursor) bool { return a.bound == b.bound })
		for _, b := range one.buckets {
			if !math.IsInf(b.bound, 1) {
				one.bounds = append(one.bounds, b.bound)
			}
		}
		o.points = append(o.points, one)
	}
	slices.SortFunc(o.points, func(a, b *point) int {
		return cmp.Or(strings.Compare(a.resource, b.resource), strings.Compare(a.metric.Name, b.metric.Name), strings.Compare(flat(a.attributes), flat(b.attributes)))
	})
}

// maxPoints is how many points a target can have.
const maxPoints = 20_000

func flat(all []labels.Label) string {
	var b strings.Builder
	for _, l := range all {
		b.WriteString(l.Name)
		b.WriteByte(1)
		b.WriteString(l.Value)
		b.WriteByte(2)
	}
	return b.String()
}

// split divides the labels of a series into attributes of the point and of the resource.
func split(all labels.Labels, m *catalog.Metric, instance, job string) (attributes, resource []labels.Label) {
	all.Range(func(l labels.Label) {
		name := strings.TrimPrefix(l.Name, "exported_")
		switch {
		case l.Name == "__name__", l.Name == "le", strings.HasPrefix(l.Name, "otel_scope_"), strings.HasPrefix(l.Name, "otel.scope."),
			name == "job", name == "instance":
			return
		}
		for _, a := range m.Attributes {
			if l.Name == a || l.Name == strings.ReplaceAll(a, ".", "_") {
				attributes = append(attributes, labels.Label{Name: a, Value: l.Value})
				return
			}
		}
		resource = append(resource, labels.Label{Name: history.ResourceName(l.Name), Value: l.Value})
	})
	resource = append(resource, labels.Label{Name: "service.instance.id", Value: instance}, labels.Label{Name: "service.name", Value: job})
	slices.SortFunc(resource, func(a, b labels.Label) int { return strings.Compare(a.Name, b.Name) })
	return attributes, resource
}

// at returns the points of the scrape at a time, with ends of those that the scrape does not
// have and an earlier one had; samples is how many points have a value.
func (o *ours) at(t int64) (metrics pmetric.Metrics, samples int) {
	metrics = pmetric.NewMetrics()
	now := pcommon.Timestamp(t * 1e6)
	var to pmetric.MetricSlice
	var m pmetric.Metric
	resource, name := "", ""
	begun := false
	for _, one := range o.points {
		value, has := one.value.at(t)
		count, counted := one.count.at(t)
		if !has && !counted && !one.live {
			continue
		}
		if !begun || resource != one.resource {
			rm := metrics.ResourceMetrics().AppendEmpty()
			for _, l := range one.of {
				rm.Resource().Attributes().PutStr(l.Name, l.Value)
			}
			to = rm.ScopeMetrics().AppendEmpty().Metrics()
			resource, name, begun = one.resource, "", true
		}
		if name != one.metric.Name {
			name = one.metric.Name
			m = to.AppendEmpty()
			m.SetName(name)
			m.SetUnit(one.metric.Unit)
		}
		ended := !has && !counted
		one.live = !ended
		if !ended {
			samples++
		}
		if one.metric.Kind == catalog.KindHistogram {
			one.histogram(m, t, now, count, ended)
			continue
		}
		p := one.number(m)
		p.SetTimestamp(now)
		p.SetDoubleValue(value)
		one.put(p.Attributes())
		if ended {
			p.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		}
	}
	return metrics, samples
}

func (p *point) put(to pcommon.Map) {
	to.EnsureCapacity(len(p.attributes))
	for _, l := range p.attributes {
		to.PutStr(l.Name, l.Value)
	}
}

func (p *point) number(m pmetric.Metric) pmetric.NumberDataPoint {
	if p.metric.Kind != catalog.KindSum {
		if m.Type() == pmetric.MetricTypeEmpty {
			m.SetEmptyGauge()
		}
		return m.Gauge().DataPoints().AppendEmpty()
	}
	if m.Type() == pmetric.MetricTypeEmpty {
		sum := m.SetEmptySum()
		sum.SetIsMonotonic(true)
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	}
	return m.Sum().DataPoints().AppendEmpty()
}

func (p *point) histogram(m pmetric.Metric, t int64, now pcommon.Timestamp, count float64, ended bool) {
	if m.Type() == pmetric.MetricTypeEmpty {
		m.SetEmptyHistogram().SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
	}
	to := m.Histogram().DataPoints().AppendEmpty()
	to.SetTimestamp(now)
	p.put(to.Attributes())
	if ended {
		to.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		return
	}
	to.SetCount(uint64(max(0, count)))
	if sum, has := p.sum.at(t); has {
		to.SetSum(sum)
	}
	counts := make([]uint64, 0, len(p.bounds)+1)
	before := 0.0
	for _, b := range p.buckets {
		if math.IsInf(b.bound, 1) {
			continue
		}
		n, _ := b.at(t)
		counts = append(counts, uint64(max(0, n-before)))
		before = max(before, n)
	}
	to.ExplicitBounds().FromRaw(p.bounds)
	to.BucketCounts().FromRaw(append(counts, uint64(max(0, count-before))))
}
