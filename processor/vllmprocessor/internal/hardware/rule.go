package hardware

import (
	"fmt"
	"strings"
)

// Rule says what one GPU of some resources can do at most.
type Rule struct {
	// Match maps names of resource attributes to patterns: * stands for any
	// characters, / included, and ? for one. All must match. No patterns match
	// every resource.
	Match map[string]string

	FLOPS           float64 // FLOP/s, dense, for the type computed in; 0 where unknown
	MemoryBandwidth float64 // By/s; 0 where unknown
}

// NewRule makes a rule from the table. The error says what to write instead.
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
	for name, pattern := range r.Match {
		value, ok := attributes[name]
		if !ok || !glob(pattern, value) {
			return false
		}
	}
	return true
}

// glob reports whether the whole text fits the pattern. It works on bytes and goes
// back to the last star only, so that its time is bounded by the product of both
// lengths.
func glob(pattern, text string) bool {
	p, t := 0, 0
	star, resume := -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, resume = p, t
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == text[t]):
			p++
			t++
		case star >= 0:
			resume++
			p, t = star+1, resume
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}
