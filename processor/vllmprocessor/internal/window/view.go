package window

import (
	"iter"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
)

// Status says whether a value can be told.
type Status uint8

const (
	// Present means: the value holds.
	Present Status = iota
	// Missing means: the server has never said it.
	Missing
	// First means: there is nothing to compare it with yet, as in the first batch of a
	// resource or after a gap.
	First
	// Pending means: it was there in the previous batch and is not in this one. It may
	// come in a batch of its own, so it is given one scrape before it is gone.
	Pending
	// Gone means: it was there once.
	Gone
)

// View is one engine and model, seen from the newest batch over a window.
type View struct {
	resource *Resource
	group    *Group
	from     int64
	// Elapsed is the real time between the newest batch and the one that it is
	// compared with, in seconds; 0 where there is none.
	Elapsed float64
}

// Views returns the engines and models with a value in the newest batch. With
// useLong the window is the long one, and there is none until it is full.
func (r *Resource) Views(views []View, useLong bool) []View {
	views = views[:0]
	if r.seq == 0 {
		return views
	}
	length := r.settings.Window
	if useLong {
		length = max(length, Long)
	}
	from := r.baseline(length)
	if useLong && r.Time()-r.times.at(from)[0] < int64(Long) {
		// Estimates that need so long are noise before.
		from = r.seq
	}
	elapsed := float64(r.Time()-r.times.at(from)[0]) / 1e9
	for _, g := range r.groups {
		if g.seq == r.seq && !g.ended {
			views = append(views, View{r, g, from, elapsed})
		}
	}
	return views
}

// Group is the engine and model that the view is of.
func (v *View) Group() *Group { return v.group }

// status says whether a series has a value in the newest batch. A delta series
// that is not sent has not changed.
func (v *View) status(s *series) Status {
	switch {
	case s.ended:
		return Gone
	case s.newest == v.resource.seq || s.delta:
		return Present
	case s.newest == v.resource.seq-1:
		return Pending
	}
	return Gone
}

// Pending tells whether something that the group said in the previous batch is not
// in the newest yet.
func (v *View) Pending() bool {
	for in := range v.group.inputs {
		for _, s := range v.group.inputs[in] {
			if v.status(s) == Pending {
				return true
			}
		}
	}
	return false
}

// Gauge returns a state, summed over the input's own labels.
func (v *View) Gauge(in collect.Input) (float64, Status) {
	return v.Total(in)
}

// Total returns the running total of a counter, summed over its labels: what it
// grew by since it was first seen, and what it was then.
func (v *View) Total(in collect.Input) (float64, Status) {
	return v.sum(in, func(s *series) (float64, Status) {
		status := v.status(s)
		if status == Gone {
			return 0, Gone
		}
		return s.totals.at(s.newest)[0], status
	})
}

// Ever returns what a counter of an engine was ever seen to count, also where the
// newest batch does not have it.
func (g *Group) Ever(in collect.Input) (total float64) {
	for _, s := range g.inputs[in] {
		total += s.totals.at(s.newest)[0]
	}
	return total
}

// sum adds up what the series of an input say. Of one that has gone it adds what
// it grew in the window; there is no sum when all have gone.
func (v *View) sum(in collect.Input, read func(*series) (float64, Status)) (float64, Status) {
	all := v.group.inputs[in]
	if len(all) == 0 {
		return 0, Missing
	}
	total, present := 0.0, false
	for _, s := range all {
		value, status := read(s)
		switch status {
		case Present:
			present = true
			total += value
		case Gone:
			total += value
		default:
			return 0, status
		}
	}
	if !present {
		return 0, Gone
	}
	return total, Present
}

// GaugeOf returns the state with one value of the input's label.
func (v *View) GaugeOf(in collect.Input, label string) (float64, Status) {
	for _, s := range v.group.inputs[in] {
		if s.label == label {
			return s.totals.at(s.newest)[0], v.status(s)
		}
	}
	return 0, Missing
}

// States goes through the values of a state by the input's label that are in the newest
// batch.
func (v *View) States(in collect.Input) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		for _, s := range v.group.inputs[in] {
			if v.status(s) == Present && !yield(s.label, s.totals.at(s.newest)[0]) {
				return
			}
		}
	}
}

// Average returns the mean of a state over the batches of the window after its
// first: what it was between them nobody knows. It is summed over the input's own
// labels.
func (v *View) Average(in collect.Input) (float64, Status) { return v.sum(in, v.average) }

// AverageOf is Average with one value of the input's label.
func (v *View) AverageOf(in collect.Input, label string) (float64, Status) {
	for _, s := range v.group.inputs[in] {
		if s.label == label {
			return v.average(s)
		}
	}
	return 0, Missing
}

func (v *View) average(s *series) (float64, Status) {
	status := v.status(s)
	if status == Gone {
		return 0, Gone
	}
	total, n := 0.0, 0
	for seq := v.from + 1; seq <= v.resource.seq; seq++ {
		if was := s.total(seq, v.resource.zeros(1)); was != nil {
			total += was[0]
			n++
		}
	}
	if n == 0 {
		return s.totals.at(s.newest)[0], status
	}
	return total / float64(n), status
}

// Change returns by how much a state, summed over its labels, is higher than it
// was when the window began.
func (v *View) Change(in collect.Input) (float64, Status) {
	return v.sum(in, func(s *series) (float64, Status) {
		value, status := v.difference(s)
		if status == Gone {
			return 0, Gone
		}
		return value, status
	})
}

// Increase returns by how much a counter grew over the window, summed over its
// labels.
func (v *View) Increase(in collect.Input) (float64, Status) {
	return v.sum(in, v.difference)
}

// difference compares a number with what it was when the window began.
func (v *View) difference(s *series) (float64, Status) {
	status := v.status(s)
	if status == Pending || v.from == v.resource.seq {
		return 0, max(status, First)
	}
	was := s.total(v.from, v.resource.zeros(1))
	if was == nil {
		if status == Gone {
			return 0, Gone
		}
		return 0, First
	}
	return s.totals.at(s.newest)[0] - was[0], status
}

// IncreaseOf returns the increase with one value of the input's label. A value
// that the server has not shown has not increased, if it shows others.
func (v *View) IncreaseOf(in collect.Input, label string) (float64, Status) {
	_, status := v.Increase(in)
	if status != Present {
		return 0, status
	}
	for _, s := range v.group.inputs[in] {
		if s.label == label {
			value, _ := v.difference(s)
			return value, Present
		}
	}
	return 0, Present
}

// Increases goes through the series of a counter that have a value, or have gone
// but grew in the window before that.
func (v *View) Increases(in collect.Input) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		for _, s := range v.group.inputs[in] {
			value, status := v.difference(s)
			if (status == Present || (status == Gone && value > 0)) && !yield(s.label, value) {
				return
			}
		}
	}
}

// Restarted is the time of the batch that showed the newest restart of the
// engine, in nanoseconds; false where it has not restarted since it is known.
func (v *View) Restarted() (at int64, ever bool) {
	e := v.group.engine
	if e.epoch == 0 {
		return 0, false
	}
	return e.restartedAt, true
}

// Older tells whether an input came under the name of an older metric, which can
// have another unit.
func (v *View) Older(in collect.Input) bool {
	return slices.ContainsFunc(v.group.inputs[in], func(s *series) bool { return s.older })
}

// Engine returns a state of the view's engine that carries no model, as the
// cache configuration does: of the group whose attributes are all the view's,
// too.
func (v *View) Engine(in collect.Input) (float64, Status) {
	if value, status := v.Gauge(in); status != Missing {
		return value, status
	}
	for _, g := range v.resource.groups {
		if len(g.inputs[in]) > 0 && v.group.covers(g) {
			other := View{v.resource, g, v.from, v.Elapsed}
			return other.Gauge(in)
		}
	}
	return 0, Missing
}

// covers tells whether the group has all attributes of another one.
func (g *Group) covers(other *Group) bool {
	for _, a := range other.Attributes {
		if !slices.Contains(g.Attributes, a) {
			return false
		}
	}
	return true
}
