package engine

// Semantics are differences between versions and implementations of vLLM in what they
// observe, never in what they do. The zero value is a server without the defects named
// here.
type Semantics struct {
	// RecountBlocked counts the prefix lookup of the first request in the queue
	// again each time that it is not admitted (up to July 2026).
	RecountBlocked bool
	// RecountPreempted counts it again when a preempted request is admitted again, which
	// finds the blocks that it had itself (up to v0.11).
	RecountPreempted bool
	// IterationWithCached counts cached prompt tokens in the tokens of a step (up
	// to May 2026).
	IterationWithCached bool
	// ArrivalAfterTokenizing takes the arrival of a request, from which times are
	// measured, after the front end has turned its text into tokens (up to v0.16).
	ArrivalAfterTokenizing bool
	// ErrorsUncounted makes no observation of requests that fail (up to v0.12, which has no
	// such reason).
	ErrorsUncounted bool
	// UnguardedDurations takes a moment that a request never reached as the time 0 of the
	// host's clock. Otherwise such durations are 0.
	UnguardedDurations bool
	// FirstWithoutToken observes a first token of a request that ends without one.
	FirstWithoutToken bool
	// AbortsCounted observes requests whose clients leave like complete ones.
	AbortsCounted bool
	// EngineAbortsCounted observes requests that the server aborts.
	EngineAbortsCounted bool
	// FrozenAfterAborts makes no step, and so no report, after the last request was
	// aborted (up to v0.10.1).
	FrozenAfterAborts bool
	// NullBlockUsed counts the null block as used (up to v0.10.1).
	NullBlockUsed bool
	// ClientErrorsAs5xx counts some answers of 4xx as 5xx (up to v0.24).
	ClientErrorsAs5xx bool
	// StepPerProcess observes the tokens of a step once for each API server that gets some
	// of its output.
	StepPerProcess bool
	// ParamsPerChoice observes the parameters of a request for several choices once for
	// each.
	ParamsPerChoice bool
	// AsyncHitsUncounted counts nothing as found at other servers (up to v0.11, for
	// connectors that load while the engine works on).
	AsyncHitsUncounted bool
	// SessionPerChunk observes a first token for each chunk of a session, and takes the
	// arrival and the first token of the last chunk for those of the session. PromptPerChunk
	// counts the whole prompt so far with each chunk (up to v0.19). RequeuedSessions takes
	// the last queuing for the first.
	SessionPerChunk, PromptPerChunk, RequeuedSessions bool
	// FirstTokenAtEnd observes the time to the first token when the request ends (#58078, not merged).
	FirstTokenAtEnd bool
	// LocalInExternal counts what was found in the own cache as looked up at other servers,
	// too (up to v0.15).
	LocalInExternal bool
}
