package window

import (
	"iter"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

func (r *Resource) enroll(g *Group) {
	without := g.Model()
	if len(without) == len(g.Attributes) {
		return
	}
	g.rollup = r.join(g, without, false)
}

// rollupKey finds a roll-up by its kind and attributes.
type rollupKey struct {
	gateway    bool
	attributes string
}

func (r *Resource) join(g *Group, attributes []input.Attribute, gateway bool) *Rollup {
	key := rollupKey{gateway, input.KeyWithout(attributes, "")}
	up := r.rollupOf[key]
	if up == nil {
		up = &Rollup{Number: r.nextRollup, Attributes: attributes, Gateway: gateway, key: key}
		r.nextRollup++
		r.rollupOf[key] = up
		r.rollups = append(r.rollups, up)
	}
	up.groups = append(up.groups, g)
	return up
}

func (r *Resource) leave(g *Group, up *Rollup) {
	if up == nil {
		return
	}
	up.groups = slices.DeleteFunc(up.groups, func(other *Group) bool { return other == g })
	if len(up.groups) == 0 {
		delete(r.rollupOf, up.key)
		r.rollups = slices.DeleteFunc(r.rollups, func(other *Rollup) bool { return other == up })
	}
}

// recordDelta records for the roll-up which inputs its engines send as deltas.
func (g *Group) recordDelta(sample *input.Sample) {
	if sample.Delta && g.rollup != nil {
		g.rollup.deltas[sample.Input] = true
	}
}

// Rollups returns the roll-ups over several engines, and the whole gateways. A
// single engine has no roll-up. A roll-up is Pending where a group of the previous batch is
// missing in this one: without it a part would be reported as the whole.
func (r *Resource) Rollups() iter.Seq2[*Rollup, Status] {
	return func(yield func(*Rollup, Status) bool) {
		for _, up := range r.rollups {
			groups, status, least := 0, Present, 2
			if up.Gateway {
				least = 1
			}
			for g := range r.Groups(up) {
				groups++
				if g.seq != r.seq {
					status = Pending
				}
			}
			if groups >= least && !yield(up, status) {
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

// Groups iterates over the groups of a roll-up that are in the newest batch or pending.
func (r *Resource) Groups(u *Rollup) iter.Seq[*Group] {
	return func(yield func(*Group) bool) {
		for _, g := range u.groups {
			if !g.ended && g.seq >= r.seq-1 && !yield(g) {
				return
			}
		}
	}
}

// Whole returns the roll-up over the models of a gateway; nil for a group that
// belongs to none.
func (g *Group) Whole() *Rollup { return g.whole }

// Rollup returns the roll-up over the engines of the same model; nil where the group has
// no engine.
func (g *Group) Rollup() *Rollup { return g.rollup }
