package engine

import (
	"math/bits"
	"slices"
)

// blockPool is the KV cache of one engine in blocks. Block 0 is the null block:
// it is never handed out and counts neither as used nor as free.
//
// A free block keeps its key, and can be found by it, until it is taken for
// something else. Free blocks form a list in the order in which they became
// free; the head is taken first.
type blockPool struct {
	// blocks has the null block first, which is the anchor of the free list as well.
	blocks []block
	free   int
	// buckets have the first shared block of each hash; 0 is none. Their number is a power
	// of two.
	buckets []int32
	// withheld is how many blocks something else has, wanted how many it wants.
	withheld, wanted int
	// changes counts what can change the result of a lookup.
	changes uint64
	// residency follows blocks; nil if that is switched off.
	residency *residency
}

// block is one block. All of it is in one place, and blocks of equal hash are linked here and
// not in a map, because a run takes and finds blocks more often than it does anything else,
// and most of them are not in the processor's cache.
type block struct {
	// key is that of the content; 0 is none.
	key uint64
	// next and prev link the free list, following the shared blocks of a bucket.
	next, prev, following int32
	// refs is the number of users; -1 is a withheld block.
	refs int32
}

// sharedKey marks keys of content that several requests can have.
const sharedKey = 1 << 63

func newBlockPool(blocks int) *blockPool {
	p := &blockPool{blocks: make([]block, blocks), buckets: make([]int32, 1<<bits.Len(uint(blocks)))}
	for b := int32(1); b < int32(blocks); b++ {
		p.append(b)
	}
	return p
}

// bucket is where shared blocks of a key are linked.
func (p *blockPool) bucket(key uint64) *int32 {
	return &p.buckets[key*0x9e3779b97f4a7c15>>(64-bits.Len(uint(len(p.buckets)-1)))]
}

// find returns the block with a shared content, or 0.
func (p *blockPool) find(key uint64) int32 {
	b := *p.bucket(key)
	for b != 0 && p.blocks[b].key != key {
		b = p.blocks[b].following
	}
	return b
}

// usable is the number of blocks that requests can have.
func (p *blockPool) usable() int { return len(p.blocks) - 1 - p.withheld }

// used is the share of usable blocks that requests hold, or of all blocks with the null
// block as a used one.
func (p *blockPool) used(withNull bool) float64 {
	if withNull {
		return 1 - float64(p.free)/float64(p.usable()+1)
	}
	return 1 - float64(p.free)/float64(p.usable())
}

func (p *blockPool) append(b int32) {
	last := p.blocks[0].prev
	p.blocks[last].next, p.blocks[b].prev = b, last
	p.blocks[b].next, p.blocks[0].prev = 0, b
	p.free++
}

func (p *blockPool) unlink(b int32) {
	before, after := p.blocks[b].prev, p.blocks[b].next
	p.blocks[before].next, p.blocks[after].prev = after, before
	p.free--
}

// take hands out the block that has been free for longest; its former content
// can no longer be found. There must be a free one.
func (p *blockPool) take() int32 {
	b := p.blocks[0].next
	p.unlink(b)
	p.forget(b)
	p.blocks[b].refs = 1
	p.residency.recordTaken(b)
	return b
}

func (p *blockPool) forget(b int32) {
	one := &p.blocks[b]
	if one.key == 0 {
		return
	}
	if one.key&sharedKey != 0 {
		link := p.bucket(one.key)
		for *link != b {
			link = &p.blocks[*link].following
		}
		*link = one.following
	}
	one.key = 0
	p.changes++
}

// hold adds a user to a block whose content was found.
func (p *blockPool) hold(b int32) {
	if p.blocks[b].refs == 0 {
		p.unlink(b)
	}
	p.blocks[b].refs++
	p.residency.recordFound(b)
}

// release takes away one user of each block, the last block first, so that of
// a request's blocks the end of its text is taken by others before the beginning.
func (p *blockPool) release(table []int32) {
	for _, b := range slices.Backward(table) {
		p.blocks[b].refs--
		if p.blocks[b].refs == 0 {
			p.append(b)
		}
	}
	p.withhold()
}

// name makes a full block findable.
func (p *blockPool) name(b int32, key uint64) {
	if key&sharedKey != 0 {
		if p.find(key) != 0 {
			return
		}
		first := p.bucket(key)
		p.blocks[b].following, *first = *first, b
	}
	p.blocks[b].key = key
	p.changes++
}

// withhold takes free blocks away, or returns them, until withheld equals wanted.
func (p *blockPool) withhold() {
	for p.withheld < p.wanted && p.free > 0 {
		b := p.take()
		p.residency.drop(b)
		p.withheld++
		p.blocks[b].refs = -1
	}
	for b := int32(1); p.withheld > p.wanted; b++ {
		if p.blocks[b].refs == -1 {
			p.blocks[b].refs = 0
			p.withheld--
			p.append(b)
		}
	}
}

// reset makes all content unfindable, as when weights change.
func (p *blockPool) reset() {
	p.changes++
	clear(p.buckets)
	for b := range p.blocks {
		p.blocks[b].key = 0
	}
	p.residency.forget()
}
