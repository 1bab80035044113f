package emit

import (
	"cmp"
	"math"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

// scratch is memory that is used again for every histogram.
type scratch struct {
	bounds []float64
	counts []uint64
}

// setBounds writes the bounds of a point, and a count of 0 for each bucket.
func (s *scratch) setBounds(point *normalize.Point) {
	s.bounds = s.bounds[:0]
	if point.Bounds != nil {
		s.bounds = append(s.bounds, point.Bounds...)
	} else {
		for _, bucket := range point.Parts[0].Buckets {
			if !math.IsInf(bucket.UpperBound, 1) {
				s.bounds = append(s.bounds, bucket.UpperBound)
			}
		}
	}
	n := len(s.bounds) + 1
	s.counts = slices.Grow(s.counts[:0], n)[:n]
	clear(s.counts)
}

// histogram checks the buckets of a point and appends it. An inconsistent histogram is
// dropped with its reason, because a repair would invent data.
func (b *builder) histogram(open *openMetric, point *normalize.Point, st *state) normalize.Reason {
	total, sum, hasSum := uint64(0), 0.0, true
	for i := range point.Parts {
		series := &point.Parts[i]
		count, reason := checkBuckets(series, b.values)
		if reason != normalize.ReasonNone {
			return reason
		}
		total += count
		if series.Sum == exposition.NoSlot {
			hasSum = false
		} else {
			sum += b.values[series.Sum]
		}
	}
	b.advance(st, point, float64(total))
	b.fold(point)

	to := open.get().Histogram().DataPoints().AppendEmpty()
	identify(to, point, st.start, b.now)
	to.SetCount(total)
	if hasSum {
		to.SetSum(sum)
	}
	to.ExplicitBounds().FromRaw(b.target.scratch.bounds)
	to.BucketCounts().FromRaw(b.target.scratch.counts)
	b.addExemplars(point, to.Exemplars())
	return normalize.ReasonNone
}

// checkBuckets checks the cumulative buckets of one series and returns its
// count.
func checkBuckets(series *exposition.Series, values []float64) (uint64, normalize.Reason) {
	previous, whole := 0.0, true
	for i := range series.Buckets {
		value := values[series.Buckets[i].Slot]
		if math.IsNaN(value) {
			return 0, normalize.ReasonBucketNaN
		}
		if value < previous {
			return 0, normalize.ReasonBucketDecrease
		}
		whole = whole && isWhole(value)
		previous = value
	}
	// The last bucket is +Inf: the plan has no histogram without it.
	switch count, last := values[series.Count], previous; {
	case !isWhole(count):
		return 0, normalize.ReasonBadCount
	case count < last:
		return 0, normalize.ReasonCountBelowBucket
	case count > last:
		return 0, normalize.ReasonCountAboveBucket
	case !whole:
		return 0, normalize.ReasonBadCount
	}
	return uint64(values[series.Count]), normalize.ReasonNone
}

// isWhole reports whether a value is a count that a float64 holds exactly: not negative,
// fractional, NaN or too large.
func isWhole(value float64) bool {
	const most = 1 << 53
	return value >= 0 && value <= most && value == float64(uint64(value))
}

// fold writes the bounds and counts per bucket of a point into scratch, from
// cumulative buckets and summed over its parts.
func (b *builder) fold(point *normalize.Point) {
	s := &b.target.scratch
	s.setBounds(point)
	if point.Bounds == nil && len(point.Parts) == 1 && len(s.counts) == len(point.Parts[0].Buckets) {
		// The bounds are those of its buckets.
		previous := uint64(0)
		for i := range point.Parts[0].Buckets {
			cumulative := uint64(b.values[point.Parts[0].Buckets[i].Slot])
			s.counts[i] = cumulative - previous
			previous = cumulative
		}
		return
	}
	for i := range point.Parts {
		buckets := point.Parts[i].Buckets
		at, previous := 0, uint64(0)
		for _, bucket := range buckets {
			last := at == len(s.bounds)
			if !last && bucket.UpperBound != s.bounds[at] || last && !math.IsInf(bucket.UpperBound, 1) {
				continue
			}
			cumulative := uint64(b.values[bucket.Slot])
			s.counts[at] += cumulative - previous
			previous = cumulative
			at++
		}
	}
}

// currentAdapterSets marks, for each process, the label set of vllm:lora_requests_info that
// was written last. The value of a set is the time at which it was written, in Unix
// seconds. In multi-process mode vLLM adds up the times of its API servers, so a value near
// a multiple of now is divided by that multiple first. Other programs write 0 or 1, which
// are used as they are. Of equal times an empty set is used where no request runs or waits, else the
// later line.
func currentAdapterSets(s Scrape) []bool {
	if len(s.Plan.Adapters) == 0 {
		return nil
	}
	now := float64(s.Time.Unix())
	written := func(set int) float64 {
		value := s.Snapshot.Values[s.Plan.Adapters[set].Slot]
		if math.IsNaN(value) {
			return math.Inf(-1)
		}
		if servers := math.Round(value / now); servers > 1 {
			value /= servers
		}
		return value
	}
	idle := len(s.Plan.Requests) > 0 && !slices.ContainsFunc(s.Plan.Requests, func(slot int) bool { return s.Snapshot.Values[slot] != 0 })
	newest := map[int]int{}
	for set, a := range s.Plan.Adapters {
		at, ok := newest[a.Process]
		later := cmp.Compare(written(set), written(at))
		if !ok || later > 0 || later == 0 && (!idle || a.Empty || !s.Plan.Adapters[at].Empty) {
			newest[a.Process] = set
		}
	}
	current := make([]bool, len(s.Plan.Adapters))
	for _, set := range newest {
		current[set] = true
	}
	return current
}
