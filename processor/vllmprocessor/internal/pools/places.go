package pools

import (
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/quota"
)

// AttributesOf appends the attributes of the pool that an engine with some attributes belongs to.
type AttributesOf func(to, engine []input.Attribute) []input.Attribute

// keyOf appends attributes as one text.
func keyOf(to []byte, attributes []input.Attribute) []byte {
	for _, a := range attributes {
		to = append(append(append(append(to, a.Name...), 0), a.Value...), 0)
	}
	return to
}

// place is that of one pool: of those of the sources S that have some attributes. No source is the
// zero value.
type place[S comparable] struct {
	number     int
	key        string
	attributes []input.Attribute
	// first is the first source of its members; shared is true where it has others. owner is the
	// only source at the previous evaluation, or the one for which the pool was made since.
	first, owner S
	shared       bool
	// made is greater for a pool that was made later.
	made int
}

func (p *place[S]) at() *place[S] { return p } //nolint:unused // of placed, which the linter does not follow

// placed is a pool that has a place.
type placed[S comparable] interface {
	comparable
	at() *place[S]
	// empty reports whether it has no members; clear removes them.
	empty() bool
	clear()
}

// places gives pools P numbers, and bounds how many there are. The oldest stay, except that a source
// which has most pools for itself gives its newest to a source with at least two fewer.
type places[S comparable, P placed[S]] struct {
	limit int
	// ended is called for each pool that has gone.
	ended func(P)

	// all has a pool for each number, or nil.
	all   []P
	byKey map[string]P
	// alone counts the pools that one source has for itself; made counts all that were made.
	alone map[S]int
	made  int
}

func newPlaces[S comparable, P placed[S]](limit int, ended func(P)) places[S, P] {
	return places[S, P]{limit: limit, ended: ended, byKey: map[string]P{}, alone: map[S]int{}}
}

// empty removes the members of the last evaluation. A pool that had none then has had the ends of its
// series, and its number is free.
func (p *places[S, P]) empty() {
	var none P
	var nobody S
	clear(p.alone)
	for number, one := range p.all {
		if one == none {
			continue
		}
		at := one.at()
		if one.empty() {
			if p.byKey[at.key] == one {
				delete(p.byKey, at.key)
				p.ended(one)
			}
			p.all[number] = none
			continue
		}
		if at.owner = at.first; at.shared {
			at.owner = nobody
		} else {
			p.alone[at.owner]++
		}
		at.first, at.shared = nobody, false
		one.clear()
	}
}

// add makes a pool of a source, and returns its place; false where there is none.
func (p *places[S, P]) add(source S, key string, attributes []input.Attribute) (place[S], bool) {
	if len(p.byKey) >= p.limit && !p.evict(source) {
		return place[S]{}, false
	}
	var none P
	number := slices.Index(p.all, none)
	if number < 0 {
		number = len(p.all)
		p.all = append(p.all, none)
	}
	p.made++
	p.alone[source]++
	return place[S]{number: number, key: key, attributes: attributes, owner: source, made: p.made}, true
}

// put takes a pool that has got a place.
func (p *places[S, P]) put(one P) {
	at := one.at()
	p.all[at.number], p.byKey[at.key] = one, one
}

// join notes that a pool has a member of a source.
func (p *places[S, P]) join(one P, source S) {
	var nobody S
	at := one.at()
	if at.first == nobody {
		at.first = source
	}
	at.shared = at.shared || at.first != source
	if at.owner != nobody && at.owner != source {
		p.alone[at.owner]--
		at.owner = nobody
	}
}

// evict makes a place for a pool of a source: the source that has most pools for itself
// loses its newest one. It returns false where that would not be fair.
func (p *places[S, P]) evict(source S) bool {
	most, unfair := quota.Most(p.alone, source)
	if !unfair {
		return false
	}
	p.alone[most]--
	var none, newest P
	for _, one := range p.all {
		if one != none && one.at().owner == most && (newest == none || one.at().made > newest.at().made) {
			newest = one
		}
	}
	var nobody S
	at := newest.at()
	// Its number is free once its series have ended.
	delete(p.byKey, at.key)
	p.ended(newest)
	newest.clear()
	at.first, at.owner = nobody, nobody
	return true
}

// known goes through the pools that have members or could get some.
func (p *places[S, P]) known(visit func(P)) {
	for _, one := range p.all {
		var none P
		if one != none && p.byKey[one.at().key] == one {
			visit(one)
		}
	}
}
