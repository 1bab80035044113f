package engine

import "github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/observed"

// addEngine adds an engine in its nominal state.
func (s *Server) addEngine() {
	i, val := len(s.engines), nominalValues()
	c := &core{
		cfg: &s.cfg, journal: &s.journal, index: i, pool: newBlockPool(s.cfg.Blocks), val: &val, draft: len(s.cfg.Speculation.Acceptance),
	}
	c.lastEnd = s.now
	if s.cfg.Device != nil {
		c.devices = newDevices(s.cfg.Device, max(1, int(s.cfg.Model.GPUs)), s.now)
	}
	if s.cfg.FollowBlocks > 0 {
		c.pool.residency = &residency{share: s.cfg.FollowBlocks, seed: s.cfg.Seed + uint64(i), lives: map[int32]*blockLife{}}
	}
	s.engines = append(s.engines, c)
	s.stats = append(s.stats, observed.NewStats(len(s.cfg.Speculation.Acceptance)))
	s.adapters = append(s.adapters, adapterLog{})
	s.rates = append(s.rates, rates{at: s.now})
}

// scaleUp adds engines. As in vLLM the logger of all engines is created again, so that all
// of its statistics begin at 0; those of HTTP continue.
func (s *Server) scaleUp(n int) {
	if n == 0 {
		return
	}
	s.catchUp(s.now)
	for range n {
		s.addEngine()
	}
	for i, before := range s.stats {
		s.stats[i] = observed.NewStats(len(s.cfg.Speculation.Acceptance))
		s.stats[i].HTTP, s.stats[i].HTTPFine = before.HTTP, before.HTTPFine
		s.stats[i].SleepLevel = before.SleepLevel
		s.adapters[i], s.rates[i] = adapterLog{}, rates{at: s.now}
	}
	s.countedSince = s.now
}
