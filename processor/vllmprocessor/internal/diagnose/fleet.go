package diagnose

import (
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/quota"
)

// Pools is the diagnosis of pools: of engines that share some attributes. Its zero
// value knows none, and takes none before MaxPools is set.
type Pools struct {
	// MaxPools is the most pools. Those that came first stay, other than those of a
	// resource that alone has more of them than another that needs one.
	MaxPools int

	// pools has a pool for each number, or nil.
	pools []*poolState
	byKey map[string]*poolState
	// alone counts the pools that one resource has for itself, made all that were made.
	alone       map[*State]int
	made        int
	key         []byte
	transitions []Transition
	values      []derive.Value
}

// Begin forgets the members of the last evaluation. A pool that had none then has
// had its series ended, and gives its number back.
func (p *Pools) Begin() {
	clear(p.alone)
	for number, pool := range p.pools {
		switch {
		case pool == nil:
		case len(pool.members) == 0:
			if key := keyOf(&p.key, pool.attributes); p.byKey[key] == pool {
				delete(p.byKey, key)
			}
			p.pools[number] = nil
		default:
			if pool.owner = pool.first; pool.shared {
				pool.owner = nil
			} else {
				p.alone[pool.owner]++
			}
			pool.first, pool.shared = nil, false
			clear(pool.members)
			pool.members, pool.queued = pool.members[:0], 0
		}
	}
}

// Add adds the engines of a resource. pool returns the attributes of the pool that
// a group belongs to, by the group's own. It is false where an engine had no place,
// since there are too many pools.
func (p *Pools) Add(s *State, pool func(of []collect.Attribute) []collect.Attribute) (complete bool) {
	complete = true
	for _, e := range s.engines {
		if e.number == serverOnly {
			continue
		}
		to := p.pool(s, pool(e.attributes))
		if to == nil {
			complete = false
			continue
		}
		if to.first == nil {
			to.first = s
		}
		to.shared = to.shared || to.first != s
		if to.owner != nil && to.owner != s {
			p.alone[to.owner]--
			to.owner = nil
		}
		to.members = append(to.members, newMember(e))
	}
	return complete
}

// Queue adds requests that wait at a gateway, after all engines were added. They
// are for the pools whose attributes the gateway's do not contradict. Where these
// are several, nobody knows for which of them the requests are: they count only
// where each of the pools has room.
func (p *Pools) Queue(s *State) {
	for _, q := range s.queues {
		full := slices.ContainsFunc(p.pools, func(pool *poolState) bool { return pool.takes(&q) && !pool.roomy() })
		for _, pool := range p.pools {
			if !full && pool.takes(&q) {
				pool.queued += q.requests
			}
		}
	}
}

// pool returns the pool with some attributes; nil where there is no place for it.
func (p *Pools) pool(s *State, attributes []collect.Attribute) *poolState {
	key := keyOf(&p.key, attributes)
	if pool := p.byKey[key]; pool != nil {
		return pool
	}
	if len(p.byKey) >= p.MaxPools && !p.evict(s) {
		return nil
	}
	number := slices.Index(p.pools, nil)
	if number < 0 {
		number = len(p.pools)
		p.pools = append(p.pools, nil)
	}
	pool := &poolState{engine: engine{number: number, attributes: slices.Clone(attributes), baseline: newBaseline(), follows: unheard}}
	pool.described = &pool.details
	p.made++
	pool.made, pool.owner = p.made, s
	p.pools[number] = pool
	if p.byKey == nil {
		p.byKey, p.alone = map[string]*poolState{}, map[*State]int{}
	}
	p.byKey[key] = pool
	p.alone[s]++
	return pool
}

// evict makes a place for a pool of a resource: the resource that has most pools for
// itself loses the newest of them. It is false where that would not be fair.
func (p *Pools) evict(s *State) bool {
	most, unfair := quota.Most(p.alone, s)
	if !unfair {
		return false
	}
	p.alone[most]--
	var newest *poolState
	for _, pool := range p.pools {
		if pool != nil && pool.owner == most && (newest == nil || pool.made > newest.made) {
			newest = pool
		}
	}
	// Its number is free once its series have ended.
	delete(p.byKey, keyOf(&p.key, newest.attributes))
	clear(newest.members)
	newest.members, newest.queued, newest.first, newest.owner = newest.members[:0], 0, nil, nil
	return true
}

// keyOf writes attributes into a buffer as one string.
func keyOf(buffer *[]byte, attributes []collect.Attribute) string {
	*buffer = (*buffer)[:0]
	for _, a := range attributes {
		*buffer = append(append(append(append(*buffer, a.Name...), 0), a.Value...), 0)
	}
	return string(*buffer)
}

// Evaluate judges the pools at a time in nanoseconds and returns what is told about
// them and what has changed, both valid until the next call. What is told of a
// pool's engines has lasted already, so the pool's condition follows at once.
func (p *Pools) Evaluate(settings *Settings, at int64, enabled map[*derive.Row]bool) ([]derive.Value, []Transition) {
	p.transitions, p.values = p.transitions[:0], p.values[:0]
	atOnce := Settings{Window: settings.Window, Hold: 1}
	for _, pool := range p.pools {
		if pool == nil || len(pool.members) == 0 {
			continue
		}
		raw, shares := pool.judge(settings, at)
		pool.shares = shares
		pool.last.at, pool.last.Signals = at, pool.signals()
		pool.describe()
		pool.told.Reference = pool.reference()
		state := State{transitions: p.transitions}
		pool.settle(&atOnce, &state, raw, at, &symptoms{})
		p.transitions = state.transitions
		p.values = pool.values(poolRows, enabled, p.values)
	}
	return p.values, p.transitions
}

// Attributes returns those of a pool by its number, as long as it has members or
// had some at the previous evaluation.
func (p *Pools) Attributes(number int) []collect.Attribute { return p.pools[number].attributes }
