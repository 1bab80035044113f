package exposition

import "sync"

// pool limits the memory of the layouts of all readers of a Memory together. A small layout
// is never refused, so large layouts cannot displace small ones. If there is no room for a
// large layout, a larger one is displaced; if no larger one exists, the layout is refused.
// Equal layouts count once.
type pool struct {
	// size is the limit for all large layouts together, in bytes; 0 means no limit.
	size int

	mu   sync.Mutex
	used int
	held map[uint64]*holding
}

// holding is a large layout that readers hold.
type holding struct {
	cost, readers int
	// displaced is true if a smaller layout has taken its room. Its readers drop it with
	// the next body.
	displaced bool
}

// smallCost is the memory up to which a layout is not counted: that of about 6,000 lines.
// Two engines have 950.
const smallCost = 4 << 20

// sampleCost is the memory of one sample, without its text, in a layout and in the plan and
// the states made from it: 450 to 510 bytes were measured for gauges with one to four labels. Histograms
// take a fifth of that.
const sampleCost = 512

// labelCost is that of a label of a series besides. HELP and TYPE lines count as samples.
const labelCost = 32

// costOf estimates the memory of the layout of these blocks, in bytes.
func costOf(blocks []*block) int {
	cost := 0
	for _, b := range blocks {
		cost += b.size + sampleCost*(len(b.metas)+len(b.samples))
		for i := range b.series {
			cost += labelCost * len(b.series[i].labels)
		}
	}
	return cost
}

// estimate returns the approximate memory of the layout of a body that is not yet read.
func estimate(body []byte) int { return len(body) + sampleCost*countLines(body) }

// hold counts the layout of a reader and reports whether there is room for it.
func (p *pool) hold(hash uint64, cost int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held == nil {
		p.held = map[uint64]*holding{}
	}
	h := p.held[hash]
	if h == nil || h.displaced {
		if !p.makeRoom(cost) {
			return false
		}
		p.used += cost
	}
	if h == nil {
		h = &holding{cost: cost}
		p.held[hash] = h
	}
	h.displaced = false
	h.readers++
	return true
}

// makeRoom displaces larger layouts until one of this cost fits, if that helps.
func (p *pool) makeRoom(cost int) bool {
	if !p.hasRoom(cost) {
		return false
	}
	for p.size > 0 && p.size-p.used < cost {
		var largest *holding
		for _, h := range p.held {
			if !h.displaced && (largest == nil || h.cost > largest.cost) {
				largest = h
			}
		}
		largest.displaced = true
		p.used -= largest.cost
	}
	return true
}

// hasRoom reports whether a layout of this cost fits once all larger ones leave.
func (p *pool) hasRoom(cost int) bool {
	room := p.size - p.used
	for _, h := range p.held {
		if !h.displaced && h.cost > cost {
			room += h.cost
		}
	}
	return p.size == 0 || room >= cost
}

// fits reports whether there is room for a layout of this cost, in an empty memory
// or, if now is set, in addition to those that are held.
func (p *pool) fits(cost int, now bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.size == 0 || cost <= p.size && (!now || p.hasRoom(cost))
}

// displaced reports whether a reader has to drop its layout.
func (p *pool) displaced(hash uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.held[hash]
	return h == nil || h.displaced
}

// release frees the layout of one reader.
func (p *pool) release(hash uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.held[hash]
	if h == nil {
		return
	}
	h.readers--
	if h.readers > 0 {
		return
	}
	if !h.displaced {
		p.used -= h.cost
	}
	delete(p.held, hash)
}
