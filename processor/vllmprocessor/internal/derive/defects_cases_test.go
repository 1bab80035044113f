package derive_test

import (
	"maps"
	"slices"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

func defectCases() map[string][]defectCase {
	all := map[string][]defectCase{}
	for _, some := range []map[string][]defectCase{cacheCases(), labelCases(), capacityCases(), answerCases(), stepCases(), timeCases(), requestCases(), gaugeCases()} {
		maps.Copy(all, some)
	}
	return all
}

// A prompt of 100 tokens, of which 40 are cached, is looked up eleven times. So is another
// one of which 890 of 900 tokens are cached, and that still waits.
func cacheCases() map[string][]defectCase {
	const hits = "prefix_cache.hit_ratio"
	lookups := []point{
		count(input.PrefixCacheHits, 900), count(input.PrefixCacheQueries, 1000), count(input.PromptTokens, 100),
		count(input.Running, 0), lengths(input.RequestPromptTokens, 100, 0, 1),
	}
	// 1000 lookups, and prompts that ended their prefill.
	prompts := func(tokens float64) []point {
		return []point{
			count(input.PrefixCacheHits, 900), count(input.PrefixCacheQueries, 1000), count(input.PromptTokens, tokens),
			count(input.Running, 8), count(input.Waiting, 0), lengths(input.RequestPromptTokens, tokens, 0, 60), times(input.TimeToFirstToken, 60, 60),
		}
	}
	inBlocks := func(tokens, size float64) []point {
		all := prompts(tokens)
		all[0].Older, all[1].Older = true, true
		// Nothing ran and nothing waited when the window began.
		all[3], all[4] = count(input.Running, 0), count(input.Waiting, 0)
		if size > 0 {
			all = append(all, count(input.KVCacheBlockSize, size))
		}
		return all
	}
	cached := append(slices.Clone(lookups), count(input.PromptTokensCached, 40))
	sources := append(slices.Clone(cached),
		count(input.PromptTokensBySource, 60, "local_compute"), count(input.PromptTokensBySource, 31, "local_cache_hit"),
		count(input.PromptTokensBySource, 10, "external_kv_transfer"))
	connector := append(slices.Clone(cached), count(input.ExternalPrefixCacheQueries, 60), count(input.ExternalPrefixCacheHits, 10))
	loaded := append(slices.Clone(sources), count(input.ExternalPrefixCacheQueries, 60), count(input.ExternalPrefixCacheHits, 10))
	preempted := func(n float64) []point {
		return []point{
			count(input.PrefixCacheHits, 90), count(input.PrefixCacheQueries, 100), count(input.PromptTokens, 100),
			count(input.Running, 0), count(input.Waiting, 0), lengths(input.RequestPromptTokens, 100, 0, 1), times(input.TimeToFirstToken, 1, 1),
			count(input.Preemptions, n),
		}
	}
	external := []point{count(input.ExternalPrefixCacheQueries, 60), count(input.ExternalPrefixCacheHits, 15)}
	const hitRate, tier = "external_prefix_cache.hit_throughput", "prompt_tokens_cached_by_source_ratio "
	tiers := []point{
		count(input.PrefixCacheQueries, 1000), count(input.PrefixCacheHits, 400), count(input.PromptTokensCachedBySource, 400, "device"),
		count(input.PromptTokensCachedBySource, 250, "host"), count(input.PromptTokensCachedBySource, 0, "disk"),
		count(input.PromptTokensCachedBySource, 50, "external_unspecified"), count(input.Preemptions, 3),
		count(input.ExternalPrefixCacheQueries, 600), count(input.ExternalPrefixCacheHits, 300),
	}
	shares := map[string]float64{tier + "device": 0.4, tier + "host": 0.25, tier + "disk": absent, tier + "external_unspecified": 0.05, hitRate: 1}
	return map[string][]defectCase{
		"cache-queries-recounted": {
			{name: "cached tokens", server: release("0.20.0"), points: cached, want: map[string]float64{hits: 0.4}},
			{name: "version from a family", server: proves("0.16.0"), points: cached, want: map[string]float64{hits: 0.4}, elsewhere: true},
			{name: "of a connector", server: release("0.20.0"), points: sources, want: map[string]float64{hits: 0.3}},
			{name: "fixed", server: release("0.27.0"), points: cached, want: map[string]float64{hits: 0.9}},
			{name: "a connector whose tokens are not counted apart", server: release("0.20.0"), points: connector, want: map[string]float64{hits: absent}},
			{
				name: "no cached tokens, more lookups than prompts", server: release("0.15.0"), points: lookups,
				want: map[string]float64{hits: absent},
			},
			{
				name: "no cached tokens, prompts explain all but 47 of 1000", server: release("0.15.0"), points: prompts(953),
				want: map[string]float64{hits: 0.9},
			},
			{name: "prompts explain all but 48", server: release("0.15.0"), points: prompts(952), want: map[string]float64{hits: absent}},
			{
				name: "blocks of 16 tokens, and 60 prompts with rests of 450", server: release("0.8.5"), points: inBlocks(16000+450, 16),
				want: map[string]float64{hits: 0.9},
			},
			{name: "more blocks than prompts explain", server: release("0.8.5"), points: inBlocks(16000, 16), want: map[string]float64{hits: absent}},
			{name: "blocks of a size that is not known", server: release("0.8.5"), points: inBlocks(16000+450, 0), want: map[string]float64{hits: absent}},
			{name: "blocks or tokens", points: inBlocks(16000+450, 0), want: map[string]float64{hits: absent}},
			{
				name: "no prefix cache", server: release("0.20.0"), want: map[string]float64{hits: absent}, uncounted: true,
				points: []point{count(input.PrefixCacheHits, 0), count(input.PrefixCacheQueries, 0), count(input.PromptTokens, 100), count(input.PromptTokensCached, 0)},
			},
		},
		"negative-token-counts": {
			{
				name: "loaded again after a preemption", server: release("0.19.1"), points: loaded, want: map[string]float64{
					hits: absent, "prompt_tokens_cached_ratio": 0.4, "prefill_compute_throughput": 60.0 / interval,
				},
			},
			{name: "fixed", server: release("0.20.0"), points: loaded, want: map[string]float64{hits: 0.3}},
		},
		"own-blocks-found": {
			{name: "preempted", server: release("0.11.0"), points: preempted(1), want: map[string]float64{hits: absent}},
			{name: "not preempted", server: release("0.11.0"), points: preempted(0), want: map[string]float64{hits: 0.9}},
			{name: "fixed", server: release("0.11.1"), points: preempted(1), want: map[string]float64{hits: 0.9}},
		},
		"decode-side-finds-nothing": {{
			name: "nothing is found, and 0 says so", server: release("0.22.0"), want: map[string]float64{hits: 0},
			points: []point{count(input.PrefixCacheHits, 0), count(input.PrefixCacheQueries, 100), count(input.PromptTokens, 100), count(input.PromptTokensCached, 0)},
		}},
		"external-hits-wrong": {
			{name: "local hits are among the queries", server: release("0.15.1"), points: external, want: map[string]float64{"external_prefix_cache.hit_ratio": absent, hitRate: absent}},
			{name: "fixed", server: release("0.16.0"), points: external, want: map[string]float64{"external_prefix_cache.hit_ratio": 0.25, hitRate: 15.0 / interval}},
		},
		// Of 1000 prompt tokens the GPU had 400, the memory of the host 250 and a store 50.
		"by-tier": {
			{name: "the version is known", server: release("0.32.0"), points: tiers, want: shares, uncounted: true},
			{name: "the counter proves it", server: proves("0.32.0"), points: tiers, want: shares, uncounted: true},
			{name: "an older server", server: release("0.31.0"), points: tiers[:2], want: map[string]float64{tier + "device": absent}, uncounted: true},
			{
				name: "no prefix cache", server: release("0.32.0"), want: map[string]float64{tier + "device": absent, tier + "host": absent, hitRate: 1}, uncounted: true,
				points: append([]point{count(input.PrefixCacheQueries, 0), count(input.PromptTokensCachedBySource, 0, "device"), count(input.PromptTokensCachedBySource, 300, "host")}, tiers[7:]...),
			},
			{
				name: "more than all prompts", server: release("0.32.0"), want: map[string]float64{tier + "device": absent, tier + "host": 0.25}, uncounted: true,
				points: append([]point{count(input.PromptTokensCachedBySource, 1001, "device")}, append(slices.Clone(tiers[:2]), tiers[3])...),
			},
			{
				// The other engine has 1000 prompt tokens more, and 500 of these in the host's memory.
				name: "two engines", server: release("0.32.0"), uncounted: true, want: map[string]float64{
					"prompt_tokens_cached_by_source_ratio all device": 0.2,
					"prompt_tokens_cached_by_source_ratio all host":   0.375, "prompt_tokens_cached_by_source_ratio 1 host": 0.5, hitRate: 1, hitRate + " 1": 5.0 / 3,
				},
				points: append(slices.Clone(tiers), as("1", count(input.PrefixCacheQueries, 1000), count(input.PromptTokensCachedBySource, 0, "device"),
					count(input.PromptTokensCachedBySource, 500, "host"), count(input.ExternalPrefixCacheQueries, 1000), count(input.ExternalPrefixCacheHits, 500))...),
			},
		},
		"hits-uncounted": {{
			name: "other counters show that prompts were found", server: release("0.32.0"), uncounted: true,
			want: map[string]float64{hits: 0, tier + "device": 0, "prompt_tokens_cached_ratio": 0.4},
			points: []point{
				count(input.PrefixCacheHits, 0), count(input.PrefixCacheQueries, 100), count(input.PromptTokens, 100), count(input.PromptTokensCached, 40),
				count(input.PromptTokensCachedBySource, 0, "device"),
			},
		}},
		"refused-after-rendering": {{
			name: "two limits", server: release("0.32.0"), want: map[string]float64{"drop_rate": 9.0 / interval},
			points: []point{count(input.Dropped, 6, "max_num_queued_reqs"), count(input.Dropped, 3, "max_num_queued_tokens")},
		}},
		"mm-cache-under-any-engine": {
			{
				name: "two engines", server: release("0.20.0"), want: map[string]float64{
					"mm_cache.hit_ratio": absent, "mm_cache.hit_ratio 1": absent, "mm_cache.hit_ratio all": 0.25,
				},
				points: append([]point{count(input.MMCacheHits, 5), count(input.MMCacheQueries, 10)},
					as("1", count(input.MMCacheHits, 5), count(input.MMCacheQueries, 30))...),
			},
			{
				name: "one engine", server: release("0.20.0"), want: map[string]float64{"mm_cache.hit_ratio": 0.5},
				points: []point{count(input.MMCacheHits, 5), count(input.MMCacheQueries, 10)},
			},
		},
	}
}

// Through Ray, all ten finished requests have one reason, and all 100 prompt tokens, 40 of
// them cached, one source.
func labelCases() map[string][]defectCase {
	finished := []point{count(input.RequestSuccess, 10, "error")}
	sources := []point{
		count(input.PromptTokensBySource, 100, "external_kv_transfer"), count(input.PromptTokens, 100), count(input.PromptTokensCached, 40),
	}
	positions := []point{
		count(input.Drafts, 10), count(input.DraftTokens, 30), count(input.AcceptedTokens, 9), count(input.AcceptedTokensPerPosition, 9, "2"),
	}
	engine := as("1",
		count(input.GenerationTokens, 30), times(input.TimeToFirstToken, 3, 3), count(input.RequestSuccess, 3, "stop"),
		count(input.Running, 1), count(input.Waiting, 1), count(input.KVCacheUtilization, 0.5), count(input.CacheConfigTokens, 100),
		count(input.PromptTokens, 100), lengths(input.RequestPromptTokens, 100, 0, 1),
	)
	gauges := map[string]float64{
		"arrival_rate 1": absent, "request.queue_wait_estimate 1": absent, "request.cancelled_estimate 1": absent, "kv_cache.free 1": absent,
		"wasted_tokens_ratio 1 abandoned_prefill lower": absent, "wasted_tokens_ratio 1 abandoned_prefill upper": absent,
		"generation_throughput 1": 30.0 / interval, "first_token_rate 1": 3.0 / interval,
	}
	return map[string][]defectCase{
		"ray-last-label": {
			{name: "one reason", server: signed("0.19.0", input.Ray), points: finished, want: map[string]float64{"request.finished_ratio error": absent, "request_throughput": 10.0 / interval}},
			{
				name: "several reasons", server: signed("0.19.0", input.Ray), points: []point{count(input.RequestSuccess, 30, "stop"), count(input.RequestSuccess, 10, "error")},
				want: map[string]float64{"request.finished_ratio error": 0.25, "request.finished_ratio stop": 0.75},
			},
			{name: "not Ray", server: release("0.19.0"), points: finished, want: map[string]float64{"request.finished_ratio error": 1}},
			{name: "fixed", server: signed("0.21.0", input.Ray), points: finished, want: map[string]float64{"request.finished_ratio error": 1}},
			{
				name: "the source external_kv_transfer", server: signed("0.19.0", input.Ray), points: sources,
				want: map[string]float64{"prefill_compute_throughput": 60.0 / interval, "prompt_tokens_cached_ratio": 0.4},
			},
			{
				name: "no cached tokens to correct it", server: signed("0.19.0", input.Ray), points: sources[:2],
				want: map[string]float64{"prefill_compute_throughput": absent},
			},
			{
				name: "the last position", server: signed("0.19.0", input.Ray), points: positions,
				want: map[string]float64{"spec_decode.position_acceptance_ratio 2": absent, "spec_decode.acceptance_ratio": 0.3},
			},
			{
				name: "one position", server: signed("0.19.0", input.Ray), want: map[string]float64{"spec_decode.position_acceptance_ratio 0": 0.9},
				points: append(slices.Clone(positions[:3]), count(input.AcceptedTokensPerPosition, 9, "0")),
			},
			{
				name: "the reason that was set last", server: signed("0.20.0", input.Ray), want: map[string]float64{"request.queue_wait_estimate": 50},
				points: []point{count(input.WaitingByReason, 0, "deferred"), count(input.Waiting, 1), times(input.TimeToFirstToken, 3, 6)},
			},
		},
		"ray-last-engine": {
			{name: "the last of two engines", server: signed("0.19.0", input.Ray), points: engine, want: gauges},
			{
				name: "fixed", server: signed("0.21.0", input.Ray), points: engine,
				want: map[string]float64{"arrival_rate 1": 3.0 / interval, "request.queue_wait_estimate 1": 100, "kv_cache.free 1": 50},
			},
		},
		"only-last-engine": {{
			name: "the last engine says what is its own", server: release("0.9.1"), points: as("1", count(input.GenerationTokens, 30), count(input.RequestSuccess, 3, "stop")),
			want: map[string]float64{"generation_throughput 1": 30.0 / interval, "request_throughput 1": 3.0 / interval, "generation_throughput": absent}, uncounted: true,
		}, {
			name: "the blocks name no engine", server: release("0.9.2"), want: map[string]float64{"kv_cache.free 2": absent},
			points: append(as(noEngine, count(input.KVCacheBlocks, 150), count(input.KVCacheBlockSize, 16)), as("2", count(input.KVCacheUtilization, 0.25))...),
		}, {
			name: "nor does the capacity", server: release("0.9.2"), want: map[string]float64{"kv_cache.free 2": absent},
			points: append(as(noEngine, count(input.KVCacheCapacity, 2400)), as("2", count(input.KVCacheUtilization, 0.25))...),
		}, {
			name: "the first engine", server: release("0.9.2"), want: map[string]float64{"kv_cache.free": 1800},
			points: append(as(noEngine, count(input.KVCacheCapacity, 2400)), as("0", count(input.KVCacheUtilization, 0.25))...),
		}},
	}
}

// Each engine has 50 blocks of 16 tokens, a quarter of which is used.
func capacityCases() map[string][]defectCase {
	const capacity, free = "kv_cache.capacity", "kv_cache.free"
	blocks := func(engine string, n float64) []point {
		return as(engine, count(input.KVCacheBlocks, n), count(input.KVCacheBlockSize, 16), count(input.KVCacheUtilization, 0.25))
	}
	two := func(n, m float64) []point { return append(blocks("0", n), blocks("1", m)...) }
	busy := func(tokens float64) []point {
		return []point{
			count(input.CacheConfigTokens, 800), count(input.KVCacheUtilization, 0.75), count(input.Running, 4), count(input.Waiting, 0),
			count(input.GenerationTokens, tokens),
		}
	}
	return map[string][]defectCase{
		"blocks-summed-over-engines": {
			{
				name: "the blocks of both", server: release("0.20.0"), points: two(100, 100),
				want: map[string]float64{capacity: 800, capacity + " 1": 800, free: 600, free + " 1": 600},
			},
			{name: "unknown version", points: two(100, 100), want: map[string]float64{capacity: 800, free + " 1": 600}, elsewhere: true},
			{name: "own blocks", server: release("0.20.0"), points: two(50, 60), want: map[string]float64{capacity: 800, capacity + " 1": 960, free: 600}},
			{name: "before", server: release("0.8.5"), points: two(50, 50), want: map[string]float64{capacity: 800, free + " 1": 600}},
			{name: "one engine", server: release("0.20.0"), points: blocks("0", 50), want: map[string]float64{capacity: 800, free: 600}},
			{
				name: "the last of several engines", server: release("0.9.1"), points: blocks("1", 100),
				want: map[string]float64{capacity + " 1": absent, free + " 1": absent},
			},
			{
				name: "the last of several engines, with the capacity of all", server: release("0.9.1"), uncounted: true,
				points: as("1", count(input.CacheConfigTokens, 800), count(input.KVCacheUtilization, 0.25)),
				want:   map[string]float64{free + " 1": absent},
			},
			{
				name: "the last of several engines, through Ray", server: signed("0.19.0", input.Ray), points: blocks("1", 100),
				want: map[string]float64{capacity + " 1": absent, free + " 1": absent},
			},
			{name: "an engine behind a load balancer", server: release("0.20.0"), points: blocks("1", 50), want: map[string]float64{capacity + " 1": 800}},
		},
		"block-size-of-hybrid-models": {{
			name: "labels of a hybrid model", server: release("0.20.0"), points: append(blocks("0", 50), count(input.CacheConfigHybrid, 1)),
			want: map[string]float64{capacity: absent, free: absent},
		}},
		"blocks-not-a-number": {{
			name: "no blocks", server: release("0.8.5"), points: []point{count(input.KVCacheBlockSize, 16), count(input.KVCacheUtilization, 0.25)},
			want: map[string]float64{capacity: absent, free: absent}, uncounted: true,
		}},
		"gauges-freeze-on-abort": {
			{name: "all requests are aborted", server: release("0.10.1"), points: busy(0), want: map[string]float64{free: absent}},
			{name: "it makes progress", server: release("0.10.1"), points: busy(1), want: map[string]float64{free: 200}},
			{name: "fixed", server: release("0.10.2"), points: busy(0), want: map[string]float64{free: 200}},
		},
	}
}

// Of 100 requests five are recorded as 4xx and ten as 5xx.
func answerCases() map[string][]defectCase {
	const client, server = "http.error_ratio 4xx", "http.error_ratio 5xx"
	answers := func(more ...point) []point {
		return append([]point{
			count(input.HTTPRequests, 85, "2xx", "/v1/completions"), count(input.HTTPRequests, 5, "4xx", "/v1/completions"),
			count(input.HTTPRequests, 10, "5xx", "/v1/completions"),
		}, more...)
	}
	engine := func(tokens, running float64) []point {
		return []point{count(input.GenerationTokens, tokens), count(input.Running, running), count(input.Waiting, 0)}
	}
	as := map[string]float64{client: 0.05, server: 0.1}
	unclear := map[string]float64{client: absent, server: absent}
	return map[string][]defectCase{
		"client-errors-as-server-errors": {
			{name: "nothing explains them", server: release("0.20.0"), points: answers(engine(500, 2)...), want: unclear},
			{name: "only some are explained", server: release("0.20.0"), points: answers(append(engine(500, 2), count(input.RequestSuccess, 9, "error"))...), want: unclear},
			{name: "engine errors explain them", server: release("0.20.0"), points: answers(append(engine(500, 2), count(input.RequestSuccess, 10, "error"))...), want: as},
			{name: "the engine stands still", server: release("0.20.0"), points: answers(engine(0, 2)...), want: as},
			{name: "the engine is idle", server: release("0.20.0"), points: answers(engine(0, 0)...), want: unclear},
			{name: "gauges may be frozen", server: input.Evidence{}, points: answers(engine(0, 2)...), want: unclear},
			{name: "not healthy", server: release("0.20.0"), points: answers(count(input.Healthy, 0)), want: as},
			{name: "healthy", server: release("0.20.0"), points: answers(count(input.Healthy, 1)), want: unclear},
			{name: "before", server: release("0.16.0"), points: answers(engine(500, 2)...), want: as},
			{name: "fixed", server: release("0.26.0"), points: answers(engine(500, 2)...), want: as},
			{
				name: "no 5xx", server: release("0.20.0"), want: map[string]float64{client: 0.05, server: 0},
				points: []point{count(input.HTTPRequests, 95, "2xx", "/v1/completions"), count(input.HTTPRequests, 5, "4xx", "/v1/completions")},
			},
		},
		"handler-lost": {{
			name: "the handler is none", server: release("0.26.0"), want: as,
			points: []point{
				count(input.HTTPRequests, 85, "2xx", "none"), count(input.HTTPRequests, 5, "4xx", "none"), count(input.HTTPRequests, 10, "5xx", "none"),
			},
		}},
	}
}
