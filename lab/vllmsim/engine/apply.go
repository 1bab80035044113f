package engine

import "math"

// apply sets a parameter.
func (s *Server) apply(ch Change) {
	switch {
	case ch.Parameter == ParamClientsLeave:
		s.sendAway(ch.Value)
		return
	case ch.Parameter == ParamScaleUp:
		s.scaleUp(int(ch.Value))
		return
	case !ch.Parameter.PerEngine():
		s.val[ch.Parameter] = ch.Value
		return
	}
	if len(ch.Engines) == 0 {
		for _, c := range s.engines {
			s.applyTo(c, ch)
		}
	}
	for _, i := range ch.Engines {
		s.applyTo(s.engines[i], ch)
	}
}

func (s *Server) applyTo(c *core, ch Change) {
	for _, d := range c.devices {
		d.advance(s.now, c.val)
	}
	c.val[ch.Parameter] = ch.Value
	switch ch.Parameter {
	case ParamBlocks:
		usable := len(c.pool.blocks) - 1
		keep := max(int(math.Round(ch.Value*float64(usable))), s.cfg.longest())
		c.pool.wanted = usable - keep
		c.pool.residency.setTime(s.now)
		c.pool.withhold()
	case ParamStall:
		s.stall(c, ch.Value > 0)
	case ParamSleep:
		s.stats[c.index].SleepLevel = int(ch.Value)
		switch {
		case ch.Value == 0:
			c.asleep = false
		case !c.stepping:
			s.fallAsleep(c)
		}
	}
}

// stall stops an engine, or resumes it.
func (s *Server) stall(c *core, on bool) {
	switch {
	case on && !c.stalled:
		c.stalled, c.stalledAt = true, s.now
		s.stallTogether(true)
	case !on && c.stalled:
		c.stalled = false
		s.stallTogether(false)
		if c.stepping {
			c.ends += s.now - c.stalledAt
		}
	}
}

// fallAsleep aborts what the engine has and forgets its cache.
func (s *Server) fallAsleep(c *core) {
	if c.asleep {
		return
	}
	s.catchUp(s.now)
	c.asleep = true
	c.receive(s.now)
	for _, r := range c.underWay() {
		s.drop(r, EndAborted)
	}
	c.dropGone()
	c.pool.reset()
}

// underWay returns the requests that the engine has and that have not ended.
func (c *core) underWay() []*request {
	var out []*request
	for _, list := range [][]*request{c.running, c.fetching, c.preempted, c.skipped, c.waiting.live()} {
		for _, r := range list {
			if !r.gone && !r.done {
				out = append(out, r)
			}
		}
	}
	return out
}

// sendAway lets a share of all clients leave at once. Who leaves does not depend on other
// changes, so that it is the same in runs that differ in them.
func (s *Server) sendAway(share float64) {
	s.catchUp(s.now)
	s.left++
	for _, c := range s.engines {
		for _, r := range append(c.underWay(), c.inbox.live()...) {
			client := r
			if r.client != nil {
				client = r.client
			}
			if !r.gone && uniform(s.cfg.Seed, uint64(client.id), uint64(s.left)) < share {
				s.drop(r, EndLeft)
			}
		}
	}
}

// rates is the state of the throughput over the last ten seconds, which the V0
// engine reported.
type rates struct{ at, prompt, generation float64 }

// rollRates closes the ten-second windows that end at or before t.
func (s *Server) rollRates(engine int, t float64) {
	const window = 10.0
	r, st := &s.rates[engine], s.stats[engine]
	if t-r.at < window {
		return
	}
	st.PromptRate = (st.PromptTokens - r.prompt) / window
	st.GenerationRate = (st.GenerationTokens - r.generation) / window
	r.prompt, r.generation = st.PromptTokens, st.GenerationTokens
	r.at += window
	if t-r.at >= window {
		// Whole windows without a step.
		st.PromptRate, st.GenerationRate = 0, 0
		r.at += window * math.Floor((t-r.at)/window)
	}
}
