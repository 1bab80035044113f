// Package pooldiagnosis diagnoses pools: it judges each pool by the reported diagnoses of its
// engines. It is pure: time comes as a parameter.
package pooldiagnosis

import (
	"iter"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/quota"
)

// Source is a resource: its engines, and the requests that wait at it where it is a
// gateway. The diagnosis of a resource is one.
type Source interface {
	Members() iter.Seq[diagnose.Member]
	Queues() []diagnose.Queue
}

// Pools is the diagnosis of the pools: of engines that share some attributes. Its zero
// value has no pools and takes none before MaxPools is set.
type Pools struct {
	// MaxPools is the most pools. The oldest stay, except that a source which has most
	// pools for itself gives its newest to a source with at least two fewer.
	MaxPools int
	// Keeper keeps the references of pools that have gone; nil for none.
	Keeper Keeper

	// pools has a pool for each number, or nil.
	pools []*pool
	byKey map[string]*pool
	// alone counts the pools that one source has for itself; made counts all that were
	// made.
	alone       map[Source]int
	made        int
	key         []byte
	transitions []diagnose.Transition
	values      []derive.Value
}

// Begin removes the members of the last evaluation. A pool that had none then has had
// the ends of its series, and its number is free.
func (p *Pools) Begin() {
	clear(p.alone)
	for number, one := range p.pools {
		switch {
		case one == nil:
		case len(one.members) == 0:
			if key := keyOf(&p.key, one.attributes); p.byKey[key] == one {
				delete(p.byKey, key)
				one.end(p.Keeper)
			}
			p.pools[number] = nil
		default:
			if one.owner = one.first; one.shared {
				one.owner = nil
			} else {
				p.alone[one.owner]++
			}
			one.first, one.shared = nil, false
			one.clear()
		}
	}
}

// Add adds the engines of a source. attributesOf returns the attributes of the pool that
// an engine belongs to, by the engine's own. It returns false where an engine was left
// out because there are too many pools.
func (p *Pools) Add(s Source, attributesOf func(of []input.Attribute) []input.Attribute) (complete bool) {
	complete = true
	for engine := range s.Members() {
		to := p.pool(s, attributesOf(engine.Attributes))
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
		to.meet(s, &engine)
		to.members = append(to.members, newMember(&engine))
	}
	return complete
}

// Queue adds the requests that wait at a gateway. It is called after all engines were
// added. The requests belong to each pool that has no attribute with another value than
// the gateway's. Where these are several pools, it is unknown for which of them the
// requests are: they count only where all of these pools have room.
func (p *Pools) Queue(s Source) {
	for _, q := range s.Queues() {
		full := slices.ContainsFunc(p.pools, func(one *pool) bool { return one.takes(&q) && !one.roomy() })
		for _, one := range p.pools {
			if !full && one.takes(&q) {
				one.queued += q.Requests
			}
		}
	}
}

// pool returns the pool with some attributes; nil where there is no place for it.
func (p *Pools) pool(s Source, attributes []input.Attribute) *pool {
	key := keyOf(&p.key, attributes)
	if known := p.byKey[key]; known != nil {
		return known
	}
	if len(p.byKey) >= p.MaxPools && !p.evict(s) {
		return nil
	}
	number := slices.Index(p.pools, nil)
	if number < 0 {
		number = len(p.pools)
		p.pools = append(p.pools, nil)
	}
	p.made++
	attributes = slices.Clone(attributes)
	added := &pool{attributes: attributes, report: diagnose.NewReport(number, attributes), made: p.made, owner: s}
	p.pools[number] = added
	if p.byKey == nil {
		p.byKey, p.alone = map[string]*pool{}, map[Source]int{}
	}
	p.byKey[key] = added
	p.alone[s]++
	added.begin(p.Keeper)
	return added
}

// evict makes a place for a pool of a source: the source that has most pools for itself
// loses its newest one. It returns false where that would not be fair.
func (p *Pools) evict(s Source) bool {
	most, unfair := quota.Most(p.alone, s)
	if !unfair {
		return false
	}
	p.alone[most]--
	var newest *pool
	for _, one := range p.pools {
		if one != nil && one.owner == most && (newest == nil || one.made > newest.made) {
			newest = one
		}
	}
	// Its number is free once its series have ended.
	delete(p.byKey, keyOf(&p.key, newest.attributes))
	newest.end(p.Keeper)
	newest.clear()
	newest.first, newest.owner = nil, nil
	return true
}

// keyOf writes attributes into a buffer as one string.
func keyOf(buffer *[]byte, attributes []input.Attribute) string {
	*buffer = (*buffer)[:0]
	for _, a := range attributes {
		*buffer = append(append(append(append(*buffer, a.Name...), 0), a.Value...), 0)
	}
	return string(*buffer)
}

// Evaluate judges the pools at a time in Unix nanoseconds. It returns the values to
// report and the changes, both valid until the next call. The diagnoses of the engines
// have been held already, so the condition of a pool follows them without a hold.
func (p *Pools) Evaluate(settings *diagnose.Settings, at int64, enabled map[*derive.Row]bool) ([]derive.Value, []diagnose.Transition) {
	p.transitions, p.values = p.transitions[:0], p.values[:0]
	for _, one := range p.pools {
		if one == nil || len(one.members) == 0 {
			continue
		}
		one.conclude(at)
		judged := one.judge(settings, at)
		continues, holds := one.resume(settings, at)
		if p.transitions = append(p.transitions, continues...); !holds {
			p.transitions = append(p.transitions, one.report.Observe(settings, judged)...)
		}
		p.values = one.report.Values(enabled, p.values)
	}
	return p.values, p.transitions
}

// Attributes returns those of a pool by its number. It may be called as long as the pool
// has members, or had some at the previous evaluation.
func (p *Pools) Attributes(number int) []input.Attribute { return p.pools[number].attributes }
