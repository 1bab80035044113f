package engine

import (
	"math"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/observed"
)

// group is what a request of one client is for the engine where it is several requests: one
// for each of several choices, or one for each beam in each step of a beam search.
type group struct {
	// left is how many steps of a beam search have not begun, width how many beams it has;
	// 0 for choices.
	left, width int
	// inEngine are requests that the engine has not ended, open those whose end the front
	// end has not seen; members are the open ones.
	inEngine, open int
	members        []*request
	// longest is the greatest number of tokens of one of them, choices how many there were.
	longest, choices int
}

// submitGroup gives the engine the first requests of a group.
func (s *Server) submitGroup(r *request) {
	n := r.choices
	r.group = &group{choices: n}
	if r.beams > 0 {
		r.group.left, r.group.width = r.output-1, r.beams
		r.group.choices, n = 1, 1 // The first step has one prompt.
	}
	if !math.IsInf(r.leaves, 1) {
		s.pushLeaver(r)
	}
	s.addMembers(r, n, 0)
	s.sent(r)
}

// addMembers gives the engine n members whose prompts are longer by so many tokens.
func (s *Server) addMembers(r *request, n, longer int) {
	g := r.group
	for range n {
		member := request{
			id: firstMember + s.members, client: r, arrived: s.now, leaves: math.Inf(1),
			prompt: r.prompt, output: r.output, stopAt: r.stopAt, maxTokens: r.maxTokens, end: r.end,
			adapter: r.adapter, route: r.route, remote: r.remote,
			corrupted: r.corrupted, unscheduled: r.unscheduled, transferFails: r.transferFails,
			completions: r.completions, streams: r.streams,
		}
		member.first, member.serial = member.id, s.newSerial()
		s.members++
		// They find the prompt of each other in the cache, and no other request does.
		member.prefix, member.shared = groupPrefix|r.serial, r.prompt
		if g.width > 0 {
			member.prompt += longer
			member.output, member.stopAt, member.maxTokens, member.end = 1, 1, 1, EndLength
		}
		g.inEngine++
		g.open++
		g.members = append(g.members, &member)
		s.toEngine(&member)
		if r.firstQueued == 0 {
			r.takenUp, r.tokenized, r.queued, r.firstQueued = member.takenUp, member.tokenized, member.queued, member.queued
			r.engine = member.engine
		}
	}
}

// memberDone notes that the engine has ended a member, which the front end learns at a time.
func (s *Server) memberDone(r *request, learnt float64) {
	g := r.client.group
	g.inEngine--
	if g.inEngine == 0 && g.left > 0 {
		s.pushReturning(r.client, learnt)
	}
}

// nextBeams begins the next step of a beam search.
func (s *Server) nextBeams(r *request) {
	if g := r.group; g.left > 0 {
		g.left--
		s.addMembers(r, g.width, r.output-1-g.left)
	}
}

// memberSeen takes the end of a member into that of its client's request.
func (s *Server) memberSeen(st *observed.Stats, r *request, now float64) {
	client := r.client
	g := client.group
	g.open--
	kept := g.members[:0]
	for _, other := range g.members {
		if other != r {
			kept = append(kept, other)
		}
	}
	g.members = kept
	if client.generated == 0 {
		client.started, client.admitted, client.firstToken, client.cached = r.started, r.admitted, r.firstToken, r.cached
		client.engine, client.firstQueued = r.engine, r.firstQueued
	}
	client.generated += r.generated
	client.lastToken = max(client.lastToken, r.lastToken)
	client.preemptions += r.preemptions
	g.longest = max(g.longest, r.generated)
	if r.end != EndStop && r.end != EndLength {
		client.end, g.left = r.end, 0
	}
	if g.open > 0 || g.left > 0 {
		return
	}
	client.done = true
	st.Answered(now, client.path(), client.statusGroup(&s.cfg.Semantics), now-client.takenUp, client.prompt*4+300, client.answerBytes())
	if g.width == 0 && !s.cfg.Semantics.ParamsPerChoice && !s.uncounted(client) {
		st.ParamsN.Observe(float64(g.choices))
		st.LongestGeneration.Observe(float64(g.longest))
	}
	s.addOutcome(client, now)
}

// observeParams observes what is observed once for a client's request of several choices, and
// with every request otherwise.
func (s *Server) observeParams(st *observed.Stats, r *request) {
	switch {
	case r.client == nil || r.client.group.width > 0:
		st.ParamsN.Observe(1)
	case s.cfg.Semantics.ParamsPerChoice:
		st.ParamsN.Observe(float64(r.client.group.choices))
	default:
		return
	}
	st.LongestGeneration.Observe(float64(r.generated))
}
