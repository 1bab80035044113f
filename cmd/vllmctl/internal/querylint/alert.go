package querylint

import (
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

var (
	// {{ $labels.job }} and {{ index $labels "k8s.pod.name" }} of Prometheus.
	templateLabel = regexp.MustCompile(`\$labels\.([A-Za-z_][A-Za-z0-9_]*)|index\s+\$labels\s+"([^"]+)"`)
	// {{job}} of Grafana.
	legendLabel = regexp.MustCompile(`\{\{-?\s*([A-Za-z_][A-Za-z0-9_.]*)\s*-?\}\}`)
)

// checkTemplates reports labels of legends and annotations that the result does not have.
func (c *checker) checkTemplates(result shape) {
	if result.scalar {
		return
	}
	reported := map[string]bool{}
	for _, text := range c.context.Templates {
		for _, label := range templateLabels(text, c.context.Kind) {
			if reported[label] || result.labels.has(label, c.linter.labels) {
				continue
			}
			reported[label] = true
			why := "the result does not have it"
			if result.labels.gone[label] {
				why = "an aggregation or a match removes it"
			}
			if result.absent {
				why = "the result of absent has only the labels of equality matchers"
			}
			c.report(CodeTemplateLabel, Error, nil, "The text %q uses the label %s, but %s: the text is empty there. The labels of the result are %s.",
				shortened(text), label, why, labelWords(result.labels))
		}
	}
}

func templateLabels(text string, kind Kind) []string {
	var all []string
	for _, found := range templateLabel.FindAllStringSubmatch(text, -1) {
		all = append(all, found[1]+found[2])
	}
	if kind != Alert && kind != Condition {
		for _, found := range legendLabel.FindAllStringSubmatch(text, -1) {
			all = append(all, found[1])
		}
	}
	return slices.DeleteFunc(all, func(label string) bool { return label == "__name__" || label == "value" })
}

func labelWords(labels labelSet) string {
	words := strings.Join(labels.list(), ", ")
	if labels.deployment {
		words = strings.TrimPrefix(words+", and those of the target", ", and ")
	}
	if words == "" {
		return "none"
	}
	return words
}

func shortened(text string) string {
	if len(text) > 60 {
		return text[:57] + "..."
	}
	return text
}

// checkSilentWhenGone reports comparisons that are meant to hold when nothing is left, and
// do not, because an aggregation of nothing has no result.
func (c *checker) checkSilentWhenGone(root parser.Expr) {
	if len(operands(root, parser.LOR)) > 1 {
		return
	}
	for _, term := range operands(root, parser.LAND) {
		e, is := term.(*parser.BinaryExpr)
		if !is || !e.Op.IsComparisonOperator() || e.ReturnBool {
			continue
		}
		limit, literal := number(e.RHS)
		agg, aggregates := inner(e.LHS).(*parser.AggregateExpr)
		if !literal || !aggregates {
			continue
		}
		nothing := e.Op == parser.EQLC && limit == 0 || e.Op == parser.LSS && limit > 0 || e.Op == parser.LTE && limit >= 0
		_, selector := inner(agg.Expr).(*parser.VectorSelector)
		switch {
		case agg.Op == parser.COUNT && (e.Op == parser.EQLC && limit == 0 || e.Op == parser.LSS && limit == 1 || e.Op == parser.LTE && limit == 0):
			c.report(CodeSilentWhenGone, Error, e, "count is never 0: without series there is no result, so the alert never fires. Write absent(%s).", c.text(agg.Expr))
		case nothing && len(agg.Grouping) == 0 && (agg.Op == parser.COUNT || agg.Op == parser.SUM && selector):
			c.report(CodeSilentWhenGone, Warning, e,
				"When the last series disappears, the result is empty and not 0, so the alert does not fire. Write (%s or vector(0)), or add \"or absent(...)\".", c.text(agg))
		}
	}
}
