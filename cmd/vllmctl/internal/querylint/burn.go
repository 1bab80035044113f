package querylint

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// condition is a comparison with a threshold over a window.
type condition struct {
	node   *parser.BinaryExpr
	window time.Duration
	// kind is the expression without its window.
	kind      string
	value     parser.Expr
	threshold string
	// constant is true for a threshold without series. One with series is a baseline, and the second
	// condition then mostly a floor.
	constant bool
}

// isShare reports whether a value is a share of events or a burn rate, whose thresholds belong
// together: a rate, an increase and a latency have another one for each window.
func (c *checker) isShare(value parser.Expr) bool {
	apart := checker{linter: c.linter, context: c.context, source: c.source, variables: c.variables, present: c.present}
	switch s := apart.infer(value); s.class {
	case classFraction, classRatio, classBurn:
		return true
	case classUnknown:
		return shareWord.MatchString(value.String())
	}
	return false
}

// shareWord is in the names that people give to recording rules of shares and of burn rates.
var shareWord = regexp.MustCompile(`(?i)burn|error|fail|ratio|slo|budget|avail|success`)

// checkBurn reports alerts on the same over two windows whose thresholds are not one burn factor
// times the budget.
func (c *checker) checkBurn(root parser.Expr) {
	for _, branch := range operands(root, parser.LOR) {
		all := conditions(branch)
		for i, first := range all {
			for _, second := range all[i+1:] {
				if first.window == 0 || second.window == 0 || first.window == second.window || first.kind != second.kind || first.node.Op != second.node.Op {
					continue
				}
				if first.constant && second.constant && c.isShare(first.value) {
					c.checkPair(first, second)
				}
			}
		}
	}
}

func (c *checker) checkPair(first, second condition) {
	if first.threshold != second.threshold {
		c.report(CodeBurnThreshold, Error, second.node,
			"The two windows have different thresholds, %s and %s. Use one threshold for both: the long window shows how much of the budget was used, the short one that this still goes on.",
			first.threshold, second.threshold)
		return
	}
	if slices.Contains(objectives[first.node.Op], first.threshold) {
		c.report(CodeBurnThreshold, Error, second.node,
			"Both windows are compared with the objective itself, %s: the alert fires as soon as the budget is used at the allowed speed. Multiply the budget by a burn factor, 14.4 for 1h and 5m.",
			first.threshold)
	}
}

// objectives are thresholds that look like an objective, or like its complement.
var objectives = map[parser.ItemType][]string{
	parser.LSS: {"0.9", "0.95", "0.99", "0.995", "0.999", "0.9999"},
	parser.LTE: {"0.9", "0.95", "0.99", "0.995", "0.999", "0.9999"},
	parser.GTR: {"0.1", "0.05", "0.01", "0.005", "0.001", "0.0001"},
	parser.GTE: {"0.1", "0.05", "0.01", "0.005", "0.001", "0.0001"},
}

// operands returns the operands of a chain of one set operator.
func operands(expr parser.Expr, op parser.ItemType) []parser.Expr {
	expr = inner(expr)
	if e, is := expr.(*parser.BinaryExpr); is && e.Op == op {
		return append(operands(e.LHS, op), operands(e.RHS, op)...)
	}
	return []parser.Expr{expr}
}

// conditions returns the comparisons of a chain of "and".
func conditions(expr parser.Expr) []condition {
	var all []condition
	for _, term := range operands(expr, parser.LAND) {
		e, is := term.(*parser.BinaryExpr)
		if is && e.Op == parser.LUNLESS {
			all = append(all, conditions(e.LHS)...)
			continue
		}
		if !is || !e.Op.IsComparisonOperator() || e.ReturnBool {
			continue
		}
		value, threshold := e.LHS, e.RHS
		if _, literal := number(e.LHS); literal {
			value, threshold = e.RHS, e.LHS
		}
		window, kind := windowOf(value)
		all = append(all, condition{
			node: e, window: window, kind: kind, value: value, threshold: inner(threshold).String(), constant: len(parser.ExtractSelectors(threshold)) == 0,
		})
	}
	return all
}

var (
	nameWindow = regexp.MustCompile(`(:[a-z_]*)(\d+(?:ms|[smhdwy]))$`)
	allWindows = regexp.MustCompile(`\[[^\]]*\]`)
)

// windowOf returns the window of an expression, 0 if it has none or several, and the
// expression without it. The window is a range, the label window, or the end of the name
// of a recording rule.
func windowOf(expr parser.Expr) (time.Duration, string) {
	text := expr.String()
	windows := map[time.Duration]bool{}
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		switch n := node.(type) {
		case *parser.MatrixSelector:
			windows[n.Range] = true
		case *parser.SubqueryExpr:
			windows[n.Range] = true
		case *parser.VectorSelector:
			if found := nameWindow.FindStringSubmatch(selectorName(n)); found != nil && !inRange(path) {
				if w, err := model.ParseDuration(found[2]); err == nil {
					windows[time.Duration(w)] = true
					text = strings.ReplaceAll(text, n.Name, nameWindow.ReplaceAllString(n.Name, "$1"))
				}
			}
			for _, m := range n.LabelMatchers {
				if w, err := model.ParseDuration(m.Value); m.Name == "window" && m.Type == labels.MatchEqual && err == nil {
					windows[time.Duration(w)] = true
					text = strings.ReplaceAll(text, m.String(), "window")
				}
			}
		}
		return nil
	})
	text = allWindows.ReplaceAllString(text, "[]")
	if len(windows) != 1 {
		return 0, text
	}
	for w := range windows {
		return w, text
	}
	return 0, text
}

// inRange reports whether a node is read over a range, which is then the window.
func inRange(path []parser.Node) bool {
	return slices.ContainsFunc(path, func(node parser.Node) bool {
		switch node.(type) {
		case *parser.MatrixSelector, *parser.SubqueryExpr:
			return true
		}
		return false
	})
}
