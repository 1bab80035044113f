package stages

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/gpu"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// Hardware is what one GPU of some servers can do at best: by the name of the GPU, or
// by two numbers.
type Hardware struct {
	// Match maps names of resource attributes to patterns, in which * stands for
	// any characters and ? for one. All must match; an empty Match matches every
	// resource.
	Match map[string]string `mapstructure:"match"`
	// GPU is a name of the built-in table.
	GPU string `mapstructure:"gpu"`
	// DType is the type that the GPU computes in. Empty means bf16, or fp16 on a
	// GPU without bf16.
	DType string `mapstructure:"dtype"`
	// FLOPS are operations per second: dense, in the type computed in.
	FLOPS float64 `mapstructure:"flops"`
	// MemoryBandwidth is in bytes per second.
	MemoryBandwidth float64 `mapstructure:"memory_bandwidth"`

	_ struct{}
}

// No GPU is slower than this. A smaller value lacks a power of ten.
const (
	minFLOPS     = 1e10
	minBandwidth = 1e9
)

func (c *DerivedConfig) checkHardware(invalid Invalid) {
	for i := range c.Hardware {
		h := &c.Hardware[i]
		key := fmt.Sprintf("hardware::%d", i)
		named, numbered := h.GPU != "", h.FLOPS != 0 || h.MemoryBandwidth != 0
		switch {
		case named && numbered:
			invalid(key, "gives gpu as well as numbers; write either gpu, or flops and memory_bandwidth")
		case named:
			if _, err := h.rule(); err != nil {
				invalid(key, "%v", err)
			}
		case !numbered:
			invalid(key, "write gpu, one of %s; or flops and memory_bandwidth", strings.Join(gpu.Names(), ", "))
		case h.DType != "":
			invalid(key+"::dtype", "belongs to gpu; flops are already those of one type, so remove it")
		}
		checkPeak(key+"::flops", h.FLOPS, minFLOPS, "operations per second, for example 989e12", invalid)
		checkPeak(key+"::memory_bandwidth", h.MemoryBandwidth, minBandwidth, "bytes per second, for example 3.35e12", invalid)
		for _, name := range slices.Sorted(maps.Keys(h.Match)) {
			if name == "" || h.Match[name] == "" {
				invalid(key+"::match", "%q: %q matches nothing; write a resource attribute and a pattern, for example k8s.node.name: gpu-a-*", name, h.Match[name])
			} else if what := input.PatternMistake(h.Match[name]); what != "" {
				invalid(key+"::match::"+name, "%s", what)
			}
		}
		if last := len(c.Hardware) - 1; len(h.Match) == 0 && i < last {
			invalid(key, "has no match, so that hardware::%d is never reached; write it last", i+1)
		}
	}
}

func checkPeak(key string, value, least float64, unit string, invalid Invalid) {
	if value != 0 && (!(value >= least) || math.IsInf(value, 0)) {
		invalid(key, "%g is too small or not a number; write %s", value, unit)
	}
}

// rule returns the rule of the entry, with the numbers of its GPU.
func (h *Hardware) rule() (gpu.Rule, error) {
	if h.GPU == "" {
		return gpu.Rule{Match: h.Match, FLOPS: h.FLOPS, MemoryBandwidth: h.MemoryBandwidth}, nil
	}
	dtype := h.DType
	if peak, known := gpu.Lookup(h.GPU); known && dtype == "" {
		// Every GPU of the table has bf16 or fp16.
		dtype = peak.DTypes()[0]
	}
	return gpu.NewRule(h.Match, h.GPU, dtype)
}

func rulesOf(entries []Hardware) ([]gpu.Rule, error) {
	var rules []gpu.Rule
	for i := range entries {
		rule, err := entries[i].rule()
		if err != nil {
			return nil, fmt.Errorf("hardware::%d: %w", i, err)
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

// peak returns what one GPU of a server can do; zero where no rule matches.
func peak(rules []gpu.Rule, attributes pcommon.Map) derive.Peak {
	if len(rules) == 0 {
		return derive.Peak{}
	}
	texts := make(map[string]string, attributes.Len())
	for name, value := range attributes.All() {
		texts[name] = value.AsString()
	}
	rule, _ := gpu.Match(texts, rules)
	return derive.Peak{FLOPS: rule.FLOPS, Bandwidth: rule.MemoryBandwidth}
}
