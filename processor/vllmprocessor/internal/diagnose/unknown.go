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
	// Unauthorized means: the server was never read, and answers 401. Waiting does not
	// mend it, nor any of the following.
	Unauthorized
	// Forbidden means: it answers 403.
	Forbidden
	// NotFound means: it answers 404.
	NotFound
	// NoAddress means: its name cannot be resolved.
	NoAddress
	// NotTrusted means: the TLS handshake fails.
	NotTrusted
	// NoMetrics means: something answers, but not with metrics.
	NoMetrics
)

// Sentence says it in words; empty where there is nothing to say.
func (b Because) Sentence() string {
	return [...]string{
		Judged:       "",
		JustSeen:     "The engine cannot be judged yet: it has just been seen for the first time.",
		NoLatencies:  "The engine cannot be judged: the server tells neither vllm.time_to_first_token nor vllm.inter_token_latency.",
		FarApart:     "The engine cannot be judged: more than two windows lie between two scrapes; scrape more often, or set window to at least twice that time.",
		Unauthorized: "The server cannot be read: it answers 401, so the receiver's credentials are missing or wrong; check auth in the receiver's configuration.",
		Forbidden:    "The server cannot be read: it answers 403, so the receiver's credentials do not allow to read metrics; give them the right to, or use others.",
		NotFound:     "The server cannot be read: it answers 404, so there are no metrics at this path; check the path of the endpoint.",
		NoAddress:    "The server cannot be read: its name cannot be resolved; check the host in the endpoint and the name server.",
		NotTrusted:   "The server cannot be read: the TLS handshake fails; check the certificate, its name and its dates, and tls in the receiver's configuration.",
		NoMetrics:    "The server cannot be read: something answers, but not with metrics; check the endpoint, and what stands before the server.",
	}[b]
}

// Unreadable says in words why a server is unreachable, where waiting does not mend the
// reason; empty otherwise.
func (t *Transition) Unreadable() string {
	if t.To.Condition != Unreachable {
		return ""
	}
	return blocking[t.Failure].Sentence()
}

// because says why an engine cannot be judged; what is told has been decided.
func (e *engine) because(s *State) Because {
	switch {
	case e.told.Condition != Unknown:
		return Judged
	case e.number == ServerOnly && s.server.because() != Judged:
		return s.server.because()
	case e.last.lacks && e.last.elapsed > 0:
		return NoLatencies
	case e.last.elapsed == 0 && e.at > e.began:
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
