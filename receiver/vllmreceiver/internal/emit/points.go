package emit

import (
	"encoding/hex"
	"maps"
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

// sentinel is the value that a V0 server reports for a hit rate that it does not have.
const sentinel = -1

// builder builds the points of one scrape.
type builder struct {
	target      *Target
	now         pcommon.Timestamp
	values      []float64
	metrics     pmetric.MetricSlice
	report      *Report
	resets      resets
	process     process
	scrape      *Scrape
	adapterSets []bool
	// adapterRoom is how many more adapters each metric may have.
	adapterRoom map[*normalize.Metric]int
	exemplars   map[int]*exposition.Exemplar
}

// build appends every metric of the plan that has a point.
func (b *builder) build() {
	for m := range b.scrape.Plan.Metrics {
		metric := &b.scrape.Plan.Metrics[m]
		open := openMetric{metric: metric, metrics: b.metrics}
		for p := range metric.Points {
			point := &metric.Points[p]
			b.point(&open, point, &b.target.states[point.Index])
		}
	}
}

// openMetric is a metric that is created in the output with its first point.
type openMetric struct {
	metric  *normalize.Metric
	metrics pmetric.MetricSlice
	to      pmetric.Metric
}

func (o *openMetric) get() pmetric.Metric {
	if o.to == (pmetric.Metric{}) {
		o.to = emptyMetric(o.metric, len(o.metric.Points), o.metrics)
		o.to.SetDescription(o.metric.Description)
	}
	return o.to
}

// point appends one point or the end of its series, or counts the reason for neither.
func (b *builder) point(open *openMetric, point *normalize.Point, st *state) {
	if !st.admitted {
		// The start of a series that is admitted later is unknown.
		b.resetUnusable(st, point)
		st.absent = 0
		b.report.Dropped[normalize.ReasonSeriesLimit]++
		return
	}
	if point.AdapterSets != nil && !b.admitAdapter(open.metric, point, st) {
		b.target.endSeries(open.metric, point, st)
		return
	}
	if b.unused(point) {
		b.hide(open.metric, point, st)
		return
	}
	var reason normalize.Reason
	switch open.metric.Kind {
	case catalog.KindGauge:
		reason = b.gauge(open, point, st)
	case catalog.KindSum:
		reason = b.sum(open, point, st)
	case catalog.KindHistogram:
		reason = b.histogram(open, point, st)
	case catalog.KindSummary:
		reason = b.summary(open, point, st)
	}
	if reason != normalize.ReasonNone {
		b.report.Dropped[reason]++
		b.resetUnusable(st, point)
		b.target.endSeries(open.metric, point, st)
		return
	}
	st.live = true
	b.report.Points++
}

// unused reports whether a point says only that the server does not use what it counts.
func (b *builder) unused(point *normalize.Point) bool {
	for i := range point.Unused {
		if b.values[point.Unused[i].Value] != 0 {
			return false
		}
	}
	return len(point.Unused) > 0
}

// hide ends a series while it is unused. It starts here when it is used: a delta since then is all of it.
func (b *builder) hide(metric *normalize.Metric, point *normalize.Point, st *state) {
	b.report.Dropped[normalize.ReasonDisabled]++
	b.target.endSeries(metric, point, st)
	if metric.Kind != catalog.KindGauge {
		b.advance(st, point, 0)
		st.start = b.now
	}
}

// admitAdapter reports whether an adapter is in use and within the limit. Adapters
// that had a point in the last scrape stay admitted.
func (b *builder) admitAdapter(metric *normalize.Metric, point *normalize.Point, st *state) bool {
	if !b.current(point) {
		return false
	}
	if st.live {
		return true
	}
	if b.adapterRoom == nil {
		b.adapterRoom = map[*normalize.Metric]int{}
	}
	free, counted := b.adapterRoom[metric]
	if !counted {
		free = b.target.settings.MaxAdapters - b.liveAdapters(metric)
	}
	if b.target.settings.MaxAdapters > 0 && free <= 0 {
		b.adapterRoom[metric] = free
		b.report.Dropped[normalize.ReasonAdapterLimit]++
		return false
	}
	b.adapterRoom[metric] = free - 1
	return true
}

// current reports whether one of the label sets that name an adapter is the newest of
// its process.
func (b *builder) current(point *normalize.Point) bool {
	return slices.ContainsFunc(point.AdapterSets, func(set int) bool { return b.adapterSets[set] })
}

// liveAdapters counts the adapters of a metric that stay admitted.
func (b *builder) liveAdapters(metric *normalize.Metric) int {
	live := 0
	for p := range metric.Points {
		point := &metric.Points[p]
		if b.target.states[point.Index].live && b.current(point) {
			live++
		}
	}
	return live
}

// resetUnusable resets a series that has no value in the scrape that shows a restart.
// Its next value is the new process's, even if it is larger than the old one.
func (b *builder) resetUnusable(st *state, point *normalize.Point) {
	if !b.resets.include(point.Process) {
		return
	}
	// The start must move: an unchanged start means that there was no restart.
	st.absent = max(b.target.lastTime, st.start+1)
	st.seen, st.forgotten, st.created = false, false, 0
}

func (b *builder) gauge(open *openMetric, point *normalize.Point, st *state) normalize.Reason {
	value := point.Constant
	if len(point.Parts) > 0 {
		value = number(catalog.KindGauge, point, b.values)
	}
	if open.metric.Sentinel && value == sentinel {
		return normalize.ReasonSentinel
	}
	to := open.get().Gauge().DataPoints().AppendEmpty()
	identify(to, point, 0, b.now)
	to.SetDoubleValue(value)
	st.seen = true
	b.addExemplars(point, to.Exemplars())
	return normalize.ReasonNone
}

func (b *builder) sum(open *openMetric, point *normalize.Point, st *state) normalize.Reason {
	value := number(catalog.KindSum, point, b.values)
	if math.IsNaN(value) {
		return normalize.ReasonCounterNaN
	}
	if value < 0 {
		return normalize.ReasonCounterNegative
	}
	b.advance(st, point, value)
	to := open.get().Sum().DataPoints().AppendEmpty()
	identify(to, point, st.start, b.now)
	to.SetDoubleValue(value)
	b.addExemplars(point, to.Exemplars())
	return normalize.ReasonNone
}

func (b *builder) summary(open *openMetric, point *normalize.Point, st *state) normalize.Reason {
	series := &point.Parts[0]
	count := b.values[series.Count]
	if !isWhole(count) {
		return normalize.ReasonBadCount
	}
	b.advance(st, point, count)
	to := open.get().Summary().DataPoints().AppendEmpty()
	identify(to, point, st.start, b.now)
	to.SetCount(uint64(count))
	if series.Sum != exposition.NoSlot {
		to.SetSum(b.values[series.Sum])
	}
	for _, q := range series.Quantiles {
		quantile := to.QuantileValues().AppendEmpty()
		quantile.SetQuantile(q.Quantile)
		quantile.SetValue(b.values[q.Slot])
	}
	return normalize.ReasonNone
}

// emptyMetric appends an empty metric with what identifies it, and with room for points.
func emptyMetric(metric *normalize.Metric, points int, metrics pmetric.MetricSlice) pmetric.Metric {
	to := metrics.AppendEmpty()
	to.SetName(metric.Name)
	to.SetUnit(metric.Unit)
	switch metric.Kind {
	case catalog.KindGauge:
		to.SetEmptyGauge().DataPoints().EnsureCapacity(points)
	case catalog.KindSum:
		sum := to.SetEmptySum()
		sum.SetIsMonotonic(true)
		sum.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		sum.DataPoints().EnsureCapacity(points)
	case catalog.KindHistogram:
		histogram := to.SetEmptyHistogram()
		histogram.SetAggregationTemporality(pmetric.AggregationTemporalityCumulative)
		histogram.DataPoints().EnsureCapacity(points)
	case catalog.KindSummary:
		to.SetEmptySummary().DataPoints().EnsureCapacity(points)
	}
	return to
}

// addExemplars copies the exemplars of a point's samples. Of the series that a point adds up, each
// bucket keeps the newest one, so that clients with many values of a label do not make many.
func (b *builder) addExemplars(point *normalize.Point, to pmetric.ExemplarSlice) {
	if len(b.exemplars) == 0 {
		return
	}
	newest := map[float64]*exposition.Exemplar{}
	add := func(bound float64, slot int) {
		e, ok := b.exemplars[slot]
		if known := newest[bound]; ok && (known == nil || known.Timestamp < e.Timestamp) {
			newest[bound] = e
		}
	}
	for i := range point.Parts {
		add(0, point.Parts[i].Value)
		for _, bucket := range point.Parts[i].Buckets {
			add(bucket.UpperBound, bucket.Slot)
		}
	}
	for _, bound := range slices.Sorted(maps.Keys(newest)) {
		putExemplar(to.AppendEmpty(), newest[bound], b.now)
	}
}

// putExemplar converts one exemplar. The labels trace_id and span_id become the
// exemplar's context (OpenTelemetry's Prometheus compatibility specification).
func putExemplar(to pmetric.Exemplar, from *exposition.Exemplar, now pcommon.Timestamp) {
	to.SetDoubleValue(from.Value)
	to.SetTimestamp(now)
	if from.HasTimestamp {
		to.SetTimestamp(pcommon.Timestamp(from.Timestamp * 1e6))
	}
	for _, l := range from.Labels {
		switch l.Name {
		case "trace_id":
			var id [16]byte
			if hexOf(id[:], l.Value) {
				to.SetTraceID(id)
				continue
			}
		case "span_id":
			var id [8]byte
			if hexOf(id[:], l.Value) {
				to.SetSpanID(id)
				continue
			}
		}
		to.FilteredAttributes().PutStr(l.Name, l.Value)
	}
}

// hexOf reads an identifier, and reports whether the text is one.
func hexOf(id []byte, text string) bool {
	if len(text) != hex.EncodedLen(len(id)) {
		return false
	}
	_, err := hex.Decode(id, []byte(text))
	return err == nil
}

// exemplarsBySlot leaves out exemplars without a label, which say nothing, and those from a time that
// cannot be: a backend that once has one from the future refuses all that follow.
func exemplarsBySlot(s Scrape) map[int]*exposition.Exemplar {
	exemplars := s.Snapshot.Exemplars
	if len(exemplars) == 0 {
		return nil
	}
	latest := pcommon.NewTimestampFromTime(s.Time) + skew
	bySlot := make(map[int]*exposition.Exemplar, len(exemplars))
	for i := range exemplars {
		e := &exemplars[i]
		possible := e.Timestamp > 0 && e.Timestamp < math.MaxInt64/int64(1e6) && s.ours(pcommon.Timestamp(e.Timestamp*1e6)) <= latest
		if len(e.Labels) > 0 && (possible || !e.HasTimestamp) {
			bySlot[e.Slot] = e
		}
	}
	return bySlot
}
