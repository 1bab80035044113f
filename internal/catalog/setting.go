package catalog

import (
	"regexp"
	"strings"
)

// zeroWithout are the flags without which a server exposes families that stay at 0, by the
// beginnings of families.
var zeroWithout = map[string]string{"vllm:estimated_": "--enable-mfu-metrics"}

var neededFlag = regexp.MustCompile("`(--[a-z-]+)`")

// Setting returns the flag or the environment variable of a vLLM server that a metric needs
// so that it says anything, as its newest family or what it is derived from needs it; empty
// if there is none.
func (m *Metric) Setting() string {
	if m.Derived() {
		if found := neededFlag.FindStringSubmatch(m.Needs); found != nil {
			return found[1]
		}
		for _, name := range m.DerivedFrom {
			from, known := ByName(name)
			if !known || from.Derived() || from.Setting() == "" {
				return ""
			}
		}
		from, _ := ByName(m.DerivedFrom[0])
		return from.Setting()
	}
	if len(m.Sources) == 0 {
		return ""
	}
	family := m.Sources[len(m.Sources)-1].Family
	for prefix, flag := range zeroWithout {
		if strings.HasPrefix(family, prefix) {
			return flag
		}
	}
	needs, _ := RequirementOf(family)
	return needs.Flag
}
