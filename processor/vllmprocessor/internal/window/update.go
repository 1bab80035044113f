package window

import (
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
)

// update takes one batch into a resource, in two passes: what has restarted is
// known only when all points have been looked at.
type update struct {
	*Resource
	batch  *collect.Batch
	room   int
	report *Report

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
		u.series[i] = u.find(sample, &hint)
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
		}
	}
	for _, g := range u.groups {
		if g != nil {
			g.ended = !g.alive(u.seq)
		}
	}
}

// alive tells whether a series of the group has a value now.
func (g *Group) alive(seq int64) bool {
	for in := range g.inputs {
		for _, s := range g.inputs[in] {
			if s.newest == seq && !s.ended {
				return true
			}
		}
	}
	return false
}

// group returns the state of a group of the batch; nil where it is new and make
// is false.
func (u *update) group(i int, create bool) *Group {
	if u.groups[i] != nil {
		return u.groups[i]
	}
	from := &u.batch.Groups[i]
	g := u.index[from.Key]
	if g == nil && create {
		name := from.Engine()
		e := u.engines[name]
		if e == nil {
			e = &engine{}
			u.engines[name] = e
		}
		g = &Group{Group: *from, Number: len(u.Resource.groups), engine: e}
		u.index[from.Key] = g
		u.Resource.groups = append(u.Resource.groups, g)
		u.enroll(g)
	}
	u.groups[i] = g
	return g
}

// find returns the series of a sample; nil where it is new.
func (u *update) find(sample *collect.Sample, hint *int) *series {
	g := u.group(sample.Group, false)
	if g == nil {
		return nil
	}
	all := g.inputs[sample.Input]
	for i := range all {
		// The points of a metric come in the same order every time.
		next := (*hint + i) % len(all)
		if all[next].label == sample.Label {
			*hint = next + 1
			return all[next]
		}
	}
	return nil
}

// restarts finds the engines whose counters began anew: a value fell, its
// buckets changed, or its start moved to at or after the previous point. A start
// equal to the point's own time says that the start is not known, as after a
// restart of the collector that reads the server, and proves nothing.
func (u *update) restarts() {
	u.batches++
	var restarted []*engine
	for i := range u.batch.Samples {
		sample, s := &u.batch.Samples[i], u.series[i]
		if sample.Gone || sample.Input.Define().Kind == collect.Gauge {
			continue
		}
		g := u.group(sample.Group, false)
		if g == nil {
			continue
		}
		g.engine.seen = u.batches
		if s == nil || sample.Delta || s.delta || s.time >= u.batch.Time || s.epoch != g.engine.epoch ||
			slices.Contains(restarted, g.engine) {
			continue
		}
		moved := sample.Start != s.start && sample.Start >= s.time && sample.Start < u.batch.Time
		if moved || s.fell(u.numbers(sample), sample.Bounds) {
			restarted = append(restarted, g.engine)
		}
	}
	if len(restarted) == 0 {
		return
	}
	if front := u.engines[""]; front != nil && !slices.Contains(restarted, front) && len(restarted) == u.enginesSeen() {
		// When all engines have restarted, so has the server before them.
		restarted = append(restarted, front)
	}
	for _, e := range restarted {
		e.epoch++
	}
	u.report.Resets = len(restarted)
}

// enginesSeen is the number of named engines in the batch.
func (u *update) enginesSeen() (n int) {
	for name, e := range u.engines {
		if name != "" && e.seen == u.batches {
			n++
		}
	}
	return n
}

// numbers returns the numbers of a sample as a series keeps them. The slice is
// valid until the next call.
func (u *update) numbers(sample *collect.Sample) []float64 {
	u.values = u.values[:0]
	if sample.Input.Define().Kind != collect.Distribution {
		u.values = append(u.values, sample.Value)
		return u.values
	}
	u.values = append(append(u.values, sample.Counts...), sample.Sum)
	return u.values
}

// apply takes a value into its series.
func (u *update) apply(sample *collect.Sample, s *series) {
	g := u.group(sample.Group, true)
	kind := sample.Input.Define().Kind
	if s == nil {
		// A point of this batch may have made it already.
		hint := 0
		s = u.find(sample, &hint)
	}
	values := u.numbers(sample)
	if s == nil {
		if u.report.NewSeries >= u.room {
			u.report.Ignored[SeriesLimit]++
			return
		}
		s = u.create(sample, g, values)
		g.inputs[sample.Input] = append(g.inputs[sample.Input], s)
		u.report.NewSeries++
		u.Resource.series++
		g.seq = u.seq
		return
	}
	if s.time == u.batch.Time {
		u.report.Ignored[Duplicate]++
		return
	}
	switch {
	case u.batch.Time-s.time > int64(u.settings.MaxStaleness) || s.newest < u.base || s.delta != sample.Delta:
		u.forget(s, sample, values)
	case kind == collect.Gauge:
		u.place(s, sample)
		s.totals.at(u.seq)[0] = values[0]
	default:
		u.accumulate(s, g, sample, values)
	}
	s.epoch, s.start, s.time, s.newest, s.ended = g.engine.epoch, sample.Start, u.batch.Time, u.seq, false
	s.older = sample.Older
	s.noSum = s.noSum || (kind == collect.Distribution && !sample.HasSum)
	g.seq = u.seq
}

// create makes a series. In a resource that has been observed before it counts
// from 0: a counter that a server makes at its first event had that value.
func (u *update) create(sample *collect.Sample, g *Group, values []float64) *series {
	s := &series{
		label: sample.Label, delta: sample.Delta, older: sample.Older, epoch: g.engine.epoch, start: sample.Start, time: u.batch.Time,
		known: u.seq, created: u.seq, newest: u.seq,
		bounds: sample.Bounds, totals: ring[float64]{stride: len(values)},
		noSum: sample.Input.Define().Kind == collect.Distribution && !sample.HasSum,
	}
	s.totals.reserve(u.seq-1, 2)
	total := s.totals.at(u.seq)
	copy(total, values)
	if sample.Input.Define().Kind == collect.Gauge {
		return s
	}
	if !sample.Delta {
		s.raw = slices.Clone(values)
	}
	if u.base < u.seq {
		s.known = u.base
		u.keepStep(s, sample.Input, u.times.at(u.seq - 1)[0], total, nil)
	} else if sample.Delta {
		// The first batch is only what later ones are compared with.
		clear(total)
	}
	return s
}

// forget begins a series anew: what it was before is too long ago to say how
// much it grew since.
func (u *update) forget(s *series, sample *collect.Sample, values []float64) {
	if len(values) != s.totals.stride {
		s.totals = ring[float64]{stride: len(values)}
	}
	s.totals.reserve(u.seq-1, 2)
	total := s.totals.at(u.seq)
	copy(total, values)
	s.known, s.created, s.bounds, s.before, s.offset, s.step = u.seq, u.seq, sample.Bounds, nil, nil, nil
	s.delta, s.raw = sample.Delta, nil
	switch {
	case sample.Delta:
		clear(total)
	case sample.Input.Define().Kind != collect.Gauge:
		s.raw = slices.Clone(values)
	}
}

// place makes room for the newest number of a series.
func (u *update) place(s *series, sample *collect.Sample) {
	keep := u.keep
	if long[sample.Input] {
		keep = u.keepLong
	}
	s.totals.reserve(s.newest, min(keep, u.seq-s.created+1))
	s.fill(u.seq)
	if s.before != nil && s.before.newest <= u.seq-u.keep {
		s.before = nil
	}
}

// accumulate continues the running total of a counter or distribution.
func (u *update) accumulate(s *series, g *Group, sample *collect.Sample, values []float64) {
	restarted := !sample.Delta && s.epoch != g.engine.epoch
	if !slices.Equal(s.bounds, sample.Bounds) {
		// The old buckets keep what they counted; the new ones begin at 0.
		before := *s
		*s = series{
			label: s.label, delta: s.delta, known: s.known, created: u.seq, newest: u.seq, noSum: s.noSum,
			bounds: sample.Bounds, totals: ring[float64]{stride: len(values)}, before: &before, time: s.time,
		}
		for depth, older := 0, s; older != nil; depth, older = depth+1, older.before {
			if depth == generations || (older.before != nil && older.before.newest <= u.seq-u.keep) {
				older.before = nil
			}
		}
		if !sample.Delta {
			s.raw = slices.Clone(values)
		}
		s.totals.reserve(u.seq-1, 2)
		copy(s.totals.at(u.seq), values)
		u.keepStep(s, sample.Input, s.time, values, nil)
		return
	}
	u.place(s, sample)
	last, total := s.totals.at(s.newest), s.totals.at(u.seq)
	var step []float64
	if u.settings.Steps[sample.Input] {
		step = slices.Clone(last)
	}
	switch {
	case sample.Delta:
		for i, v := range values {
			total[i] = last[i] + v
		}
	default:
		if restarted {
			s.offset = slices.Clone(last)
		}
		for i, v := range values {
			total[i] = v
			if s.offset != nil {
				total[i] += s.offset[i]
			}
		}
		copy(s.raw, values)
	}
	u.keepStep(s, sample.Input, s.time, total, step)
}

// keepStep keeps what a distribution counted since the time of its last point.
func (u *update) keepStep(s *series, in collect.Input, since int64, total, last []float64) {
	if !u.settings.Steps[in] {
		return
	}
	s.since = since
	s.step = append(s.step[:0], total...)
	for i := range last {
		s.step[i] -= last[i]
	}
}

// long are the inputs of the values that need the long window.
var long = func() (is [collect.NumInputs]bool) {
	for _, in := range []collect.Input{
		collect.PromptTokens, collect.RequestSuccess, collect.TimeToFirstToken, collect.RequestPromptTokens, collect.Running,
	} {
		is[in] = true
	}
	return is
}()
