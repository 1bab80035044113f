package engine

import (
	"container/heap"
	"math"
)

// loop is a closed loop of clients. Each has conversations one after the other, and sends
// the next turn some time after the answer to the last one. Without traffic its
// conversations are endless, of requests that are drawn.
//
// What a client asks for in its k-th conversation follows from the seed, the client and k
// alone, so that runs can be compared request by request; when it asks does not, since a
// closed loop reacts to the server. The factor of the arrival rate is one of the number of
// clients. Of a factor between two whole numbers of clients the next client takes part by
// its own number. A client that is not needed any more stops after its answer.
type loop struct {
	arrivals *arrivals
	work     *Workload
	clients  []*client
	wanted   float64
}

// client is one client of a closed loop.
type client struct {
	number int
	// conversation and turn are those of its next request.
	conversation, turn int
	idle               bool
}

// leastPause is the least time between an answer and the next request of a client, in
// seconds, so that answers which take no time do not stop the simulation.
const leastPause = 1e-3

func newLoop(a *arrivals) *loop { return &loop{arrivals: a, work: &a.work} }

// active reports whether a client takes part.
func (l *loop) active(c *client) bool {
	return float64(c.number)+uniform(l.arrivals.seed, uint64(c.number), thinning) < l.wanted && l.work.Part.has(clientsFirst|c.number<<clientShift)
}

// setRate takes over the factor of the number of clients, and starts those that are missing.
func (s *Server) setRate(now, factor float64) {
	s.arrivals.set(now, factor)
	l := s.loop
	if wanted := min(factor*float64(s.cfg.Workload.Clients), maxClients); wanted != l.wanted {
		l.wanted = wanted
		for n := len(l.clients); float64(n) < wanted; n++ {
			l.clients = append(l.clients, l.newClient(n))
		}
		for _, c := range l.clients {
			if c.idle && l.active(c) {
				c.idle = false
				// It is somewhere in its pause.
				u := uniform(l.arrivals.seed, uint64(l.id(c)), choosing)
				s.sendLater(due{at: now + u*l.pause(c), client: c})
			}
		}
	}
}

// newClient returns a client that is in the middle of a conversation.
func (l *loop) newClient(number int) *client {
	c := &client{number: number, idle: true}
	if turns := l.turns(c); turns != nil {
		c.turn = int(uniform(l.arrivals.seed, uint64(number), choosing) * float64(len(turns)))
	}
	return c
}

// of returns the conversation that a client has now.
func (l *loop) of(c *client) *Conversation {
	t := l.work.Traffic
	if t == nil {
		return nil
	}
	u := uniform(l.arrivals.seed, uint64(c.number), uint64(c.conversation), nearby)
	return &t.Conversations[int(u*float64(len(t.Conversations)))]
}

func (l *loop) turns(c *client) []Turn {
	if talk := l.of(c); talk != nil {
		return talk.Turns
	}
	return nil
}

// id is the number of the client's next request.
func (l *loop) id(c *client) int {
	return clientsFirst | c.number<<clientShift | c.conversation%maxConversations<<conversationShift | c.turn
}

// pause is how long a client waits before its next request.
func (l *loop) pause(c *client) float64 {
	pause := 0.0
	if turns := l.turns(c); turns != nil {
		pause = turns[c.turn].Think
	} else {
		pause = -math.Log(1-uniform(l.arrivals.seed, uint64(l.id(c)), pausing)) * l.work.Think
	}
	if l.work.ThinkMost > 0 {
		pause = min(pause, l.work.ThinkMost)
	}
	return max(pause, leastPause)
}

// request returns the client's next request and moves on to the one after it.
func (l *loop) request(c *client, at float64, v *values) *request {
	came := arrival{at: at, id: l.id(c)}
	turns := maxTurns
	if talk := l.of(c); talk != nil {
		turn := &talk.Turns[c.turn]
		came.what = &recorded{
			prompt: turn.Prompt, output: turn.Output, prefix: turn.Prefix, tokens: l.work.Traffic.BlockTokens, known: blockCount(turn.Prefix),
			conversation: uint64(c.number)<<32 | uint64(c.conversation) + 1, shared: int(talk.Shared),
		}
		turns = len(talk.Turns)
		if c.turn+1 < turns {
			came.what.next = &talk.Turns[c.turn+1]
		}
	}
	c.turn++
	if c.turn == turns {
		c.conversation, c.turn = c.conversation+1, 0
	}
	r := l.arrivals.request(came, v)
	r.sender = c
	return r
}

// due is what a client sends at a time: its next request, or one again.
type due struct {
	at     float64
	client *client
	before *request
}

// sends are what clients will send, by time. Of equal times the order is that of the clients
// and the requests.
type sends []due

func (q sends) Len() int { return len(q) }
func (q sends) Less(i, j int) bool {
	return q[i].at < q[j].at || (q[i].at == q[j].at && q[i].order() < q[j].order())
}
func (q sends) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *sends) Push(x any)   { *q = append(*q, x.(due)) }
func (q *sends) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = due{}
	*q = old[:len(old)-1]
	return last
}

func (d *due) order() int {
	if d.before != nil {
		return again(d.before.id)
	}
	return clientsFirst | d.client.number<<clientShift
}

func (s *Server) sendLater(d due) { heap.Push(&s.sends, d) }

// sendDue sends what is due now.
func (s *Server) sendDue() {
	d := heap.Pop(&s.sends).(due)
	switch {
	case d.before != nil:
		s.submit(s.arrivals.retry(d.before, d.at, &s.val))
	case !s.loop.active(d.client):
		d.client.idle = true
	default:
		s.submit(s.asked(s.loop.request(d.client, d.at, &s.val)))
	}
}

// asked notes with a request under which factors it was drawn, where it can be sent again.
func (s *Server) asked(r *request) *request {
	if s.cfg.Workload.Retries > 0 {
		if s.drawnUnder == nil {
			v := s.val
			s.drawnUnder = &v
		}
		r.asked = s.drawnUnder
	}
	return r
}

// reacts reports whether clients do something when their requests end.
func (s *Server) reacts() bool { return s.cfg.Workload.Clients > 0 || s.cfg.Workload.Retries > 0 }

// react lets the client of a request that has ended send it again, or send its next one.
func (s *Server) react(r *request, at float64) {
	w := &s.cfg.Workload
	failed := r.end == EndError || r.end == EndAborted || (r.end == EndLeft && r.timedOut)
	if n := attempt(r.id); failed && r.asked != nil && n < w.Retries {
		s.sendLater(due{at: at + math.Ldexp(w.RetryAfter, n), before: r})
		return
	}
	if c := r.sender; c != nil {
		s.sendLater(due{at: at + s.loop.pause(c), client: c})
	}
}
