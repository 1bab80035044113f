package exposition

// pool limits the memory of the layouts of all readers of a Memory together. A small layout
// is never refused, so large layouts cannot displace small ones. If there is no room for a
// large layout, a larger one is displaced; if no larger one exists, the layout is refused.
// Equal layouts count once.
type pool struct {
	// size is the limit for all large layouts together, in bytes; 0 means no limit.
	size, used int
	held       map[uint64]*holding
}

// holding is a large layout that readers hold.
type holding struct {
	cost, readers int
	// displaced is true if a smaller layout has taken its room. Its readers drop it with
	// the next body.
	displaced bool
}

// smallCost is the memory up to which a layout is not counted: that of about 5,000 lines.
// Two engines have 950.
const smallCost = 4 << 20

// sampleCost is the memory of one sample, without its text, in a layout and in the plan and
// the states made from it. It was measured, see docs/why/performance.md.
const sampleCost = 640

// costOf estimates the memory of the layout of these blocks, in bytes.
func costOf(blocks []*block) int {
	cost := 0
	for _, b := range blocks {
		cost += 2*len(b.text) + sampleCost*len(b.samples)
	}
	return cost
}

// estimate returns the approximate memory of the layout of a body that is not yet read.
func estimate(body []byte) int { return 2*len(body) + sampleCost*countLines(body) }

// hold counts a layout and reports whether there is room for it.
func (p *pool) hold(hash uint64, cost int) bool {
	if p.held == nil {
		p.held = map[uint64]*holding{}
	}
	if h := p.held[hash]; h != nil && !h.displaced {
		h.readers++
		return true
	}
	if !p.makeRoom(cost) {
		return false
	}
	p.used += cost
	if h := p.held[hash]; h != nil {
		h.displaced = false
		h.readers++
		return true
	}
	p.held[hash] = &holding{cost: cost, readers: 1}
	return true
}

// makeRoom displaces larger layouts until one of this cost fits, if that helps.
func (p *pool) makeRoom(cost int) bool {
	if p.size == 0 {
		return true
	}
	if !p.hasRoom(cost) {
		return false
	}
	for p.size-p.used < cost {
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
	if p.size == 0 {
		return true
	}
	room := p.size - p.used
	for _, h := range p.held {
		if !h.displaced && h.cost > cost {
			room += h.cost
		}
	}
	return room >= cost
}

// release frees the layout of one reader.
func (p *pool) release(hash uint64) {
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
