package engine

import "math"

// lockstep is the state of engines that begin and end their steps together. Data-parallel
// ranks of a mixture-of-experts model exchange tokens in each layer, so that none can step
// without the others: a rank without requests computes a dummy step while any rank has one.
type lockstep struct {
	// running is a common step under way, which ends at ends.
	running bool
	ends    float64
	// stalled is how many engines are stalled; the first of them stopped at since.
	stalled int
	since   float64
}

// nextStep returns the next event of an engine, and which engine it is.
func (s *Server) nextStep() (at float64, which *core) {
	at = math.Inf(1)
	if s.cfg.Lockstep {
		switch {
		case s.together.stalled > 0:
			return at, nil
		case s.together.running:
			return s.together.ends, s.engines[0]
		}
	}
	for _, c := range s.engines {
		if e := c.nextEvent(); e < at {
			at, which = e, c
		}
	}
	return at, which
}

// stepTogether ends the common step, if one is under way, and begins the next.
func (s *Server) stepTogether() {
	if s.together.running {
		s.together.running = false
		for _, c := range s.engines {
			if c.stepping {
				c.ends = s.together.ends
			}
			s.endStep(c)
		}
	}
	for _, c := range s.engines {
		s.beginStep(c)
	}
	for _, c := range s.engines {
		if c.stepping {
			s.together.running = true
			s.together.ends = max(s.together.ends, c.ends)
		}
	}
	if !s.together.running {
		return
	}
	for _, c := range s.engines {
		if !c.stepping && !c.asleep {
			s.together.ends = max(s.together.ends, s.now+c.dummySeconds())
		}
	}
}

// dummySeconds is the length of a step without requests: that of one token.
func (c *core) dummySeconds() float64 {
	one := Batch{Seqs: 1, Tokens: 1}
	longest := 0.0
	for _, d := range c.devices {
		longest = max(longest, c.cfg.Model.StepTime(one, d.shape(c.val, 1, c.cfg.Model.GPUs)))
	}
	if len(c.devices) > 0 {
		return longest
	}
	return c.cfg.Model.StepTime(one, c.val.shape())
}

// stallTogether notes that one more engine is stalled, or one less. No engine can end a step
// while another one is stalled.
func (s *Server) stallTogether(on bool) {
	t := &s.together
	if on {
		if t.stalled == 0 {
			t.since = s.now
		}
		t.stalled++
		return
	}
	t.stalled--
	if t.stalled == 0 && t.running {
		t.ends += s.now - t.since
	}
}
