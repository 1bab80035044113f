package window

import (
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
)

// fits reports whether there is room for some units more.
func (u *update) fits(units int) bool {
	if u.units+units > u.most {
		u.reclaim()
	}
	return u.units+units <= u.most
}

// include adds a series to its group.
func (u *update) include(g *Group, in collect.Input, s *series) {
	g.include(in, s)
	s.units, s.found = sizeOf(s.label, s.bounds), u.seq
	u.units += s.units
	u.Resource.series++
}

// remember notes that a series exists that is not kept: the first point of it that
// can be used is not its first event, so it does not count from 0.
func (u *update) remember(sample *collect.Sample) {
	hint := 0
	if sample.Input.Define().Kind == collect.Gauge || u.find(sample, &hint) != nil {
		return
	}
	if g := u.group(sample.Group); g != nil {
		g.existed.add(hashOfSeries(labelled{sample.Input, sample.Label}), unnumbered)
		return
	}
	u.existed.add(hashOf(u.batch.Groups[sample.Group].Key), unnumbered)
}

// fresh reports whether a series that is not kept cannot have been there before:
// nothing is remembered of it, and nothing has been forgotten; or it says itself
// that it began after the previous batch.
func (u *update) fresh(sample *collect.Sample, g *Group) bool {
	if sample.Start >= u.times.at(u.seq - 1)[0] && sample.Start < u.batch.Time {
		return true
	}
	if u.answered == 0 || u.answered == u.seq {
		// All that is known from before is that the server did not answer.
		return false
	}
	return !g.returned && !g.existed.unknown(hashOfSeries(labelled{sample.Input, sample.Label}))
}

// noteAnswer notes the first batch in which the resource says more than whether it
// answers.
func (u *update) noteAnswer() {
	if u.answered == 0 && slices.ContainsFunc(u.batch.Samples, func(s collect.Sample) bool {
		return !s.Gone && s.Input != collect.Up && s.Input != collect.Healthy
	}) {
		u.answered = u.seq
	}
}

// create makes a series. In a resource that has been observed before a series that
// is new counts from 0: a counter that a server makes at its first event had that value.
func (u *update) create(sample *collect.Sample, g *Group, values []float64) *series {
	s := &series{
		label: sample.Label, delta: sample.Delta, older: sample.Older, level: sample.Level, epoch: g.engine.epoch, start: sample.Start, time: u.batch.Time,
		known: u.seq, created: u.seq, newest: u.seq,
		bounds: sample.Bounds, totals: ring[float64]{stride: len(values)},
	}
	if sample.Input.Define().Kind == collect.Distribution && !sample.HasSum {
		s.noSum = u.seq
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
	if u.base < u.seq && (sample.Delta || u.fresh(sample, g)) {
		s.known = u.base
		u.keepStep(s, sample.Input, u.times.at(u.seq - 1)[0], total, nil)
	} else if sample.Delta {
		// The first batch is only what later ones are compared with.
		clear(total)
	}
	return s
}
