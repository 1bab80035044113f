package runbook

import (
	"regexp"
	"strings"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
)

// part is what a series has behind the name of its histogram.
var part = regexp.MustCompile(`_(sum|count|bucket)$`)

var series = regexp.MustCompile(`\bvllm_[a-z0-9_]+`)

// wireNames is a sentence for readers whose receiver has "naming: wire": the names of
// vLLM itself for those series of the queries that a server exposes. Derived metrics
// have the same name with either naming. It is empty if there are no such series.
func wireNames(steps []step) string {
	var pairs []string
	seen := map[string]bool{}
	for _, s := range steps {
		for _, query := range s.queries {
			for _, name := range series.FindAllString(query, -1) {
				wire, exposed := wireName(name)
				wire, name = part.ReplaceAllString(wire, ""), part.ReplaceAllString(name, "")
				if !exposed || seen[name] {
					continue
				}
				seen[name] = true
				pair := "`" + wire + "`"
				if wire != strings.Replace(name, "vllm_", "vllm:", 1) { // the reader cannot guess it
					pair += " for `" + name + "`"
				}
				pairs = append(pairs, pair)
			}
		}
	}
	if len(pairs) == 0 {
		return ""
	}
	return "If your metrics have vLLM's names (`naming: wire`), read " + strings.Join(pairs, ", ") + ".\n\n"
}

// wireName is the name that the newest vLLM writes for a series in the suffixed
// spelling.
func wireName(name string) (wire string, exposed bool) {
	m, suffix, known := spelling.Metric(name)
	if !known || len(m.Sources) == 0 {
		return "", false
	}
	newest := m.Sources[len(m.Sources)-1]
	if newest.Label != "" || !strings.HasPrefix(newest.Family, "vllm:") {
		return "", false
	}
	return newest.Family + suffix, true
}
