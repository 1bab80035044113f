package collect

import (
	"math"
	"slices"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/identity"
)

// Read returns the batches in metrics, sorted by time, and counts the points of known
// metrics that it cannot use.
func Read(metrics pmetric.Metrics) ([]Batch, Report) {
	c := collector{index: map[batchKey]int{}, evidenceOf: map[string]Evidence{}}
	resources := metrics.ResourceMetrics()
	for i := range resources.Len() {
		c.readResource(i, resources.At(i))
	}
	c.dropOlderGenerations()
	c.dropContradictions()
	for i := range c.batches {
		c.batches[i].Evidence = c.evidenceOf[c.batches[i].Resource]
	}
	slices.SortStableFunc(c.batches, func(a, b Batch) int {
		switch {
		case a.Time < b.Time:
			return -1
		case a.Time > b.Time:
			return 1
		}
		return 0
	})
	return c.batches, c.report
}

type batchKey struct {
	resource string
	time     int64
}

type collector struct {
	batches []Batch
	// pending has the same length as batches.
	pending []pending
	index   map[batchKey]int
	report  Report
	// contradictions is true where a sample must be removed.
	contradictions bool
	// evidenceOf is by resource.
	evidenceOf map[string]Evidence

	// These are of the current resource.
	source   int
	resource string
	// tooLarge is true for a resource that is not read. points is the number of points of
	// a resource until its first batch begins.
	tooLarge bool
	points   int
	evidence Evidence

	// These are of the current point.
	rest   []Attribute
	key    []byte
	labels [maxLabels]string
	// last is the group of the previous point.
	last int
	// most is the number of samples of the largest batch so far.
	most int
}

func (c *collector) readResource(index int, rm pmetric.ResourceMetrics) {
	c.source, c.resource, c.points, c.evidence = index, "", 0, Evidence{}
	c.tooLarge = tooLarge(rm.Resource().Attributes())
	scopes := rm.ScopeMetrics()
	for i := range scopes.Len() {
		c.evidence.scope(scopes.At(i).Scope().Name())
		metrics := scopes.At(i).Metrics()
		for j := range metrics.Len() {
			metric := metrics.At(j)
			n, known := lookUp(metric.Name())
			if !c.tooLarge {
				c.evidence.name(metric.Name())
				c.evidence.process(metric)
			}
			switch {
			case known && c.tooLarge:
				c.report[TooLarge] += pointsOf(metric)
			case c.tooLarge:
			case known:
				c.identify(rm)
				c.readMetric(metric, n)
			case isCacheConfig(metric.Name()):
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
	all.Join(&c.evidence)
	c.evidenceOf[c.resource] = all
}

// identify computes the identity of the resource at its first usable point.
func (c *collector) identify(rm pmetric.ResourceMetrics) {
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

func (c *collector) readMetric(metric pmetric.Metric, n named) {
	kind := n.input.Define().Kind
	switch metric.Type() {
	case pmetric.MetricTypeGauge:
		if n.level = kind == Counter && n.input.Define().Level != ""; n.level {
			n.rank = rankLevel
		}
		c.readNumbers(metric.Gauge().DataPoints(), n, kind == Gauge || n.level, false)
	case pmetric.MetricTypeSum:
		sum := metric.Sum()
		// A sum that can fall, as an up-down counter does, is a gauge here.
		fits := kind == Counter && sum.IsMonotonic() ||
			kind == Gauge && !sum.IsMonotonic() && sum.AggregationTemporality() == pmetric.AggregationTemporalityCumulative
		if fits && sum.AggregationTemporality() == pmetric.AggregationTemporalityUnspecified {
			c.report[UnsupportedTemporality] += sum.DataPoints().Len()
			return
		}
		c.readNumbers(sum.DataPoints(), n, fits, sum.AggregationTemporality() == pmetric.AggregationTemporalityDelta)
	case pmetric.MetricTypeHistogram:
		histogram := metric.Histogram()
		points := histogram.DataPoints()
		switch {
		case kind != Distribution:
			c.report[TypeConflict] += points.Len()
		case histogram.AggregationTemporality() == pmetric.AggregationTemporalityUnspecified:
			c.report[UnsupportedTemporality] += points.Len()
		default:
			c.readHistograms(points, n, histogram.AggregationTemporality() == pmetric.AggregationTemporalityDelta)
		}
	case pmetric.MetricTypeExponentialHistogram:
		c.report[TypeConflict] += metric.ExponentialHistogram().DataPoints().Len()
	case pmetric.MetricTypeSummary:
		c.report[TypeConflict] += metric.Summary().DataPoints().Len()
	case pmetric.MetricTypeEmpty:
	}
}

func (c *collector) readNumbers(points pmetric.NumberDataPointSlice, n named, fits, delta bool) {
	if !fits {
		c.report[TypeConflict] += points.Len()
		return
	}
	for i := range points.Len() {
		point := points.At(i)
		sample := Sample{
			Input: n.input, Delta: delta, Gone: point.Flags().NoRecordedValue(),
			Start: int64(point.StartTimestamp()), Older: n.older, Level: n.level, rank: n.rank,
		}
		if !sample.Gone {
			if point.ValueType() == pmetric.NumberDataPointValueTypeInt {
				sample.Value = float64(point.IntValue())
			} else {
				sample.Value = point.DoubleValue()
			}
			if !finite(sample.Value) || (sample.Value < 0 && n.input.Define().Kind == Counter) {
				c.report[NotANumber]++
				c.addUnread(point.Timestamp(), point.Attributes(), n.input)
				continue
			}
		}
		c.add(point.Timestamp(), point.Attributes(), sample)
	}
}

func (c *collector) readHistograms(points pmetric.HistogramDataPointSlice, n named, delta bool) {
	for i := range points.Len() {
		point := points.At(i)
		sample := Sample{
			Input: n.input, Delta: delta, Gone: point.Flags().NoRecordedValue(),
			Start: int64(point.StartTimestamp()), Older: n.older, rank: n.rank,
		}
		if !sample.Gone {
			sample.Count, sample.Sum, sample.HasSum = float64(point.Count()), point.Sum(), point.HasSum() && finite(point.Sum())
			if !sample.readBuckets(point) {
				c.report[BadHistogram]++
				c.addUnread(point.Timestamp(), point.Attributes(), n.input)
				continue
			}
		}
		c.add(point.Timestamp(), point.Attributes(), sample)
	}
}

// readBuckets copies the buckets. A point without any has one open bucket.
func (s *Sample) readBuckets(point pmetric.HistogramDataPoint) bool {
	bounds, counts := point.ExplicitBounds(), point.BucketCounts()
	if counts.Len() == 0 && bounds.Len() == 0 {
		s.Counts = []float64{s.Count}
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
	both := make([]float64, 2*n+1)
	s.Bounds, s.Counts = both[:n:n], both[n:]
	for i := range n {
		s.Bounds[i] = bounds.At(i)
		if !finite(s.Bounds[i]) || (i > 0 && s.Bounds[i] <= s.Bounds[i-1]) {
			return false
		}
	}
	left := point.Count()
	for i := range counts.Len() {
		if counts.At(i) > left {
			// This also happens where a body changed while it was scraped: the last
			// bucket would be negative and wraps around to a huge number.
			return false
		}
		s.Counts[min(i, n)] += float64(counts.At(i))
		left -= counts.At(i)
	}
	return left == 0
}

func finite(value float64) bool { return !math.IsNaN(value) && !math.IsInf(value, 0) }
