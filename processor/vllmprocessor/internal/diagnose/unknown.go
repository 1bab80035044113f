package diagnose

// Because is why an engine cannot be judged.
type Because uint8

const (
	// Judged means: it can be judged.
	Judged Because = iota
	// JustSeen means: there is no window yet, or requests fail and have not done so for the
	// hold yet.
	JustSeen
	// NoLatencies means: the server reports neither the times to the first token nor
	// those between tokens, by which harm is judged.
	NoLatencies
	// FarApart means: the scrapes are so far apart that no window has two of them.
	FarApart
	// StalledOrFrozen means: the engine stands still with requests in its gauges, and it
	// cannot be seen whether it has them.
	StalledOrFrozen
	// NoRequestSince means: users were harmed, and no request has come since.
	NoRequestSince
	// Unauthorized means: the server was never read and answers 401. Waiting mends neither
	// this nor any of the following.
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
	// PlainHTTP means: the endpoint is https, and the server speaks HTTP.
	PlainHTTP
	// NotRead means: the server was never read and does not answer. It may load its model. It is the last
	// one: saved states have these numbers.
	NotRead
)

// Sentence is the reason as a sentence that says what to do; empty where judged.
func (b Because) Sentence() string {
	return [...]string{
		Judged:          "",
		JustSeen:        "The engine cannot be judged yet: it has just been seen for the first time.",
		NoLatencies:     "The engine cannot be judged: the server reports neither vllm.time_to_first_token nor vllm.inter_token_latency.",
		FarApart:        "The engine cannot be judged: more than two windows lie between two scrapes; scrape more often, or set window to at least twice that time.",
		StalledOrFrozen: "The engine has stalled, or its gauges froze when all its requests were aborted: vLLM before 0.10.2 shows both in the same way. Send one request: if it is answered, the engine works and its gauges are right again.",
		NoRequestSince:  "The engine cannot be judged: its users waited many times longer than usual, and no request has come since. Send one request: its answer shows whether the engine serves again.",
		Unauthorized:    "The server cannot be read: it answers 401, so the receiver's credentials are missing or wrong; check auth in the receiver's configuration.",
		Forbidden:       "The server cannot be read: it answers 403, so the receiver's credentials do not allow reading metrics; grant them that right, or use others.",
		NotFound:        "The server cannot be read: it answers 404, so there are no metrics at this path; check the path of the endpoint.",
		NoAddress:       "The server cannot be read: its name cannot be resolved; check the host in the endpoint and the name server.",
		NotTrusted:      "The server cannot be read: the TLS handshake fails; check the certificate, its name and its dates, and tls in the receiver's configuration.",
		PlainHTTP:       "The server cannot be read: it speaks plain HTTP, and the endpoint is https; write http:// in the endpoint.",
		NoMetrics:       "The server cannot be read: something answers, but not with metrics; check the endpoint and any proxy in front of the server.",
		NotRead:         "The server has not answered since it was first seen: it may still load its model, or its address may be wrong. Look at its log, and at the endpoint in the receiver's configuration.",
	}[b]
}

// Unreadable is the sentence about an unreachable server where waiting does not mend the
// reason; empty otherwise.
func (t *Transition) Unreadable() string {
	if t.To.Condition != Unreachable {
		return ""
	}
	return blocking[t.Failure].Sentence()
}

// because is why an engine cannot be judged. Its condition has been decided.
func (e *engine) because(s *State) Because {
	switch c := e.Reported.Condition; {
	case e.number == ServerOnly && !s.server.read && (c == Starting || c == Unreachable && s.server.blocked < blockedScrapes):
		return NotRead
	case c != Unknown:
		return Judged
	case e.number == ServerOnly && s.server.because() != Judged:
		return s.server.because()
	case e.still == ambiguous, e.Reported.Because == StalledOrFrozen && e.Raw != Unknown:
		return StalledOrFrozen
	case e.Felt.On && e.last.elapsed > 0 && quietNow(&e.last):
		return NoRequestSince
	case e.last.lacks && e.last.elapsed > 0:
		return NoLatencies
	case e.last.elapsed == 0 && e.at > e.began:
		return FarApart
	}
	return JustSeen
}

// News reports whether an operator should read about the change. A change of contributing
// causes alone is not news, nor is a new engine that turns out to be healthy. After a restart of the
// collector harm that continues is. Another detail
// of the primary cause is news: it decides what to do, and the line before says something
// else.
func (t *Transition) News() bool {
	switch {
	case t.Relearned, t.Refined:
		return true
	case t.Continues:
		return t.To.Severity >= 2
	case t.From.same(&t.To) && t.From.Notices == t.To.Notices:
		return false
	case t.To.Because == JustSeen:
		return false
	}
	return t.From.Because != JustSeen || t.To.Severity > 0
}
