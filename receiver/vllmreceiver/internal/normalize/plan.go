package normalize

import (
	"hash/maphash"
	"iter"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
)

// Reason is why samples of a body do not become points, or why a planned point is not
// emitted in one scrape. Package emit uses the same enum, and self-telemetry counts by
// it.
type Reason uint8

// The reasons for dropped points. metadata.yaml says what each of them means.
const (
	ReasonNone Reason = iota
	ReasonAlias
	ReasonDisabled
	ReasonTypeConflict
	ReasonInfo
	ReasonDuplicate
	ReasonUnsupported
	ReasonAdapterLimit
	ReasonNoInfBucket
	ReasonNoCount
	ReasonBucketDecrease
	ReasonBucketNaN
	ReasonCountBelowBucket
	ReasonCountAboveBucket
	ReasonBadCount
	ReasonCounterNaN
	ReasonCounterNegative
	ReasonSentinel
	ReasonDeviceLimit
	ReasonSeriesLimit
	ReasonOtherProcess
	reasonEnd
)

// NumReasons is the length of an array that is indexed by Reason.
const NumReasons = int(reasonEnd)

var reasonNames = [reasonEnd]string{
	"", "alias", "disabled", "type_conflict", "info", "duplicate", "unsupported",
	"adapter_limit", "no_inf_bucket", "no_count", "bucket_decrease", "bucket_nan",
	"count_below_bucket", "count_above_bucket", "bad_count", "counter_nan",
	"counter_negative", "sentinel", "device_limit", "series_limit", "other_process",
}

// String returns the reason as the value of the attribute `reason` in self-telemetry.
func (r Reason) String() string { return reasonNames[r] }

// Reasons returns every reason but ReasonNone.
func Reasons() []Reason {
	out := make([]Reason, 0, reasonEnd-1)
	for r := ReasonNone + 1; r < reasonEnd; r++ {
		out = append(out, r)
	}
	return out
}

// Plan is what to emit for the bodies of one layout.
type Plan struct {
	Metrics []Metric
	// Points is the number of points of all metrics together.
	Points int
	// ProcessStart is the slot of process_start_time_seconds if that is the start of
	// the vLLM process, else exposition.NoSlot.
	ProcessStart int
	// Server is the kind of the server.
	Server ServerKind
	// Resource are attributes of the whole server: its kind, and those values of its
	// info families that are equal on all engines.
	Resource []exposition.Label
	// Workloads are the containers that use the GPUs of an exporter. Metrics has only the
	// points of the exporter's own resource then.
	Workloads []Workload
	// Adapters are the label sets of vllm:lora_requests_info. The newest set of each
	// process has the adapters in use.
	Adapters []AdapterSet
	// Requests are the slots of how many requests run and wait, where there are Adapters.
	Requests []int
	// Unknown are the wire names of the families that the catalogue does not have.
	Unknown []string
	// Conflicts are the wire names of the families whose TYPE contradicts the
	// catalogue.
	Conflicts []string
	// Dropped counts the series that do not become points.
	Dropped [NumReasons]int
	// signs are what the body shows of the server besides its metrics.
	signs sign
	// present are the hashes of all series of the body, sorted.
	present []SeriesKey
}

// All yields every point with its metric, in the order of the metrics. The n-th
// point has the index n.
func (p *Plan) All() iter.Seq2[*Metric, *Point] {
	return func(yield func(*Metric, *Point) bool) {
		for m := range p.Metrics {
			metric := &p.Metrics[m]
			for i := range metric.Points {
				if !yield(metric, &metric.Points[i]) {
					return
				}
			}
		}
	}
}

// number gives the points of a plan their places.
func (p *Plan) number() {
	for _, point := range p.All() {
		point.Index = p.Points
		p.Points++
	}
}

// AdapterSet is one label set of vllm:lora_requests_info.
type AdapterSet struct {
	// Slot is the time at which the set was written, in Unix seconds.
	Slot int
	// Process numbers the server processes behind a Ray agent; 0 elsewhere.
	Process int
	// Empty is true where it names no adapter.
	Empty bool
}

// Metric is one metric to emit.
type Metric struct {
	Name, Description, Unit string
	// Family is the name of the family on the wire.
	Family string
	Kind   catalog.Kind
	// Sentinel is true where -1 means "not available".
	Sentinel bool
	// Engine is true for vLLM's own families of the catalogue. A reset of their
	// counters is a restart of the server process.
	Engine bool
	// Baseline is true if the program that was scraped does not count by itself but reads
	// a count that is older. Then the first value of a series is never an increase.
	Baseline bool
	Points   []Point
}

// SeriesKey identifies a series over scrapes and plans. It is a hash of the metric's
// name and kind and of the attributes: what is remembered of a series must not grow
// with its labels.
type SeriesKey uint64

// Point is one data point to emit.
type Point struct {
	// Key identifies the point's series.
	Key SeriesKey
	// Index is the place of the point among all points of its plan, from 0.
	Index      int
	Attributes []exposition.Label
	// Parts are the series that add up to this point: usually one.
	Parts []exposition.Series
	// Process identifies the server process of the series where a body has several, as
	// that of a Ray agent. The processes restart independently.
	Process string
	// Constant is the number of a point without Parts. It was read from a label.
	Constant float64
	// AdapterSets are indices into Plan.Adapters. If it is not nil, the point is emitted
	// only while one of these sets is the newest of its process.
	AdapterSets []int
	// Convert, if not nil, turns the number on the wire into that of the metric.
	Convert *Conversion
	// Bounds, if not nil, are the bucket bounds to which a histogram is reduced. Every
	// part has all of them.
	Bounds []float64
	// Unused, if not empty, are series with one Value each. While they and the point are 0, the server does not use
	// what the point counts, and the point is not emitted.
	Unused []exposition.Series
}

// seed makes the hashes of series hard to collide on purpose.
var seed = maphash.MakeSeed()

// pointKey identifies a series by the name and kind of its metric and its labels. It
// is a hash, so that its size does not depend on the labels. The separator is the byte
// 0xff: it is not valid UTF-8, so no label contains it.
func pointKey(name string, kind catalog.Kind, labels []exposition.Label) SeriesKey {
	var h maphash.Hash
	h.SetSeed(seed)
	_, _ = h.WriteString(name)
	_ = h.WriteByte(byte(kind))
	for i := range labels {
		_ = h.WriteByte(0xff)
		_, _ = h.WriteString(labels[i].Name)
		_ = h.WriteByte(0xff)
		_, _ = h.WriteString(labels[i].Value)
	}
	return SeriesKey(h.Sum64())
}

// wireSeries is the kind in the keys of series as the body has them, without regard to
// their kind.
const wireSeries catalog.Kind = 0xff

// presence returns the sorted hashes of all series of a layout, including those that
// do not become points, such as a histogram without its last bucket.
func presence(layout *exposition.Layout) []SeriesKey {
	n := 0
	for i := range layout.Families {
		n += len(layout.Families[i].Series)
	}
	present := make([]SeriesKey, 0, n)
	for i := range layout.Families {
		family := &layout.Families[i]
		for j := range family.Series {
			present = append(present, pointKey(family.Name, wireSeries, family.Series[j].Labels))
		}
	}
	slices.Sort(present)
	return present
}

// Has reports whether the bodies of this plan have one of the series of a point, under
// whatever name this plan emits it.
func (p *Plan) Has(metric *Metric, point *Point) bool {
	for i := range point.Parts {
		if _, found := slices.BinarySearch(p.present, pointKey(metric.Family, wireSeries, point.Parts[i].Labels)); found {
			return true
		}
	}
	return false
}
