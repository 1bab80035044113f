package window

import (
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// update adds one batch to a resource in two passes. The first pass finds restarts,
// which any point of the batch can show. The second applies the values.
type update struct {
	*Resource
	batch *input.Batch
	// most is the limit of the units of the resource.
	most   int
	report *Report
	// reclaimed is true once reclaim has run.
	reclaimed bool
	// ending has the groups with a series that ends in the batch.
	ending map[*Group]bool

	groups []*Group
	series []*series
	values []float64
}

func (u *update) run() {
	u.groups = make([]*Group, len(u.batch.Groups))
	u.series = make([]*series, len(u.batch.Samples))
	hint := 0
	for i := range u.batch.Samples {
		sample := &u.batch.Samples[i]
		if s := u.find(sample, &hint); s != nil {
			u.series[i] = s
			if !sample.Gone {
				s.found = u.seq
			}
		}
	}
	u.restarts()
	for i := range u.batch.Samples {
		sample, s := &u.batch.Samples[i], u.series[i]
		switch {
		case !sample.Gone:
			u.apply(sample, s)
		case s != nil && s.time < u.batch.Time:
			s.ended = true
			u.report.Changed = true
			u.report.Used++
		}
	}
	u.recordAnswer()
	for i := range u.batch.Unread {
		u.remember(&u.batch.Unread[i])
	}
	u.contradictions()
	for _, g := range u.groups {
		if g != nil {
			g.ended = !g.alive()
			u.inspect(g)
		}
	}
}

func (u *update) contradictions() {
	for i := range u.batch.Contradicted {
		g := u.group(u.batch.Contradicted[i].Group)
		if g == nil {
			continue
		}
		if g.unclear != u.seq {
			g.unclear, g.contradicted = u.seq, g.contradicted[:0]
		}
		if in := u.batch.Contradicted[i].Input; !slices.Contains(g.contradicted, in) {
			g.contradicted = append(g.contradicted, in)
		}
	}
}

// alive reports whether at least one series with a value in the newest batch of the
// group has not ended.
func (g *Group) alive() bool {
	return g.inputs.any(func(s *series) bool { return s.newest == g.seq && !s.ended })
}

func (u *update) find(sample *input.Sample, hint *int) *series {
	g := u.group(sample.Group)
	if g == nil {
		return nil
	}
	return g.find(sample.Input, sample.Label, hint)
}

// stale reports whether the previous point of a series is too old to be compared
// with.
func (u *update) stale(s *series) bool {
	return u.batch.Time-s.time > int64(u.settings.MaxStaleness) || s.newest < u.base
}

// numbers returns the numbers of a sample in the form of a series. The slice is valid
// until the next call.
func (u *update) numbers(sample *input.Sample) []float64 {
	u.values = u.values[:0]
	if sample.Input.Define().Kind != input.Distribution {
		u.values = append(u.values, sample.Value)
		return u.values
	}
	sum := sample.Sum
	if !sample.HasSum {
		sum = 0
	}
	u.values = append(append(u.values, sample.Counts...), sum)
	return u.values
}

func (u *update) apply(sample *input.Sample, s *series) {
	kind := sample.Input.Define().Kind
	if len(sample.Bounds) > maxBounds {
		u.report.Ignored[TooManyBuckets]++
		return
	}
	if s == nil {
		// An earlier point of this batch may have created it.
		hint := 0
		s = u.find(sample, &hint)
	}
	values := u.numbers(sample)
	if s == nil {
		if s = u.create(sample); s == nil {
			u.remember(sample)
			return
		}
	} else if s.time == u.batch.Time || sample.Level && s.counts(u.seq) {
		u.report.Ignored[Duplicate]++
		return
	}
	g := u.group(sample.Group)
	switch {
	case s.totals.stride == 0:
		// Servers create counters at the first event, so a new one of a known resource counts from 0.
		u.forget(s, sample, values)
		if kind != input.Gauge && u.base < u.seq && (sample.Delta || u.fresh(sample, g)) {
			u.countFromZero(s, sample, values)
		}
		if kind != input.Gauge && !sample.Level {
			g.engine.observe(u.seq)
		}
	case s.level && sample.Delta && !sample.Level && s.newest == u.seq-1 && !u.stale(s):
		// The gauge has counted up to the previous batch, and the delta begins there.
		s.delta = true
		s.unshift()
		u.accumulate(s, g, sample, values)
	case s.delta && sample.Delta && s.newest < u.base && u.base < u.seq:
		// Senders of deltas may leave out zeros, so a silent series has not changed.
		u.forget(s, sample, values)
		u.countFromZero(s, sample, values)
	case s.delta != sample.Delta || s.level != sample.Level || s.newest < u.base || (u.stale(s) && !s.delta):
		u.forget(s, sample, values)
	case kind == input.Gauge:
		u.place(s, sample)
		s.totals.set(u.seq, values)
	default:
		u.accumulate(s, g, sample, values)
	}
	s.epoch, s.start, s.time, s.newest, s.ended = g.engine.epoch, sample.Start, u.batch.Time, u.seq, false
	s.older, s.level = sample.Older, sample.Level
	g.recordDelta(sample)
	if kind == input.Distribution && !sample.HasSum {
		s.own().noSum = u.seq
	}
	g.seq = u.seq
	u.report.Used++
}

// countFromZero counts a series that was 0 at the batch before, and since the oldest.
func (u *update) countFromZero(s *series, sample *input.Sample, values []float64) {
	s.totals.set(u.seq, values)
	s.known = u.base
	u.storeStep(s, sample.Input, *u.times.at(u.seq - 1), values, nil)
}

// forget begins a series with a baseline: a new one, and one whose previous value is too old to
// compute an increase.
func (u *update) forget(s *series, sample *input.Sample, values []float64) {
	// The earlier totals are not read again. Where they stayed, lower counts would change the
	// base of all of them at each batch that a server sends after a gap.
	s.totals = totals{stride: len(values)}
	s.totals.reserve(u.seq-1, 2)
	s.known, s.created, s.bounds, s.delta = u.seq, u.seq, sample.Bounds, sample.Delta
	if s.more = s.rest().afterGap(); sample.Delta {
		values = u.zeros(len(values))
	}
	s.totals.set(u.seq, values)
	u.resize(s)
}

// place makes room for the newest numbers of a series.
func (u *update) place(s *series, sample *input.Sample) {
	keep := u.reach(sample.Input)
	s.totals.reserve(s.newest, min(keep, u.seq-s.created+1))
	s.totals.fill(s.newest, u.seq)
	if before := s.rest().before; before != nil && before.newest <= u.seq-keep {
		s.more.before = nil
	}
}

// reach is the number of batches for which the totals of an input are stored.
func (u *update) reach(in input.Metric) int64 {
	switch in {
	case input.PromptTokens, input.RequestSuccess, input.TimeToFirstToken, input.RequestPromptTokens, input.Running:
		return u.keepLong // They are read over the long window.
	case input.GenerationTokens, input.InterTokenLatency:
		if u.evidence.Signs.Has(input.LateFirstTokens) {
			return u.keepLong // They count the first tokens.
		}
	}
	return u.keep
}

// accumulate continues the running total of a counter or distribution.
func (u *update) accumulate(s *series, g *Group, sample *input.Sample, values []float64) {
	restarted := !sample.Delta && s.epoch != g.engine.epoch
	if sample.Input.OfReceiver() {
		restarted = !sample.Delta && s.fell(values, sample.Bounds) // That of the receiver, not of the server.
	}
	if !same(s.bounds, sample.Bounds) {
		// The old buckets remain with their counts. The new ones begin at 0.
		before, keep := *s, u.reach(sample.Input)
		u.forget(s, sample, values)
		s.known, s.own().before = before.known, &before
		s.totals.set(u.seq, values)
		for depth, older := 0, s; older != nil; depth, older = depth+1, older.rest().before {
			next := older.rest().before
			if next != nil && (depth == generations || next.newest <= u.seq-keep) {
				older.more.before = nil
			}
		}
		u.storeStep(s, sample.Input, s.time, values, nil)
		return
	}
	u.place(s, sample)
	steps := u.settings.Steps[sample.Input]
	if m := s.rest(); !sample.Delta && !restarted && m.offset == nil && !steps && !(sample.Level && values[0] < s.number()) {
		// The total of a counter that has not begun again is the point itself.
		s.totals.set(u.seq, values)
		return
	}
	var b buffer
	// The place of the last total may be the one of the new total.
	last := slices.Clone(s.totals.at(s.newest, b[:]))
	total := make([]float64, len(values))
	if sample.Delta {
		for i, v := range values {
			total[i] = last[i] + v
		}
	} else {
		offset := s.rest().offset
		switch {
		case restarted:
			offset = last
		case sample.Level && values[0] < s.received(b[:])[0]:
			// A gauge that counts may fall without a restart: it adds nothing then.
			offset = []float64{last[0] - values[0]}
		}
		copy(total, values)
		if offset != nil {
			for i := range total {
				total[i] += offset[i]
			}
			s.shift(offset, values)
		}
	}
	s.totals.set(u.seq, total)
	u.storeStep(s, sample.Input, s.time, total, last)
}

// maxBounds is the most bounds of a distribution. Servers have a few dozen. The cap
// protects against hostile ones.
const maxBounds = 1000

// storeStep stores what a distribution counted since its last point, at the time since
// in Unix nanoseconds.
func (u *update) storeStep(s *series, in input.Metric, since int64, total, last []float64) {
	if !u.settings.Steps[in] {
		return
	}
	m := s.own()
	m.since = since
	m.step = append(m.step[:0], total...)
	for i := range last {
		m.step[i] -= last[i]
	}
}
