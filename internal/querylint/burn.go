package querylint

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// pair is a pair of windows.
type pair struct{ long, short time.Duration }

// workbook are the windows of the SRE workbook by their burn factor, for a budget of 30
// days.
var workbook = map[float64]pair{
	14.4: {time.Hour, 5 * time.Minute},
	6:    {6 * time.Hour, 30 * time.Minute},
	3:    {24 * time.Hour, 2 * time.Hour},
	1:    {72 * time.Hour, 6 * time.Hour},
}

// condition is a comparison with a threshold over a window.
type condition struct {
	node   *parser.BinaryExpr
	window time.Duration
	// kind is the expression without its window.
	kind string
	// threshold is the text of the threshold, and factor its first number.
	threshold string
	factor    float64
	op        parser.ItemType
	burn      bool
	// share is true for a ratio, a mean or a quantile that the expression or a recording rule
	// computes from events.
	share bool
	// volume is true for a condition that there are enough events, coverage for one that
	// enough of the window was observed.
	volume, coverage bool
	// guarded is true for a ratio that is only there with enough events.
	guarded bool
}

// checkBurn checks alerts on the burn rate of a budget.
func (c *checker) checkBurn(root parser.Expr) {
	var factors []string
	for _, branch := range operands(root, parser.LOR) {
		conditions := c.conditions(branch)
		pairs := c.checkPairs(conditions)
		c.checkVolume(conditions)
		for _, p := range pairs {
			if slices.Contains(factors, p) {
				c.report(CodeBurnThreshold, Warning, branch, "Two pairs of windows have the same threshold %s, so the longer pair adds nothing. A longer window has a smaller factor.", p)
			}
			factors = append(factors, p)
		}
	}
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
func (c *checker) conditions(expr parser.Expr) []condition {
	var all []condition
	for _, term := range operands(expr, parser.LAND) {
		if e, is := term.(*parser.BinaryExpr); is && e.Op == parser.LUNLESS {
			all = append(all, c.conditions(e.LHS)...)
			continue
		}
		e, is := term.(*parser.BinaryExpr)
		if !is || !e.Op.IsComparisonOperator() || e.ReturnBool {
			continue
		}
		value, threshold := e.LHS, e.RHS
		if _, literal := number(e.LHS); literal {
			value, threshold = e.RHS, e.LHS
		}
		window, kind := c.windowOf(value)
		all = append(all, c.described(condition{
			node: e, window: window, kind: kind, threshold: inner(threshold).String(), factor: firstNumber(threshold), op: e.Op, burn: c.isBurn(value),
		}, value))
	}
	return all
}

// described says what the value of a condition is.
func (c *checker) described(t condition, value parser.Expr) condition {
	quiet := &checker{linter: c.linter, context: c.context, source: c.source, variables: c.variables, present: c.present}
	s := quiet.infer(value)
	computed := false
	parser.Inspect(value, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.MatrixSelector:
			computed = true
		case *parser.VectorSelector:
			_, recorded := c.linter.recorded[selectorName(n)]
			computed = computed || recorded
			t.coverage = t.coverage || strings.Contains(selectorName(n), "coverage")
		case *parser.BinaryExpr:
			// (requests > 0.1) as a divisor requires a number of requests.
			if limit, is := number(n.RHS); is && limit > 0 && (n.Op == parser.GTR || n.Op == parser.GTE) && !n.ReturnBool {
				t.guarded = true
			}
		case *parser.Call:
			t.coverage = t.coverage || n.Func.Name == "count_over_time"
		}
		return nil
	})
	atLeast := t.op == parser.GTR || t.op == parser.GTE
	t.coverage = t.coverage && atLeast
	t.share = computed && s.class.judged() && !t.coverage
	t.volume = atLeast && !t.share && !t.coverage && s.class == classPlain
	return t
}

// checkVolume reports alerts on ratios without a condition on the number of events.
func (c *checker) checkVolume(all []condition) {
	var shortest, longest *condition
	volume, coverage := false, false
	for i := range all {
		t := &all[i]
		volume, coverage = volume || t.volume, coverage || t.coverage
		if !t.share {
			continue
		}
		volume = volume || t.guarded
		if shortest == nil || t.window < shortest.window {
			shortest = t
		}
		if longest == nil || t.window > longest.window {
			longest = t
		}
	}
	const day = 24 * time.Hour
	if shortest != nil && !volume && shortest.window < day {
		c.report(CodeLowTraffic, Info, shortest.node,
			"Nothing requires a number of requests: with little traffic a single one makes a large ratio or a high quantile. Add \"and\" with the number of requests in the same window.")
	}
	if longest != nil && !coverage && longest.window >= day {
		c.report(CodeCoverage, Info, longest.node,
			"After an installation the window of %s holds only a few minutes, which count for all of it. Add \"and\" with the share of the window that was observed.", words(longest.window))
	}
}

// checkPairs checks conditions that differ in their window, and returns the thresholds of
// the pairs.
func (c *checker) checkPairs(all []condition) []string {
	var thresholds []string
	paired := map[int]bool{}
	for i := range all {
		for j := i + 1; j < len(all); j++ {
			first, second := &all[i], &all[j]
			if first.window == 0 || second.window == 0 || first.kind != second.kind || first.op != second.op {
				continue
			}
			paired[i], paired[j], c.paired = true, true, true
			c.checkPair(first, second)
			thresholds = append(thresholds, first.threshold)
		}
	}
	for i := range all {
		if all[i].burn && !paired[i] && all[i].window > 0 && (all[i].op == parser.GTR || all[i].op == parser.GTE) {
			c.report(CodeBurnOneWindow, Warning, all[i].node,
				"One window alone fires late or stays long after the end. Require the same factor over a short window of a twelfth, too: 1h and 5m for 14.4, 6h and 30m for 6.")
		}
	}
	return thresholds
}

func (c *checker) checkPair(first, second *condition) {
	if first.factor != second.factor || first.threshold != second.threshold {
		c.report(CodeBurnThreshold, Error, second.node,
			"The two windows have different thresholds, %s and %s. Both windows of a pair must exceed the same one: the long one for the size, the short one for now.",
			first.threshold, second.threshold)
		return
	}
	windows := pair{first.window, second.window}
	if windows.long < windows.short {
		c.report(CodeBurnWindows, Info, second.node,
			"The short window %s comes before the long one %s, so the alert shows the value of the short one. Write the long window first.", words(windows.long), words(windows.short))
		windows = pair{windows.short, windows.long}
	}
	if want, known := workbook[first.factor]; known && (first.burn || first.threshold != strconv.FormatFloat(first.factor, 'g', -1, 64) || first.factor == 14.4) {
		if windows != want {
			c.report(CodeBurnWindows, Error, second.node,
				"The factor %v belongs to the windows %s and %s, and not to %s and %s.",
				first.factor, words(want.long), words(want.short), words(windows.long), words(windows.short))
		}
		return
	}
	if windows.long == windows.short {
		c.report(CodeBurnWindows, Error, second.node, "Both conditions have the window %s. The second one needs a shorter window, of a twelfth.", words(windows.long))
	}
	if withoutFactor(first) {
		c.report(CodeBurnThreshold, Error, second.node,
			"Both windows are compared with the objective itself, %s: the alert fires as soon as the budget is used at the allowed speed. Multiply the budget by a burn factor, 14.4 for 1h and 5m.",
			first.threshold)
	}
}

// withoutFactor reports whether the threshold looks like an objective or its complement.
func withoutFactor(t *condition) bool {
	for _, text := range []string{"0.9", "0.95", "0.99", "0.995", "0.999", "0.9999"} {
		if t.threshold == text && (t.op == parser.LSS || t.op == parser.LTE) {
			return true
		}
	}
	for _, text := range []string{"0.1", "0.05", "0.01", "0.005", "0.001", "0.0001"} {
		if t.threshold == text && (t.op == parser.GTR || t.op == parser.GTE) {
			return true
		}
	}
	return false
}

// isBurn reports whether an expression is a burn rate by the names in it.
func (c *checker) isBurn(expr parser.Expr) bool {
	burn := false
	for name := range c.metricsIn(expr) {
		burn = burn || strings.Contains(name, "burn")
	}
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if s, is := node.(*parser.VectorSelector); is {
			burn = burn || strings.Contains(selectorName(s), "burn")
		}
		return nil
	})
	return burn
}

var (
	nameWindow = regexp.MustCompile(`(:[a-z_]*)(\d+(?:ms|[smhdwy]))$`)
	allWindows = regexp.MustCompile(`\[[^\]]*\]`)
)

// windowOf returns the window of an expression, 0 if it has none or several, and the
// expression without it. The window is a range, the label window, or the end of the name
// of a recording rule.
func (c *checker) windowOf(expr parser.Expr) (time.Duration, string) {
	text := expr.String()
	windows := map[time.Duration]bool{}
	parser.Inspect(expr, func(node parser.Node, path []parser.Node) error {
		switch n := node.(type) {
		case *parser.MatrixSelector:
			windows[n.Range] = true
		case *parser.SubqueryExpr:
			windows[n.Range] = true
		case *parser.VectorSelector:
			if _, w, ok := windowOfName(selectorName(n)); ok && !inRange(path) {
				windows[w] = true
				text = strings.ReplaceAll(text, n.Name, nameWindow.ReplaceAllString(n.Name, "$1"))
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

// windowOfName returns the word before the window at the end of the name of a recording
// rule, and the window.
func windowOfName(name string) (word string, window time.Duration, ok bool) {
	found := nameWindow.FindStringSubmatch(name)
	if found == nil {
		return "", 0, false
	}
	d, err := model.ParseDuration(found[2])
	return found[1], time.Duration(d), err == nil && d > 0
}

func firstNumber(expr parser.Expr) float64 {
	value := 0.0
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if n, is := node.(*parser.NumberLiteral); is && value == 0 {
			value = n.Val
		}
		return nil
	})
	return value
}

func words(d time.Duration) string { return model.Duration(d).String() }

// checkRecordName reports a window in the name of a rule that its expression does not have.
func (c *checker) checkRecordName(root parser.Expr) {
	word, want, has := windowOfName(c.context.Name)
	if !has {
		return
	}
	different := time.Duration(0)
	parser.Inspect(root, func(node parser.Node, path []parser.Node) error {
		switch n := node.(type) {
		case *parser.MatrixSelector:
			if n.Range != want && !inRange(path) {
				different = n.Range
			}
		case *parser.SubqueryExpr:
			if n.Range != want && !inRange(path) {
				different = n.Range
			}
		case *parser.VectorSelector:
			// "last1h" within a "rate5m" is not its window.
			if w, window, ok := windowOfName(selectorName(n)); ok && (w == word || w == ":" || word == ":") && window != want && !inRange(path) {
				different = window
			}
		}
		return nil
	})
	if different != 0 {
		c.report(CodeRecordWindow, Error, root, "The name of the rule says %s, and its expression has %s. Correct one of them.", words(want), words(different))
	}
}

// checkRateFactor reports a rate that is multiplied by the length of a window which is not
// its own. 60, 3600 and 86400 make it a rate per minute, hour and day.
func (c *checker) checkRateFactor(e *parser.BinaryExpr) {
	factor, is := number(e.RHS)
	value := e.LHS
	if !is {
		factor, is = number(e.LHS)
		value = e.RHS
	}
	if !is || factor < 60 || factor != float64(int64(factor)) || int64(factor)%60 != 0 || factor == 60 || factor == 3600 || factor == 86400 || c.variableBetween(e) {
		return
	}
	window, text := c.windowOf(value)
	if window == 0 || window.Seconds() == factor || strings.Contains(text, "increase(") || !strings.Contains(text, "rate") {
		return
	}
	c.report(CodeRateFactor, Warning, e, "A rate over %s is multiplied by %v s, which is another window. Multiply by %v for the number in the window.",
		words(window), factor, window.Seconds())
}
