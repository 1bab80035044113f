package window

import (
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// fits reports whether there is room for some units more.
func (u *update) fits(units int) bool {
	if u.units+units > u.most {
		u.reclaim()
	}
	return u.units+units <= u.most
}

// include adds a series to its group.
func (u *update) include(g *Group, in input.Metric, s *series) {
	g.include(in, s)
	if in.OfPicker() && g.whole == nil && g.rollup == nil {
		g.whole = u.join(g, g.Common(), true)
	}
	s.units, s.found = int32(sizeOf(s.label, s.bounds)), u.seq
	u.units += int(s.units)
	u.Resource.series++
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

// recordAnswer records the first batch with a sample of the server itself.
func (u *update) recordAnswer() {
	if u.answered == 0 && slices.ContainsFunc(u.batch.Samples, func(s input.Sample) bool {
		return !s.Gone && !s.Input.OfReceiver()
	}) {
		u.answered = u.seq
	}
}

// create makes a series. A new series of a known resource counts from 0, because servers
// create counters at the first event.
func (u *update) create(sample *input.Sample, g *Group, values []float64) *series {
	s := &series{
		label: sample.Label, delta: sample.Delta, older: sample.Older, level: sample.Level, epoch: g.engine.epoch, start: sample.Start, time: u.batch.Time,
		known: u.seq, created: u.seq, newest: u.seq,
		bounds: sample.Bounds, totals: newTotals(len(values)),
	}
	if sample.Input.Define().Kind == input.Distribution && !sample.HasSum {
		s.own().noSum = u.seq
	}
	s.totals.reserve(u.seq-1, 2)
	s.totals.set(u.seq, values)
	if sample.Input.Define().Kind == input.Gauge {
		return s
	}
	if u.base < u.seq && (sample.Delta || u.fresh(sample, g)) {
		s.known = u.base
		u.storeStep(s, sample.Input, *u.times.at(u.seq - 1), values, nil)
	} else if sample.Delta {
		// The first batch is a baseline only.
		s.totals.set(u.seq, u.zeros(len(values)))
	}
	return s
}
