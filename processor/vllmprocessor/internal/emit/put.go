package emit

import (
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/message"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadata"
)

// section is what is written for some series at one time.
type section struct {
	series *Memory
	points []Point
	// attributes are those of the resource that the points belong to; zero for the
	// resource of the batch.
	attributes pcommon.Map
	// said is the metadata of a metric.
	metric string
	said   []message.Message
}

// Output is what is written for a batch. History keeps it, in case the batch is sent
// again.
type Output struct {
	time         int64
	print        uint64
	sections     []section
	values, ends int
	// call is the newest call that has it.
	call *Call
}

// NewOutput returns an empty output for a time in Unix nanoseconds and the fingerprint
// of a batch.
func NewOutput(time int64, fingerprint uint64) *Output {
	return &Output{time: time, print: fingerprint}
}

// Append writes the values of some series, which hold for a time in Unix nanoseconds,
// and the ends of those that have no value any more.
func (o *Output) Append(series *Memory, values []derive.Value, of int64) {
	o.add(section{series: series, points: series.Write(values, of, o.time)})
}

// Say adds what is said about changes to a metric of the series that were appended last.
func (o *Output) Say(metric string, said []message.Message) {
	if n := len(o.sections); n > 0 {
		o.sections[n-1].metric, o.sections[n-1].said = metric, said
	}
}

// End ends series under the attributes that their resource had before.
func (o *Output) End(series *Memory, attributes pcommon.Map) {
	o.add(section{series: series, points: series.Write(nil, o.time, o.time), attributes: attributes})
}

func (o *Output) add(s section) {
	if len(s.points) == 0 {
		return
	}
	o.sections = append(o.sections, s)
	for i := range s.points {
		if s.points[i].End {
			o.ends++
		} else {
			o.values++
		}
	}
}

// Empty reports whether nothing was written.
func (o *Output) Empty() bool { return len(o.sections) == 0 }

// write returns the metrics of an output. The first resource is that of the batch, without
// its attributes.
func (o *Output) write() pmetric.Metrics {
	written := pmetric.NewMetrics()
	all := written.ResourceMetrics()
	all.AppendEmpty()
	for _, s := range o.sections {
		at := 0
		if s.attributes != (pcommon.Map{}) {
			at = 1
			for at < all.Len() && !all.At(at).Resource().Attributes().Equal(s.attributes) {
				at++
			}
			if at == all.Len() {
				s.attributes.CopyTo(all.AppendEmpty().Resource().Attributes())
			}
		}
		scopes := all.At(at).ScopeMetrics()
		if scopes.Len() == 0 {
			// Without a version: backends for which a scope is labels would have other series after each upgrade.
			scopes.AppendEmpty().Scope().SetName(metadata.ScopeName)
		}
		metrics := scopes.At(0).Metrics()
		first := metrics.Len()
		put(s.points, o.time, metrics)
		for at := first; at < metrics.Len() && len(s.said) > 0; at++ {
			if to := metrics.At(at); to.Name() == s.metric && to.Description() != "" { // An end has no description.
				message.Write(to.Metadata(), o.time, s.said)
			}
		}
	}
	return written
}

// move moves what write returned to the metrics that the batch belongs to.
func move(written, metrics pmetric.Metrics, batch *input.Batch) {
	for i, rm := range written.ResourceMetrics().All() {
		to := metrics.ResourceMetrics().At(batch.Source)
		if i > 0 {
			to = resourceOf(rm.Resource().Attributes(), batch, metrics)
		}
		rm.ScopeMetrics().MoveAndAppendTo(to.ScopeMetrics())
	}
}

// resourceOf returns the former resource in metrics that points belong to, and adds it
// where it is missing.
func resourceOf(attributes pcommon.Map, batch *input.Batch, metrics pmetric.Metrics) pmetric.ResourceMetrics {
	if batch.Ends >= 0 {
		if left := metrics.ResourceMetrics().At(batch.Ends); left.Resource().Attributes().Equal(attributes) {
			return left
		}
	}
	to := metrics.ResourceMetrics().AppendEmpty()
	attributes.CopyTo(to.Resource().Attributes())
	to.SetSchemaUrl(metrics.ResourceMetrics().At(batch.Source).SchemaUrl())
	return to
}

func put(all []Point, at int64, metrics pmetric.MetricSlice) {
	w := writers.Get().(*writer)
	defer writers.Put(w)
	w.plan(all)
	begin := metrics.Len()
	metrics.EnsureCapacity(begin + len(w.metrics))
	for i := range w.metrics {
		planned := &w.metrics[i]
		w.metric(planned, metrics.AppendEmpty())
	}
	for i := range all {
		planned := &w.metrics[w.places[i]]
		point := planned.points.AppendEmpty()
		point.SetTimestamp(pcommon.Timestamp(at))
		if p := &all[i]; p.End {
			point.SetFlags(pmetric.DefaultDataPointFlags.WithNoRecordedValue(true))
		} else {
			point.SetStartTimestamp(pcommon.Timestamp(p.Start))
			point.SetDoubleValue(p.Number)
		}
		label(point.Attributes(), all[i].Series)
	}
	clear(w.metrics)
}

// writers are for reuse. Without them a batch of one server allocates 1.2 times the bytes.
var writers = sync.Pool{New: func() any { return &writer{index: map[*derive.Row]int{}} }}

// writer plans which metrics points need, so that each list of pdata is made once and with
// its size.
type writer struct {
	metrics []planned
	// places has for each point the place of its metric.
	places []int
	// index is the place of the metric of each row.
	index map[*derive.Row]int
}

// planned is a metric to write.
type planned struct {
	*catalog.Metric
	// row is nil for the metric of an end.
	row    *derive.Row
	number int
	points pmetric.NumberDataPointSlice
}

// plan makes the list of metrics. The values of a row are in one metric. An end is a
// metric of its own: the Prometheus exporter of the collector's contrib distribution stops
// reading a metric at the first point without a value, so other ends in the same metric
// would be lost.
func (w *writer) plan(all []Point) {
	w.metrics, w.places = w.metrics[:0], w.places[:0]
	clear(w.index)
	next := 0
	for i := range all {
		p := &all[i]
		at := len(w.metrics)
		if p.End {
			w.metrics = append(w.metrics, planned{Metric: p.metric})
		} else if at = w.place(p.Row, next); at == len(w.metrics) {
			w.metrics = append(w.metrics, planned{Metric: p.metric, row: p.Row})
		}
		w.metrics[at].number++
		w.places = append(w.places, at)
		next = at
	}
}

// place returns the place of the metric of a row, which is len(w.metrics) for a new one. The values of
// each engine have the same order, so it is likely the metric of the point before or the one after it.
func (w *writer) place(row *derive.Row, before int) int {
	for at := before; at < min(before+2, len(w.metrics)); at++ {
		if w.metrics[at].row == row {
			return at
		}
	}
	at, known := w.index[row]
	if !known {
		at = len(w.metrics)
		w.index[row] = at
	}
	return at
}

// metric writes a metric as in the catalogue, and makes room for its points. There can be
// many ends, so they have no description. Name, unit and type identify the series.
func (*writer) metric(p *planned, metric pmetric.Metric) {
	metric.SetName(p.Name)
	metric.SetUnit(p.Unit)
	if p.row != nil {
		metric.SetDescription(p.Description)
	}
	if p.Kind == catalog.KindSum {
		sum := metric.SetEmptySum()
		sum.SetIsMonotonic(true)
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		p.points = sum.DataPoints()
	} else {
		p.points = metric.SetEmptyGauge().DataPoints()
	}
	p.points.EnsureCapacity(p.number)
}

// label sets the attributes of a point. Own attributes of the row without a value are
// left out.
func label(to pcommon.Map, s *Series) {
	n := len(s.Attributes)
	for i := range s.Row.Extra {
		if s.Extra[i] != "" {
			n++
		}
	}
	to.EnsureCapacity(n)
	for i := range s.Attributes {
		to.PutStr(s.Attributes[i].Name, s.Attributes[i].Value)
	}
	for i, name := range s.Row.Extra {
		if s.Extra[i] != "" {
			to.PutStr(name, s.Extra[i])
		}
	}
}
