package engine

// Alone is the server without a load and without any change, on which each request is
// alone. It is not safe for concurrent use.
type Alone struct {
	cfg   Config
	batch Batch
	// perStep is the mean number of tokens that a step gives.
	perStep float64
}

// NewAlone returns the idle server of a configuration.
func NewAlone(cfg Config) (*Alone, error) {
	cfg.Changes = nil
	cfg, err := cfg.withDefaults()
	a := &Alone{cfg: cfg, perStep: 1}
	chance := 1.0
	for _, p := range cfg.Speculation.Acceptance {
		chance *= p
		a.perStep += chance
	}
	return a, err
}

// Request returns the time to the first token of a request, and the mean time per further
// token, in seconds. cached is how many tokens of its prompt are in the cache, output how
// many it gets.
func (a *Alone) Request(prompt, cached, output int) (first, perToken float64) {
	c, f := &a.cfg, a.cfg.FrontEnd
	first = f.DelaySeconds +
		(f.RequestSeconds+f.PromptTokenSeconds*float64(prompt)+f.BatchSeconds+f.TokenSeconds)/float64(f.Processes)
	for at := max(0, min(cached, prompt-1)); at < prompt; {
		n := min(prompt-at, c.MaxBatchedTokens)
		a.batch.reset()
		a.batch.AddChunk(n, at)
		first += c.Model.StepTime(a.batch, Nominal()) + c.Speculation.Seconds
		at += n
	}
	a.batch.reset()
	a.batch.AddDecode(1+len(c.Speculation.Acceptance), prompt+max(1, output/2))
	return first, (c.Model.StepTime(a.batch, Nominal()) + c.Speculation.Seconds) / a.perStep
}
