package derive

import (
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// prefixHits is the share of prompt tokens that the prefix cache found. Servers that can
// count a lookup twice also count, for each prompt once, how many of its tokens were
// cached: these counters replace the lookups. Without them, the lookups are used where those
// that were repeated cannot change the share by more than the tolerance.
func prefixHits(_ *Settings, m *Member) Parts {
	v := &m.Now
	lookups := increases(input.PrefixCacheHits, input.PrefixCacheQueries)(nil, m)
	if lookups.Reason != OK {
		return lookups
	}
	recounted, own := v.Affected(catalog.DefectCacheQueriesRecounted), v.Affected(catalog.DefectOwnBlocksFound)
	if !recounted && !own {
		return lookups
	}
	if ever, _ := v.Total(input.PrefixCacheQueries); ever == 0 {
		return lookups // no prefix cache, so no share of it
	}
	if found, counted := foundLocally(v); counted {
		return found
	}
	switch {
	case lookups.Denominator <= 0:
	case own && preempted(v):
		return Parts{Reason: KnownDefect}
	case recounted:
		lookups.Reason = lookedUpAgain(v, lookups.Denominator)
	}
	return lookups
}

// foundLocally returns the prompt tokens that the prefix cache found, and all of them.
// counted is false where the server does not count them, or not apart from those of a
// connector. The source local_cache_hit is not used: up to v0.19 it has a token more for
// each prompt that was found as a whole, because the last token is computed again.
func foundLocally(v *window.View) (found Parts, counted bool) {
	cached, status := v.Increase(input.PromptTokensCached)
	prompts, statusPrompts := v.Increase(input.PromptTokens)
	if status == window.Missing || statusPrompts == window.Missing {
		return noParts, false
	}
	external, statusExternal := v.IncreaseOf(input.PromptTokensBySource, "external_kv_transfer")
	if statusExternal == window.Missing || underLast(v, input.PromptTokensBySource, lastSources) {
		if v.Shows("connector") {
			return noParts, false
		}
		external, statusExternal = 0, window.Present
	}
	if external > 0 && v.Affected(catalog.DefectNegativeTokenCounts) {
		return noParts, false // what was loaded again after a preemption counts twice
	}
	reason := worst(status, statusPrompts, statusExternal)
	if reason == OK && external > cached {
		reason = Contradiction
	}
	return Parts{Numerator: cached - external, Denominator: prompts, Reason: reason}, true
}

// tolerance is how much repeated lookups may change the ratio at most.
const tolerance = 0.05

// lookedUpAgain is KnownDefect where repeated lookups can change the ratio by more than the
// tolerance. Without these tokens the ratio is between (hits - repeated) / (lookups -
// repeated) and hits / (lookups - repeated).
func lookedUpAgain(v *window.View, lookups float64) Reason {
	size, known := lookupSize(v)
	repeated, reason := repeatedTokens(v, lookups*size, size)
	switch {
	case reason == Pending || reason == First:
		return reason
	case !known || reason != OK || repeated > tolerance*(lookups*size-repeated):
		return KnownDefect
	}
	return OK
}

// repeatedTokens returns the most tokens that can have been looked up again in the window.
// A prompt is looked up when its prefill begins and counted when it ends. So what was
// looked up is the prompts, less those whose prefill ran when the window began, and more
// those whose prefill runs now, or that were cancelled in it, and the repeated ones. Of
// blocks, the rest of each prompt is not looked up.
func repeatedTokens(v *window.View, lookedUp, size float64) (most float64, reason Reason) {
	prompts, status := v.Increase(input.PromptTokens)
	first, statusFirst := firstTokens(v)
	if reason = worst(status, statusFirst); reason != OK {
		return 0, reason
	}
	before, reason := begunBefore(v)
	if n, known := unfinishedBefore(v, lookedUp, prompts); known && size == 1 && reason != Pending && (reason != OK || n < before) {
		before, reason = n, OK
	}
	return max(lookedUp-prompts+(size-1)*first+before, 0), reason
}

// begunBefore returns the most tokens of the prompts whose prefill ran when the window
// began: those of the requests that ran, and of the one that waited for room; with a
// connector, also of those that waited for it. As elsewhere, no prompt is assumed to be
// longer than the highest bucket of finished ones.
func begunBefore(v *window.View) (tokens float64, reason Reason) {
	running, status := v.Gauge(input.Running)
	change, statusChange := v.Change(input.Running)
	waiting, statusWaiting := v.Gauge(input.Waiting)
	changeWaiting, statusChangeWaiting := v.Change(input.Waiting)
	reason = unmixed(v, worst(status, statusChange, statusWaiting, statusChangeWaiting))
	if reason != OK {
		return 0, reason
	}
	inFlight, queued := running-change, waiting-changeWaiting
	if !v.Shows("connector") {
		queued = min(queued, 1)
	}
	if inFlight+queued == 0 {
		return 0, OK
	}
	longest, known := longestPrompt(v)
	if !known {
		return 0, Missing
	}
	return (inFlight + queued) * longest, OK
}

// unfinishedBefore is another bound of the same tokens: what was looked up in the life of
// the server and was not counted as a prompt when the window began. It is not known of a
// sender of deltas, and where prompts that are not looked up make it negative.
func unfinishedBefore(v *window.View, lookedUp, prompts float64) (tokens float64, known bool) {
	all, status := v.Total(input.PrefixCacheQueries)
	ever, statusEver := v.Total(input.PromptTokens)
	if worst(status, statusEver) != OK || v.Deltas(input.PrefixCacheQueries) || v.Deltas(input.PromptTokens) {
		return 0, false
	}
	tokens = all - lookedUp - (ever - prompts)
	return tokens, tokens >= 0
}

// lookupSize returns how many tokens a counted lookup is: before v0.9.0 a block.
func lookupSize(v *window.View) (tokens float64, known bool) {
	if !v.Older(input.PrefixCacheQueries) || !v.Before(inTokens) {
		return 1, true
	}
	tokens, status := v.Engine(input.KVCacheBlockSize)
	return tokens, status == window.Present && tokens >= 1
}

// inTokens is the first version that counts lookups in tokens.
var inTokens = catalog.Release{0, 9}

// preempted reports whether a request was preempted: when it returned it found its own
// blocks.
func preempted(v *window.View) bool {
	n, status := v.Increase(input.Preemptions)
	return status == window.Present && n > 0
}

// externalHits is absent where hits and queries do not belong together.
func externalHits(settings *Settings, m *Member) Parts {
	parts := increases(input.ExternalPrefixCacheHits, input.ExternalPrefixCacheQueries)(settings, m)
	if parts.Denominator > 0 {
		parts.withhold(m.Now.Affected(catalog.DefectExternalHitsWrong))
	}
	return parts
}
