package querylint

import (
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// checkUnknown reports a name that no series has, with the reason and the right name where
// it is certain.
func (c *checker) checkUnknown(node *parser.VectorSelector, name string) {
	n := c.linter.names
	// f reports a name whose right form is another one. The right form can be old itself: then
	// the one that has followed it is named, or none.
	f := func(code Code, right, format string, args ...any) {
		right, advice := c.lasting(right), "Remove it."
		if right != "" {
			advice = "Write " + right + "."
		}
		x := c.report(code, Error, node, format+" %s", append(args, advice)...)
		x.Suggestion = c.renamed(node, name, right)
		x.Certain = x.Suggestion != "" && (code == CodeMissingTotal || code == CodeExtraTotal)
	}
	if e, known := n.byName[name+"_total"]; known && e.part == partTotal {
		f(CodeMissingTotal, name+"_total", "%s is a counter, which Prometheus stores as %s_total: the selector is always empty.", name, name)
		return
	}
	if _, known := n.bare[name]; known {
		c.report(CodeHistogramPart, Error, node, "%s is a histogram: it has only %s_bucket, %s_sum and %s_count. Choose one of them.", name, name, name, name)
		return
	}
	for _, suffix := range []string{"_bucket", "_sum", "_count"} {
		base, has := strings.CutSuffix(name, suffix)
		if e, known := n.byName[base]; has && known {
			f(CodeNotAHistogram, base, "%s is a %s and has no %s.", base, kindWord(e), suffix)
			return
		}
	}
	if base, has := strings.CutSuffix(name, "_total"); has {
		if e, known := n.byName[base]; known && e.part != partTotal {
			f(CodeExtraTotal, base, "%s is a %s: its name has no _total.", base, kindWord(e))
			return
		}
	}
	if c.checkOtherSpelling(node, name) {
		return
	}
	if !looksOurs(name) {
		return
	}
	if ruleLike(name) {
		c.report(CodeUnknownMetric, Info, node, "%s looks like a recording rule, but no checked file has it. Check its file as well.", name)
		return
	}
	if nearest := c.lasting(c.linter.nearest(name)); nearest != "" {
		f(CodeUnknownMetric, nearest, "No metric is named %s: the selector is always empty. A similar name exists.", name)
		return
	}
	c.report(CodeUnknownMetric, Error, node, "No metric and no recording rule is named %s: the selector is always empty. Correct the name.", name)
}

// lasting returns the name that newer programs have in place of one on the wire, which is mostly
// the same; "" if they have none.
func (c *checker) lasting(name string) string {
	if total, known := c.linter.names.byName[name+"_total"]; known && total.part == partTotal {
		name += "_total" // Only some old servers expose it without.
	}
	e, known := c.linter.names.byName[name]
	if !known || e.source == nil {
		return name
	}
	lasts := func(s *catalog.Source) bool {
		if c.linter.versioned {
			return c.linter.within(s)
		}
		return s.Until == ""
	}
	if vllms(e.source) && lasts(e.source) {
		return c.modern(name)
	}
	for i := range slices.Backward(e.metric.Sources) {
		if s := &e.metric.Sources[i]; s.Label == e.source.Label && lasts(s) {
			return c.modern(c.linter.names.nameOf(s.Family, name, e))
		}
	}
	return ""
}

// ruleLike reports whether a name has the form level:metric:operations of recording rules.
func ruleLike(name string) bool {
	for _, prefix := range catalog.Prefixes {
		if rest, has := strings.CutPrefix(name, prefix); has {
			return strings.Contains(rest, ":")
		}
	}
	return strings.Contains(name, ":")
}

// checkOtherSpelling reports a name that is right in another spelling.
func (c *checker) checkOtherSpelling(node *parser.VectorSelector, name string) bool {
	for _, other := range []Spelling{Suffixed, Unsuffixed, Dotted, Wire} {
		e, known := namesOf(other).byName[name]
		if other == c.linter.names.spelling || !known {
			continue
		}
		right := c.lasting(c.linter.names.write(e.metric, e.part))
		if right == "" {
			continue
		}
		note := ""
		if other == Wire && e.source != nil && e.source.Until != "" {
			note = " vLLM removed this family in " + e.source.Until + "."
		}
		c.report(CodeOtherSpelling, Error, node, "%s is the %s spelling; the %s one is %s.%s Write %s.",
			name, other, c.linter.names.spelling, right, note, right).Suggestion = c.renamed(node, name, right)
		return true
	}
	return false
}

// checkRemoved reports a family that newer versions of vLLM do not expose, unless the
// expression has the newer family of the same metric, too.
func (c *checker) checkRemoved(node *parser.VectorSelector, name string, e entry) {
	if e.source == nil || e.source.Until == "" || repeats(e) && selectsRouter(node) {
		return
	}
	for i := range e.metric.Sources {
		if s := &e.metric.Sources[i]; s.Until == "" && c.present[s.Family] {
			return
		}
	}
	router := ""
	if repeats(e) {
		router = " Only the router of the production stack still has it: add server!=\"\" if you mean that one."
	}
	newest := c.lasting(name)
	if newest == "" {
		c.report(CodeRemovedMetric, Warning, node,
			"vLLM removed %s in %s and has no metric in its place: the selector is empty with newer servers. Remove it.%s", name, e.source.Until, router)
		return
	}
	stable := stableNameOf(e, Suffixed)
	if stable != "" {
		stable = " With the receiver of this project it is " + stable + " in all versions."
	}
	f := c.report(CodeRemovedMetric, Warning, node,
		"vLLM removed %s in %s: the selector is empty with newer servers. Write %s, or %q after it for both.%s%s",
		name, e.source.Until, newest, "or "+newest, stable, router)
	f.Suggestion = c.renamed(node, name, newest)
	f.Certain = f.Suggestion != "" && !e.source.Version && router == ""
}

// checkOldName reports a family that only some old servers expose without _total, and returns
// the one that is meant.
func (c *checker) checkOldName(node *parser.VectorSelector, name string, e entry) (total entry, is bool) {
	if e.source == nil || strings.HasSuffix(name, "_total") {
		return e, false
	}
	total, known := c.linter.names.byName[name+"_total"]
	if !known || total.part != partTotal || c.present[total.source.Family] {
		return e, false
	}
	right := c.lasting(name + "_total")
	switch right {
	case "":
		return total, true // The removal of the whole metric is reported.
	case name:
		return e, false // That of the version of the options.
	}
	f := c.report(CodeMissingTotal, Error, node, "Current servers expose %s: the selector is empty for them. Write %s, or \"or\" with both names.", right, right)
	f.Suggestion = c.renamed(node, name, right)
	f.Certain = f.Suggestion != ""
	return total, true
}

// families returns the families in an expression without the parts of histograms.
func families(root parser.Node) map[string]bool {
	all := map[string]bool{}
	parser.Inspect(root, func(node parser.Node, _ []parser.Node) error {
		if s, is := node.(*parser.VectorSelector); is {
			name := selectorName(s)
			for _, prefix := range catalog.Prefixes {
				if rest, ours := strings.CutPrefix(name, prefix); ours {
					name = catalog.Prefixes[0] + rest
					break
				}
			}
			all[name] = true
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				all[strings.TrimSuffix(name, suffix)] = true
			}
		}
		return nil
	})
	return all
}

// renamed returns the text of a selector with another name, or "" if the name is not part
// of the text.
func (c *checker) renamed(node *parser.VectorSelector, from, to string) string {
	text := c.text(node)
	if to == "" || strings.Count(text, from) != 1 {
		return ""
	}
	return strings.Replace(text, from, to, 1)
}

// text returns the text of a node in the expression.
func (c *checker) text(node parser.Node) string {
	at := node.PositionRange()
	if at.Start < 0 || int(at.End) > len(c.source) || at.Start > at.End {
		return node.String()
	}
	return c.source[at.Start:at.End]
}

// selectorName returns the name that a selector asks for, "" if it is not a single one.
func selectorName(s *parser.VectorSelector) string {
	if s.Name != "" {
		return s.Name
	}
	for _, m := range s.LabelMatchers {
		if m.Name == model.MetricNameLabel && m.Type == labels.MatchEqual {
			return m.Value
		}
	}
	return ""
}

// nameWithoutVariable returns the name that a selector asks for, and "" if a variable stands for a
// part of it.
func (c *checker) nameWithoutVariable(s *parser.VectorSelector) string {
	begin := int(s.PosRange.Start)
	if s.Name != "" && c.variableBetweenBytes(begin, begin+len(s.Name)) {
		return ""
	}
	return selectorName(s)
}

func kindWord(e entry) string {
	if e.part == partTotal {
		return "counter"
	}
	return e.metric.Kind.String()
}

// looksOurs reports whether a name begins like those of the catalogue. http_ and process_
// are not among them, since any program may have them.
func looksOurs(name string) bool {
	for _, prefix := range ourPrefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

var ourPrefixes = []string{
	"vllm:", "vllm_", "vllm.", "ray_vllm", "kserve_vllm", "lmcache", "gen_ai", "agentgateway", "inference_gateway", "inference_model_",
	"inference_objective_", "inference_pool_", "inference_extension_", "llm_d_",
}
