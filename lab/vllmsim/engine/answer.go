package engine

// nameAnswer makes the answer findable for the next turn of the conversation, which begins
// with the prompt and the answer of this one. Of open-loop traffic the next turn is not known.
//
// vLLM names a block when it is full. Here this happens when the answer is complete, which is
// before its client can send the next turn; no other request looks for these blocks.
func (c *core) nameAnswer(r *request) {
	if r.what == nil || r.what.next == nil || c.cfg.NoPrefixCaching || !r.isTurn() {
		return
	}
	// The last token was never computed, so computed leaves it out.
	w, size := r.what, c.cfg.BlockSize
	to := min(r.computed, w.tokens*blockCount(w.next.Prefix))
	from := w.fullTokens()
	for i, key := range w.keys(w.next.Prefix, from, to, size, r.adapter) {
		// A block can have the key of a preempted request, or one of a block of the traffic that
		// the prompt fills partly.
		if b := r.table[from/size+i]; c.pool.blocks[b].key != key {
			c.pool.forget(b)
			c.pool.name(b, key)
		}
	}
}

// isTurn reports whether a request that has ended was as recorded, and the next prompt of the
// recording begins with it and its answer.
func (r *request) isTurn() bool {
	w := r.what
	asRecorded := (r.end == EndStop || r.end == EndLength) &&
		r.prompt == int(w.prompt) && r.generated == int(w.output) && r.shared > 0
	return asRecorded && int(w.prompt) >= w.shared && int(w.next.Prompt) >= r.computed && w.isContinued()
}

// fullTokens is how many tokens of the prompt are in blocks of the traffic that it fills.
func (w *recorded) fullTokens() int { return int(w.prompt) / w.tokens * w.tokens }

// isContinued reports whether all blocks of the traffic that the prompt fills are known and
// begin the next prompt.
func (w *recorded) isContinued() bool {
	left := int32(w.fullTokens() / w.tokens)
	before, next := w.prefix, w.next.Prefix
	// at is the place of the first block in before that was not compared, of the next one in next.
	for at, nextAt := int32(0), int32(0); left > 0; left-- {
		if len(before) == 0 || len(next) == 0 || before[0].First+at != next[0].First+nextAt {
			return false
		}
		at, nextAt = at+1, nextAt+1
		if at > before[0].Last-before[0].First {
			before, at = before[1:], 0
		}
		if nextAt > next[0].Last-next[0].First {
			next, nextAt = next[1:], 0
		}
	}
	return true
}
