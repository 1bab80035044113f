package engine

import (
	"math/bits"
	"slices"
)

// admit moves requests from the queue into the batch, in order, until one does
// not fit. A request for an adapter beyond the slots is
// skipped.
func (c *core) admit(now float64, budget int) {
	active := uint64(0)
	if c.cfg.MaxLoRAs > 0 {
		active = c.adaptersRunning()
	}
	if !c.admitFetched(now, &budget, &active) {
		return
	}
	for len(c.preempted) > 0 {
		last := len(c.preempted) - 1
		r := c.preempted[last]
		switch c.tryAdmit(r, now, &budget, &active) {
		case full:
			return
		case passedOver:
			c.skipped = slices.Insert(c.skipped, 0, r)
		}
		c.preempted = c.preempted[:last]
	}
	kept := c.skipped[:0]
	stop := false
	for i, r := range c.skipped {
		answer := c.tryAdmit(r, now, &budget, &active)
		if answer == full {
			kept = append(kept, c.skipped[i:]...)
			stop = true
			break
		}
		if answer == passedOver {
			kept = append(kept, r)
		}
	}
	clear(c.skipped[len(kept):])
	c.skipped = kept
	for !stop && !c.waiting.empty() {
		r := c.waiting.first()
		switch c.tryAdmit(r, now, &budget, &active) {
		case full:
			return
		case passedOver:
			c.skipped = append(c.skipped, r)
		}
		c.waiting.pop()
	}
}

type admission uint8

const (
	admitted admission = iota // Or it had left, or waits for a transfer now.
	passedOver
	full
)

func (c *core) tryAdmit(r *request, now float64, budget *int, active *uint64) admission {
	if r.gone {
		return admitted // Its number was taken off the queue's when it left.
	}
	if *budget <= 0 || len(c.running) >= c.cfg.MaxSeqs {
		return full
	}
	if c.cfg.MaxLoRAs > 0 && r.adapter > 0 && *active&(1<<r.adapter) == 0 && bits.OnesCount64(*active) >= c.cfg.MaxLoRAs {
		return passedOver
	}
	if r.unscheduled {
		c.dequeued(r)
		r.done = true
		c.ended = append(c.ended, r)
		return admitted
	}
	hit := c.lookup(r)
	size := c.cfg.BlockSize
	available := c.pool.free
	for _, b := range hit {
		if c.pool.blocks[b].refs == 0 {
			available--
		}
	}
	first := r.cached < 0
	whole := (r.tokens+size-1)/size - len(hit)
	if whole > available {
		if (first || c.cfg.Semantics.RecountPreempted) && c.cfg.Semantics.RecountBlocked {
			c.count(r, len(hit)*size)
		}
		return full
	}
	for _, b := range hit {
		c.pool.hold(b)
	}
	r.table, r.found = hit, nil
	r.computed = len(hit) * size
	r.named = min(len(hit), r.shared/size)
	if first || c.cfg.Semantics.RecountPreempted {
		c.count(r, r.computed)
	}
	if first {
		r.cached = r.computed
		c.totals.LookedUp += r.prompt
		c.totals.Found += r.computed
	}
	c.dequeued(r)
	if first && r.remote < c.cfg.Transfer.Share && r.prompt-1 > r.computed {
		c.journal.lookup(now, r, r.cached, r.prompt-r.computed, r.prompt-1-r.computed)
		c.fetch(r, now, whole)
		return admitted
	}
	if first {
		c.journal.lookup(now, r, r.cached, 0, 0)
	}
	c.start(r, now, budget, active)
	return admitted
}

// count adds a lookup in the prefix cache to the public counters. Since v0.11 lookups
// after a preemption are kept apart there.
func (c *core) count(r *request, found int) {
	if !c.cfg.NoPrefixCaching {
		c.lookedUp += r.tokens
		c.lookedUpBlocks += r.tokens / c.cfg.BlockSize
		c.found += found
	}
}

// start makes a request with its found blocks part of the batch.
func (c *core) start(r *request, now float64, budget *int, active *uint64) {
	if !r.started {
		r.started = true
		r.admitted = now
	}
	*active |= 1 << r.adapter &^ 1
	n := min(r.tokens-r.computed, *budget)
	if need := (r.computed+n+c.cfg.BlockSize-1)/c.cfg.BlockSize - len(r.table); need > 0 {
		c.extend(r, need)
	}
	c.assign(r, n, budget)
	c.running = append(c.running, r)
	c.scheduled++
}

// lookup returns the blocks that already hold the beginning of the request's
// tokens, but never all of them. They are kept as r.found.
//
// A request at the head of a queue is looked up before each step. A long prompt has
// thousands of blocks, so what was found the last time is not looked for again: a block
// that still has its key is the one that the key would find.
func (c *core) lookup(r *request) []int32 {
	if r.found == nil {
		r.found = c.newTable()
	}
	if c.cfg.NoPrefixCaching {
		return r.found
	}
	most := (r.tokens - 1) / c.cfg.BlockSize
	if len(r.found) > 0 && r.lookedUp == c.pool.changes && len(r.found) <= most {
		return r.found
	}
	hits := r.found[:0]
	for i, b := range r.found {
		if i == most || c.pool.blocks[b].key != c.key(r, i) {
			break
		}
		hits = append(hits, b)
	}
	for i := len(hits); i < most; i++ {
		key := c.key(r, i)
		b := int32(0)
		if key&sharedKey != 0 {
			b = c.pool.find(key)
		} else if i < len(r.former) && c.pool.blocks[r.former[i]].key == key {
			b = r.former[i]
		}
		if b == 0 {
			break
		}
		hits = append(hits, b)
	}
	r.found, r.lookedUp = hits, c.pool.changes
	return hits
}

// fetch gives a request all its blocks and lets it wait for their content.
func (c *core) fetch(r *request, now float64, blocks int) {
	c.extend(r, blocks)
	c.askedOut += r.prompt - r.computed
	if c.cfg.Semantics.LocalInExternal {
		c.askedOut += r.computed
	}
	if !c.cfg.Semantics.AsyncHitsUncounted {
		c.foundOut += r.prompt - 1 - r.computed
	}
	r.fetching = true
	bytes := float64(r.prompt-1-r.computed) * c.cfg.Model.KVBytes * c.cfg.Model.GPUs
	r.readyAt = now + c.cfg.Transfer.Latency + bytes/c.cfg.Transfer.BytesPerSecond
	c.fetching = append(c.fetching, r)
}

// admitFetched moves requests whose transfer has ended into the batch. It
// returns false where one of them does not fit.
func (c *core) admitFetched(now float64, budget *int, active *uint64) bool {
	fits := true
	kept := c.fetching[:0]
	for _, r := range c.fetching {
		switch {
		case r.gone:
			c.free(r)
			continue
		case r.readyAt > now:
			kept = append(kept, r)
			continue
		case !fits || *budget <= 0 || len(c.running) >= c.cfg.MaxSeqs:
			fits = false
			kept = append(kept, r)
			continue
		}
		r.fetching = false
		if r.transferFails {
			c.failedTransfers++
		} else {
			r.external = r.prompt - 1 - r.computed
			r.computed = r.prompt - 1
			r.cached = r.computed
		}
		c.start(r, now, budget, active)
	}
	clear(c.fetching[len(kept):])
	c.fetching = kept
	return fits
}
