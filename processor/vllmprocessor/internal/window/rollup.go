package window

import (
	"iter"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
)

// enroll puts a new group into its roll-up.
func (r *Resource) enroll(g *Group) {
	without := g.Model()
	if len(without) == len(g.Attributes) {
		return
	}
	key := collect.KeyWithout(g.Attributes, "engine")
	up := r.rollupOf[key]
	if up == nil {
		up = &Rollup{Number: r.nextRollup, Attributes: without, key: key}
		r.nextRollup++
		r.rollupOf[key] = up
		r.rollups = append(r.rollups, up)
	}
	up.groups = append(up.groups, g)
	g.rollup = up
}

// recordDelta records for the roll-up which inputs its engines send as deltas.
func (g *Group) recordDelta(sample *collect.Sample) {
	if sample.Delta && g.rollup != nil {
		g.rollup.deltas[sample.Input] = true
	}
}

// Rollups returns the roll-ups over several engines. A single engine has no roll-up. A
// roll-up is Pending where an engine of the previous batch is missing in this one:
// without it a part would be reported as the whole.
func (r *Resource) Rollups() iter.Seq2[*Rollup, Status] {
	return func(yield func(*Rollup, Status) bool) {
		for _, up := range r.rollups {
			engines, pending := 0, 0
			for _, g := range up.groups {
				switch {
				case g.ended:
				case g.seq == r.seq:
					engines++
				case g.seq == r.seq-1:
					pending++
				}
			}
			status := Present
			if pending > 0 {
				status = Pending
			}
			if engines+pending > 1 && !yield(up, status) {
				return
			}
		}
	}
}

// Pending iterates over the groups with a value in the previous batch and neither a
// value nor an end in the newest.
func (r *Resource) Pending() iter.Seq[*Group] {
	return func(yield func(*Group) bool) {
		for _, g := range r.groups {
			if !g.ended && g.seq == r.seq-1 && !yield(g) {
				return
			}
		}
	}
}

// PendingGroups iterates over the numbers of these groups.
func (r *Resource) PendingGroups() iter.Seq[int] {
	return func(yield func(int) bool) {
		for g := range r.Pending() {
			if !yield(g.Number) {
				return
			}
		}
	}
}

// Place is the index of a group in its resource. It is valid until a group is removed.
func (g *Group) Place() int { return g.place }

// Numbers iterates over the numbers of the groups that are stored.
func (r *Resource) Numbers() iter.Seq[int] {
	return func(yield func(int) bool) {
		for _, g := range r.groups {
			if !yield(g.Number) {
				return
			}
		}
	}
}

// Groups iterates over the engines of a roll-up that are in the newest batch or pending.
func (r *Resource) Groups(u *Rollup) iter.Seq[*Group] {
	return func(yield func(*Group) bool) {
		for _, g := range u.groups {
			if !g.ended && g.seq >= r.seq-1 && !yield(g) {
				return
			}
		}
	}
}

// Picker reports whether the group belongs to an endpoint picker.
func (g *Group) Picker() bool { return g.picker && g.rollup == nil }

// Rollup returns the roll-up over the engines of the same model; nil where the group has
// no engine.
func (g *Group) Rollup() *Rollup { return g.rollup }
