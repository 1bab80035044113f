package promlint

import (
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/content/spelling"
)

// deprecations are what this project has renamed, replaced or removed; tests add entries of their
// own.
var deprecations = catalog.Deprecations

// checkDeprecated reports a selector of a metric, an alert or a value of a label that this project
// has renamed or will remove. It returns true for a metric that is gone, of which nothing else is
// known.
func (c *checker) checkDeprecated(node *parser.VectorSelector, name string) (gone bool) {
	for _, d := range deprecations() {
		switch d.Kind {
		case "metric", "telemetry", "record":
			if !c.isDeprecated(&d, name) {
				continue
			}
			c.deprecated(node, &d, name)
			gone = gone || d.Gone != ""
		case "alert":
			if name == "ALERTS" || name == "ALERTS_FOR_STATE" {
				c.checkDeprecatedValue(node, &d, "alertname", []string{d.Name})
			}
		case "value":
			// Alerts of any program have a severity.
			if name != "ALERTS" && d.Label != "" && strings.TrimSuffix(name, "_total") == d.Name {
				c.checkDeprecatedValue(node, &d, d.Label, d.Values)
			}
		}
	}
	return gone
}

// isDeprecated reports whether a selector's name is one of an entry's, also of a part of a histogram.
func (c *checker) isDeprecated(d *catalog.Deprecation, name string) bool {
	names := namesOfDeprecated(d)
	if slices.Contains(names, strings.TrimSuffix(name, "_total")) {
		return true
	}
	if e, known := c.linter.lookup(name); known {
		// A name on the wire is vLLM's own, and stays.
		return e.source == nil && e.metric != nil && e.metric.Name == d.Name
	}
	for _, part := range []string{"_bucket", "_sum", "_count"} {
		if whole, is := strings.CutSuffix(name, part); is && d.Gone != "" && slices.Contains(names, whole) {
			return true
		}
	}
	return false
}

// namesOfDeprecated returns the names under which an entry is stored, without _total.
func namesOfDeprecated(d *catalog.Deprecation) []string {
	all := append([]string{d.Name}, d.Spelled...)
	if m, known := catalog.ByName(d.Name); known {
		for _, s := range []spelling.Spelling{spelling.Suffixed, spelling.Unsuffixed, spelling.Dotted} {
			if name, err := spelling.Name(m, s); err == nil {
				all = append(all, name)
			}
		}
	}
	for i, name := range all {
		all[i] = strings.TrimSuffix(name, "_total")
	}
	return all
}

// checkDeprecatedValue reports matchers that ask for one of the values, also as an alternative of a
// pattern, and of alerts those that leave one out: they leave out nothing any more.
func (c *checker) checkDeprecatedValue(node *parser.VectorSelector, d *catalog.Deprecation, label string, values []string) {
	for _, m := range node.LabelMatchers {
		negative := m.Type == labels.MatchNotEqual || m.Type == labels.MatchNotRegexp
		if m.Name != label || (negative && d.Kind != "alert") {
			continue
		}
		for _, value := range valuesNamed(m) {
			if slices.Contains(values, value) {
				c.deprecated(node, d, value)
			}
		}
	}
}

// valuesNamed are the values that a matcher names; none if it names no finite number of them.
func valuesNamed(m *labels.Matcher) []string {
	if m.Type == labels.MatchEqual || m.Type == labels.MatchNotEqual {
		return []string{m.Value}
	}
	return m.SetMatches()
}

// checkAlertName reports a rule with the former name of an alert of this project: runbooks,
// inhibitions and dashboards know the new one. An own alert may have any name, so it is worth a look
// only.
func (c *checker) checkAlertName() {
	if c.context.Kind != Alert {
		return
	}
	for _, d := range deprecations() {
		if d.Kind == "alert" && d.Name == c.context.Name {
			c.report(CodeDeprecatedName, Info, nil, "The alert %s of this project is %s since %s. Write %s, or take the shipped rule.",
				d.Name, choice(d.ReplacedBy), d.Since, choice(d.ReplacedBy))
		}
	}
}

func (c *checker) deprecated(node *parser.VectorSelector, d *catalog.Deprecation, what string) {
	severity, since := Warning, what+" is deprecated since "+d.Since
	if d.Gone != "" {
		severity, since = Error, what+" is gone since "+d.Gone
	}
	if d.Kind == "alert" {
		// A rule of the user's own can still have the name.
		severity = Warning
	}
	if len(d.ReplacedBy) == 0 {
		c.report(CodeDeprecatedName, severity, node, "%s. %s", since, d.Note)
		return
	}
	c.report(CodeDeprecatedName, severity, node, "%s. Write %s. %s", since, choice(d.ReplacedBy), d.Note)
}

// choice joins words with "or".
func choice(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}
