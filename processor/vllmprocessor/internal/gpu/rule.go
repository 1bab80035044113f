package gpu

import (
	"fmt"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/input"
)

// Rule is the peak throughput of one GPU of the matching resources.
type Rule struct {
	// Match maps names of resource attributes to patterns: * stands for any
	// characters, / included, and ? for one. All must match. No patterns match
	// every resource.
	Match map[string]string

	FLOPS           float64 // FLOP/s, dense, for the type computed in; 0 where unknown
	MemoryBandwidth float64 // By/s; 0 where unknown
}

// NewRule makes a rule from the table. The error names the valid values.
func NewRule(match map[string]string, gpu, dtype string) (Rule, error) {
	peak, ok := Lookup(gpu)
	if !ok {
		return Rule{}, fmt.Errorf("gpu %q is not known, or fits several; write one of %s, or give its flops and memory_bandwidth",
			gpu, strings.Join(Names(), ", "))
	}
	flops, ok := peak.FLOPS(dtype)
	if !ok {
		return Rule{}, fmt.Errorf("dtype %q is not known for %s; write one of %s, or give flops",
			dtype, peak.Name, strings.Join(peak.DTypes(), ", "))
	}
	return Rule{Match: match, FLOPS: flops, MemoryBandwidth: peak.MemoryBandwidth}, nil
}

// Match returns the first rule that matches the attributes of a resource.
func Match(attributes map[string]string, rules []Rule) (Rule, bool) {
	for _, rule := range rules {
		if rule.matches(attributes) {
			return rule, true
		}
	}
	return Rule{}, false
}

func (r Rule) matches(attributes map[string]string) bool {
	for name, wanted := range r.Match {
		value, ok := attributes[name]
		if !ok || !input.MatchPattern(wanted, value) {
			return false
		}
	}
	return true
}
