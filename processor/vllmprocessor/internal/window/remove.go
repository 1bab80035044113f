package window

import (
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// maxGroups is the most engines and models of a resource at a time.
const maxGroups = 1000

// Engines is the number of engines and models that are stored.
func (r *Resource) Engines() int { return len(r.groups) }

// Allow sets the most engines and models that may be stored. It cannot exceed the
// maximum for a resource.
func (r *Resource) Allow(groups int) { r.allowed = min(groups, maxGroups) }

// unit is the number of bytes of labels and buckets for which a series takes one more
// unit of the limit. A series with short labels costs about as much.
const unit = 1024

// sizeOf is what a series takes of the limit.
func sizeOf(label input.Label, bounds []float64) int { return 1 + (len(label)+16*len(bounds))/unit }

// resize counts what a series takes once its buckets have changed.
func (r *Resource) resize(s *series) {
	r.units -= int(s.units)
	s.units = int32(sizeOf(s.label, s.bounds))
	r.units += int(s.units)
}

// size is what a group takes of the limit besides its series. Its attributes are stored
// twice.
func size(g *input.Group) int {
	return 2 * len(g.Key) / unit
}

// Units is what the resource takes of the limit: one for each series, and more for
// long labels and many buckets.
func (r *Resource) Units() int { return r.units }

// Trim removes series without a point for MaxStaleness, and groups without series. It
// remembers that they existed, so that one that appears again does not count from 0.
func (r *Resource) Trim() {
	r.remove(func(s *series) bool {
		// A delta series without points has not changed.
		return r.Time()-s.time > int64(r.settings.MaxStaleness) && (!s.delta || s.ended)
	})
}

// Shrink removes the newest series until the resource takes the given units less, and
// the newest groups until there are the given number less.
func (r *Resource) Shrink(units, groups int) {
	least, most := r.units-units, len(r.groups)-groups
	for len(r.groups) > 0 && (r.units > least || len(r.groups) > most) {
		g := r.groups[len(r.groups)-1]
		for in := range slices.Backward(g.inputs.place[:]) {
			in := input.Metric(in)
			for all := g.inputs.of(in); len(all) > 0 && (r.units > least || len(r.groups) > most); all = g.inputs.of(in) {
				last := all[len(all)-1]
				g.inputs.set(in, all[:len(all)-1])
				r.forgo(g, in, last)
			}
		}
		if !g.empty() {
			return
		}
		r.drop(g)
		r.groups = r.groups[:len(r.groups)-1]
	}
}

// remove removes the series for which dead is true, and groups that have none.
func (r *Resource) remove(dead func(*series) bool) {
	removed := false
	for _, g := range r.groups {
		if !g.inputs.any(dead) {
			continue
		}
		for in := range input.NumMetrics {
			if !slices.ContainsFunc(g.inputs.of(in), dead) {
				continue
			}
			removed = true
			g.inputs.set(in, slices.DeleteFunc(g.inputs.of(in), func(s *series) bool {
				if dead(s) {
					r.forgo(g, in, s)
					return true
				}
				return false
			}))
		}
	}
	if !removed {
		return
	}
	r.groups = slices.DeleteFunc(r.groups, func(g *Group) bool {
		if g.empty() {
			r.drop(g)
			return true
		}
		return false
	})
	for i, g := range r.groups {
		g.place = i
	}
}

// forgo records the removal of a series from its group. Counters and distributions are
// remembered; a gauge needs no baseline.
func (r *Resource) forgo(g *Group, in input.Metric, s *series) {
	name := labelled{in, s.label}
	delete(g.labels, name)
	r.series--
	r.units -= int(s.units)
	if in.Define().Kind != input.Gauge {
		g.existed.add(hashOfSeries(name), unnumbered)
	}
}

func (g *Group) empty() bool {
	return !g.inputs.any(func(*series) bool { return true })
}

func (r *Resource) drop(g *Group) {
	g.dropped, r.judged = true, false
	r.units -= g.units
	delete(r.index, g.Key)
	r.existed.add(hashOf(g.Key), g.Number)
	is := func(other *Group) bool { return other == g }
	if g.engine.groups = slices.DeleteFunc(g.engine.groups, is); len(g.engine.groups) == 0 {
		delete(r.engines, g.engine.name)
	}
	r.leave(g, g.rollup)
	r.leave(g, g.whole)
}

// reclaim makes room during an update, at most once. It removes series that have ended
// and series that are neither in this batch nor in the previous one.
func (u *update) reclaim() {
	if u.reclaimed {
		return
	}
	u.reclaimed = true
	u.remove(func(s *series) bool {
		return s.found != u.seq && (s.ended || !s.delta && s.newest < u.seq-1)
	})
	for i, g := range u.groups {
		if g != nil && g.dropped {
			u.groups[i] = nil
		}
	}
}
