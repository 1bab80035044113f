package window

import (
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
)

// fits tells whether there is room for one more series, and counts a point for
// which there is none.
func (u *update) fits() bool {
	if u.report.NewSeries < u.room {
		return true
	}
	u.report.Ignored[SeriesLimit]++
	u.refused = u.seq
	return false
}

// include adds a series to its group.
func (u *update) include(g *Group, in collect.Input, s *series) {
	g.include(in, s)
	u.report.NewSeries++
	u.Resource.series++
}

// note remembers that a series exists whose first point cannot be used: the
// first that can is not its first event, so it does not count from 0.
func (u *update) note(sample *collect.Sample) {
	hint := 0
	if u.find(sample, &hint) != nil || !u.fits() {
		return
	}
	g := u.group(sample.Group, true)
	u.include(g, sample.Input, &series{label: sample.Label, time: u.batch.Time, newest: never, totals: ring[float64]{stride: 1}})
}

// never is the number of a batch that there was not.
const never = -1

// create makes a series. In a resource that has been observed before it counts
// from 0: a counter that a server makes at its first event had that value.
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
	// One that the limit kept out before may be old.
	unseen := u.refused == 0 || u.refused < u.seq-1
	if u.base < u.seq && (sample.Delta || unseen) {
		s.known = u.base
		u.keepStep(s, sample.Input, u.times.at(u.seq - 1)[0], total, nil)
	} else if sample.Delta {
		// The first batch is only what later ones are compared with.
		clear(total)
	}
	return s
}
