package collect

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// Read returns the batches in metrics, the older before the newer for each
// resource, and counts the points of known metrics that it cannot use.
func Read(metrics pmetric.Metrics) ([]Batch, Report) {
	c := collector{index: map[batchKey]int{}}
	resources := metrics.ResourceMetrics()
	for i := range resources.Len() {
		c.readResource(i, resources.At(i))
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

type sampleKey struct {
	input Input
	group int
	label string
}

type collector struct {
	batches []Batch
	index   map[batchKey]int
	report  Report

	// Of the resource that is being read.
	source   int
	resource string
	// seen finds the samples that several names of one input could double. It is
	// made only for a body that has such a name.
	seen map[int]map[sampleKey]int

	scratch []Attribute
	key     []byte
	labels  [4]string
	last    int
}

func (c *collector) readResource(index int, rm pmetric.ResourceMetrics) {
	c.source, c.resource, c.seen = index, "", nil
	scopes := rm.ScopeMetrics()
	for i := range scopes.Len() {
		metrics := scopes.At(i).Metrics()
		for j := range metrics.Len() {
			metric := metrics.At(j)
			n, known := lookUp(metric.Name())
			switch {
			case known:
				c.identify(rm.Resource())
				c.readMetric(metric, n)
			case isCacheConfig(metric.Name()):
				c.identify(rm.Resource())
				c.readCacheConfig(metric)
			}
		}
	}
}

// identify settles the resource's identity once there is a point to use.
func (c *collector) identify(resource pcommon.Resource) {
	if c.resource == "" {
		c.resource = Identity(resource.Attributes())
	}
}

// Identity is the key of a resource: service.name, service.instance.id and
// k8s.pod.uid where an instance is named, because other attributes can arrive
// late or change while the server lives; else all attributes.
func Identity(attributes pcommon.Map) string {
	var b strings.Builder
	if instance, named := attributes.Get("service.instance.id"); named && instance.AsString() != "" {
		for _, name := range []string{"service.name", "service.instance.id", "k8s.pod.uid"} {
			if value, ok := attributes.Get(name); ok {
				b.WriteString(value.AsString())
			}
			b.WriteByte(0)
		}
		return b.String()
	}
	names := make([]string, 0, attributes.Len())
	for name := range attributes.All() {
		names = append(names, name)
	}
	slices.Sort(names)
	b.WriteByte(1)
	for _, name := range names {
		value, _ := attributes.Get(name)
		b.WriteString(name)
		b.WriteByte(0)
		b.WriteString(value.AsString())
		b.WriteByte(0)
	}
	return b.String()
}

func (c *collector) readMetric(metric pmetric.Metric, n named) {
	kind := n.input.Define().Kind
	switch metric.Type() {
	case pmetric.MetricTypeGauge:
		c.readNumbers(metric.Gauge().DataPoints(), n, kind == Gauge, false)
	case pmetric.MetricTypeSum:
		sum := metric.Sum()
		// A sum that can fall is a state, as an up-down counter is.
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
			Start: int64(point.StartTimestamp()), Older: n.older, rank: n.rank,
		}
		if !sample.Gone {
			if point.ValueType() == pmetric.NumberDataPointValueTypeInt {
				sample.Value = float64(point.IntValue())
			} else {
				sample.Value = point.DoubleValue()
			}
			if !finite(sample.Value) || (sample.Value < 0 && n.input.Define().Kind == Counter) {
				c.report[NotANumber]++
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
		// A bound at infinity says nothing: the last bucket is open anyway.
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
	var total uint64
	for i := range counts.Len() {
		s.Counts[min(i, n)] += float64(counts.At(i))
		total += counts.At(i)
	}
	return total == point.Count()
}

// readCacheConfig reads the numbers that stand in labels of vLLM's cache
// configuration, for input that did not come from our receiver.
func (c *collector) readCacheConfig(metric pmetric.Metric) {
	var points pmetric.NumberDataPointSlice
	switch metric.Type() {
	case pmetric.MetricTypeGauge:
		points = metric.Gauge().DataPoints()
	case pmetric.MetricTypeSum:
		points = metric.Sum().DataPoints()
	default:
		return
	}
	for i := range points.Len() {
		point := points.At(i)
		if point.Flags().NoRecordedValue() {
			continue
		}
		engine := pcommon.NewMap()
		if value, ok := point.Attributes().Get("engine"); ok {
			engine.PutStr("engine", value.AsString())
		}
		for label, in := range map[string]Input{
			"block_size": KVCacheBlockSize, "num_gpu_blocks": KVCacheBlocks, "kv_cache_size_tokens": CacheConfigTokens,
		} {
			value, ok := point.Attributes().Get(label)
			if !ok {
				continue
			}
			number, err := strconv.ParseFloat(value.AsString(), 64)
			if err != nil || !finite(number) || number < 0 {
				continue // "None" says that it is not set
			}
			c.add(point.Timestamp(), engine, Sample{Input: in, Value: number, rank: rankWire})
		}
	}
}

func finite(value float64) bool { return !math.IsNaN(value) && !math.IsInf(value, 0) }

// add puts a sample into the batch of its time.
func (c *collector) add(timestamp pcommon.Timestamp, attributes pcommon.Map, sample Sample) {
	if timestamp == 0 {
		c.report[NoTimestamp]++
		return
	}
	key := batchKey{c.resource, int64(timestamp)}
	at, known := c.index[key]
	if !known {
		at = len(c.batches)
		c.index[key] = at
		c.batches = append(c.batches, Batch{Resource: c.resource, Time: int64(timestamp)})
	}
	batch := &c.batches[at]
	batch.Source = c.source
	sample.Group, sample.Label = c.place(batch, attributes, sample.Input.Define())
	if c.replaces(at, batch, &sample) {
		return
	}
	batch.Samples = append(batch.Samples, sample)
}

// replaces settles the points of one series under several names: the newest
// name counts. Only a name that is not the catalogue's can have such a twin.
func (c *collector) replaces(at int, batch *Batch, sample *Sample) bool {
	if c.seen == nil {
		c.seen = map[int]map[sampleKey]int{}
	}
	twins := c.seen[at]
	if twins == nil {
		if sample.rank == rankCanonical {
			return false
		}
		twins = make(map[sampleKey]int, len(batch.Samples))
		for i := range batch.Samples {
			s := &batch.Samples[i]
			twins[sampleKey{s.Input, s.Group, s.Label}] = i
		}
		c.seen[at] = twins
	}
	key := sampleKey{sample.Input, sample.Group, sample.Label}
	i, twin := twins[key]
	if !twin {
		twins[key] = len(batch.Samples)
		return false
	}
	if other := &batch.Samples[i]; other.rank != sample.rank {
		c.report[OlderName]++
		if other.rank < sample.rank {
			*other = *sample
		}
		return true
	}
	// The same name twice: the window keeps the first and counts the other.
	return false
}

// place returns the group of a point and the values of the input's own labels.
func (c *collector) place(batch *Batch, attributes pcommon.Map, definition *Definition) (group int, label string) {
	c.scratch = c.scratch[:0]
	labels := c.labels[:len(definition.Labels)]
	clear(labels)
	for name, value := range attributes.All() {
		if alias, imitator := catalog.AttributeAliases[name]; imitator {
			name = alias
		}
		if i := slices.Index(definition.Labels, name); i >= 0 {
			labels[i] = value.AsString()
			continue
		}
		c.scratch = append(c.scratch, Attribute{name, value.AsString()})
	}
	slices.SortFunc(c.scratch, func(a, b Attribute) int { return strings.Compare(a.Name, b.Name) })
	c.key = c.key[:0]
	for _, a := range c.scratch {
		c.key = append(append(append(append(c.key, a.Name...), 0), a.Value...), 0)
	}
	switch len(labels) {
	case 0:
	case 1:
		label = labels[0]
	default:
		label = strings.Join(labels, "\x00")
	}
	// A body goes through the engines metric by metric: the next is likely the
	// one after the last.
	for i := range batch.Groups {
		next := (c.last + 1 + i) % len(batch.Groups)
		if batch.Groups[next].Key == string(c.key) {
			c.last = next
			return next, label
		}
	}
	c.last = len(batch.Groups)
	batch.Groups = append(batch.Groups, Group{Key: string(c.key), Attributes: slices.Clone(c.scratch)})
	return len(batch.Groups) - 1, label
}
