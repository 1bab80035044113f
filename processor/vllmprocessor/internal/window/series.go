package window

import (
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// series is one series of a resource. A counter or a gauge has one number. A
// distribution has the counts of its buckets and then its sum.
type series struct {
	label input.Label
	delta bool
	// ended is true after a point that ends the series.
	ended bool
	// older is true where the newest point has the name of an older metric.
	older bool
	// level is true where the newest point belongs to a gauge that counts.
	level bool
	// units is what the series takes of the limit.
	units int32
	// found is the number of the newest batch with a point of it.
	found int64
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
	totals totals
	// more is nil for most series.
	more *more
}

// more is what few series have.
type more struct {
	// offset is the running total at the last reset: total = raw + offset. raw is then the
	// newest point of a cumulative series as it was received. Without an offset it is the
	// newest total.
	offset, raw []float64
	// noSum is the number of the newest batch in which a distribution had no sum.
	noSum int64
	// step is the increase since the previous point, which was at since in Unix
	// nanoseconds. It is stored only for the inputs in Settings.Steps.
	step  []float64
	since int64
	// before has the totals of the buckets before the last change of the bounds.
	before *series
}

// nothing is more of a series that has none.
var nothing more

func (s *series) rest() *more {
	if s.more == nil {
		return &nothing
	}
	return s.more
}

func (s *series) own() *more {
	if s.more == nil {
		s.more = &more{}
	}
	return s.more
}

// cumulative reports whether the points of a series are counts of the server since its
// beginning. Canaries are counted by the receiver.
func (s *series) cumulative(in input.Metric) bool {
	return !s.delta && in.Define().Kind != input.Gauge && !in.OfReceiver()
}

// received returns the newest point of a cumulative series as it was received. It must not
// be changed.
func (s *series) received(into []float64) []float64 {
	if m := s.rest(); m.offset != nil {
		return m.raw
	}
	return s.totals.at(s.newest, into)
}

// shift changes the offset of a cumulative series, whose newest point is raw.
func (s *series) shift(offset, raw []float64) {
	m := s.own()
	m.offset, m.raw = offset, append(m.raw[:0], raw...)
}

func (s *series) unshift() {
	if s.more != nil {
		s.more.offset, s.more.raw = nil, nil
	}
}

// afterGap returns what a series still has after a gap; nil where it has nothing.
func (m *more) afterGap() *more {
	if m.noSum == 0 {
		return nil
	}
	return &more{noSum: m.noSum, since: m.since}
}

// counts reports whether a series with a counter needs no gauge in its place: the
// counter is in this batch or the previous one, or it sends deltas and has not changed.
func (s *series) counts(seq int64) bool {
	return !s.level && !s.ended && (s.delta || s.newest >= seq-1)
}

// generations bounds the chain of earlier bounds. A server that changes its buckets more
// often than this within a window loses the oldest counts.
const generations = 4

// total returns the running total at a batch, which may be in the memory of into. It is nil
// where the total is not known, and zero for the time before the series existed.
func (s *series) total(seq int64, zero, into []float64) []float64 {
	switch {
	case seq < s.known:
		return nil
	case seq < s.created:
		return zero[:s.totals.stride]
	case seq >= s.newest:
		return s.totals.at(s.newest, into)
	case seq < s.totals.oldest(s.newest):
		return nil
	}
	return s.totals.at(seq, into)
}

// number returns the newest total of a series with one number.
func (s *series) number() float64 { return s.totals.number(s.newest) }

// fell reports whether a cumulative point is lower than the one before it, which only a
// restart explains. The sum of a distribution is not compared: negative observations
// lower it.
func (s *series) fell(values, bounds []float64) bool {
	if !same(s.bounds, bounds) {
		return true
	}
	counts := len(values)
	if s.bounds != nil || counts > 1 {
		counts--
	}
	var b buffer
	before := s.received(b[:])
	for i := range counts {
		if values[i] < before[i] {
			return true
		}
	}
	return false
}

// same reports whether two distributions have equal bounds. Most share them.
func same(a, b []float64) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || slices.Equal(a, b))
}

func (u *update) fits(units int) bool {
	if u.units+units > u.most {
		u.reclaim()
	}
	return u.units+units <= u.most
}

// create adds a series without a point to its group; nil where there is no room for it.
func (u *update) create(sample *input.Sample) *series {
	units := sizeOf(sample.Label, sample.Bounds)
	if !u.fits(units) {
		u.report.Ignored[SeriesLimit]++
		u.report.Lacking += units
		return nil
	}
	g := u.admit(sample.Group, units)
	if g == nil {
		return nil
	}
	s := &series{label: sample.Label, found: u.seq}
	g.include(sample.Input, s)
	if sample.Input.ByModel() && g.whole == nil && g.rollup == nil {
		g.whole = u.join(g, g.Common(), true)
	}
	u.Resource.series++
	return s
}

// remember records that a series exists which is not stored. Its first usable point is
// not its first event, so it must not count from 0.
func (u *update) remember(sample *input.Sample) {
	hint := 0
	if sample.Input.Define().Kind == input.Gauge || u.find(sample, &hint) != nil {
		return
	}
	if g := u.group(sample.Group); g != nil {
		g.existed.add(hashOfSeries(labelled{sample.Input, sample.Label}), unnumbered)
		return
	}
	u.existed.add(hashOf(u.batch.Groups[sample.Group].Key), unnumbered)
}

// fresh reports whether a series is proven to be new. Either its start lies after the
// previous batch, or it is not among the removed series and none of these have been
// forgotten.
func (u *update) fresh(sample *input.Sample, g *Group) bool {
	if sample.Start >= *u.times.at(u.seq - 1) && sample.Start < u.batch.Time {
		return true
	}
	if u.answered == 0 || u.answered == u.seq {
		// The server has not answered before, so the series may be old.
		return false
	}
	return !g.returned && !g.existed.unknown(hashOfSeries(labelled{sample.Input, sample.Label}))
}

func (u *update) recordAnswer() {
	if u.answered == 0 && slices.ContainsFunc(u.batch.Samples, func(s input.Sample) bool {
		return !s.Gone && !s.Input.OfReceiver()
	}) {
		u.answered = u.seq
	}
}
