package engine

import (
	"container/heap"
	"slices"
)

// leave lets a client give up, unless it has its answer, or at least the
// first token where that was all it had no patience for.
func (s *Server) leave(r *request) {
	s.catchUp(s.now)
	if r.done || r.gone {
		return
	}
	if r.impatient && r.firstSeen > 0 {
		r.impatient = false
		if w := s.cfg.Workload.Timeout; w > 0 {
			r.leaves = r.arrived + w
			s.pushLeaver(r)
		}
		return
	}
	w := &s.cfg.Workload
	r.timedOut = w.Timeout > 0 && r.leaves == r.arrived+w.Timeout
	s.dropClient(r)
}

// dropClient takes all of a client's request out of the engine.
func (s *Server) dropClient(r *request) {
	if r.group == nil {
		s.drop(r, EndLeft)
		return
	}
	for _, member := range slices.Clone(r.group.members) {
		if !member.done {
			s.drop(member, EndLeft)
		}
	}
}

// drop takes a request out of the engine. Most versions observe nothing of it but the
// HTTP answer, which had begun.
func (s *Server) drop(r *request, end End) {
	c := s.engines[r.engine]
	r.gone = true
	r.end = end
	c.unreported = true
	switch {
	case r.fetching: // Its blocks are freed when the transfer would have ended.
	case len(r.table) > 0: // It is in the batch.
		c.goneRunning++
	case r.waits:
		c.dequeued(r)
		c.goneWaiting++
	}
	r.done = true
	r.pause(&c.gaps)
	st := s.stats[r.engine]
	if r.client == nil {
		st.Answered(s.now, r.path(), "2xx", max(0, s.now-r.takenUp), r.prompt*4+300, r.answerBytes())
		s.addOutcome(r, s.now)
		s.dropped(r)
	}
	if !s.uncounted(r) {
		m := s.moments(r)
		if r.generated == 0 {
			m = s.abortedUnreached(st, r)
		}
		s.observeDurations(st, r, m, s.now)
	}
	if client := r.client; client != nil {
		s.memberSeen(st, r, s.now)
		if client.done && !client.endNoted {
			client.endNoted = true
			s.dropped(client)
		}
	}
}

// addOutcome records the outcome of a request that has ended.
func (s *Server) addOutcome(r *request, at float64) {
	r.keys, r.found = nil, nil
	if s.reacts() {
		s.react(r, at)
	}
	if s.live == nil {
		return
	}
	delete(s.live, r.id)
	s.outcomes = append(s.outcomes, r.outcome(at, &s.engines[r.engine].gaps))
}

// pushLeaver notes when a client gives up. Requests that have ended are taken out each time
// their number can have doubled, so that a long timeout does not keep all of its requests.
func (s *Server) pushLeaver(r *request) {
	if n := len(s.leavers); n >= leaversAtLeast && n >= 2*s.leaversKept {
		s.leavers = slices.DeleteFunc(s.leavers, func(r *request) bool { return r.done || r.gone })
		heap.Init(&s.leavers)
		s.leaversKept = len(s.leavers)
	}
	heap.Push(&s.leavers, r)
}

// leaversAtLeast is the number of requests from which on those that have ended are taken out.
const leaversAtLeast = 1024

// leavers are requests by the time when their clients give up.
type leavers []*request

func (l leavers) Len() int           { return len(l) }
func (l leavers) Less(i, j int) bool { return l[i].leaves < l[j].leaves }
func (l leavers) Swap(i, j int)      { l[i], l[j] = l[j], l[i] }
func (l *leavers) Push(x any)        { *l = append(*l, x.(*request)) }
func (l *leavers) Pop() any {
	old := *l
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*l = old[:len(old)-1]
	return last
}
