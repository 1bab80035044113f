// Package pools is about servers that share attributes, such as a model's name. Totals adds them up: sums,
// ratios of sums, quantiles of merged buckets, and how unequal the servers are. Diagnosis judges each pool by
// the reported diagnoses of its engines. It is pure: time is a parameter.
package pools

import (
	"math"
	"slices"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// Settings are the choices of a processor's pools.
type Settings struct {
	// GroupBy are the names of the attributes whose values make a pool.
	GroupBy []string
	// MaxPools is the most pools at a time. Those that came first stay, other than those
	// of a server that alone has more of them than another that needs one.
	MaxPools int
	// MaxStaleness is the time after which a silent server is removed.
	MaxStaleness time.Duration
	// Enabled reports whether a metric is enabled.
	Enabled func(metric string) bool
	// Derive has the quantiles, and how they are computed.
	Derive *derive.Settings
}

// Totals are the totals of a processor's pools. They are not safe for concurrent use.
//
// A server counts with its newest batch, over the window that
// ends there. Servers are scraped at different times, so these windows are not
// the same to the second. One that is late keeps its last values; it leaves when
// its series have ended, or else when it has been silent for MaxStaleness.
type Totals struct {
	places[*replica, *group]

	settings Settings
	table    *table
	// servers are in the order in which they came, so that sums come out the same
	// each time.
	servers []*replica
	index   map[string]*replica
	// found is true for each of GroupBy that any server has.
	found []bool
	// serves are the pools by the models that they serve; delays is by key.
	serves map[string]*group
	delays map[string]Delay

	out       []derive.Value
	now, long []window.View
	merged    window.Histogram
	values    []float64
	key       []byte
	// attributes is for reuse.
	attributes []input.Attribute
}

// replica is one server.
type replica struct {
	key     string
	arrived int64
	engines []*engine
	// asked is by model, where the resource is a gateway.
	asked []*asked
}

// engine is what one engine and model of a replica adds.
type engine struct {
	number     int
	key, model string
	attributes []input.Attribute
	parts      []derive.Parts
	// distributions are empty where the engine does not report them.
	distributions []window.Histogram
	// current is true for an engine of the batch that is being taken in.
	current bool
	// lasts is the time up to which its times are compared with those of gateways.
	lasts int64
}

// group is one pool. servers are the engines in it of each of its servers.
type group struct {
	place[*replica]
	servers [][]*engine
	// asked is what the gateways before it measured. shared is true where another pool serves the same
	// model. delay is what the gateways add, in seconds; NaN where it is not known.
	asked  [derive.NumGateways][derive.NumUntil]derive.Parts
	shared bool
	delay  [derive.NumUntil]float64
}

func (g *group) empty() bool { return len(g.servers) == 0 } //nolint:unused // of placed, which the linter does not follow

func (g *group) clear() { g.servers = slices.Delete(g.servers, 0, len(g.servers)) } //nolint:unused // of placed, which the linter does not follow

// NewTotals returns pools without servers.
func NewTotals(settings Settings) *Totals {
	t := newTable()
	t.rows = slices.DeleteFunc(t.rows, func(r row) bool { return !settings.Enabled(r.Metric) })
	return &Totals{
		places:   newPlaces(settings.MaxPools, func(*group) {}),
		settings: settings, table: t, index: map[string]*replica{}, found: make([]bool, len(settings.GroupBy)),
		serves: map[string]*group{}, delays: map[string]Delay{},
	}
}

// Observe reads the newest batch of a resource, which arrived at a time
// in nanoseconds. What is only late in this batch keeps its
// last value, as the derived series of the resource do.
func (p *Totals) Observe(key string, resource *window.Resource, attributesOf AttributesOf, arrived int64) {
	r, known := p.index[key]
	if !known {
		r = &replica{key: key}
	}
	r.arrived = arrived
	p.now, p.long = resource.Views(p.now, false), resource.Views(p.long, true)
	for i := range p.now {
		if p.now[i].Group().Whole() != nil {
			r.ask(&p.now[i])
			continue
		}
		e := p.engine(r, p.now[i].Group().Number)
		e.read(p, &derive.Member{Now: p.now[i], Long: p.long[i]}, attributesOf)
		e.lasts = lasts(arrived, p.now[i].Elapsed)
	}
	for number := range resource.PendingGroups() {
		for _, e := range r.engines {
			e.current = e.current || e.number == number
		}
		for _, a := range r.asked {
			a.current = a.current || a.number == number
		}
	}
	r.engines = slices.DeleteFunc(r.engines, func(e *engine) bool { return !e.current })
	for _, e := range r.engines {
		e.current = false
	}
	r.asked = slices.DeleteFunc(r.asked, func(a *asked) bool { return !a.current })
	for _, a := range r.asked {
		a.current = false
	}
	switch some := len(r.engines)+len(r.asked) > 0; {
	case some && !known:
		p.index[key] = r
		p.servers = append(p.servers, r)
	case !some && known:
		p.remove(func(other *replica) bool { return other == r })
	}
}

// engine returns a replica's engine by its number.
func (p *Totals) engine(r *replica, number int) *engine {
	for _, e := range r.engines {
		if e.number == number {
			return e
		}
	}
	e := &engine{
		number: number, parts: make([]derive.Parts, len(p.table.parts)),
		distributions: make([]window.Histogram, len(p.table.distributions)),
	}
	for i := range e.parts {
		e.parts[i].Reason = derive.Missing
	}
	r.engines = append(r.engines, e)
	return e
}

// read reads the engine. It is current if it reports anything that
// pools are computed from.
func (e *engine) read(p *Totals, m *derive.Member, attributesOf AttributesOf) {
	for i, part := range p.table.parts {
		is := part(p.settings.Derive, m)
		if is.Reason != derive.Pending {
			e.parts[i] = is
		}
		e.current = e.current || e.parts[i].Reason != derive.Missing
	}
	for i, row := range p.table.distributions {
		p.merged.Reset()
		reason := row.Quantiles(m, &p.merged)
		if reason == derive.Pending {
			continue
		}
		e.distributions[i].Reset()
		if reason == derive.OK {
			e.distributions[i].Add(&p.merged)
		}
	}
	e.model = m.Now.Group().Value("model_name")
	e.join(p, m.Now.Group(), attributesOf)
}

// join sets the attributes of the pool that the engine belongs to.
func (e *engine) join(p *Totals, g *window.Group, attributesOf AttributesOf) {
	p.attributes = attributesOf(p.attributes[:0], g.Attributes)
	for i, name := range p.settings.GroupBy {
		p.found[i] = p.found[i] || e.current && slices.ContainsFunc(p.attributes, func(a input.Attribute) bool { return a.Name == name })
	}
	if p.key = keyOf(p.key[:0], p.attributes); e.attributes == nil || string(p.key) != e.key {
		e.key, e.attributes = string(p.key), append([]input.Attribute{}, p.attributes...)
	}
}

// remove takes replicas out.
func (p *Totals) remove(leaves func(*replica) bool) {
	p.servers = slices.DeleteFunc(p.servers, func(r *replica) bool {
		if !leaves(r) {
			return false
		}
		delete(p.index, r.key)
		return true
	})
}

// NotFound returns those of GroupBy that no server has ever had, once there are
// servers.
func (p *Totals) NotFound() (names []string) {
	if !slices.ContainsFunc(p.servers, func(r *replica) bool { return len(r.engines) > 0 }) {
		return nil
	}
	for i, name := range p.settings.GroupBy {
		if !p.found[i] {
			names = append(names, name)
		}
	}
	return names
}

// Evaluate returns the values of the pools at a time in nanoseconds, and
// the number of servers that were left out because there are too many pools. The
// values are valid until the next call.
func (p *Totals) Evaluate(now int64) (values []derive.Value, leftOut int) {
	p.remove(func(r *replica) bool { return now-r.arrived > int64(p.settings.MaxStaleness) })
	p.empty()
	for _, r := range p.servers {
		if !p.assign(r) {
			leftOut++
		}
	}
	p.compareGateways(now)
	p.out = p.out[:0]
	for _, g := range p.all {
		if g != nil && len(g.servers) > 0 {
			p.emit(g)
		}
	}
	return p.out, leftOut
}

// emit appends the values of all rows of a pool.
func (p *Totals) emit(g *group) {
	for i := range p.table.rows {
		row := &p.table.rows[i]
		row.values(p, g, func(extra string, number float64) {
			if math.IsNaN(number) || math.IsInf(number, 0) {
				return
			}
			p.out = append(p.out, derive.Value{
				Row: &row.Row, Group: g.number, Extra: derive.Extra{extra}, Attributes: g.attributes, Number: number,
			})
		})
	}
}

// assign puts the engines of a replica into their pools; false where one had no
// place.
func (p *Totals) assign(r *replica) bool {
	complete := true
	for i, e := range r.engines {
		g := p.byKey[e.key]
		if g == nil {
			at, has := p.add(r, e.key, e.attributes)
			if !has {
				complete = false
				continue
			}
			g = &group{place: at}
			p.put(g)
		}
		p.join(g, r)
		// Engines of one replica stand together.
		if slices.ContainsFunc(r.engines[:i], func(other *engine) bool { return other.key == e.key }) {
			last := len(g.servers) - 1
			g.servers[last] = append(g.servers[last], e)
			continue
		}
		g.servers = append(g.servers, []*engine{e})
	}
	return complete
}
