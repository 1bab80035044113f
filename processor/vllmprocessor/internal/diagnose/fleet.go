package diagnose

import (
	"cmp"
	"math"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
)

const (
	// halfLost is the share of engines that do not work from which on a pool is told
	// as they are; with fewer it is degraded.
	halfLost = 0.5
	// loadHarmed is the share of a pool's requests on engines that are degraded from
	// which on the pool is.
	loadHarmed = 0.2
	// uneven is how many times the load of the other engines that of the degraded ones
	// has to be, and room the utilization of the KV cache up to which those could take
	// more.
	uneven = 2
	room   = 0.7
	// toImbalance is the share of what overloads single engines that is the doing of
	// who spreads the requests; the rest is what is told of the engines.
	toImbalance = 0.6
)

// Pools is the diagnosis of pools: of engines that share some attributes. Its zero
// value knows none.
type Pools struct {
	// MaxPools is the most pools; those that came first stay.
	MaxPools int

	pools       []*poolState
	transitions []Transition
	values      []derive.Value
}

// poolState is one pool. What is told about it is kept as that of an engine.
type poolState struct {
	engine
	members []member
	// queued are the requests that wait before the pool's servers.
	queued       float64
	starvedSince int64
}

// member is an engine of a pool as it is told.
type member struct {
	told    *Verdict
	shares  Shares
	load    float64
	waiting float64
	kv      float64
}

// Begin forgets the members of the last evaluation.
func (p *Pools) Begin() {
	for _, pool := range p.pools {
		pool.members, pool.queued = pool.members[:0], 0
	}
}

// Add adds the engines of a resource. pool returns the attributes of the pool that
// a group belongs to, by the group's own.
func (p *Pools) Add(s *State, pool func(of []collect.Attribute) []collect.Attribute) {
	for _, e := range s.engines {
		if e.number == serverOnly {
			continue
		}
		if to := p.pool(pool(e.attributes)); to != nil {
			r := &e.last.Signals
			to.members = append(to.members, member{
				told: &e.told, shares: e.shares, load: orZero(r[Running]) + orZero(r[Waiting]),
				waiting: orZero(r[Waiting]), kv: orZero(r[KVUtilization]),
			})
		}
	}
}

// Queue adds requests that wait at a gateway. They are for the pools whose
// attributes the gateway's do not contradict: for all of them where it names none.
func (p *Pools) Queue(s *State) {
	for _, q := range s.queues {
		for _, pool := range p.pools {
			if len(pool.members) > 0 && agree(q.attributes, pool.attributes) {
				pool.queued += q.requests
			}
		}
	}
}

// agree tells whether two sets of attributes have no name with different values.
func agree(some, others []collect.Attribute) bool {
	for _, a := range some {
		for _, b := range others {
			if a.Name == b.Name && a.Value != b.Value {
				return false
			}
		}
	}
	return true
}

func (p *Pools) pool(attributes []collect.Attribute) *poolState {
	for _, pool := range p.pools {
		if slices.Equal(pool.attributes, attributes) {
			return pool
		}
	}
	if len(p.pools) >= p.MaxPools {
		return nil
	}
	number := 0
	for slices.ContainsFunc(p.pools, func(o *poolState) bool { return o.number == number }) {
		number++
	}
	pool := &poolState{engine: engine{number: number, attributes: slices.Clone(attributes), baseline: newBaseline()}}
	p.pools = append(p.pools, pool)
	return pool
}

// Evaluate judges the pools at a time in nanoseconds and returns what is told about
// them and what has changed, both valid until the next call. What is told of a
// pool's engines has lasted already, so the pool's condition follows at once.
func (p *Pools) Evaluate(settings *Settings, at int64, enabled map[*derive.Row]bool) ([]derive.Value, []Transition) {
	p.transitions, p.values = p.transitions[:0], p.values[:0]
	p.pools = slices.DeleteFunc(p.pools, func(pool *poolState) bool { return len(pool.members) == 0 })
	for _, pool := range p.pools {
		raw, shares := pool.judge(settings, at)
		pool.shares = shares
		pool.last.at, pool.last.Signals = at, pool.signals()
		at1 := Settings{Window: settings.Window, Hold: 1}
		state := State{transitions: p.transitions}
		pool.settle(&at1, &state, raw, at, &symptoms{})
		p.transitions = state.transitions
		p.values = pool.values(poolRows, enabled, p.values)
	}
	return p.values, p.transitions
}

// Attributes returns those of a pool by its number.
func (p *Pools) Attributes(number int) []collect.Attribute {
	for _, pool := range p.pools {
		if pool.number == number {
			return pool.attributes
		}
	}
	return nil
}

// signals are sums and means over the members, as evidence.
func (p *poolState) signals() Signals {
	s := unknown()
	s[Running], s[Waiting], s[KVUtilization] = 0, 0, 0
	for i := range p.members {
		m := &p.members[i]
		s[Running] += m.load - m.waiting
		s[Waiting] += m.waiting
		s[KVUtilization] += m.kv / float64(len(p.members))
	}
	return s
}

// judge returns the condition of a pool and why.
func (p *poolState) judge(settings *Settings, at int64) (Condition, Shares) {
	var count [NumConditions]float64
	var load, harmed float64
	var shares Shares
	for i := range p.members {
		m := &p.members[i]
		count[m.told.Condition]++
		load += m.load
		if m.told.Condition == Degraded || m.told.Condition == Failing {
			harmed += m.load
			shares = shares.plus(m.shares.whole().scale(max(m.load, 0.01)))
		}
	}
	starved := p.starved(&count)
	if !starved {
		p.starvedSince = 0
	} else if p.starvedSince == 0 {
		p.starvedSince = at
	}
	all := float64(len(p.members))
	lost := count[Failing] + count[Stalled] + count[Unreachable]
	switch {
	case lost >= halfLost*all:
		return most(&count, Unreachable, Stalled, Failing), p.balance(shares.whole())
	case lost > 0, harmed > 0 && harmed >= loadHarmed*load:
		return Degraded, p.balance(shares.whole())
	case starved && at-p.starvedSince >= settings.span():
		shares = Shares{}
		shares[UpstreamStarved] = 1
		return Degraded, shares
	case count[Healthy]+count[Degraded] > 0:
		return Healthy, Shares{}
	}
	return most(&count, Idle, Unknown, Starting, Asleep), Shares{}
}

// most returns the condition that most members are in; of equal ones the first.
func most(count *[NumConditions]float64, of ...Condition) Condition {
	return slices.MaxFunc(of, func(a, b Condition) int {
		return cmp.Or(cmp.Compare(count[a], count[b]), cmp.Compare(slices.Index(of, b), slices.Index(of, a)))
	})
}

// starved tells whether requests wait before servers that have room.
func (p *poolState) starved(count *[NumConditions]float64) bool {
	if !(p.queued >= 1) || count[Healthy]+count[Idle] < float64(len(p.members)) {
		return false
	}
	for i := range p.members {
		if m := &p.members[i]; m.waiting >= 1 || m.kv > room {
			return false
		}
	}
	return true
}

// balance gives what overloads single engines to the imbalance where others have
// room: were the requests spread evenly, it would be less.
func (p *poolState) balance(s Shares) Shares {
	var harmed, others, n, m float64
	for i := range p.members {
		one := &p.members[i]
		switch one.told.Condition {
		case Degraded:
			harmed += one.load
			n++
		case Healthy, Idle:
			if one.waiting >= 1 || one.kv > room {
				return s
			}
			others += one.load
			m++
		}
	}
	if n == 0 || m == 0 || harmed/n < uneven*math.Max(others/m, 0.5) {
		return s
	}
	for _, c := range []Cause{DemandExceedsCapacity, KVPressure, DecodeLoad, PrefillHeavy} {
		s[Imbalanced] += toImbalance * s[c]
		s[c] *= 1 - toImbalance
	}
	return s
}
