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
