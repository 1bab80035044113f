package derive

import (
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// prefixHits is the share of prompt tokens that the prefix cache found. Servers that can
// count a lookup twice also count, for each prompt once, how many of its tokens were
// cached: these counters replace the lookups. Without them, the lookups are used unless
// the data show that some were repeated.
func prefixHits(_ *Settings, m *Member) Parts {
	v := &m.Now
	lookups := increases(collect.PrefixCacheHits, collect.PrefixCacheQueries)(nil, m)
	if lookups.Reason != OK {
		return lookups
	}
	recounted, own := v.Affected(catalog.DefectCacheQueriesRecounted), v.Affected(catalog.DefectOwnBlocksFound)
	if !recounted && !own {
		return lookups
	}
	if ever, _ := v.Total(collect.PrefixCacheQueries); ever == 0 {
		return lookups // no prefix cache, so no share of it
	}
	if found, counted := foundLocally(v); counted {
		return found
	}
	switch {
	case recounted && lookedUpAgain(v, lookups.Denominator), own && preempted(v):
		return Parts{Reason: KnownDefect}
	}
	return lookups
}

// foundLocally returns the prompt tokens that the prefix cache found, and all of them.
// counted is false where the server does not count them, or not apart from those of a
// connector. The source local_cache_hit is not used: up to v0.19 it has a token more for
// each prompt that was found as a whole, because the last token is computed again.
func foundLocally(v *window.View) (found Parts, counted bool) {
	cached, status := v.Increase(collect.PromptTokensCached)
	prompts, statusPrompts := v.Increase(collect.PromptTokens)
	if status == window.Missing || statusPrompts == window.Missing {
		return noParts, false
	}
	external, statusExternal := v.IncreaseOf(collect.PromptTokensBySource, "external_kv_transfer")
	if statusExternal == window.Missing || underLast(v, collect.PromptTokensBySource, lastSources) {
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

// lookedUpAgain reports whether more tokens were looked up than prompts explain. A prompt
// is looked up when its prefill begins and counted when it ends. So the lookups exceed
// the prompts by at most those of the requests that run now, and of the one that waits for
// room; with a connector, also of those that wait for it. As elsewhere, no prompt is
// assumed to be longer than the highest bucket of finished ones. Where nothing has
// finished, nothing is known.
func lookedUpAgain(v *window.View, lookedUp float64) bool {
	prompts, status := v.Increase(collect.PromptTokens)
	running, statusRunning := v.Gauge(collect.Running)
	longest, known := longestPrompt(v)
	if worst(status, statusRunning) != OK || !known {
		return false
	}
	inFlight := running + 1
	if v.Shows("connector") {
		waiting, _ := v.Gauge(collect.Waiting)
		inFlight += waiting
	}
	return lookedUp > prompts+inFlight*longest
}

// preempted reports whether a request was preempted: when it returned it found its own
// blocks.
func preempted(v *window.View) bool {
	n, status := v.Increase(collect.Preemptions)
	return status == window.Present && n > 0
}

// externalHits is absent where hits and queries do not belong together.
func externalHits(settings *Settings, m *Member) Parts {
	parts := increases(collect.ExternalPrefixCacheHits, collect.ExternalPrefixCacheQueries)(settings, m)
	if parts.Denominator > 0 {
		parts.withhold(m.Now.Affected(catalog.DefectExternalHitsWrong))
	}
	return parts
}
