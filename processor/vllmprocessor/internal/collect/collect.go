// Package collect reads the points of vLLM's metrics, under their names in the catalogue
// or on the wire, and groups them by resource and time. It is the first step of the
// processor. Only collect and emit use pdata. It does not change the metrics.
package collect

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/identity"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// Reader reads batches and uses the memory of the last ones again. Its results are the same
// as those of a new one. It is not safe for concurrent use.
type Reader struct {
	memory  memory
	batches []input.Batch
	// pending has the same length as batches.
	pending []pending
	index   map[batchKey]int
	report  Report
	// contradictions is true where a sample must be removed.
	contradictions bool
	// evidenceOf is by resource.
	evidenceOf   map[string]input.Evidence
	accelerators Accelerators

	// These belong to the current resource.
	source   int
	resource string
	// tooLarge is true for a resource that is not read. points is the number of points of
	// a resource until its first batch begins.
	tooLarge bool
	points   int
	evidence seen
	// kind is what our receiver says that the resource is; ours is true in its scope.
	kind string
	ours bool
	// current is the place in batches of the batch of the last point; -1 without one.
	current int

	// These belong to the current point.
	sample input.Sample
	origin origin
	rest   []input.Attribute
	key    []byte
	labels [input.MaxLabels]string
	// last is the group of the previous point.
	last int
	// lastDevice is the GPU of the previous point of an exporter.
	lastDevice int
	// most is the number of samples of the largest batch so far.
	most int
}

// Read returns the batches in metrics, sorted by time, and counts the points of known
// metrics that it cannot use. The samples of the batches are valid until the next call;
// their labels, their bounds, and the groups stay.
func (c *Reader) Read(metrics pmetric.Metrics) ([]input.Batch, Report) {
	c.begin()
	resources := metrics.ResourceMetrics()
	for i := range resources.Len() {
		c.readResource(i, resources.At(i))
	}
	c.dropOlderGenerations()
	c.dropContradictions()
	c.dropTorn()
	for i := range c.batches {
		c.batches[i].Evidence = c.evidenceOf[c.batches[i].Resource]
	}
	if len(c.batches) > 1 {
		slices.SortStableFunc(c.batches, func(a, b input.Batch) int { return cmp.Compare(a.Time, b.Time) })
	}
	return c.batches, c.report
}

type batchKey struct {
	resource string
	time     int64
}

func (c *Reader) begin() {
	c.memory.begin(c.batches)
	if max(cap(c.batches), cap(c.pending)) > maxSpareBatches {
		c.batches, c.pending, c.index = nil, nil, nil
	}
	clear(c.batches)
	clear(c.pending)
	c.batches, c.pending = c.batches[:0], c.pending[:0]
	if c.index == nil {
		c.index, c.evidenceOf = map[batchKey]int{}, map[string]input.Evidence{}
	}
	clear(c.index)
	clear(c.evidenceOf)
	c.report, c.contradictions, c.last, c.most = Report{}, false, 0, 0
	if c.accelerators.Sources != nil {
		c.accelerators = Accelerators{}
	}
}

func (c *Reader) readResource(index int, rm pmetric.ResourceMetrics) {
	if isAccelerator(rm.Resource().Attributes()) {
		c.readAccelerator(index, rm)
		return
	}
	c.source, c.resource, c.points, c.evidence, c.current = index, "", 0, seen{}, -1
	c.tooLarge, c.kind = tooLarge(rm.Resource().Attributes()), kindOf(rm.Resource().Attributes())
	scopes, known := rm.ScopeMetrics(), meanings()
	for i := range scopes.Len() {
		if c.ours = scopes.At(i).Scope().Name() == receiverScope; c.ours {
			c.evidence.Signs |= input.Received
		}
		metrics := scopes.At(i).Metrics()
		for j := range metrics.Len() {
			metric := metrics.At(j)
			m := known[metric.Name()]
			if !c.tooLarge {
				c.evidence.Join(&m.proof)
				if m.process {
					c.evidence.process(metric)
				}
			}
			switch {
			case m.known && c.tooLarge:
				c.report[TooLarge] += pointsOf(metric)
			case c.tooLarge, c.passes(&m):
			case m.known:
				c.identify(rm)
				c.readMetric(metric, m.named)
			case m.cacheConfig:
				c.identify(rm)
				c.readCacheConfig(metric)
			}
		}
	}
	if c.resource == "" {
		return
	}
	c.evidence.resource(rm.Resource().Attributes())
	all := c.evidenceOf[c.resource]
	all.Join(&c.evidence.Evidence)
	c.evidenceOf[c.resource] = all
}

// identify computes the identity of the resource at its first usable point.
func (c *Reader) identify(rm pmetric.ResourceMetrics) {
	if c.resource != "" {
		return
	}
	c.resource = identity.Of(rm.Resource().Attributes())
	for _, scope := range rm.ScopeMetrics().All() {
		for _, metric := range scope.Metrics().All() {
			c.points += pointsOf(metric)
		}
	}
}

func (c *Reader) readMetric(metric pmetric.Metric, n named) {
	kind := n.input.Define().Kind
	switch metric.Type() {
	case pmetric.MetricTypeGauge:
		if n.level = kind == input.Counter && n.input.Define().Level != ""; n.level {
			n.rank = rankLevel
		}
		c.readNumbers(metric.Gauge().DataPoints(), n, kind == input.Gauge || n.level, false)
	case pmetric.MetricTypeSum:
		sum := metric.Sum()
		// A sum that can fall, as an up-down counter does, is a gauge here.
		fits := kind == input.Counter && sum.IsMonotonic() ||
			kind == input.Gauge && !sum.IsMonotonic() && sum.AggregationTemporality() == pmetric.AggregationTemporalityCumulative
		if fits && sum.AggregationTemporality() == pmetric.AggregationTemporalityUnspecified {
			c.report[UnsupportedTemporality] += sum.DataPoints().Len()
			return
		}
		c.readNumbers(sum.DataPoints(), n, fits, sum.AggregationTemporality() == pmetric.AggregationTemporalityDelta)
	case pmetric.MetricTypeHistogram:
		histogram := metric.Histogram()
		points := histogram.DataPoints()
		per, known := perSecond(metric.Unit(), n.input)
		switch {
		case kind != input.Distribution:
			c.report[TypeConflict] += points.Len()
		case !known:
			c.report[UnknownUnit] += points.Len()
		case histogram.AggregationTemporality() == pmetric.AggregationTemporalityUnspecified:
			c.report[UnsupportedTemporality] += points.Len()
		default:
			c.readHistograms(points, n, histogram.AggregationTemporality() == pmetric.AggregationTemporalityDelta, per)
		}
	case pmetric.MetricTypeExponentialHistogram:
		c.report[TypeConflict] += metric.ExponentialHistogram().DataPoints().Len()
	case pmetric.MetricTypeSummary:
		c.report[TypeConflict] += metric.Summary().DataPoints().Len()
	case pmetric.MetricTypeEmpty:
	}
}

func (c *Reader) readNumbers(points pmetric.NumberDataPointSlice, n named, fits, delta bool) {
	if !fits {
		c.report[TypeConflict] += points.Len()
		return
	}
	for i := range points.Len() {
		point := points.At(i)
		sample := &c.sample
		*sample = input.Sample{
			Input: n.input, Delta: delta, Gone: point.Flags().NoRecordedValue(),
			Start: int64(point.StartTimestamp()), Older: n.older, Level: n.level,
		}
		c.origin = origin{rank: n.rank}
		if !sample.Gone {
			sample.Value = numberOf(point)
			if !finite(sample.Value) || (sample.Value < 0 && n.input.Define().Kind == input.Counter) {
				c.report[NotANumber]++
				c.addUnread(point.Timestamp(), point.Attributes(), n.input)
				continue
			}
		}
		c.add(point.Timestamp(), point.Attributes(), sample)
	}
}

// readHistograms reads the points of a distribution, whose numbers are divided by per.
func (c *Reader) readHistograms(points pmetric.HistogramDataPointSlice, n named, delta bool, per float64) {
	for i := range points.Len() {
		point := points.At(i)
		sample := &c.sample
		*sample = input.Sample{
			Input: n.input, Delta: delta, Gone: point.Flags().NoRecordedValue(),
			Start: int64(point.StartTimestamp()), Older: n.older,
		}
		c.origin = origin{rank: n.rank}
		if !sample.Gone {
			sample.Count, sample.Sum, sample.HasSum = float64(point.Count()), point.Sum()/per, point.HasSum() && finite(point.Sum())
			if !c.readBuckets(sample, point, per) {
				c.report[BadHistogram]++
				c.addUnread(point.Timestamp(), point.Attributes(), n.input)
				continue
			}
		}
		c.add(point.Timestamp(), point.Attributes(), sample)
	}
}

// readBuckets copies the buckets. A point without any has one open bucket.
func (c *Reader) readBuckets(s *input.Sample, point pmetric.HistogramDataPoint, per float64) bool {
	bounds, counts := point.ExplicitBounds(), point.BucketCounts()
	if counts.Len() == 0 && bounds.Len() == 0 {
		s.Counts = c.memory.counts(1)
		s.Counts[0] = s.Count
		return true
	}
	if counts.Len() != bounds.Len()+1 {
		return false
	}
	n := bounds.Len()
	if n > 0 && math.IsInf(bounds.At(n-1), 1) {
		// A bound at infinity is redundant: the last bucket is open.
		n--
	}
	if s.Bounds = c.memory.boundsOf(s.Input, bounds, n, per); s.Bounds == nil {
		return false
	}
	if len(s.Bounds) == len(sdkBounds) && slices.Equal(s.Bounds, sdkBounds[:]) && inSeconds()[s.Input] {
		// Its narrowest bucket of seconds, 0 to 5, has nearly all observations.
		c.evidence.Signs |= input.DefaultBounds
		s.Bounds, n = noBounds, 0
	}
	s.Counts = c.memory.counts(n + 1)
	left := point.Count()
	for i := range counts.Len() {
		count := counts.At(i)
		if count > left {
			// This also happens where a body changed while it was scraped: the last
			// bucket would be negative and wraps around to a huge number.
			return false
		}
		s.Counts[min(i, n)] += float64(count)
		left -= count
	}
	return left == 0
}

// sdkBounds are the default bounds of OpenTelemetry's SDKs. They are made for milliseconds.
// A histogram with other bounds is used as it is: who chose them knows what they resolve.
var sdkBounds = [...]float64{0, 5, 10, 25, 50, 75, 100, 250, 500, 750, 1000, 2500, 5000, 7500, 10000}

// units are those of times, and how many are a second. A metric without a unit, as from the Prometheus
// receiver, has the unit of its name.
var units = map[string]float64{"": 1, "s": 1, "seconds": 1, "ms": 1e3, "milliseconds": 1e3, "us": 1e6, "ns": 1e9}

// perSecond returns how many of a unit are one of the input; false where the input is a time and the
// unit is not one of time.
func perSecond(unit string, in input.Metric) (per float64, known bool) {
	if !inSeconds()[in] {
		return 1, true
	}
	per, known = units[unit]
	return per, known
}

// inSeconds has the inputs that the catalogue has in seconds.
var inSeconds = sync.OnceValue(func() (is [input.NumMetrics]bool) {
	for in := range input.NumMetrics {
		metric, known := catalog.ByName(in.Define().Name)
		is[in] = known && metric.Unit == "s"
	}
	return is
})

func numberOf(point pmetric.NumberDataPoint) float64 {
	if point.ValueType() == pmetric.NumberDataPointValueTypeInt {
		return float64(point.IntValue())
	}
	return point.DoubleValue()
}

func finite(value float64) bool { return !math.IsNaN(value) && !math.IsInf(value, 0) }

// Reason is why a point is not used. The point passes through unchanged.
type Reason uint8

// The reasons.
const (
	// TypeConflict means: a known name with points of another kind, as Ray's gauge
	// twin of a counter.
	TypeConflict Reason = iota
	// UnsupportedTemporality means: neither cumulative nor delta.
	UnsupportedTemporality
	// NotANumber means: a value that is NaN or infinite, or a negative count.
	NotANumber
	// BadHistogram means: bounds out of order, or counts that do not fit them.
	BadHistogram
	// NoTimestamp means: a point without a time.
	NoTimestamp
	// OlderName means: the same series also exists under a newer name.
	OlderName
	// TooLarge means: the attributes of the point, or of its resource, exceed the limits.
	TooLarge
	// SeveralProcesses means: each API server of a server reports the gauge for itself,
	// and none of the values is right for the whole.
	SeveralProcesses
	// UnknownUnit means: times in a unit that is not one of time.
	UnknownUnit

	// NumReasons is the number of reasons, for arrays over them.
	NumReasons
)

// String is the reason as the processor's own telemetry spells it.
func (r Reason) String() string {
	return [NumReasons]string{
		"type_conflict", "unsupported_temporality", "not_a_number", "bad_histogram", "no_timestamp", "older_name", "too_large",
		"several_processes", "unknown_unit",
	}[r]
}

// Report counts what was not used.
type Report [NumReasons]int

const (
	// maxResourceAttributes and maxResourceBytes bound the attributes of a resource.
	// The SDKs of OpenTelemetry stop at 128 attributes.
	maxResourceAttributes = 512
	maxResourceBytes      = 64 << 10
	// maxPointBytes bounds the attributes of a point. Each derived point has them too.
	maxPointBytes = 8 << 10
)

func tooLarge(attributes pcommon.Map) bool {
	return attributes.Len() > maxResourceAttributes || identity.Size(attributes) > maxResourceBytes
}

func pointsOf(metric pmetric.Metric) int {
	switch metric.Type() {
	case pmetric.MetricTypeGauge:
		return metric.Gauge().DataPoints().Len()
	case pmetric.MetricTypeSum:
		return metric.Sum().DataPoints().Len()
	case pmetric.MetricTypeHistogram:
		return metric.Histogram().DataPoints().Len()
	case pmetric.MetricTypeExponentialHistogram:
		return metric.ExponentialHistogram().DataPoints().Len()
	case pmetric.MetricTypeSummary:
		return metric.Summary().DataPoints().Len()
	case pmetric.MetricTypeEmpty:
	}
	return 0
}
