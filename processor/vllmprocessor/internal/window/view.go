package window

import (
	"iter"
	"slices"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// Status is whether a value is known.
type Status uint8

const (
	// Present means: the value is known.
	Present Status = iota
	// Missing means: the server has never sent it.
	Missing
	// First means: it has no earlier value to compare with, as in the first batch of a
	// resource or after a gap.
	First
	// Pending means: it was in the previous batch and is not in this one. It may be sent
	// in a batch of its own, so it is Gone only after another batch without it.
	Pending
	// Gone means: it has ended.
	Gone
	// Defective means: the points within the window cannot be true, because of a known
	// defect of vLLM's metrics.
	Defective
)

// View is one engine and model over the window that ends at the newest batch.
type View struct {
	resource *Resource
	group    *Group
	from     int64
	// Elapsed is the length of the window in seconds: the time between its first batch
	// and the newest; 0 where there is no earlier batch.
	Elapsed float64
}

// Views returns the engines and models with a value in the newest batch. With useLong
// it uses the long window, which has no values until it is full.
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
	if useLong && r.Time()-*r.times.at(from) < int64(Long) {
		// Over a shorter time these estimates are noise.
		from = r.seq
	}
	elapsed := float64(r.Time()-*r.times.at(from)) / 1e9
	for _, g := range r.groups {
		if g.seq == r.seq && !g.ended {
			views = append(views, View{r, g, from, elapsed})
		}
	}
	return views
}

// Over returns the view over another window that ends at the newest batch.
func (v *View) Over(length time.Duration) View {
	from := v.resource.baseline(length)
	return View{v.resource, v.group, from, float64(v.resource.Time()-*v.resource.times.at(from)) / 1e9}
}

// Group returns the engine and model of the view.
func (v *View) Group() *Group { return v.group }

// status returns whether a series has a value in the newest batch. A delta series that
// is not sent has not changed.
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

// Pending reports whether a series of the group is in the previous batch and not in the
// newest.
func (v *View) Pending() bool {
	return v.group.inputs.any(func(s *series) bool { return v.status(s) == Pending })
}

// Gauge returns the value of a gauge, summed over the input's own labels.
func (v *View) Gauge(in input.Metric) (float64, Status) {
	return v.Total(in)
}

// Total returns the running total of a counter, summed over its labels: its first value
// and all increases since.
func (v *View) Total(in input.Metric) (float64, Status) {
	return v.sumPresent(in, func(s *series) (float64, Status) { return s.number(), v.status(s) })
}

// Ever returns the running total of a counter, also where the newest batch lacks it.
func (g *Group) Ever(in input.Metric) (total float64) {
	for _, s := range g.inputs.of(in) {
		total += s.number()
	}
	return total
}

// sum adds up the series of an input. A series that is Gone contributes its increase
// within the window. Where all are Gone, the sum is Gone. It is Defective where the newest
// values contradict each other.
func (v *View) sum(in input.Metric, read func(*series) (float64, Status)) (float64, Status) {
	all := v.group.inputs.of(in)
	if v.group.unclear == v.resource.seq && slices.Contains(v.group.contradicted, in) {
		return 0, Defective
	}
	if len(all) == 0 {
		return 0, v.unsent(in)
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

// sumPresent is sum without the series that are Gone.
func (v *View) sumPresent(in input.Metric, read func(*series) (float64, Status)) (float64, Status) {
	return v.sum(in, func(s *series) (float64, Status) {
		value, status := read(s)
		if status == Gone {
			value = 0
		}
		return value, status
	})
}

// unsent returns the status of an input that the engine has never sent. A sender of deltas
// may leave out zeros. So the input has a value, which is 0, where the engine sends deltas
// and another engine of the model has sent one of the input. It has none where series of
// the engine were refused or removed, because the input may be one of them.
func (v *View) unsent(in input.Metric) Status {
	up := v.group.rollup
	if up == nil || !up.deltas[in] || v.group.returned || len(v.group.existed.order) > 0 {
		return Missing
	}
	status := Missing
	for other := range input.NumMetrics {
		for _, s := range v.group.inputs.of(other) {
			switch {
			case !s.delta || s.ended:
			case s.known <= v.from && v.from < v.resource.seq:
				return Present
			default:
				status = First
			}
		}
	}
	return status
}

// GaugeOf returns the gauge with one value of the input's label.
func (v *View) GaugeOf(in input.Metric, label input.Label) (float64, Status) {
	if s := v.labelled(in, label); s != nil {
		return s.number(), v.status(s)
	}
	return 0, Missing
}

// labelled returns the series with one value of the input's label; nil without one.
func (v *View) labelled(in input.Metric, label input.Label) *series {
	hint := 0
	return v.group.find(in, label, &hint)
}

// States iterates over the values of a gauge in the newest batch, by the input's
// label.
func (v *View) States(in input.Metric) iter.Seq2[input.Label, float64] {
	return func(yield func(input.Label, float64) bool) {
		for _, s := range v.group.inputs.of(in) {
			if v.status(s) == Present && !yield(s.label, s.number()) {
				return
			}
		}
	}
}

// Average returns the mean of a gauge over the batches of the window after its first,
// summed over the input's own labels. Values between scrapes are unknown.
func (v *View) Average(in input.Metric) (float64, Status) { return v.sum(in, v.average) }

// AverageOf is Average with one value of the input's label.
func (v *View) AverageOf(in input.Metric, label input.Label) (float64, Status) {
	if s := v.labelled(in, label); s != nil {
		return v.average(s)
	}
	return 0, Missing
}

func (v *View) average(s *series) (float64, Status) {
	status := v.status(s)
	if status == Gone {
		return 0, Gone
	}
	total, n := 0.0, 0
	oldest, places := s.totals.oldest(s.newest), s.totals.places()
	for seq := max(v.from+1, s.known); seq <= v.resource.seq; seq++ {
		switch {
		case seq < s.created:
			// It was 0, see series.total.
		case seq >= s.newest:
			total += s.number()
		case seq < oldest:
			continue
		default:
			total += s.totals.values[seq%places] // A gauge has one number at each place.
		}
		n++
	}
	if n == 0 {
		return s.number(), status
	}
	return total / float64(n), status
}

// Change returns by how much a gauge, summed over its labels, is higher than at the
// beginning of the window.
func (v *View) Change(in input.Metric) (float64, Status) {
	return v.sumPresent(in, v.difference)
}

// Increase returns by how much a counter grew over the window, summed over its labels.
func (v *View) Increase(in input.Metric) (float64, Status) {
	return v.sum(in, func(s *series) (float64, Status) { return v.increase(in, s) })
}

// difference returns a number minus its value at the beginning of the window.
func (v *View) difference(s *series) (float64, Status) {
	status := v.status(s)
	if status == Pending || v.from == v.resource.seq {
		return 0, max(status, First)
	}
	was := s.total(v.from, v.resource.zeros(1), nil)
	if was == nil {
		if status == Gone {
			return 0, Gone
		}
		return 0, First
	}
	return s.number() - was[0], status
}

// IncreaseOf returns the increase with one value of the input's label. A label value
// without a series has an increase of 0, if the input has other series.
func (v *View) IncreaseOf(in input.Metric, label input.Label) (float64, Status) {
	_, status := v.Increase(in)
	if status != Present {
		return 0, status
	}
	if s := v.labelled(in, label); s != nil {
		value, _ := v.increase(in, s)
		return value, Present
	}
	return 0, Present
}

// Increases iterates over the series of a counter by label: those with a value, and
// those that are gone but grew within the window.
func (v *View) Increases(in input.Metric) iter.Seq2[input.Label, float64] {
	return func(yield func(input.Label, float64) bool) {
		for _, s := range v.group.inputs.of(in) {
			value, status := v.increase(in, s)
			if (status == Present || (status == Gone && value > 0)) && !yield(s.label, value) {
				return
			}
		}
	}
}

// Restarted returns the time of the batch that showed the newest restart of the engine,
// in Unix nanoseconds; false where no restart has been seen.
func (v *View) Restarted() (at int64, ever bool) {
	e := v.group.engine
	if e.restarts == 0 {
		return 0, false
	}
	return e.restartedAt, true
}

// Renewed reports whether the counters of the engine began again within the window: what was
// counted between the last batch before and that moment is lost. restarted is true where a
// restart is among the causes, and not only engines that were added.
func (v *View) Renewed() (began, restarted bool) {
	e := v.group.engine
	return e.renewed > v.from, e.restarted > v.from
}

// Older reports whether an input has the name of an older metric, which can have another
// unit.
func (v *View) Older(in input.Metric) bool {
	return slices.ContainsFunc(v.group.inputs.of(in), func(s *series) bool { return s.older })
}

// Deltas reports whether an input sends deltas, so that its total began when the first one
// was seen.
func (v *View) Deltas(in input.Metric) bool {
	return slices.ContainsFunc(v.group.inputs.of(in), func(s *series) bool { return s.delta })
}

// Engine returns a gauge of the view's engine. Some gauges, such as the cache
// configuration, carry no model: then the group is used whose attributes the view's
// group has all.
func (v *View) Engine(in input.Metric) (float64, Status) {
	if value, status := v.Gauge(in); status != Missing {
		return value, status
	}
	for _, g := range v.resource.groups {
		if len(g.inputs.of(in)) > 0 && v.group.covers(g) {
			other := View{v.resource, g, v.from, v.Elapsed}
			return other.Gauge(in)
		}
	}
	return 0, Missing
}

func (g *Group) covers(other *Group) bool {
	for _, a := range other.Attributes {
		if !slices.Contains(g.Attributes, a) {
			return false
		}
	}
	return true
}
