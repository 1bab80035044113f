package diagnose

// Because says why an engine cannot be judged.
type Because uint8

const (
	// Judged means: it can.
	Judged Because = iota
	// JustSeen means: there is nothing to compare with yet, or what looks like harm
	// has not lasted yet.
	JustSeen
	// NoLatencies means: the server tells neither the times to the first token nor
	// those between tokens, by which harm is judged.
	NoLatencies
	// FarApart means: the scrapes are so far apart that no window has two of them.
	FarApart
)

// Sentence says it in words; empty where there is nothing to say.
func (b Because) Sentence() string {
	return [...]string{
		Judged:      "",
		JustSeen:    "The engine cannot be judged yet: it has just been seen for the first time.",
		NoLatencies: "The engine cannot be judged: the server tells neither vllm.time_to_first_token nor vllm.inter_token_latency.",
		FarApart:    "The engine cannot be judged: more than two windows lie between two scrapes; scrape more often, or set window to at least twice that time.",
	}[b]
}

// because says why an engine cannot be judged; what is told has been decided.
func (e *engine) because() Because {
	switch {
	case e.told.Condition != Unknown:
		return Judged
	case e.last.lacks && e.last.elapsed > 0:
		return NoLatencies
	case e.last.elapsed == 0 && e.at > e.first:
		return FarApart
	}
	return JustSeen
}

// News tells whether an operator should hear of the change. Causes that contribute
// come and go without, and so does the moment in which an engine is seen for the
// first time and turns out to be well.
func (t *Transition) News() bool {
	switch {
	case t.Relearned:
		return true
	case t.From.same(&t.To) && t.From.Notices == t.To.Notices:
		return false
	case t.To.Because == JustSeen:
		return false
	}
	return t.From.Because != JustSeen || t.To.Severity > 0
}
