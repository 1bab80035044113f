package slo

import (
	"cmp"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/histogram"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/objective"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// Keeper is the outer layer, which knows what was saved and how much there may
// be.
type Keeper interface {
	// Begin is told of a tracker before its first step, which ends at a time. It
	// returns the key under which it keeps the tracker's state; false where there
	// are too many trackers already, and this one must not count.
	Begin(group []collect.Attribute, o *objective.Objective, tracker *objective.Tracker, at int64) (key string, ok bool)
	// Buckets is told the bounds of an objective's histogram when it is first seen
	// and when they change.
	Buckets(o *objective.Objective, bounds []float64)
	// End takes a tracker that there is no more.
	End(key string, tracker *objective.Tracker)
	// Refused is told of a step without a tracker.
	Refused()
	// Took is told what became of a step.
	Took(objective.Outcome)
}

// State is the trackers of one resource. Its zero value has none.
type State struct {
	groups []*group
	// members has for each group of the resource, by number, the model that it serves.
	members map[int]*group
	// next is the number of the next model.
	next int
	// taken is until when the steps of a histogram were counted.
	taken map[taken]int64

	steps []step
	// index finds a step.
	index map[stepKey]int
	views []window.View
}

type taken struct {
	group int
	input collect.Input
}

// group is a model of the resource: its engines together.
type group struct {
	// number is that of no other model of the resource.
	number     int
	attributes []collect.Attribute
	model      string
	// trackers has one for each objective, nil where it has not begun.
	trackers []*tracked
	// views are its engines, while it is evaluated; pending is true where one of them
	// may still come.
	views   []*window.View
	pending bool
	// served is true while one of its engines is there.
	served bool
}

type tracked struct {
	*objective.Tracker
	key    string
	bounds []float64
}

// step is what the engines of a group counted for one objective over the same
// time.
type step struct {
	stepKey
	at     int64
	counts objective.Counts
	bounds []float64
}

type stepKey struct {
	group     *group
	objective int
	since     int64
}

// Observe takes the steps of a resource that end in its newest batch. A step is
// taken once, however often its batch is looked at.
func (s *State) Observe(p *Plan, r *window.Resource, keeper Keeper) {
	s.trim(r, keeper)
	s.views = r.Views(s.views, false)
	s.steps = s.steps[:0]
	clear(s.index)
	for i := range s.views {
		s.read(p, r, &s.views[i])
	}
	// The longest first: it covers the time of the others.
	slices.SortStableFunc(s.steps, func(a, b step) int { return cmp.Compare(a.since, b.since) })
	for i := range s.steps {
		s.count(p, &s.steps[i], keeper)
	}
}

// read finds the steps of one engine.
func (s *State) read(p *Plan, r *window.Resource, v *window.View) {
	number := v.Group().Number
	for i := range p.objectives {
		in := p.objectives[i].input
		if _, _, _, status := v.Moments(in); status == window.Missing {
			continue
		}
		// Known from its first batch on, so that it is missed in the next.
		at := s.place(v.Group())
		since, histogram, ok := v.Step(in)
		if !ok || s.taken[taken{number, in}] == r.Time() {
			continue
		}
		if p.objectives[i].Matches(at.model) {
			s.add(step{stepKey{at, i, since}, r.Time(), counts(histogram, p.objectives[i].Threshold), histogram.Bounds})
		}
	}
	for i := range p.objectives {
		// Several objectives can be about one histogram.
		if _, _, ok := v.Step(p.objectives[i].input); ok {
			if s.taken == nil {
				s.taken = map[taken]int64{}
			}
			s.taken[taken{number, p.objectives[i].input}] = r.Time()
		}
	}
}

// counts divides a histogram by a threshold.
func counts(h *histogram.Histogram, threshold objective.Duration) objective.Counts {
	good, undecided := h.Within(threshold.Seconds())
	return objective.Counts{Valid: h.Count, Good: good, Undecided: undecided}
}

// add merges a step with that of another engine over the same time.
func (s *State) add(one step) {
	if i, known := s.index[one.stepKey]; known {
		same := &s.steps[i]
		same.counts.Valid += one.counts.Valid
		same.counts.Good += one.counts.Good
		same.counts.Undecided += one.counts.Undecided
		return
	}
	if s.index == nil {
		s.index = map[stepKey]int{}
	}
	s.index[one.stepKey] = len(s.steps)
	s.steps = append(s.steps, one)
}

// place returns the model that an engine serves.
func (s *State) place(g *window.Group) *group {
	if of := s.members[g.Number]; of != nil {
		return of
	}
	attributes := g.Model()
	at := slices.IndexFunc(s.groups, func(other *group) bool { return slices.Equal(other.attributes, attributes) })
	if at < 0 {
		at = len(s.groups)
		s.groups = append(s.groups, &group{number: s.next, attributes: attributes, model: g.Value("model_name")})
		s.next++
	}
	if s.members == nil {
		s.members = map[int]*group{}
	}
	s.members[g.Number] = s.groups[at]
	return s.groups[at]
}

// trim forgets the engines that the resource does not keep any more, and models
// without any.
func (s *State) trim(r *window.Resource, keeper Keeper) {
	kept := 0
	for number := range r.Numbers() {
		if s.members[number] != nil {
			kept++
		}
	}
	if kept == len(s.members) {
		return
	}
	there := make(map[int]bool, kept)
	for number := range r.Numbers() {
		there[number] = true
	}
	for _, g := range s.groups {
		g.served = false
	}
	for number, g := range s.members {
		if !there[number] {
			delete(s.members, number)
			continue
		}
		g.served = true
	}
	for of := range s.taken {
		if !there[of.group] {
			delete(s.taken, of)
		}
	}
	s.groups = slices.DeleteFunc(s.groups, func(g *group) bool {
		if !g.served {
			g.end(keeper)
		}
		return !g.served
	})
}

// end ends the trackers of a model and returns how many there were.
func (g *group) end(keeper Keeper) (ended int) {
	for _, t := range g.trackers {
		if t != nil {
			keeper.End(t.key, t.Tracker)
			ended++
		}
	}
	g.trackers = nil
	return ended
}

// Shrink ends n trackers or more, of the models that came last.
func (s *State) Shrink(n int, keeper Keeper) {
	for i := len(s.groups) - 1; i >= 0 && n > 0; i-- {
		n -= s.groups[i].end(keeper)
	}
}

// count takes a step into its tracker.
func (s *State) count(p *Plan, one *step, keeper Keeper) {
	g := one.group
	if g.trackers == nil {
		g.trackers = make([]*tracked, len(p.objectives))
	}
	o := &p.objectives[one.objective].Objective
	t := g.trackers[one.objective]
	if t == nil {
		t = &tracked{Tracker: objective.NewTracker(o, p.windows, one.since)}
		key, ok := keeper.Begin(g.attributes, o, t.Tracker, one.at)
		if !ok {
			keeper.Refused()
			return
		}
		t.key = key
		g.trackers[one.objective] = t
	}
	if !slices.Equal(t.bounds, one.bounds) || t.bounds == nil {
		t.bounds = slices.Clone(one.bounds)
		keeper.Buckets(o, one.bounds)
	}
	keeper.Took(t.Add(one.since, one.at, one.counts))
}

// Each goes through the trackers and their keys.
func (s *State) Each(yield func(key string, tracker *objective.Tracker) bool) {
	for _, g := range s.groups {
		for _, t := range g.trackers {
			if t != nil && !yield(t.key, t.Tracker) {
				return
			}
		}
	}
}
