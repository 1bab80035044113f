package main

import (
	"fmt"
	"strings"
)

const namingPage = "docs/reference/naming.md"

// pageParts returns the generated parts of each page by the page's path and the
// part's name. The rest of these pages is written by hand.
func pageParts(d *document, g *diagnosis) map[string]map[string]string {
	return map[string]map[string]string{
		namingPage:                  {"changed-queries": d.changedQueryTable()},
		"docs/reference/metrics.md": {},
		"docs/diagnosis.md":         g.guideParts(),
	}
}

// namesMetricsOnly reports whether every name in backticks that begins like a metric's
// must be a metric. The page about naming also has other names.
func namesMetricsOnly(path string) bool { return path != namingPage }

// unknownMetrics returns an error for a name in backticks that looks like a metric and that the
// catalogue does not have.
func unknownMetrics(d *document, page []byte) error {
	for _, match := range quoted.FindAllStringSubmatch(string(page), -1) {
		word := match[1]
		_, known := d.Metrics[word]
		if !known && namePattern.MatchString(word) &&
			(strings.HasPrefix(word, "vllm.") || strings.HasPrefix(word, "inference_gateway.")) {
			return fmt.Errorf("%q is not a metric of the catalogue", word)
		}
	}
	return nil
}
