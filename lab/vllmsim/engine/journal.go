package engine

// Event is something that really happened, whatever the metrics say of it. Times are on
// the engine's clock.
type Event struct {
	Kind EventKind
	// At is when it counts: for steps, first tokens and ends when the front end has worked
	// on it.
	At     float64
	Engine int
	// Request is the number of the request; -1 for a step.
	Request int

	// Prompt, Cached and External are tokens: of the prompt, not computed here, and of these
	// from another server. Output is what the request has so far.
	Prompt, Cached, External, Output int
	// Sent, Taken, Tokenized and Queued are when the client sent the request, when the front
	// end took it up, when it had the tokens, and when the engine had them. Admitted is the first admission, First and Last
	// are the first and the last token; all on the engine's clock, 0 if it never happened.
	// Of a request that ends unscheduled Last is when the engine ends it.
	Sent, Taken, Tokenized, Queued, Admitted, First, Last float64

	End     End
	Streams bool
	// Status is what HTTP answers to the client; it is true at the end.
	Status int
	// Media and MediaFound are images in the prompt, and those of them that the front end
	// had in its cache; with EventSent.
	Media, MediaFound int
	// Step is nil where nothing but a request is concerned.
	Step *Step
}

// Later returns the event on a clock that is ahead by some seconds, after so many requests
// of a process before.
func (e Event) Later(seconds float64, requests int) Event {
	if e.Request >= 0 {
		e.Request += requests
	}
	for _, at := range []*float64{&e.At, &e.Sent, &e.Taken, &e.Tokenized, &e.Queued, &e.Admitted, &e.First, &e.Last} {
		if *at != 0 {
			*at += seconds
		}
	}
	return e
}

// Step is what a step of an engine gave.
type Step struct {
	// Generated are tokens; Gaps are the distances to the tokens before, of all requests
	// that got more than their first.
	Generated int
	Gaps      []float64
	// Drafts, Drafted and Accepted are of speculation; Accepted is by position.
	Drafts, Drafted int
	Accepted        []int
	// Resumed are preemptions of requests that go on with this step.
	Resumed int
	// Running, Waiting and Deferred are requests at its end; Waiting is for room only.
	Running, Waiting, Deferred int
	// Usage is the share of the KV blocks that are in use at its end, 0 to 1.
	Usage float64
}

// EventKind is what happened.
type EventKind uint8

// The kinds of events.
const (
	// EventSent is a request that a client sends.
	EventSent EventKind = iota
	// EventLookup is a request whose prompt is looked up for its first admission. Cached is
	// what was found here, External what a connector was asked for, Output what it found.
	EventLookup
	// EventFirst is a first token.
	EventFirst
	// EventStep is a step.
	EventStep
	// EventEnd is the end of a request, for whatever reason.
	EventEnd
)

// journal passes on events in the order in which they count.
type journal struct {
	to func(Event)
	// lookups are those of steps that the front end has not worked on yet, by engine.
	lookups map[int][]Event
}

func (s *Server) life(kind EventKind, at float64, r *request) Event {
	return Event{
		Kind: kind, At: at, Engine: r.engine, Request: r.id, Prompt: r.prompt, Cached: max(0, r.cached), External: r.external,
		Output: r.generated, Sent: r.arrived, Taken: r.takenUp, Tokenized: r.tokenized, Queued: r.firstQueued, Admitted: r.admitted, First: r.firstToken,
		Last: r.lastToken, End: r.end, Streams: r.streams, Status: r.status(),
	}
}

// sent notes a request of a client.
func (s *Server) sent(r *request) {
	if s.journal.to != nil {
		e := s.life(EventSent, r.arrived, r)
		if r.media > 0 && r.end != EndRefused {
			e.Media = 1
			if s.lookups[len(s.lookups)-1].found {
				e.MediaFound = 1
			}
		}
		s.journal.to(e)
	}
}

// lookup notes a first admission; it counts with the step that it is a part of.
func (j *journal) lookup(now float64, r *request, found, asked, foundOut int) {
	if j != nil && j.to != nil {
		j.lookups[r.engine] = append(j.lookups[r.engine], Event{
			Kind: EventLookup, At: now, Engine: r.engine, Request: r.id, Prompt: r.prompt, Cached: found, External: asked, Output: foundOut,
		})
	}
}

// dropped notes a request that ended outside a step.
func (s *Server) dropped(r *request) {
	if s.journal.to != nil {
		s.journal.to(s.life(EventEnd, s.now, r))
	}
}

// workedOnMember notes the first token and the end of a client's request of several parts.
func (s *Server) workedOnMember(rep *report, ev event) {
	client := ev.r.client
	switch {
	case ev.kind == evFirst && !ev.r.gone && client.firstSeen == rep.stamp && !client.firstNoted:
		client.firstNoted = true
		s.journal.to(s.life(EventFirst, rep.stamp, ev.r).of(client))
	case (ev.kind == evFinished || ev.kind == evUnscheduled) && !ev.r.gone && client.done && !client.endNoted:
		client.endNoted = true
		s.journal.to(s.life(EventEnd, rep.stamp, client))
	}
}

// of makes an event one of the client's request.
func (e Event) of(client *request) Event {
	e.Request, e.Sent, e.Taken, e.Prompt = client.id, client.arrived, client.takenUp, client.prompt
	return e
}

// worked notes what the front end learns from a report.
func (s *Server) worked(rep *report) {
	if s.journal.to == nil {
		return
	}
	if r := rep.refused; r != nil {
		s.journal.to(s.life(EventEnd, rep.stamp, r))
		return
	}
	kept := s.journal.lookups[rep.engine][:0]
	for _, e := range s.journal.lookups[rep.engine] {
		if e.At < rep.end {
			e.At = rep.stamp
			s.journal.to(e)
		} else {
			kept = append(kept, e)
		}
	}
	s.journal.lookups[rep.engine] = kept
	step := &Step{
		Generated: rep.generated, Drafts: rep.drafts, Drafted: rep.drafted, Accepted: append([]int(nil), rep.accepted[:]...),
		Resumed: rep.preemptions, Running: rep.running, Waiting: rep.waiting, Deferred: rep.deferredNow, Usage: rep.usage,
	}
	for range rep.steady {
		step.Gaps = append(step.Gaps, rep.gap)
	}
	for _, ev := range rep.events {
		if ev.kind == evGap {
			step.Gaps = append(step.Gaps, ev.value)
		}
	}
	for _, ev := range rep.events {
		switch {
		case ev.r.client != nil:
			s.workedOnMember(rep, ev)
		case ev.kind == evFirst && !ev.r.gone && ev.r.firstSeen == rep.stamp:
			s.journal.to(s.life(EventFirst, rep.stamp, ev.r))
		case ev.kind == evFinished && !ev.r.gone:
			s.journal.to(s.life(EventEnd, rep.stamp, ev.r))
		case ev.kind == evUnscheduled && !ev.r.gone:
			e := s.life(EventEnd, rep.stamp, ev.r)
			e.Last = rep.end
			s.journal.to(e)
		}
	}
	s.journal.to(Event{Kind: EventStep, At: rep.stamp, Engine: rep.engine, Request: -1, Step: step})
}
