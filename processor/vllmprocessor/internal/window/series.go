package window

import (
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
)

// series is one series of a resource. A counter or a gauge has one number. A
// distribution has the counts of its buckets and then its sum.
type series struct {
	label collect.Label
	delta bool
	// ended is true after a point that ends the series.
	ended bool
	// units is what the series takes of the limit. found is the number of the newest
	// batch with a point of it.
	units int
	found int64
	// noSum is the number of the newest batch in which a distribution had no sum.
	noSum int64
	// older is true where the newest point has the name of an older metric.
	older bool
	// level is true where the newest point is of a gauge that counts.
	level bool
	// epoch is the epoch of its engine at the newest point.
	epoch int
	// start and time are those of the newest point, in Unix nanoseconds.
	start, time int64
	// known is the first batch at which the total is known. created is the first batch
	// with a place in the ring. Between the two the total is 0, because the series did
	// not exist. newest is the batch of the newest point.
	known, created, newest int64

	// bounds are those of a distribution.
	bounds []float64
	// raw is the newest point of a cumulative series as it was received.
	raw []float64
	// offset is the running total at the last reset: total = raw + offset.
	offset []float64
	totals ring[float64]
	// step is the increase since the previous point, which was at since in Unix
	// nanoseconds. It is stored only for the inputs in Settings.Steps.
	step  []float64
	since int64
	// before has the totals of the buckets before the last change of the bounds.
	before *series
}

// counts reports whether a series with a counter needs no gauge in its place: the
// counter is in this batch or the previous one, or it sends deltas and has not changed.
func (s *series) counts(seq int64) bool {
	return !s.level && !s.ended && (s.delta || s.newest >= seq-1)
}

// generations bounds the chain of earlier bounds. A server that changes its buckets more
// often than this within a window loses the oldest counts.
const generations = 4

// total returns the running total at a batch. It is nil where the total is not known,
// and zero for the time before the series existed.
func (s *series) total(seq int64, zero []float64) []float64 {
	switch {
	case seq < s.known:
		return nil
	case seq < s.created:
		return zero[:s.totals.stride]
	case seq >= s.newest:
		return s.totals.at(s.newest)
	case seq < s.totals.oldest(s.newest):
		return nil
	}
	return s.totals.at(seq)
}

// fill stores the last total for the batches without a point of the series.
func (s *series) fill(seq int64) {
	last := s.totals.at(s.newest)
	for missing := max(s.newest+1, seq-s.totals.places()+1); missing < seq; missing++ {
		copy(s.totals.at(missing), last)
	}
}

// fell reports whether a cumulative point is lower than the one before it, which only a
// restart explains. The sum of a distribution is not compared: negative observations
// lower it.
func (s *series) fell(values, bounds []float64) bool {
	if !slices.Equal(s.bounds, bounds) {
		return true
	}
	counts := len(values)
	if s.bounds != nil || counts > 1 {
		counts--
	}
	for i := range counts {
		if values[i] < s.raw[i] {
			return true
		}
	}
	return false
}
