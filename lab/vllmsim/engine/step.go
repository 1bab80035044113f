package engine

// finish ends the step under way and reports it: requests get their tokens, and
// complete ones free their blocks.
func (c *core) finish(rep *report) {
	c.stepping = false
	c.restDevices(c.ends)
	previous := rep.previous
	gap := c.ends - previous
	c.step++
	c.totals.Steps++
	c.gaps[gapBucket(gap)]++
	rep.end, rep.gap = c.ends, gap
	ended := 0
	for _, r := range c.running[:c.scheduled] {
		if r.gone {
			continue
		}
		if !r.decoding {
			r.computed += r.chunk
			if r.computed < r.tokens {
				continue // Its prompt is not complete.
			}
		}
		c.output(r, rep, gap)
		if r.generated >= r.stopAt {
			if c.rest(r) {
				ended++
				rep.add(evChunk, r, 0)
				continue
			}
			c.nameAnswer(r)
			c.free(r)
			r.done = true
			r.pause(&c.gaps)
			ended++
			rep.add(evFinished, r, 0)
		}
	}
	if ended > 0 {
		c.dropDone()
	}
	c.finishReport(rep)
}

// output gives a request the tokens of this step.
func (c *core) output(r *request, rep *report, gap float64) {
	n := 1
	if r.decoding && r.chunk > 1 {
		n += c.accepted(r, r.chunk-1, rep)
		n = min(n, r.stopAt-r.generated)
	}
	r.decoding = true
	r.generated += n
	r.tokens += n
	r.computed = r.tokens - 1
	if rep.generated == 0 {
		rep.process = r.id % c.cfg.FrontEnd.Processes
	}
	rep.generated += n
	rep.share(r, n, c.cfg.FrontEnd.Processes)
	if c.cfg.Tokens != nil {
		rep.parts = append(rep.parts, part{r, n})
	}
	if r.unreported > 0 {
		rep.preemptions += r.unreported
		r.unreported = 0
	}
	switch {
	case r.generated == n:
		r.firstToken = c.ends
		r.base, r.steadily = c.gaps, true
		rep.add(evFirst, r, 0)
	case r.session != nil && r.session.fresh:
		r.session.between += c.ends - r.lastToken
		r.base, r.steadily = c.gaps, true
		rep.add(evFirst, r, 0)
	case r.lastStep == c.step-1:
		rep.steady++
		r.steps++
		if gap > r.maxGap {
			r.maxGap = gap
		}
	default:
		own := c.ends - r.lastToken
		r.steps++
		r.maxGap = max(r.maxGap, own)
		r.gaps[gapBucket(own)]++
		r.base, r.steadily = c.gaps, true
		rep.add(evGap, r, own)
	}
	if r.session != nil && (r.generated == n || r.session.fresh) {
		r.session.fresh, r.session.first = false, c.ends
	}
	r.lastStep = c.step
	r.lastToken = c.ends
}

// accepted draws how many of the drafted tokens hold. The draw depends on the
// request and its progress alone, so that it is the same in runs that are
// compared.
func (c *core) accepted(r *request, drafted int, rep *report) int {
	rep.drafts++
	rep.drafted += drafted
	n := 0
	for pos, p := range c.cfg.Speculation.Acceptance[:drafted] {
		if uniform(c.cfg.Seed, uint64(r.id), uint64(r.generated), uint64(pos)) >= p*c.val[ParamAcceptance] {
			break
		}
		rep.accepted[pos]++
		n++
	}
	return n
}

// uniform mixes numbers into one between 0 and 1.
func uniform(numbers ...uint64) float64 {
	return float64(mix(numbers...)>>11) / (1 << 53)
}

// mix mixes numbers into one (the finalizer of splitmix64).
func mix(numbers ...uint64) uint64 {
	x := uint64(0)
	for _, n := range numbers {
		x += n + 0x9e3779b97f4a7c15
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		x ^= x >> 31
	}
	return x
}

func (c *core) dropDone() {
	kept := c.running[:0]
	for _, r := range c.running {
		resting := r.session != nil && r.session.resting
		if (!r.done && !resting) || r.gone { // A cancelled request still has blocks.
			kept = append(kept, r)
		}
	}
	clear(c.running[len(kept):])
	c.running = kept
}

// finishReport fills in what the scheduler itself reports with a step.
func (c *core) finishReport(rep *report) {
	rep.running = len(c.running) - c.goneRunning
	rep.deferredNow = c.deferred()
	rep.waiting = c.queued
	if c.cfg.Semantics.FrozenAfterAborts {
		// The scheduler learns of aborts after the step, and there may be no other.
		rep.goneRunning, rep.goneWaiting = c.goneRunning, c.goneWaiting
	}
	for _, r := range c.skipped {
		if !r.gone {
			rep.waiting-- // It is among the deferred.
		}
	}
	rep.usage, rep.shownUsage = c.pool.used(false), c.pool.used(c.cfg.Semantics.NullBlockUsed)
	for _, r := range c.ended {
		rep.add(evUnscheduled, r, 0)
	}
	clear(c.ended)
	c.ended = c.ended[:0]
	if followed := c.pool.residency; followed != nil {
		rep.evicted, followed.ended = followed.ended, nil
	}
	rep.lookedUp, rep.lookedUpBlocks, rep.found = c.lookedUp, c.lookedUpBlocks, c.found
	rep.askedOut, rep.foundOut, rep.failed = c.askedOut, c.foundOut, c.failedTransfers
	c.lookedUp, c.lookedUpBlocks, c.found = 0, 0, 0
	c.askedOut, c.foundOut, c.failedTransfers = 0, 0, 0
	if c.cfg.FlopsCounters && c.batch.Seqs > 0 {
		m, e := c.cfg.Model, c.cfg.Estimates
		c.totals.Flops += m.flops(c.batch)
		c.totals.ReadBytes += m.read(c.batch)
		c.totals.WrittenBytes += m.written(c.batch)
		rep.flops, rep.written = e.Flops*m.flops(c.batch), e.KV*m.written(c.batch)
		rep.read = e.Weights*m.WeightBytes + e.KV*(m.read(c.batch)-m.WeightBytes)
	}
	if c.cfg.MaxLoRAs > 0 {
		rep.adaptersRunning, rep.adaptersWaiting = c.adaptersRunning(), 0
		for adapter, n := range &c.adaptersWaiting {
			if n > 0 {
				rep.adaptersWaiting |= 1 << adapter
			}
		}
		rep.adaptersWaiting &^= 1
	}
}

// adaptersRunning is the set of adapters that the batch uses.
func (c *core) adaptersRunning() uint64 {
	set := uint64(0)
	for _, r := range c.running {
		set |= 1 << r.adapter
	}
	return set &^ 1
}
