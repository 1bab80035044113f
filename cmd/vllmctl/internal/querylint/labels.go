package querylint

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/internal/settings"
)

// checkMatchers checks the labels and values that a selector asks for.
func (c *checker) checkMatchers(e *parser.VectorSelector, s *shape) {
	for _, m := range e.LabelMatchers {
		if m.Name == model.MetricNameLabel {
			continue
		}
		if !s.labels.has(m.Name, c.linter.labels) {
			c.unknownLabel(e, e, m.Name, s, matcherEffect(m))
			continue
		}
		if m.Name == "le" && s.bucket {
			c.checkLe(e, m, s)
			continue
		}
		if s.labels.closed {
			c.checkValue(e, m, s)
		}
	}
}

// matcherEffect says what a matcher of a label that does not exist does.
func matcherEffect(m *labels.Matcher) string {
	if m.Matches("") {
		return "so " + m.String() + " always matches"
	}
	return "so " + m.String() + " never matches"
}

// unknownLabel reports a label that series do not have. from is the expression that has
// not got it.
func (c *checker) unknownLabel(node, from parser.Node, label string, s *shape, effect string) {
	if effect != "" {
		effect = ", " + effect
	}
	if s.labels.gone[label] {
		c.report(CodeLostLabel, Error, node, "The label %s was removed before, by an aggregation or a match%s. Keep it there.", label, effect)
		return
	}
	subject := "The result of this part"
	if v, is := from.(*parser.VectorSelector); is {
		subject = selectorName(v)
	}
	hint := "Its labels are " + strings.Join(s.labels.list(), ", ") + ", and those of the target."
	if len(s.labels.own) == 0 {
		hint = "It has only the labels of the target."
	}
	if !s.labels.deployment {
		hint = "Its labels are " + strings.Join(s.labels.list(), ", ") + "."
		if len(s.labels.own) == 0 {
			hint = "It has no labels."
		}
	}
	if alias, known := catalog.AttributeAliases[label]; known && s.labels.own[alias] {
		hint = "Write " + alias + "."
	} else if near := settings.Nearest(label, s.labels.list()); len(near) > 0 {
		hint = "Did you mean " + near[0] + "?"
	}
	f := c.report(CodeUnknownLabel, Error, node, "%s does not have the label %s%s. %s", subject, label, effect, hint)
	if alias, known := catalog.AttributeAliases[label]; known && s.labels.own[alias] {
		f.Suggestion = onceReplaced(c.text(node), label, alias)
		f.Certain = f.Suggestion != ""
	}
}

// onceReplaced returns a text with another word, and "" if the word is not in it exactly once.
func onceReplaced(text, word, by string) string {
	pattern := regexp.MustCompile(`\b` + regexp.QuoteMeta(word) + `\b`)
	if len(pattern.FindAllStringIndex(text, 2)) != 1 {
		return ""
	}
	return pattern.ReplaceAllLiteralString(text, by)
}

// valuesOf are values of attributes that mean different things in different metrics. The
// catalogue lists the others.
var valuesOf = map[string][]string{
	"vllm.diagnosis.cause role":                       {"contributing", "notice", "primary"},
	"vllm.pool.diagnosis.cause role":                  {"contributing", "notice", "primary"},
	"vllm.num_requests.waiting_by_reason reason":      {"capacity", "deferred"},
	"vllm.wasted_tokens_ratio reason":                 {"abandoned_prefill", "rejected_drafts"},
	"vllm.tool_call_parser.invocations mode":          {"non_streaming", "streaming"},
	"vllm.tool_call_parser.invocations outcome":       {"no_tool_call", "tool_call"},
	"vllm.mooncake_store.operation status":            {"error", "ok"},
	"http_requests status":                            {"1xx", "2xx", "3xx", "4xx", "5xx"},
	"inference_gateway.epp.scheduler.attempts status": {"failure", "success"},
	"inference_gateway.epp.flow_control.pool.saturation stage": {
		"decode", "effective", "prefill",
	},
	"inference_gateway.epp.request.errors error_code": {
		"BadRequest", "Forbidden", "Internal", "ModelServerError", "NotFound", "PreconditionFailed", "ResourceExhausted",
		"ServiceUnavailable", "Unauthorized", "Unknown",
	},
}

// values returns the values that a label of a metric can have; nil if they are not known.
func values(s *shape, label string) []string {
	if s.metric != nil && valuesOf[s.metric.Name+" "+label] != nil {
		return valuesOf[s.metric.Name+" "+label]
	}
	if s.labels.own[label] {
		return catalog.Values(label)
	}
	return nil
}

// maxValues is the number of wrong values that are reported of one pattern.
const maxValues = 5

var wholeWord = regexp.MustCompile(`^[A-Za-z0-9_.:+-]*$`)

// checkValue reports values that a label never has.
func (c *checker) checkValue(e *parser.VectorSelector, m *labels.Matcher, s *shape) {
	if hasVariable(m.Value) || m.Value == "" {
		return
	}
	var wanted []string
	if m.Type == labels.MatchEqual || m.Type == labels.MatchNotEqual {
		wanted = []string{m.Value}
	} else {
		wanted = alternatives(m.Value)
	}
	known, found := values(s, m.Name), 0
	for _, value := range wanted {
		if known != nil && value != "" && !slices.Contains(known, value) && found < maxValues {
			found++
			c.unknownValue(e, m, value, known)
		}
	}
	if known == nil || len(wanted) > 0 {
		return
	}
	positive := labels.MustNewMatcher(labels.MatchRegexp, m.Name, m.Value)
	if !slices.ContainsFunc(known, positive.Matches) && !positive.Matches("") {
		c.unknownValue(e, m, m.Value, known)
	}
}

func (c *checker) unknownValue(e *parser.VectorSelector, m *labels.Matcher, value string, known []string) {
	effect := "never matches"
	if m.Type == labels.MatchNotEqual || m.Type == labels.MatchNotRegexp {
		effect = "always matches"
	}
	hint := ""
	if near := settings.Nearest(value, known); len(near) > 0 {
		hint = " Did you mean " + near[0] + "?"
	}
	c.report(CodeUnknownValue, Error, e, "The label %s never has the value %q, so this part of %s %s. Its values are %s.%s",
		m.Name, value, m, effect, strings.Join(slices.Sorted(slices.Values(known)), ", "), hint)
}

// alternatives returns the words of a pattern such as a|b; nil if it is another pattern.
func alternatives(pattern string) []string {
	if wholeWord.MatchString(pattern) && !strings.ContainsAny(pattern, ".+") {
		return []string{pattern}
	}
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil
	}
	for parsed.Op == syntax.OpCapture {
		parsed = parsed.Sub[0]
	}
	text := strings.Trim(pattern, "()?:")
	var all []string
	for word := range strings.SplitSeq(text, "|") {
		word = strings.ReplaceAll(word, `\.`, "\x00")
		if !wholeWord.MatchString(strings.ReplaceAll(word, "\x00", "_")) || strings.ContainsAny(word, ".+*?") {
			return nil
		}
		all = append(all, strings.ReplaceAll(word, "\x00", "."))
	}
	return all
}

// hasVariable reports whether a text has a variable of Grafana.
func hasVariable(text string) bool {
	return variable.MatchString(text)
}
