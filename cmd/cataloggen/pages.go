package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// The marks around a generated part of a page; %s is the name of the part.
const (
	partBegin = "<!-- %s: begin -->\n"
	partEnd   = "<!-- %s: end -->"
)

const namingPage = "docs/reference/naming.md"

// pageParts returns the generated parts of each page by the page's path and the
// part's name. The rest of these pages is written by hand.
func pageParts(d *document, g *diagnosis) map[string]map[string]string {
	pages := map[string]map[string]string{
		namingPage:                  {"changed-queries": d.changedQueryTable()},
		"docs/reference/metrics.md": {"derived-metrics": d.derivedTable()},
		"docs/diagnosis.md":         g.guideParts(),
	}
	for name, part := range g.runbookParts() {
		pages["docs/runbooks/"+name+".md"] = map[string]string{name: part}
	}
	return pages
}

// withParts returns a page with new text between the marks of each part.
func withParts(page []byte, parts map[string]string) ([]byte, error) {
	for _, name := range sortedNames(parts) {
		begin, end := fmt.Sprintf(partBegin, name), fmt.Sprintf(partEnd, name)
		head, rest, begins := bytes.Cut(page, []byte(begin))
		_, tail, ends := bytes.Cut(rest, []byte(end))
		if !begins || !ends {
			return nil, fmt.Errorf("the marks around the part %q are missing: %s and %s, each on a line of its own", name, strings.TrimSpace(begin), end)
		}
		page = slices.Concat(head, []byte(begin), []byte(parts[name]), []byte(end), tail)
	}
	return page, nil
}

// namesMetricsOnly reports whether every name in backticks that begins like a metric's
// must be a metric. The page about naming also has names of resource attributes.
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

// derivedTable lists what the processor derives, one line for each metric.
func (d *document) derivedTable() string {
	var b strings.Builder
	b.WriteString("| Metric | Unit | Meaning | Needs | On |\n|---|---|---|---|---|\n")
	for _, t := range d.topicsOf(metric.derived) {
		for _, name := range d.namesOf(t, metric.derived) {
			m := d.Metrics[name]
			fmt.Fprintf(&b, "| `%s` | `%s` | %s | %s | %s |\n", name, m.Unit, cell(m.Description), cell(m.Needs), m.on())
		}
	}
	return b.String()
}
