package engine

import (
	"cmp"
	"slices"
)

// Outcomes returns what became of the requests that ended since the last call,
// in the order of their ends. It needs Config.KeepOutcomes.
func (s *Server) Outcomes() []Outcome {
	out := s.outcomes
	s.outcomes = nil
	return out
}

// Unfinished returns the requests that are still under way, in the order of
// their arrival; their Ended is now. It needs Config.KeepOutcomes.
func (s *Server) Unfinished() []Outcome {
	var out []Outcome
	for _, r := range s.live {
		o := r.outcome(s.now, &s.engines[r.engine].gaps)
		o.End = EndNone
		out = append(out, o)
	}
	slices.SortFunc(out, func(a, b Outcome) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// Injected returns the changes that have happened so far.
func (s *Server) Injected() []Change { return s.cfg.Changes[:s.change] }

// Now is how far the server is, in seconds since the start.
func (s *Server) Now() float64 { return s.now }
