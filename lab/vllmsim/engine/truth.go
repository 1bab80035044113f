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
	slices.SortFunc(out, func(a, b Outcome) int {
		return cmp.Or(cmp.Compare(a.Arrived, b.Arrived), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// Underway goes through the requests that are still under way, in no order: the identity of
// each, that of the request that it tries again (its own if it is the first), and when it
// arrived. It is cheap where Unfinished, which copies and sorts them all, is not.
func (s *Server) Underway(visit func(id, first int, arrived float64)) {
	for _, r := range s.live {
		visit(r.id, r.first, r.arrived)
	}
}

// UnderwayCount is how many requests are under way; only with Config.KeepOutcomes.
func (s *Server) UnderwayCount() int { return len(s.live) }

// Overfull reports whether more than Config.MostUnderway requests are under way, so that the
// simulation stopped at Now.
func (s *Server) Overfull() bool { return s.cfg.MostUnderway > 0 && len(s.live) > s.cfg.MostUnderway }

// Has reports whether a request is under way; only with Config.KeepOutcomes.
func (s *Server) Has(id int) bool {
	_, has := s.live[id]
	return has
}

// Injected returns the changes that have happened so far.
func (s *Server) Injected() []Change { return s.cfg.Changes[:s.change] }

// Now is how far the server is, in seconds since the start.
func (s *Server) Now() float64 { return s.now }

// State is what is true of an engine at this moment, whatever its metrics say.
type State struct {
	// Running are the requests of the batch, of the step under way if there is one.
	// Waiting are all others that the engine has; Deferred are those among them that wait
	// for something else than room.
	Running, Waiting, Deferred int
	// UsedBlocks of Blocks hold tokens of requests; a block is of BlockSize tokens. The null
	// block is not among them, nor are those that something else uses.
	UsedBlocks, Blocks, BlockSize int
	Totals
}

// Totals count what has happened since the start of an engine.
type Totals struct {
	Steps, Preemptions int
	// LookedUp are the tokens of prompts that were admitted, each once; Found are those
	// of them that were in the prefix cache.
	LookedUp, Found int
	// Flops, ReadBytes and WrittenBytes are of one GPU; with Config.FlopsCounters.
	Flops, ReadBytes, WrittenBytes float64
}

// States returns the state of each engine.
func (s *Server) States() []State {
	var out []State
	for _, c := range s.engines {
		st := State{
			Running: len(c.running) - c.goneRunning, Deferred: c.deferred(), Totals: c.totals,
			UsedBlocks: c.pool.usable() - c.pool.free, Blocks: c.pool.usable(), BlockSize: c.cfg.BlockSize,
		}
		st.Waiting = c.queued
		for _, r := range c.fetching {
			if !r.gone {
				st.Waiting++
			}
		}
		for _, r := range c.inbox.live() {
			if r.queued <= s.now && !r.gone {
				st.Waiting++
			}
		}
		out = append(out, st)
	}
	return out
}

// CountedSince is when the statistics began again, in seconds since the start.
func (s *Server) CountedSince() float64 { return s.countedSince }
