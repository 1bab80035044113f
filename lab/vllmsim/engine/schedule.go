package engine

import (
	"math"
	"slices"
)

// core is one engine: a queue, a batch and a KV cache.
type core struct {
	cfg     *Config
	journal *journal
	index   int
	pool    *blockPool
	val     *values // Its own parameters.
	draft   int

	// inbox holds requests that the front end has passed on or will have, in
	// the order of queued.
	inbox queue
	// The queue in the order of admission: preempted requests (the last one
	// first), those passed over before, and the rest.
	preempted, skipped []*request
	waiting            queue
	// fetching are requests that wait for a transfer, outside the queue.
	fetching []*request
	// queued counts requests in the three, without those whose clients have gone.
	queued    int
	running   []*request
	scheduled int // How many at the head of running take part in the step.

	stepping, stalled  bool
	asleep             bool
	ends, lastEnd      float64 // Of the step and of the one before.
	stalledAt          float64
	step               int
	batch              Batch
	gaps               gapCounts // Of all steps so far.
	goneRunning        int
	goneWaiting        int        // Since the last step was planned.
	unreported         bool       // Requests are gone that no report has left out yet.
	ended              []*request // Before they were scheduled, since the last report.
	totals             Totals
	adaptersWaiting    [maxAdapters + 1]int
	lookedUp, found    int // Prefix lookups of the step in tokens.
	lookedUpBlocks     int
	askedOut, foundOut int // The same of other servers.
	failedTransfers    int
	tables             [][]int32 // Without blocks, for further requests.
	devices            []*device // With Config.Device.
}

// queue is a first-in first-out queue.
type queue struct {
	items []*request
	head  int
}

func (q *queue) push(r *request) { q.items = append(q.items, r) }
func (q *queue) empty() bool     { return q.head == len(q.items) }
func (q *queue) first() *request { return q.items[q.head] }
func (q *queue) live() []*request {
	return q.items[q.head:]
}

func (q *queue) pop() {
	q.items[q.head] = nil
	q.head++
	if q.head == len(q.items) {
		q.items, q.head = q.items[:0], 0
	} else if q.head > 1024 && q.head > len(q.items)/2 {
		q.items = slices.Delete(q.items, 0, q.head)
		q.head = 0
	}
}

// plan starts a step at the given time. It returns false where there is nothing
// to work on.
func (c *core) plan(now float64) bool {
	c.pool.residency.setTime(now)
	if c.asleep || c.stalled {
		return false
	}
	c.receive(now)
	if c.goneRunning > 0 {
		c.dropGone()
	}
	c.goneWaiting = 0
	c.batch.reset()
	budget := c.cfg.MaxBatchedTokens
	preempted := c.continueRunning(&budget)
	for _, r := range c.running[c.scheduled:] {
		r.chunk = 0
		r.pause(&c.gaps)
	}
	if !preempted {
		c.admit(now, budget)
	}
	if c.scheduled == 0 {
		// Where the only request gave up its blocks, the next step admits it.
		return preempted && c.plan(now)
	}
	c.ends = now + c.stepSeconds(now) + c.cfg.Speculation.Seconds
	c.stepping = true
	return true
}

// stepSeconds is the length of the step that is planned.
func (c *core) stepSeconds(now float64) float64 {
	if len(c.devices) == 0 {
		return c.cfg.Model.StepTime(c.batch, c.val.shape())
	}
	return c.planDevices(now)
}

// receive takes what the front end has passed on by now.
func (c *core) receive(now float64) {
	for !c.inbox.empty() && c.inbox.first().queued <= now {
		r := c.inbox.first()
		c.inbox.pop()
		if r.gone {
			continue
		}
		c.waiting.push(r)
		c.enqueued(r)
	}
}

func (c *core) enqueued(r *request) {
	r.waits = true
	c.queued++
	c.adaptersWaiting[r.adapter]++
}

func (c *core) dequeued(r *request) {
	r.waits = false
	c.queued--
	c.adaptersWaiting[r.adapter]--
}

// continueRunning gives each running request what it lacks, in order, while the
// budget lasts. Where no block is free the newest request loses its own.
func (c *core) continueRunning(budget *int) (preempted bool) {
	size := c.cfg.BlockSize
	c.scheduled = 0
	for c.scheduled < len(c.running) && *budget > 0 {
		r := c.running[c.scheduled]
		n := r.tokens - r.computed
		if r.decoding {
			n = 1 + c.draft
		}
		n = min(n, *budget)
		if reach := r.computed + n; reach > len(r.table)*size {
			need := (reach+size-1)/size - len(r.table)
			for need > c.pool.free && c.scheduled < len(c.running) {
				c.preemptNewest()
				preempted = true
			}
			if c.scheduled == len(c.running) {
				break // It was the newest itself.
			}
			c.extend(r, need)
		}
		c.assign(r, n, budget)
		c.scheduled++
	}
	return preempted
}

// assign makes n tokens of the request part of the step.
func (c *core) assign(r *request, n int, budget *int) {
	r.chunk = n
	*budget -= n
	if r.decoding {
		c.batch.AddDecode(n, r.computed+1)
		return
	}
	c.batch.AddChunk(n, r.computed)
	if r.named < r.shared/c.cfg.BlockSize && !c.cfg.NoPrefixCaching {
		c.nameShared(r, r.computed+n)
	}
}

func (c *core) extend(r *request, blocks int) {
	for range blocks {
		r.table = append(r.table, c.pool.take())
	}
}

// nameShared makes the full blocks of the shared beginning findable. As in
// vLLM this happens when they are planned, not when they are computed.
func (c *core) nameShared(r *request, reach int) {
	full := min(reach, r.shared) / c.cfg.BlockSize
	for ; r.named < full; r.named++ {
		b := r.table[r.named]
		if c.pool.blocks[b].key == 0 {
			c.pool.name(b, c.key(r, r.named))
		}
	}
}

// key identifies the content of a full block, like vLLM's hash: its tokens, all tokens
// before it, and the adapter.
func (c *core) key(r *request, block int) uint64 {
	switch {
	case (block+1)*c.cfg.BlockSize > r.shared:
		return uint64(r.serial)<<20 | uint64(block)
	case r.prefix >= 0:
		return sharedKey | uint64(r.adapter)<<56 | uint64(r.prefix)<<20 | uint64(block)
	case r.keys == nil:
		r.keys = r.what.keys(r.what.prefix, 0, r.shared, c.cfg.BlockSize, r.adapter)
	}
	return r.keys[block]
}

// groupPrefix marks the numbers of beginnings that the members of a group have in common.
const groupPrefix = 1 << 35

// keys returns the keys of the full blocks that end after the first from and within the first
// to tokens of a prompt, of this turn or of the next. Everything up to
// the end of a block of the cache is known to be equal where the block of the traffic is equal
// in which that end is.
func (w *recorded) keys(runs []BlockRun, from, to, size, adapter int) []uint64 {
	var out []uint64
	own, common := mix(w.conversation, uint64(adapter)), mix(1<<63|uint64(w.shared), uint64(adapter))
	passed := 0 // How many blocks of the traffic were in the runs before.
	for end := (from/size + 1) * size; end <= to; end += size {
		place := (end - 1) / w.tokens
		for place-passed > int(runs[0].Last-runs[0].First) {
			passed += int(runs[0].Last-runs[0].First) + 1
			runs = runs[1:]
		}
		of, number := own, uint64(int(runs[0].First)+place-passed)
		if end <= w.shared {
			of, number = common, 0
		}
		if out == nil {
			out = make([]uint64, 0, (to-end)/size+1)
		}
		out = append(out, sharedKey|mix(of^(number<<32|uint64(end))))
	}
	return out
}

func (c *core) preemptNewest() {
	last := len(c.running) - 1
	r := c.running[last]
	c.running[last] = nil
	c.running = c.running[:last]
	r.pause(&c.gaps)
	c.keepFindable(r)
	c.free(r)
	r.computed, r.chunk, r.decoding = 0, 0, false
	r.preemptions++
	c.totals.Preemptions++
	r.unreported++
	c.preempted = append(c.preempted, r)
	c.enqueued(r)
}

// keepFindable lets a request find its full blocks again after it has given them up.
func (c *core) keepFindable(r *request) {
	if c.cfg.NoPrefixCaching {
		return
	}
	// Only the request itself could ever find these blocks again.
	for i := r.named; i < r.computed/c.cfg.BlockSize; i++ {
		if c.pool.blocks[r.table[i]].key == 0 {
			c.pool.name(r.table[i], c.key(r, i))
		}
	}
	r.former = append(r.former[:0], r.table...)
}

// free gives all blocks back.
func (c *core) free(r *request) {
	c.pool.release(r.table)
	c.tables = append(c.tables, r.table[:0])
	r.table, r.named = nil, 0
}

// newTable returns an empty table of blocks. The tables of requests that have ended are used
// again: most have the capacity that the next request needs.
func (c *core) newTable() []int32 {
	if n := len(c.tables); n > 0 {
		table := c.tables[n-1]
		c.tables = c.tables[:n-1]
		return table
	}
	return make([]int32, 0, 64)
}

// deferred counts requests that wait for something else than room: an adapter
// slot, or a transfer.
func (c *core) deferred() int {
	n := 0
	for _, list := range [][]*request{c.skipped, c.fetching} {
		for _, r := range list {
			if !r.gone {
				n++
			}
		}
	}
	return n
}

// dropGone takes requests out of the batch whose clients have left.
func (c *core) dropGone() {
	c.running = slices.DeleteFunc(c.running, func(r *request) bool {
		if r.gone {
			c.free(r)
		}
		return r.gone
	})
	c.goneRunning = 0
}

// nextEvent is when the engine has something to do by itself.
func (c *core) nextEvent() float64 {
	switch {
	case c.stalled:
		return math.Inf(1)
	case c.stepping:
		return c.ends
	case c.asleep:
		return math.Inf(1)
	}
	next := math.Inf(1)
	if !c.inbox.empty() {
		next = c.inbox.first().queued
	}
	for _, r := range c.fetching {
		next = min(next, r.readyAt)
	}
	return next
}
