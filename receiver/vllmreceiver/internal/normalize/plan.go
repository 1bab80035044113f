package normalize

import (
	"iter"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
)

// Reason says why samples of a body do not become points, or why a point that
// the plan has is not emitted in one scrape. Package emit uses the same enum,
// and the telemetry counts by it.
type Reason uint8

// The reasons for dropped points.
const (
	ReasonNone Reason = iota
	// ReasonAlias: an older name of a metric that the body also has by its newer
	// name.
	ReasonAlias
	// ReasonDisabled: the metric is switched off.
	ReasonDisabled
	// ReasonTypeConflict: Ray's gauge twin of a counter.
	ReasonTypeConflict
	// ReasonInfo: an info family whose labels became numbers and resource
	// attributes.
	ReasonInfo
	// ReasonDuplicate: two series of a family are equal after their labels were
	// unified.
	ReasonDuplicate
	// ReasonUnsupported: an OpenMetrics gauge histogram, which OTLP cannot carry.
	ReasonUnsupported
	// ReasonAdapterLimit: more LoRA adapters than the limit.
	ReasonAdapterLimit
	// ReasonNoInfBucket: a histogram without a +Inf bucket.
	ReasonNoInfBucket
	// ReasonNoCount: a histogram or summary without a _count.
	ReasonNoCount
	// ReasonBucketDecrease: cumulative buckets that fall.
	ReasonBucketDecrease
	// ReasonBucketNaN: a bucket that is not a number.
	ReasonBucketNaN
	// ReasonCountBelowBucket: a count that is less than the +Inf bucket.
	ReasonCountBelowBucket
	// ReasonCountAboveBucket: a count that is more than the +Inf bucket.
	ReasonCountAboveBucket
	// ReasonBadCount: a count that is negative, fractional or not a number.
	ReasonBadCount
	// ReasonCounterNaN: a counter that is not a number.
	ReasonCounterNaN
	// ReasonSentinel: the server's own mark for "not available", -1.
	ReasonSentinel
	// ReasonSeriesLimit: the target has more series than the limit.
	ReasonSeriesLimit
	// ReasonOtherProcess: the answer of another server process than the one whose
	// points are emitted.
	ReasonOtherProcess
	reasonEnd
)

// NumReasons is the length of an array that is indexed by Reason.
const NumReasons = int(reasonEnd)

var reasonNames = [reasonEnd]string{
	"", "alias", "disabled", "type_conflict", "info", "duplicate", "unsupported",
	"adapter_limit", "no_inf_bucket", "no_count", "bucket_decrease", "bucket_nan",
	"count_below_bucket", "count_above_bucket", "bad_count", "counter_nan",
	"sentinel", "series_limit", "other_process",
}

// String returns the reason as the telemetry spells it.
func (r Reason) String() string { return reasonNames[r] }

// Reasons returns every reason but ReasonNone.
func Reasons() []Reason {
	out := make([]Reason, 0, reasonEnd-1)
	for r := ReasonNone + 1; r < reasonEnd; r++ {
		out = append(out, r)
	}
	return out
}

// Plan says what to emit for the bodies of one layout.
type Plan struct {
	Metrics []Metric
	// Points is the number of points of all metrics together.
	Points int
	// ProcessStart is the slot of process_start_time_seconds where it tells when
	// the vLLM process began, else exposition.NoSlot.
	ProcessStart int
	// Server is what the body shows its server to be.
	Server ServerKind
	// Resource are attributes of the server as a whole: what it was recognised
	// as, and what its info families say, only values that are equal on all
	// engines.
	Resource []exposition.Label
	// Adapters are the label sets of vllm:lora_requests_info. The newest of each
	// process says which adapters are in use.
	Adapters []AdapterSet
	// Unknown are the wire names of the families that the catalogue lacks.
	Unknown []string
	// Conflicts are the wire names of the families whose TYPE contradicts the
	// catalogue.
	Conflicts []string
	// Dropped counts the series that do not become points.
	Dropped [NumReasons]int
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

// AdapterSet is one label set of vllm:lora_requests_info.
type AdapterSet struct {
	// Slot is the time at which the set was written, in Unix seconds.
	Slot int
	// Process numbers the server processes behind a Ray agent; 0 elsewhere.
	Process int
}

// Metric is one metric to emit.
type Metric struct {
	Name, Description, Unit string
	// Family is the name of the family on the wire.
	Family string
	Kind   catalog.Kind
	// Sentinel is true where -1 means "not available".
	Sentinel bool
	// Engine is true for vLLM's own families, which the catalogue knows: their
	// counters speak for the server process.
	Engine bool
	Points []Point
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
	// Parts are the series that add up to this point: mostly one.
	Parts []exposition.Series
	// Process separates the series of several server processes in one body (a
	// Ray agent's); a reset of one says nothing about the others.
	Process string
	// Constant is the number of a point that comes from a label, if Parts is
	// empty.
	Constant float64
	// AdapterSets, where not nil, limits the point to scrapes in which a
	// process's newest adapter set is one of these indices into Plan.Adapters.
	AdapterSets []int
	// Bounds, where not nil, are the bucket bounds to fold a histogram into; each
	// is also a bound of every part.
	Bounds []float64
}
