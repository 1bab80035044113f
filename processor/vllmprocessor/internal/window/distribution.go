package window

import (
	"iter"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// Moments returns the number of observations of a distribution over the window, and
// their sum. hasSum is false where a point in the window has no sum, and where the sum grew
// by less than the buckets say: vLLM takes some times from the wall clock, which can be set
// back, so that an observation can be negative. The number of observations remains right.
func (v *View) Moments(in input.Metric) (count, sum float64, hasSum bool, status Status) {
	return v.MomentsWhere(in, nil)
}

// MomentsWhere is Moments of the series whose label keep accepts; nil accepts all.
func (v *View) MomentsWhere(in input.Metric, keep func(input.Label) bool) (count, sum float64, hasSum bool, status Status) {
	hasSum = true
	status = v.distribution(in, keep, func(h *Histogram) {
		count += h.Count
		sum += h.Sum
		hasSum = hasSum && h.HasSum
	})
	return count, sum, hasSum, status
}

// AddTo adds the observations of a distribution over the window to dst.
func (v *View) AddTo(dst *Histogram, in input.Metric) Status {
	return v.AddToWhere(dst, in, nil)
}

// AddToWhere is AddTo of the series whose label keep accepts; nil accepts all.
func (v *View) AddToWhere(dst *Histogram, in input.Metric, keep func(input.Label) bool) Status {
	return v.distribution(in, keep, dst.Add)
}

// Labels iterates over the labels of an input's series.
func (v *View) Labels(in input.Metric) iter.Seq[input.Label] {
	return func(yield func(input.Label) bool) {
		for _, s := range v.group.inputs.of(in) {
			if !yield(s.label) {
				return
			}
		}
	}
}

// distribution calls add for each generation of buckets of each series of a distribution.
// As with counters, a series that is Gone contributes what it observed within the window,
// and where all are Gone, so is the distribution. It is Defective while the window has a
// bad observation.
func (v *View) distribution(in input.Metric, keep func(input.Label) bool, add func(*Histogram)) Status {
	all := v.group.inputs.of(in)
	if len(all) == 0 {
		return v.unsent(in)
	}
	total, kept := Gone, false
	for _, s := range all {
		if keep != nil && !keep(s.label) {
			continue
		}
		kept = true
		if v.status(s) == Pending {
			return Pending
		}
		if v.status(s) == Present {
			total = Present
		}
	}
	switch {
	case !kept:
		return Missing
	case total == Gone:
		return Gone
	}
	without := v.canariesIn(in)
	for _, s := range all {
		if keep != nil && !keep(s.label) {
			continue
		}
		if status := v.observations(s, without, add); status == First && v.status(s) == Present {
			return First
		}
	}
	if v.group.defective(in, v.from) {
		return Defective
	}
	return Present
}

// observations calls add for each generation of buckets of a series.
func (v *View) observations(s *series, without observedCanaries, add func(*Histogram)) Status {
	if v.from == v.resource.seq || v.from < s.known {
		return First
	}
	var room [2]buffer
	for generation := s; generation != nil; generation = generation.rest().before {
		if generation.newest < v.from {
			break
		}
		zero := v.resource.zeros(generation.totals.stride)
		was := generation.total(v.from, zero, room[0][:])
		if was == nil {
			return First
		}
		grown := growth{bounds: generation.bounds, is: generation.totals.at(generation.newest, room[1][:]), was: was}
		v.resource.subtract(generation, grown.is, grown.was)
		v.resource.increase.HasSum = s.rest().noSum < v.from && !grown.tooLow()
		without.remove(&v.resource.increase)
		add(&v.resource.increase)
	}
	return Present
}

// AtMost returns how many observations of a distribution over the window were at
// most bound, which must be one of its bounds.
func (v *View) AtMost(in input.Metric, bound float64) (count float64, status Status) {
	known := true
	status = v.distribution(in, nil, func(h *Histogram) {
		i := slices.Index(h.Bounds, bound)
		known = known && i >= 0
		for _, n := range h.Counts[:i+1] {
			count += n
		}
	})
	if status == Present && !known {
		return 0, Missing
	}
	return count, status
}

// Highest returns the upper bound of the highest bucket with observations since the
// distribution was first seen. open is true for the open bucket; bound is then its lower
// bound. known is false where all buckets are empty.
func (v *View) Highest(in input.Metric) (bound float64, open, known bool) {
	all := v.group.inputs.of(in)
	if len(all) == 0 || len(all[0].bounds) == 0 {
		return 0, false, false
	}
	s := all[0]
	var b buffer
	counts := s.totals.at(s.newest, b[:])
	for i := len(counts) - 2; i >= 0; i-- {
		if counts[i] > 0 {
			return s.bounds[min(i, len(s.bounds)-1)], i == len(s.bounds), true
		}
	}
	return 0, false, false
}

// Step returns what a distribution counted since its previous point, and the time of
// that point in Unix nanoseconds. It is Missing without a previous point or without one in
// the newest batch, and Defective where one of the observations is bad. The step is valid
// until an increase within the resource is read again.
func (v *View) Step(in input.Metric) (since int64, step *Histogram, status Status) {
	all := v.group.inputs.of(in)
	// The time, not the number: batches that follow each other closely share one.
	if len(all) == 0 || len(all[0].rest().step) == 0 || all[0].time != v.resource.Time() || all[0].ended {
		return 0, nil, Missing
	}
	s, of := all[0], all[0].rest()
	last := View{resource: v.resource, group: v.group, from: v.resource.seq - 1}
	without := last.canariesIn(in)
	zero := v.resource.zeros(len(of.step))
	v.resource.subtract(s, of.step, zero)
	grown := growth{bounds: s.bounds, is: of.step, was: zero}
	v.resource.increase.HasSum = of.noSum == 0 && !grown.tooLow()
	without.remove(&v.resource.increase)
	if v.group.defective(in, v.resource.seq-1) {
		return of.since, &v.resource.increase, Defective
	}
	return of.since, &v.resource.increase, Present
}

// subtract writes the difference of two totals to r.increase.
func (r *Resource) subtract(s *series, is, was []float64) {
	buckets := len(is) - 1
	h := &r.increase
	h.Bounds, h.Counts, h.Count = s.bounds, h.Counts[:0], 0
	for i := range buckets {
		n := is[i] - was[i]
		h.Counts = append(h.Counts, n)
		h.Count += n
	}
	h.Sum = is[buckets] - was[buckets]
}

// zeros returns n zeros, which are shared and must not be changed.
func (r *Resource) zeros(n int) []float64 {
	if len(r.zero) < n {
		r.zero = make([]float64, n)
	}
	return r.zero[:n]
}
