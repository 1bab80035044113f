package exposition

// pool bounds what the layouts of all readers of a Memory cost together. A small
// layout is never refused, so large ones take nothing from the others.
// Where there is no room for a large one, a larger one is displaced; where none is
// larger, it is refused. Layouts that are equal count once.
type pool struct {
	// size is the most that large layouts may cost together; 0 means no limit.
	size, used int
	held       map[uint64]*holding
}

// holding is a large layout that readers hold.
type holding struct {
	cost, readers int
	// displaced is true where a smaller one has taken its room. Its readers notice
	// with the next body.
	displaced bool
}

// smallCost is what a layout may cost without being counted: that of some 5,000
// lines, where two engines have 950.
const smallCost = 4 << 20

// sampleCost is what one sample costs in a layout, and in the plan and the states
// that are made from it, without its text; measured, see docs/why/performance.md.
const sampleCost = 640

// costOf estimates what the layout of these blocks costs.
func costOf(blocks []*block) int {
	cost := 0
	for _, b := range blocks {
		cost += 2*len(b.text) + sampleCost*len(b.samples)
	}
	return cost
}

// estimate is about what the layout of a body costs that was not read yet.
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

// release gives up what one reader held.
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
