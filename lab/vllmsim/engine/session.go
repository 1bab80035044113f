package engine

import "container/heap"

// session is a request whose prompt arrives in chunks, each of which gets an answer
// (vLLM's streaming input).
type session struct {
	// left are the chunks to come, prompt and output their lengths, pause is the time from
	// an answer to the next chunk.
	left, prompt, output int
	pause                float64
	// first is when the last chunk got its first token, between the time from the last token
	// of each answer to the first of the next.
	first, between float64
	// fresh is a chunk without a token yet, resting a session that waits for the next one.
	fresh, resting bool
}

// rest takes a session out of the batch after an answer. It returns false where that was
// the last one. Its blocks are freed, and found again if no request took them.
func (c *core) rest(r *request) bool {
	t := r.session
	if t == nil || t.left == 0 || r.tokens+t.prompt+t.output > c.cfg.MaxModelLen {
		return false
	}
	t.left--
	t.resting = true
	r.pause(&c.gaps)
	c.keepFindable(r)
	c.free(r)
	r.computed, r.chunk, r.decoding = 0, 0, false
	return true
}

// nextChunk gives the engine the next chunk of a session.
func (s *Server) nextChunk(r *request) {
	if r.gone {
		return
	}
	t, f := r.session, s.cfg.FrontEnd
	t.resting, t.fresh = false, true
	r.prompt += t.prompt
	r.tokens += t.prompt
	r.stopAt += t.output
	r.output += t.output
	arrived, tokenized := s.serve(f.RequestSeconds + f.PromptTokenSeconds*float64(t.prompt))
	r.queued = tokenized + f.DelaySeconds
	if s.cfg.Semantics.ArrivalAfterTokenizing {
		arrived = tokenized
	}
	if s.cfg.Semantics.SessionPerChunk {
		r.stamped = arrived
	}
	s.engines[r.engine].inbox.push(r)
}

// returning are requests by the time at which the front end has more of them for the engine.
type returning []returned

type returned struct {
	at float64
	r  *request
}

func (q returning) Len() int           { return len(q) }
func (q returning) Less(i, j int) bool { return q[i].at < q[j].at }
func (q returning) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *returning) Push(x any)        { *q = append(*q, x.(returned)) }
func (q *returning) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = returned{}
	*q = old[:len(old)-1]
	return last
}

func (s *Server) pushReturning(r *request, at float64) { heap.Push(&s.returning, returned{at, r}) }

// comeBack continues a session or a beam search.
func (s *Server) comeBack() {
	r := heap.Pop(&s.returning).(returned).r
	if r.group != nil {
		s.nextBeams(r)
		return
	}
	s.nextChunk(r)
}
