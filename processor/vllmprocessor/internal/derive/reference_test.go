package derive_test

import (
	"math"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// What a number is to one who looks from a scrape back over a window. It is
// worked out from what happened, never from totals that are subtracted.
type known int

const (
	present known = iota
	never
	unknown // nothing to compare with
	pending // it was in the scrape before
	gone
)

// seen is what can be known of a series at each scrape.
type seen struct {
	exposed []bool
	// since is from which scrape on all that happens is noticed; -1 before.
	since []int
	// noticed has, for each event that anyone could notice, the scrape that did.
	noticed []noticed
}

type noticed struct {
	scrape, life int
	value        float64
}

type reference struct {
	*world
	seen map[*stream]*seen
	all  map[string]*[input.NumMetrics][]*stream
	// base is, for each scrape, the first one after the last long silence.
	base      []int
	perEngine bool
	peak      float64
}

func newReference(w *world) *reference {
	r := &reference{world: w, seen: map[*stream]*seen{}, base: make([]int, len(w.scrapes)), peak: 1e12}
	for i := 1; i < len(w.scrapes); i++ {
		r.base[i] = r.base[i-1]
		if w.scrapes[i]-w.scrapes[i-1] > w.staleness {
			r.base[i] = i
		}
	}
	r.all = map[string]*[input.NumMetrics][]*stream{}
	for _, s := range w.streams {
		r.seen[s] = r.look(s)
		if r.all[s.engine] == nil {
			r.all[s.engine] = &[input.NumMetrics][]*stream{}
		}
		r.all[s.engine][s.input] = append(r.all[s.engine][s.input], s)
	}
	return r
}

func (r *reference) look(s *stream) *seen {
	n := len(r.scrapes)
	out := &seen{exposed: make([]bool, n), since: make([]int, n)}
	last := -1
	for i := range n {
		out.exposed[i] = r.exposed(s, i)
		out.since[i] = -1
		if i > 0 {
			out.since[i] = out.since[i-1]
		}
		if !out.exposed[i] {
			continue
		}
		switch {
		case last < 0 && s.input.Define().Kind == input.Gauge:
			out.since[i] = i
		case last < 0:
			out.since[i] = r.base[i]
		case last < r.base[i] || r.scrapes[i]-r.scrapes[last] > r.staleness:
			out.since[i] = i
		}
		last = i
	}
	for _, o := range s.events {
		life := r.life(s.engine, o.at)
		for i := range n {
			if r.scrapes[i] >= o.at && out.exposed[i] {
				if r.life(s.engine, r.scrapes[i]) == life {
					out.noticed = append(out.noticed, noticed{i, life, o.value})
				}
				break
			}
		}
	}
	return out
}

// scope is one engine, or several, seen from a scrape back to a baseline.
type scope struct {
	*reference
	engines        []string
	now, from      int
	longFrom       int
	elapsed, whole float64
}

// baseline is the scrape that a window is compared with.
func (r *reference) baseline(now int, length int64) int {
	from := r.base[now]
	for i := now; i >= r.base[now]; i-- {
		if r.scrapes[now]-r.scrapes[i] >= length {
			from = i
			break
		}
	}
	if r.scrapes[now]-r.scrapes[from] > 2*length {
		from++
	}
	return from
}

func (r *reference) scope(now int, engines ...string) *scope {
	s := &scope{
		reference: r, engines: engines, now: now,
		from: r.baseline(now, r.window), longFrom: r.baseline(now, max(r.window, 300*second)),
	}
	s.elapsed = seconds(r.scrapes[now] - r.scrapes[s.from])
	s.whole = seconds(r.scrapes[now] - r.scrapes[s.longFrom])
	if s.whole < 300 {
		s.longFrom = now
	}
	return s
}

// of are the series of an input of one engine.
func (r *reference) of(engine string, in input.Metric) []*stream {
	if r.all[engine] == nil {
		return nil
	}
	return r.all[engine][in]
}

// state reports whether a series is there.
func (r *reference) state(s *stream, now int) known {
	look := r.seen[s]
	for i := now; i >= 0; i-- {
		switch {
		case !look.exposed[i]:
		case i == now:
			return present
		case i == now-1 && !r.markers:
			return pending
		default:
			return gone
		}
	}
	return never
}

// grown integrates what happened to a series after one scrape, up to another.
func (r *reference) grown(s *stream, from, now int) (n float64) {
	for _, o := range r.seen[s].noticed {
		if o.scrape > from && o.scrape <= now {
			n += o.value
		}
	}
	return n
}

// increase adds up the series of a counter. What has gone still happened; but
// once all have gone there is nothing to say.
func (s *scope) increase(engine string, in input.Metric, from int) (n float64, k known) {
	k = never
	for _, each := range s.of(engine, in) {
		state := s.state(each, s.now)
		switch {
		case state == pending:
			return 0, pending
		case state == never:
			continue
		case state == gone && (from == s.now || s.seen[each].since[s.now] > from):
			if k == never {
				k = gone
			}
			continue
		case state == present && (from == s.now || s.seen[each].since[s.now] > from):
			k = unknown
			continue
		case state == present && k != unknown:
			k = present
		case k == never:
			k = gone
		}
		n += s.grown(each, from, s.now)
	}
	return n, k
}

// level is a state at the newest scrape, or when the window began.
func (s *scope) level(engine string, in input.Metric, label string) (n float64, k known) {
	k = never
	for _, each := range s.of(engine, in) {
		if label != "" && each.label != label {
			continue
		}
		switch state := s.state(each, s.now); state {
		case pending:
			return 0, pending
		case present:
			value, _, _ := s.body(each, s.scrapes[s.now])
			n, k = n+value, present
		case gone:
			if k == never {
				k = gone
			}
		}
	}
	return n, k
}

// moved is the difference of a state to what it was when the window began.
func (s *scope) moved(engine string, in input.Metric, from int) (n float64, k known) {
	now, k := s.level(engine, in, "")
	if k != present {
		return 0, k
	}
	for _, each := range s.of(engine, in) {
		look := s.seen[each]
		if from == s.now || look.since[s.now] > from {
			return 0, unknown
		}
		for i := from; ; i-- {
			if look.exposed[i] {
				value, _, _ := s.body(each, s.scrapes[i])
				n += value
				break
			}
		}
	}
	return now - n, present
}

// observed are the observations of a distribution in the window, with the bounds
// that each was counted with.
type observed struct {
	values []float64
	bounds [][]float64
}

func (o *observed) sum() (sum float64) {
	for _, v := range o.values {
		sum += v
	}
	return sum
}

func (o *observed) count() float64 { return float64(len(o.values)) }

func (s *scope) observations(engine string, in input.Metric, from int) (o observed, k known) {
	all := s.of(engine, in)
	if len(all) == 0 {
		return o, never
	}
	one := all[0]
	if k = s.state(one, s.now); k != present {
		return o, k
	}
	if from == s.now || s.seen[one].since[s.now] > from {
		return o, unknown
	}
	for _, n := range s.seen[one].noticed {
		if n.scrape > from && n.scrape <= s.now {
			o.values = append(o.values, n.value)
			o.bounds = append(o.bounds, one.bounds[n.life])
		}
	}
	return o, present
}

// common are the bounds that all observations were counted with.
func (o *observed) common() (bounds []float64) {
	if len(o.bounds) == 0 {
		return nil
	}
	for _, b := range o.bounds[0] {
		if !slices.ContainsFunc(o.bounds, func(other []float64) bool { return !slices.Contains(other, b) }) {
			bounds = append(bounds, b)
		}
	}
	return bounds
}

// quantile interpolates between the shares at or below the two bounds around
// the rank. Zeros are left out before.
func (o *observed) quantile(q, zeros float64) (value, lower, upper float64, ok bool) {
	bounds := o.common()
	all := o.count() - zeros
	if len(bounds) == 0 || all <= 0 {
		return 0, 0, 0, false
	}
	atMost := func(bound float64) (n float64) {
		for _, v := range o.values {
			if v <= bound {
				n++
			}
		}
		return n - zeros
	}
	rank := q * all
	if rank > atMost(bounds[len(bounds)-1]) {
		return bounds[len(bounds)-1], bounds[len(bounds)-1], math.Inf(1), true
	}
	below := 0.0
	for _, bound := range bounds {
		n := atMost(bound)
		if n > below && n >= rank {
			for _, b := range bounds {
				if b < bound {
					lower = b
				}
			}
			return lower + (bound-lower)*(rank-below)/(n-below), lower, bound, true
		}
		below = n
	}
	return 0, 0, 0, false
}
