package engine

// Alone returns what a request takes that is alone on the idle server, without any change:
// the time to its first token, and the mean time per further token. cached is how many
// tokens of its prompt are in the cache.
func Alone(cfg *Config, prompt, cached, output int) (first, perToken float64) {
	c, m, f := *cfg, cfg.Model, cfg.FrontEnd
	if c.MaxBatchedTokens == 0 {
		c.MaxBatchedTokens = 8192
	}
	processes := float64(max(1, f.Processes))
	serve := func(seconds float64) float64 { return seconds / processes }
	first = serve(f.RequestSeconds+f.PromptTokenSeconds*float64(prompt)) + serve(f.BatchSeconds+f.TokenSeconds)
	for at := min(cached, prompt-1); at < prompt; {
		n := min(prompt-at, c.MaxBatchedTokens)
		first += m.StepTime(Batch{
			Seqs: 1, Tokens: n, KVTokens: at, Attention: float64(n) * (float64(at) + float64(n)/2),
		}, Nominal()) + c.Speculation.Seconds
		at += n
	}
	drafted := len(c.Speculation.Acceptance)
	perStep, chance := 1.0, 1.0
	for _, p := range c.Speculation.Acceptance {
		chance *= p
		perStep += chance
	}
	step := m.StepTime(Batch{Seqs: 1, Tokens: 1 + drafted, KVTokens: prompt + (output+1)/2}, Nominal()) + c.Speculation.Seconds
	return first, step / perStep
}
