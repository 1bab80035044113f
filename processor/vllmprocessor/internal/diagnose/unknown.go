package diagnose

// Because is why an engine cannot be judged; Sentence says what each one means.
type Because uint8

// The reasons. Waiting mends none of those from Unauthorized to PlainHTTP. NotRead is the last one:
// saved states have these numbers.
const (
	Judged Because = iota
	// JustSeen is also that of requests that fail, and have not done so for the hold yet.
	JustSeen
	NoLatencies
	FarApart
	StalledOrFrozen
	NoRequestSince
	Unauthorized
	Forbidden
	NotFound
	NoAddress
	NotTrusted
	NoMetrics
	PlainHTTP
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
