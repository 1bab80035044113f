package window

import "slices"

// series is one series of a resource. A counter and a gauge have one number, a
// distribution the counts of its buckets and, last, its sum.
type series struct {
	label string
	delta bool
	// ended is true after a point that said so.
	ended bool
	// units is what it takes of the limit, found the number of the newest batch that
	// has a point of it.
	units int
	found int64
	// noSum is the number of the newest batch in which a distribution had no sum.
	noSum int64
	// older is true where the newest point came under an older metric's name.
	older bool
	// level is true where the newest point is of a gauge that counts.
	level bool
	// epoch is that of its engine when it was observed last.
	epoch int
	// start and time are those of the newest point, in nanoseconds.
	start, time int64
	// known is the first sequence number whose total is known, created the first
	// with a place in the ring: between the two the total is 0, because the
	// series did not exist. newest is the number of the newest point.
	known, created, newest int64

	// bounds are those of a distribution.
	bounds []float64
	// raw is the newest point as it came, for cumulative series.
	raw []float64
	// offset is what raw lacks to the running total since the last reset.
	offset []float64
	totals ring[float64]
	// step is the increase since the previous point, and since when; only where
	// Settings.Steps asks for it.
	step  []float64
	since int64
	// before is the series with the bounds that it had before the last restart.
	before *series
}

// generations bounds the chain of series with other bounds: a server that
// restarts with new buckets more often than this within a window loses the
// oldest of them.
const generations = 4

// total returns the running total at a sequence number; nil where it is not
// known. zero is returned for the time before the series existed.
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

// fill gives the batches that the series was missing in its last total.
func (s *series) fill(seq int64) {
	last := s.totals.at(s.newest)
	for missing := max(s.newest+1, seq-s.totals.places()+1); missing < seq; missing++ {
		copy(s.totals.at(missing), last)
	}
}

// fell tells whether a cumulative point is lower than the one before it, which
// only a restart explains. The sum of a distribution does not count: negative
// observations lower it.
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
