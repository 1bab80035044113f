package pools

import (
	"cmp"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/diagnose"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// siblings are the engines of a pool that serve one model with one configuration, and what was
// usual for such engines before.
type siblings struct {
	signal.Reference
	// peers are those of the evaluation before; found are those of this one.
	peers *diagnose.Peers
	found []diagnose.Sibling
	// newest is the source of the last one found, and ofNewest how many of them belong to it.
	newest   Source
	ofNewest int
}

// mostOfSource bounds the siblings that belong to one source, so that a server that exposes many
// engines, or makes them up, leaves places for those of others: half of diagnose.MostSiblings.
const mostOfSource = 8

// meet gives an engine of a source its siblings as they were at the evaluation before, and takes it
// for the next one. The first engines are taken, in the order of their servers, which changes little from one evaluation to
// the next.
func (p *pool) meet(source Source, m *diagnose.Member) {
	s := p.siblingsOf(m)
	if s == nil {
		m.Meet(nil)
		return
	}
	m.Meet(s.peers)
	if source != s.newest {
		s.newest, s.ofNewest = source, 0
	}
	if len(s.found) > diagnose.MostSiblings || s.ofNewest >= mostOfSource {
		return
	}
	if one, known := m.Sibling(); known {
		s.found = append(s.found, one)
		s.ofNewest++
	}
}

// siblingsOf returns the siblings of an engine; nil where there are too many configurations.
func (p *pool) siblingsOf(m *diagnose.Member) *siblings {
	for _, s := range p.siblings {
		if s.Fits(m.Model, m.Blocks) {
			return s
		}
	}
	if len(p.siblings) >= signal.MostReferences {
		// A configuration that nothing is known of gives its place to a new one.
		unknown := slices.IndexFunc(p.siblings, func(s *siblings) bool { return s.Usual == nil && len(s.found) == 0 })
		if unknown < 0 {
			return nil
		}
		p.siblings = slices.Delete(p.siblings, unknown, unknown+1)
	}
	s := &siblings{Reference: signal.Reference{Model: m.Model, Blocks: m.Blocks}}
	p.siblings = append(p.siblings, s)
	return s
}

// conclude makes the engines that were found the siblings of the next evaluation. at is the time in
// Unix nanoseconds.
func (p *pool) conclude(at int64) {
	for _, s := range p.siblings {
		s.remember()
		if s.Usual != nil && at-s.Usual.Learned > int64(diagnose.BaselineMemory) {
			s.Usual = nil
		}
		s.peers = &diagnose.Peers{Siblings: s.found, Before: s.Usual}
		s.found, s.newest, s.ofNewest = nil, nil, 0
	}
}

// remember makes the median of the engines the reference. Engines that are slow now, or have
// another version since a short time, are left out: the reference is what was usual before.
func (s *siblings) remember() {
	var settled []*signal.Model
	for i := range s.found {
		if one := &s.found[i]; one.Settled {
			settled = append(settled, one.Usual)
		}
	}
	if len(settled) == 0 {
		return
	}
	load := settled[0]
	slices.SortStableFunc(settled, func(a, b *signal.Model) int { return cmp.Compare(load.TypicalStep(a), load.TypicalStep(b)) })
	s.Usual = settled[len(settled)/2]
}

// begin takes the references that a pool of these attributes had.
func (p *pool) begin(keeper diagnose.Keeper) {
	if keeper == nil {
		return
	}
	saved, _, _ := signal.DecodeReferences(keeper.Begin(diagnose.References, p.attributes))
	for i := range saved {
		p.siblings = append(p.siblings, &siblings{Reference: saved[i], peers: &diagnose.Peers{Before: saved[i].Usual}})
	}
	p.before = keeper.Begin(diagnose.PoolDiagnosis, p.attributes)
}

// end hands the references to the keeper.
func (p *pool) end(keeper diagnose.Keeper) {
	if keeper != nil {
		keeper.End(diagnose.References, p.attributes, p.references())
		keeper.End(diagnose.PoolDiagnosis, p.attributes, nil)
	}
}

// references are what is usual in the pool, in the form that Keeper takes.
func (p *pool) references() []byte {
	all := make([]signal.Reference, 0, len(p.siblings))
	for _, s := range p.siblings {
		all = append(all, s.Reference)
	}
	return signal.EncodeReferences(all)
}
