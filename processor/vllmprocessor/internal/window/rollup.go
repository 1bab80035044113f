package window

import (
	"iter"
	"strings"
)

// enroll puts a new group into its roll-up.
func (r *Resource) enroll(g *Group) {
	without := g.Model()
	if len(without) == len(g.Attributes) {
		return
	}
	var key strings.Builder
	for _, a := range without {
		key.WriteString(a.Name + "\x00" + a.Value + "\x00")
	}
	up := r.rollupOf[key.String()]
	if up == nil {
		up = &Rollup{Number: r.nextRollup, Attributes: without, key: key.String()}
		r.nextRollup++
		r.rollupOf[key.String()] = up
		r.rollups = append(r.rollups, up)
	}
	up.groups = append(up.groups, g)
	g.rollup = up
}

// Rollups returns the roll-ups over several engines. One engine alone has none.
// One is Pending where an engine of the previous batch is missing in this one,
// and what is left, if anything, would be taken for the whole.
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

// Pending goes through the groups that had a value in the previous batch and have
// none, nor an end, in the newest.
func (r *Resource) Pending() iter.Seq[*Group] {
	return func(yield func(*Group) bool) {
		for _, g := range r.groups {
			if !g.ended && g.seq == r.seq-1 && !yield(g) {
				return
			}
		}
	}
}

// PendingGroups returns the numbers of the groups of Pending.
func (r *Resource) PendingGroups() iter.Seq[int] {
	return func(yield func(int) bool) {
		for g := range r.Pending() {
			if !yield(g.Number) {
				return
			}
		}
	}
}

// Place is the place of a group among those of its resource, until one is removed.
func (g *Group) Place() int { return g.place }

// Numbers goes through the numbers of the groups that are there.
func (r *Resource) Numbers() iter.Seq[int] {
	return func(yield func(int) bool) {
		for _, g := range r.groups {
			if !yield(g.Number) {
				return
			}
		}
	}
}

// Groups goes through the engines of the roll-up that are in the newest batch or
// may still come.
func (r *Resource) Groups(u *Rollup) iter.Seq[*Group] {
	return func(yield func(*Group) bool) {
		for _, g := range u.groups {
			if !g.ended && g.seq >= r.seq-1 && !yield(g) {
				return
			}
		}
	}
}

// Rollup is that of the engines of the same model; nil where the group has no
// engine.
func (g *Group) Rollup() *Rollup { return g.rollup }
