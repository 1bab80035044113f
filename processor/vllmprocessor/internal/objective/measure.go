package objective

import (
	"cmp"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// Keeper is implemented by the outer layer. It stores trackers and limits their number.
type Keeper interface {
	// Begin is called before the first step of a tracker, which ends at a time in Unix
	// nanoseconds. It returns the key of the tracker's stored state; false where there
	// are too many trackers and this one must not count.
	Begin(group []input.Attribute, o *Objective, tracker *Tracker, at int64) (key string, ok bool)
	// Buckets is called with the bounds of an objective's histogram when they are first
	// seen and when they change.
	Buckets(o *Objective, bounds []float64)
	// End is called with a tracker that has ended.
	End(key string, tracker *Tracker)
	// Refused is called for a step without a tracker.
	Refused()
	// Took is called with the outcome of a step.
	Took(Outcome)
}

// State is the trackers of one resource. Its zero value has none.
type State struct {
	groups []*group
	// members is the model of each group of the resource, by the number of the group.
	members map[int]*group
	// next is the next number of a model.
	next int
	// taken is the time of the newest counted step of each histogram, in Unix nanoseconds.
	taken map[taken]int64

	steps []step
	// index is an index of steps.
	index map[stepKey]int
	views []window.View
}

type taken struct {
	group int
	input input.Metric
}

// group is a model of the resource with all its engines.
type group struct {
	// number is unique within the resource.
	number     int
	attributes []input.Attribute
	model      string
	// trackers has one for each objective; nil where it has not begun.
	trackers []*tracked
	// views are its engines during an evaluation. pending is true where one of them may
	// still follow.
	views   []*window.View
	pending bool
	// served is true where one of its engines is stored.
	served bool
}

type tracked struct {
	*Tracker
	key    string
	bounds []float64
}

// step is the observations of the engines of a group for one objective over the same
// time.
type step struct {
	stepKey
	at     int64
	counts Counts
	bounds []float64
}

type stepKey struct {
	group     *group
	objective int
	since     int64
}

// Observe counts the steps of a resource that end in its newest batch. A step is counted
// once, also where Observe is called several times for a batch.
func (s *State) Observe(p *Plan, r *window.Resource, keeper Keeper) {
	s.trim(r, keeper)
	s.views = r.Views(s.views, false)
	s.steps = s.steps[:0]
	clear(s.index)
	for i := range s.views {
		s.read(p, r, &s.views[i])
	}
	// The longest step is first, because it covers the time of the others.
	slices.SortStableFunc(s.steps, func(a, b step) int { return cmp.Compare(a.since, b.since) })
	for i := range s.steps {
		s.count(p, &s.steps[i], keeper)
	}
}

func (s *State) read(p *Plan, r *window.Resource, v *window.View) {
	number := v.Group().Number
	for i := range p.objectives {
		in := p.objectives[i].input
		if _, _, _, status := v.Moments(in); status == window.Missing {
			continue
		}
		// The engine is recorded at its first batch, so that it is pending where it is
		// missing in the next.
		at := s.place(v.Group())
		// Before the step, whose histogram is only valid until the view is read again.
		untrusted := derive.Untrusted(v, in)
		since, histogram, status := v.Step(in)
		if status == window.Missing || s.taken[taken{number, in}] == r.Time() {
			continue
		}
		if p.objectives[i].Matches(at.model) {
			// Of defective observations some are false, and it is not known which.
			counts := countsOf(histogram, p.objectives[i].Threshold, untrusted || status == window.Defective)
			s.add(step{stepKey{at, i, since}, r.Time(), counts, histogram.Bounds})
		}
	}
	for i := range p.objectives {
		// Several objectives can be about one histogram.
		if _, _, status := v.Step(p.objectives[i].input); status != window.Missing {
			if s.taken == nil {
				s.taken = map[taken]int64{}
			}
			s.taken[taken{number, p.objectives[i].input}] = r.Time()
		}
	}
}

// countsOf divides the observations of a histogram by a threshold. Those that a known
// defect of the server makes wrong could be on either side.
func countsOf(h *window.Histogram, threshold Duration, untrusted bool) Counts {
	if untrusted {
		return Counts{Valid: h.Count, Undecided: h.Count}
	}
	good, undecided := h.Within(threshold.Seconds())
	return Counts{Valid: h.Count, Good: good, Undecided: undecided}
}

// add merges a step with that of another engine over the same time.
func (s *State) add(one step) {
	if i, known := s.index[one.stepKey]; known {
		s.steps[i].counts.add(one.counts)
		return
	}
	if s.index == nil {
		s.index = map[stepKey]int{}
	}
	s.index[one.stepKey] = len(s.steps)
	s.steps = append(s.steps, one)
}

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

// trim removes the engines that the resource no longer stores, and models without
// engines.
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

// Shrink ends at least n trackers, of the newest models.
func (s *State) Shrink(n int, keeper Keeper) {
	for i := len(s.groups) - 1; i >= 0 && n > 0; i-- {
		n -= s.groups[i].end(keeper)
	}
}

func (s *State) count(p *Plan, one *step, keeper Keeper) {
	g := one.group
	if g.trackers == nil {
		g.trackers = make([]*tracked, len(p.objectives))
	}
	o := &p.objectives[one.objective].Objective
	t := g.trackers[one.objective]
	if t == nil {
		t = &tracked{Tracker: NewTracker(o, p.windows, one.since)}
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

// Each iterates over the trackers and their keys.
func (s *State) Each(yield func(key string, tracker *Tracker) bool) {
	for _, g := range s.groups {
		for _, t := range g.trackers {
			if t != nil && !yield(t.key, t.Tracker) {
				return
			}
		}
	}
}
