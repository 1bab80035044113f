package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
)

// The states of derived metrics.
const (
	stateExists  = "exists"
	stateIdle    = "idle"
	stateMissing = "missing"
	stateSetting = "setting"
	stateFeature = "feature"
)

// settingsOf are the settings of the processor that derived metrics can need, as Metric.Needs
// writes them, and whether a configuration has them.
var settingsOf = []struct {
	name string
	has  func(*vllmprocessor.Config) bool
}{
	{"pool", func(c *vllmprocessor.Config) bool { return c.Pool.HasValue() }},
	{"objectives", func(c *vllmprocessor.Config) bool { return len(c.Objectives) > 0 }},
	{"hardware", func(c *vllmprocessor.Config) bool { return len(c.Derived.Hardware) > 0 }},
}

// derived returns the state of each metric that the processor derives from those of a vLLM
// server. Processed are those that it emitted for both scrapes.
func derived(h *have, cfg *vllmprocessor.Config, processed map[string]int, missing []Missing) []Derived {
	why := map[string]Missing{}
	for _, m := range missing {
		why[m.Name] = m
	}
	var out []Derived
	for i := range catalog.All() {
		m := &catalog.All()[i]
		if !m.Derived() || !strings.HasPrefix(m.Name, "vllm.") || !isOn(m, cfg) {
			continue
		}
		d := Derived{Name: m.Name}
		d.State, d.Why = stateOf(h, m, cfg, processed, why)
		out = append(out, d)
	}
	return out
}

// isOn reports whether a configuration emits a metric if its inputs are there.
func isOn(m *catalog.Metric, cfg *vllmprocessor.Config) bool {
	return cfg.Switched(m.Name) && (cfg.Diagnosis.Enabled || !strings.Contains(m.Name, ".diagnosis."))
}

func stateOf(h *have, m *catalog.Metric, cfg *vllmprocessor.Config, processed map[string]int, why map[string]Missing) (state, reason string) {
	if processed[m.Name] > 0 || h.metric(m.Name) {
		return stateExists, ""
	}
	if strings.HasPrefix(m.Needs, "two `objectives`") && finished(cfg) < 2 {
		return stateSetting, "set two objectives or more about ended requests in the processor"
	}
	for _, s := range settingsOf {
		if strings.Contains(m.Needs, "`"+s.name+"`") && !s.has(cfg) {
			return stateSetting, "set " + s.name + " of the processor"
		}
	}
	if strings.HasPrefix(m.Needs, "an exporter of GPU metrics") {
		return stateFeature, "needs " + m.Needs + ", read in the same pipeline"
	}
	_, setting, or := strings.Cut(m.Needs, "or the setting ")
	or = or && h.hasBlocks()
	if absent, is := why[m.Name]; is && !cfg.Derived.CapacityFromBlocks {
		// The server can expose it itself.
		words := "is not sent by the server (" + absent.Why + ")"
		if or {
			words += "; the setting " + setting + " of the processor derives it"
		}
		return stateMissing, words
	}
	if strings.Contains(m.Needs, " for ") {
		// Only one value of an attribute needs more.
		return stateIdle, idleWords
	}
	for _, input := range m.DerivedFrom {
		absent, is := why[input]
		if !is || h.unused(input) || h.replaced(m, input) || h.optional(m, input) || outlived(m, absent, why) {
			continue
		}
		words := fmt.Sprintf("needs %s (%s)", input, absent.Why)
		if or {
			words += ", or the setting " + setting
		}
		switch absent.Reason {
		case reasonFlag, reasonUnreleased:
			return stateFeature, words
		case reasonIdle:
			return stateIdle, words
		}
		return stateMissing, words
	}
	if strings.HasPrefix(m.Name, "vllm.pool.") {
		return stateExists, ""
	}
	// These inputs exist on each server, and stay at 0 without the feature.
	if strings.Contains(m.Needs, "KV connector") && !slices.Contains(h.reading.Server.Setups, "connector") || strings.Contains(m.Needs, "multi-modal") {
		// The version is there, as the inputs are.
		feature := m.Needs
		if _, rest, more := strings.Cut(feature, ", "); more && strings.HasPrefix(feature, "vLLM ") {
			feature = rest
		}
		return stateFeature, "needs " + feature + ", which is not in use"
	}
	return stateIdle, idleWords
}

// hasBlocks reports whether the server sends what a capacity is derived from.
func (h *have) hasBlocks() bool {
	m, known := catalog.ByName("vllm.kv_cache.capacity")
	return known && !slices.ContainsFunc(m.DerivedFrom, func(input string) bool { return !h.metric(input) })
}

// outlived reports whether an input was removed from vLLM and a metric needs another one since,
// which is missing as well. Then the other one is the reason.
func outlived(m *catalog.Metric, input Missing, why map[string]Missing) bool {
	if input.Reason != reasonRemoved {
		return false
	}
	for _, group := range alternatives {
		if slices.Contains(group, input.Name) {
			return slices.ContainsFunc(group, func(other string) bool {
				absent, is := why[other]
				return is && absent.Reason != reasonRemoved && slices.Contains(m.DerivedFrom, other)
			})
		}
	}
	return false
}

const idleWords = "its inputs are there, and no request moved them between the two scrapes"

// finished counts the objectives about ended requests.
func finished(cfg *vllmprocessor.Config) int {
	n := 0
	for i := range cfg.Objectives {
		if cfg.Objectives[i].Finished() {
			n++
		}
	}
	return n
}

// replaced reports whether another input of a metric takes the place of one. The processor has
// several inputs for what servers count in several ways; then one of them is enough.
func (h *have) replaced(m *catalog.Metric, input string) bool {
	if len(m.DerivedFrom) > mostInputs {
		return true
	}
	for _, group := range alternatives {
		if slices.Contains(group, input) {
			return slices.ContainsFunc(group, func(other string) bool {
				return other != input && slices.Contains(m.DerivedFrom, other) && h.metric(other)
			})
		}
	}
	return false
}

// mostInputs is how many inputs a metric can have that needs all of them. The diagnosis and
// the objectives have more, and use those that are there.
const mostInputs = 7

// optional reports whether the processor can do without an input, as the formulas say.
func (h *have) optional(m *catalog.Metric, input string) bool {
	switch m.Name {
	case "vllm.prefix_cache.hit_ratio":
		// It replaces the count of hits on servers that count lookups again.
		return strings.HasPrefix(input, "vllm.prompt_tokens")
	case "vllm.tokens_per_iteration":
		return input == "vllm.prompt_tokens_cached" && h.isV0()
	}
	return false
}

// alternatives are inputs of which one is enough. The formulas in the catalogue say so.
var alternatives = [][]string{
	{"vllm.gpu_prefix_cache.hits", "vllm.prefix_cache.hits"},
	{"vllm.gpu_prefix_cache.queries", "vllm.prefix_cache.queries"},
	{"vllm.num_preemptions", "vllm.num_preemptions_gauge"},
	{"vllm.num_requests.waiting", "vllm.num_requests.waiting_by_reason"},
	{"vllm.prompt_tokens_by_source", "vllm.prompt_tokens_cached"},
	{"vllm.admission_rejections", "vllm.num_dropped", "vllm.num_dropped_counter"},
}
