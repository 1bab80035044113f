package engine

import "slices"

// blockPool is the KV cache of one engine in blocks. Block 0 is the null block:
// it is never handed out and counts neither as used nor as free.
//
// A free block keeps its key, and can be found by it, until it is taken for
// something else. Free blocks form a list in the order in which they became
// free; the head is taken first.
type blockPool struct {
	refs []int32
	keys []uint64
	// next and prev link the free list; the index len(refs) is its anchor.
	next, prev []int32
	free       int
	// shared finds blocks whose content several requests can have.
	shared map[uint64]int32
	// withheld is how many blocks something else has, wanted how many it wants.
	withheld, wanted int
	// changes counts what can change the result of a lookup.
	changes uint64
	// residency follows blocks; nil if that is switched off.
	residency *residency
}

// sharedKey marks keys of content that several requests can have.
const sharedKey = 1 << 63

func newBlockPool(blocks int) *blockPool {
	p := &blockPool{
		refs: make([]int32, blocks), keys: make([]uint64, blocks),
		next: make([]int32, blocks+1), prev: make([]int32, blocks+1),
		shared: map[uint64]int32{},
	}
	anchor := int32(blocks)
	p.next[anchor], p.prev[anchor] = anchor, anchor
	for b := int32(1); b < anchor; b++ {
		p.append(b)
	}
	return p
}

// usable is the number of blocks that requests can have.
func (p *blockPool) usable() int { return len(p.refs) - 1 - p.withheld }

// used is the share of usable blocks that requests hold, or of all blocks with the null
// block as a used one.
func (p *blockPool) used(withNull bool) float64 {
	if withNull {
		return 1 - float64(p.free)/float64(p.usable()+1)
	}
	return 1 - float64(p.free)/float64(p.usable())
}

func (p *blockPool) append(b int32) {
	anchor := int32(len(p.refs))
	last := p.prev[anchor]
	p.next[last], p.prev[b] = b, last
	p.next[b], p.prev[anchor] = anchor, b
	p.free++
}

func (p *blockPool) unlink(b int32) {
	p.next[p.prev[b]], p.prev[p.next[b]] = p.next[b], p.prev[b]
	p.free--
}

// take hands out the block that has been free for longest; its former content
// can no longer be found. There must be a free one.
func (p *blockPool) take() int32 {
	b := p.next[len(p.refs)]
	p.unlink(b)
	p.forget(b)
	p.refs[b] = 1
	p.residency.recordTaken(b)
	return b
}

func (p *blockPool) forget(b int32) {
	if p.keys[b] == 0 {
		return
	}
	if p.keys[b]&sharedKey != 0 {
		delete(p.shared, p.keys[b])
	}
	p.keys[b] = 0
	p.changes++
}

// hold adds a user to a block whose content was found.
func (p *blockPool) hold(b int32) {
	if p.refs[b] == 0 {
		p.unlink(b)
	}
	p.refs[b]++
	p.residency.recordFound(b)
}

// release takes away one user of each block, the last block first, so that of
// a request's blocks the end of its text is taken by others before the beginning.
func (p *blockPool) release(table []int32) {
	for _, b := range slices.Backward(table) {
		p.refs[b]--
		if p.refs[b] == 0 {
			p.append(b)
		}
	}
	p.withhold()
}

// name makes a full block findable.
func (p *blockPool) name(b int32, key uint64) {
	if key&sharedKey != 0 {
		if _, there := p.shared[key]; there {
			return
		}
		p.shared[key] = b
	}
	p.keys[b] = key
	p.changes++
}

// withhold takes free blocks away, or returns them, until withheld equals wanted.
func (p *blockPool) withhold() {
	for p.withheld < p.wanted && p.free > 0 {
		b := p.take()
		p.residency.drop(b)
		p.withheld++
		p.refs[b] = -1
	}
	for b := int32(1); p.withheld > p.wanted; b++ {
		if p.refs[b] == -1 {
			p.refs[b] = 0
			p.withheld--
			p.append(b)
		}
	}
}

// reset makes all content unfindable, as when weights change.
func (p *blockPool) reset() {
	p.changes++
	clear(p.shared)
	clear(p.keys)
	p.residency.forget()
}
