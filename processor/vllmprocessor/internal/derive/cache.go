package derive

import (
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// capacity is only for input without the metric of our receiver.
func capacity(settings *Settings, m *Member) (float64, Reason) {
	if _, status := m.Now.Gauge(input.KVCacheCapacity); status != window.Missing {
		return 0, Missing
	}
	if tokens, status := m.Now.Gauge(input.CacheConfigTokens); status != window.Missing {
		return tokens, Because(status)
	}
	if !settings.CapacityFromBlocks {
		return 0, Missing
	}
	return fromBlocks(&m.Now, m.Now.Gauge)
}

// free is absent where the use of the cache may be that of requests that are gone.
func free(settings *Settings, m *Member) (float64, Reason) {
	used, status := m.Now.Gauge(input.KVCacheUtilization)
	if status != window.Present {
		return 0, Because(status)
	}
	tokens, status := m.Now.Engine(input.KVCacheCapacity)
	if status == window.Missing {
		tokens, status = m.Now.Engine(input.CacheConfigTokens)
	}
	ofAll := status == window.Present && lastOfSeveral(&m.Now)
	reason := Because(status)
	if status == window.Missing && settings.CapacityFromBlocks {
		tokens, reason = fromBlocks(&m.Now, m.Now.Engine)
	}
	if reason == OK && (ofAll || Frozen(&m.Now) || Mixed(&m.Now)) {
		reason = KnownDefect
	}
	return tokens * (1 - used), reason
}

// Capacity is how many tokens the KV cache of an engine holds, if it is known.
func Capacity(v *window.View) (tokens float64, known bool) {
	if lastOfSeveral(v) || Mixed(v) {
		return 0, false
	}
	for _, in := range []input.Metric{input.KVCacheCapacity, input.CacheConfigTokens} {
		if n, status := v.Engine(in); status == window.Present {
			return n, true
		}
	}
	tokens, reason := fromBlocks(v, v.Engine)
	return tokens, reason == OK
}

// fromBlocks returns the tokens of an engine's blocks. Engines that share a front end each
// report the blocks of all of them. Without this defect they would have different numbers
// of blocks now and then, but never exactly the same multiple: so equal numbers are divided.
func fromBlocks(v *window.View, read func(input.Metric) (float64, window.Status)) (float64, Reason) {
	blocks, status := read(input.KVCacheBlocks)
	size, statusSize := read(input.KVCacheBlockSize)
	reason := worst(status, statusSize)
	if reason != OK {
		return 0, reason
	}
	if hybrid, has := read(input.CacheConfigHybrid); has == window.Present && hybrid > 0 {
		return 0, KnownDefect
	}
	engines, equal := 0, true
	for e := range v.Server() {
		n, status := e.Gauge(input.KVCacheBlocks)
		if status == window.Missing || status == window.Gone {
			continue
		}
		engines++
		equal = equal && n == blocks
	}
	if !v.Affected(catalog.DefectBlocksSummedOverEngines) {
		return blocks * size, OK
	}
	switch {
	case engines > 1 && equal:
		return blocks / float64(engines) * size, OK
	case engines == 1 && lastOfSeveral(v):
		return 0, KnownDefect
	}
	return blocks * size, OK
}

// lastOfSeveral reports whether an engine can be the last of several that are not reported:
// it has another number than 0, and there is no engine 0. What names no engine is then of
// all of them.
func lastOfSeveral(v *window.View) bool {
	if name := v.Group().Engine(); name == "" || name == "0" {
		return false
	}
	for e := range v.Server() {
		if e.Group().Engine() == "0" {
			return false
		}
	}
	return v.Affected(catalog.DefectOnlyLastEngine) || Mixed(v)
}

var (
	localLookups    = increases(input.PrefixCacheHits, input.PrefixCacheQueries)
	externalLookups = increases(input.ExternalPrefixCacheHits, input.ExternalPrefixCacheQueries)
)

// prefixHits is the share of prompt tokens that the prefix cache found. Servers that can
// count a lookup twice also count, for each prompt once, how many of its tokens were
// cached: these counters replace the lookups. Without them, the lookups are used where those
// that were repeated cannot change the share by more than the tolerance.
func prefixHits(_ *Settings, m *Member) Parts {
	v := &m.Now
	lookups := localLookups(nil, m)
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
	parts := externalLookups(settings, m)
	if parts.Denominator > 0 {
		parts.withhold(m.Now.Affected(catalog.DefectExternalHitsWrong))
	}
	return parts
}

// externalHitRate is absent where hits are missing, and without lookups: a server without a connector
// has the counters, too.
func externalHitRate(_ *Settings, m *Member) (float64, Reason) {
	n, status := m.Now.Increase(input.ExternalPrefixCacheHits)
	lookups, statusLookups := m.Now.Increase(input.ExternalPrefixCacheQueries)
	reason := worst(status, statusLookups)
	if reason == OK && lookups == 0 {
		reason = Idle
	}
	if m.Now.Affected(catalog.DefectExternalHitsWrong) {
		reason = defective(reason)
	}
	return perSecond(n, m.Now.Elapsed, reason)
}

// cachedIn are the shares of the looked-up prompt tokens that each tier had. Both are counted in the
// step that admits a request (vllm/v1/core/sched/scheduler.py), and prompt tokens only at its first
// token. A tier that has never had a token is left out, except the GPU's own cache.
func cachedIn(m *Member, to []entry) (all []entry, rest Parts, reason Reason) {
	lookups, status := m.Now.Increase(input.PrefixCacheQueries)
	_, statusCached := m.Now.Increase(input.PromptTokensCachedBySource)
	if reason = worst(statusCached, status); reason != OK {
		return to, noParts, reason
	}
	for tier, n := range m.Now.Increases(input.PromptTokensCachedBySource) {
		if ever, _ := m.Now.GaugeOf(input.PromptTokensCachedBySource, tier); ever == 0 && tier.Value(0) != "device" {
			continue
		}
		parts := Parts{Numerator: n, Denominator: lookups}
		parts.share()
		to = append(to, entry{Extra{tier.Value(0)}, parts})
	}
	return to, Parts{Denominator: lookups}, OK
}
