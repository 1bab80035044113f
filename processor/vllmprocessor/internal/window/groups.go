package window

import "github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"

// group returns the state of a group of the batch; nil where it is not stored.
func (u *update) group(i int) *Group {
	if u.groups[i] == nil {
		u.groups[i] = u.index[u.batch.Groups[i].Key]
	}
	return u.groups[i]
}

// admit returns the state of a group of the batch. It creates a new one if there is room,
// and returns nil if there is not.
func (u *update) admit(i, units int) *Group {
	from := &u.batch.Groups[i]
	if g := u.group(i); g != nil {
		return g
	}
	if len(u.Resource.groups) >= u.allowed {
		u.reclaim()
	}
	if len(u.Resource.groups) >= u.allowed {
		u.report.Ignored[GroupLimit]++
		if u.allowed < maxGroups {
			// A higher limit of series would also allow more engines.
			u.report.Lacking += units
		}
		return nil
	}
	if !u.fits(units + size(from)) {
		u.report.Ignored[SeriesLimit]++
		u.report.Lacking += units
		return nil
	}
	u.groups[i] = u.enter(from)
	return u.groups[i]
}

// enter adds a group.
func (r *Resource) enter(from *input.Group) *Group {
	name := process(from.Attributes)
	e := r.engines[name]
	if e == nil {
		e = &engine{name: name}
		r.engines[name] = e
	}
	hash := hashOf(from.Key)
	number, numbered := r.existed.number[hash]
	if !numbered || number == unnumbered {
		number = r.nextGroup
		r.nextGroup++
	}
	g := &Group{
		Group: *from, Number: number, place: len(r.groups), engine: e, units: size(from),
		returned: r.existed.unknown(hash), existed: existed{limit: seriesExisted},
	}
	e.groups = append(e.groups, g)
	r.index[from.Key] = g
	r.groups = append(r.groups, g)
	r.units += g.units
	r.enroll(g)
	r.judged = false
	return g
}

// Expect returns the group with some attributes, sorted by name. It creates the group
// where no sample of it has been seen.
func (r *Resource) Expect(attributes []input.Attribute) *Group {
	from := input.GroupOf(attributes)
	if g := r.index[from.Key]; g != nil {
		return g
	}
	g := r.enter(&from)
	// It existed before, so its first samples are a baseline.
	g.ended, g.returned = true, true
	return g
}
