package window

import (
	"hash/maphash"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

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

// existed remembers removed series or groups: a bounded number of hashes, with a number
// for each. The oldest is forgotten first. Once one has been forgotten, it is unknown
// whether something that is not in the set existed before.
type existed struct {
	limit  int
	number map[uint64]int
	// order is the hashes, the oldest first.
	order []uint64
	// lost is true once a hash has been forgotten.
	lost bool
}

const (
	// groupsExisted and seriesExisted are the most hashes of a resource and of a group.
	// A hash takes about 40 bytes.
	groupsExisted = 1024
	seriesExisted = 64
)

// unnumbered stands for a hash without a number.
const unnumbered = -1

var existedSeed = maphash.MakeSeed()

func hashOf(key string) uint64 { return maphash.String(existedSeed, key) }

func hashOfSeries(s labelled) uint64 { return maphash.Comparable(existedSeed, s) }

func (e *existed) add(hash uint64, number int) {
	if _, known := e.number[hash]; known {
		if number != unnumbered {
			e.number[hash] = number
		}
		return
	}
	if e.number == nil {
		e.number = map[uint64]int{}
	}
	if len(e.order) == e.limit {
		e.lost = true
		delete(e.number, e.order[0])
		e.order = slices.Delete(e.order, 0, 1)
	}
	e.order = append(e.order, hash)
	e.number[hash] = number
}

// unknown reports whether something may have existed before.
func (e *existed) unknown(hash uint64) bool {
	_, was := e.number[hash]
	return was || e.lost
}

// fewSeries is the number of series of an input up to which a linear search is used.
const fewSeries = 16

// labelled is a series of a group: an input and the values of its labels.
type labelled struct {
	input input.Metric
	label input.Label
}

// find returns a series of the group; nil where it is new. The points of a metric have
// the same order in every batch. So the search begins at hint, and hint is then set to
// the likely place of the next series.
func (g *Group) find(in input.Metric, label input.Label, hint *int) *series {
	all := g.inputs.of(in)
	for i := range min(len(all), fewSeries) {
		next := (*hint + i) % len(all)
		if all[next].label == label {
			*hint = next + 1
			return all[next]
		}
	}
	return g.labels[labelled{in, label}]
}

func (g *Group) include(in input.Metric, s *series) {
	g.inputs.set(in, append(g.inputs.of(in), s))
	switch all := g.inputs.of(in); {
	case len(all) < fewSeries:
	case len(all) == fewSeries:
		if g.labels == nil {
			g.labels = make(map[labelled]*series, 2*fewSeries)
		}
		for _, s := range all {
			g.labels[labelled{in, s.label}] = s
		}
	default:
		g.labels[labelled{in, s.label}] = s
	}
}

// process returns the name of what restarts together: all attributes but the model. An
// engine restarts with all its models. Where several servers share a resource, other
// attributes distinguish them. An endpoint picker restarts with all models and targets.
func process(attributes []input.Attribute) string {
	without := make([]input.Attribute, 0, len(attributes))
	for _, a := range attributes {
		switch a.Name {
		case "model_name":
		case targetLabel:
			without = append(without, input.Attribute{Name: targetLabel})
		default:
			without = append(without, a)
		}
	}
	return input.KeyWithout(without, "")
}

// targetLabel is the attribute of an endpoint picker for the model that a server gets.
const targetLabel = "target_model_name"

// inputs are the series of a group by input. A group has a part of the inputs, and a server
// has groups with two or three, so only those that were seen have a list.
type inputs struct {
	// place is the place of the list of an input, and 1 more; 0 without a list.
	place [input.NumMetrics]uint8
	lists [][]*series
}

// of returns the series of an input, in the order of their first sample.
func (i *inputs) of(in input.Metric) []*series {
	if at := i.place[in]; at > 0 {
		return i.lists[at-1]
	}
	return nil
}

func (i *inputs) set(in input.Metric, all []*series) {
	if i.place[in] == 0 {
		if len(i.lists) == cap(i.lists) {
			// A list has 24 bytes, so little room is added.
			i.lists = append(make([][]*series, 0, len(i.lists)+4), i.lists...)
		}
		i.lists = append(i.lists, nil)
		i.place[in] = uint8(len(i.lists))
	}
	i.lists[i.place[in]-1] = all
}

func (i *inputs) any(is func(*series) bool) bool {
	for _, all := range i.lists {
		if slices.ContainsFunc(all, is) {
			return true
		}
	}
	return false
}
