package engine

import "math"

// Request is a request of a caller, in addition to the workload.
type Request struct {
	// Prompt and Output are lengths in tokens; both are cut to what the model
	// length allows.
	Prompt, Output int
	// MaxTokens is shown in the statistics; 0 is none.
	MaxTokens int
	// Prefix and Shared make the first Shared tokens of the prompt common to all
	// requests with the same Prefix, which is at least 0.
	Prefix, Shared int
	// Adapter is the number of a LoRA adapter, from 1; 0 is the base model.
	Adapter int
	// Stream asks for each token at once.
	Stream bool
	// Choices is how many answers it asks for; 0 and 1 are one.
	Choices int
	// Refused is a request with an invalid parameter, which the front end refuses.
	Refused bool
}

// Send lets a request arrive now and returns its number, which is the ID of
// its Outcome.
func (s *Server) Send(q Request) int {
	prompt := max(1, min(q.Prompt, s.cfg.MaxModelLen-1))
	output := max(1, min(q.Output, s.cfg.MaxModelLen-prompt))
	end := EndStop
	if output < q.Output || (q.MaxTokens > 0 && output >= q.MaxTokens) {
		end = EndLength
	}
	if q.Refused {
		end = EndRefused
	}
	id := callersFirst + s.sentHere
	r := &request{
		id: id, first: id, arrived: s.now, prompt: prompt, output: output, stopAt: output, maxTokens: q.MaxTokens,
		prefix: max(0, q.Prefix), shared: max(0, min(q.Shared, prompt)), adapter: max(0, min(q.Adapter, maxAdapters)),
		remote: 1, leaves: math.Inf(1), streams: q.Stream, completions: true, end: end, choices: min(q.Choices, maxMembers),
	}
	s.sentHere++
	s.submit(r)
	return r.id
}

// Cancel lets the client of a request leave. It needs Config.KeepOutcomes.
func (s *Server) Cancel(id int) {
	if r := s.live[id]; r != nil && !r.done && !r.gone {
		s.catchUp(s.now)
		s.dropClient(r)
	}
}

// HoldFrontEnd stops the front end until a time: it takes up nothing and passes nothing on,
// while the engines go on. What it has not finished takes as much longer.
func (s *Server) HoldFrontEnd(until float64) {
	longer := until - s.now
	if longer <= 0 {
		return
	}
	s.catchUp(s.now)
	s.busy = max(s.busy, s.now) + longer
	for _, rep := range s.reports[s.head:] {
		rep.stamp += longer
	}
	for _, c := range s.engines {
		for _, r := range c.inbox.live() {
			if r.queued > s.now {
				r.queued += longer
				r.firstQueued += longer
			}
		}
	}
}

// Tokens returns how many tokens of a request its client has; after the first
// one that is what the engine has, at most a step ahead of the front end. A
// request that has ended is found in Outcomes only: live is false then. It needs
// Config.KeepOutcomes.
func (s *Server) Tokens(id int) (tokens int, live bool) {
	r := s.live[id]
	if r == nil {
		return 0, false
	}
	if r.firstSeen > 0 {
		tokens = r.generated
	}
	return tokens, true
}
