package spelling

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
)

// The durations that a dashboard fills in are not PromQL. While an expression is parsed,
// durations that no rule uses stand for them. They are not whole weeks, so
// that they are printed as they were written.
var (
	hide   = strings.NewReplacer("$__rate_interval", "1111d", "$__range", "1112d", "$__interval", "1114d")
	reveal = strings.NewReplacer("1111d", "$__rate_interval", "1112d", "$__range", "1114d", "$__interval")
)

// Parse parses an expression in which the durations of a dashboard may stand.
func Parse(expr string) (parser.Expr, error) {
	return parser.NewParser(parser.Options{}).ParseExpr(hide.Replace(expr))
}

// Print is the opposite of Parse. A long expression has several lines.
func Print(expr parser.Expr) string {
	return reveal.Replace(quotedName.ReplaceAllString(parser.Prettify(expr), `"$1"`))
}

// quotedName finds the name of a series that is not a word. The printer writes it as a matcher
// of __name__; {"vllm.up"} is the form of the documentation. Inside of a string the quotes
// are escaped, so that nothing else is found.
var quotedName = regexp.MustCompile(`__name__="([a-z_]+\.[a-z0-9_.]+)"`)

// Expr translates an expression from the suffixed spelling. It is an error if a series is
// not known.
func Expr(expr string, to Spelling) (string, error) {
	parsed, err := Parse(expr)
	if err != nil {
		return "", fmt.Errorf("%s: %w", expr, err)
	}
	if err := renameIn(parsed, to); err != nil {
		return "", fmt.Errorf("%s: %w", expr, err)
	}
	return Print(parsed), nil
}

// renameIn translates all names of an expression. It returns the first error.
func renameIn(expr parser.Expr, to Spelling) (failed error) {
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		if err := rename(node, to); err != nil && failed == nil {
			failed = err
		}
		return nil
	})
	return failed
}

func rename(node parser.Node, to Spelling) error {
	switch n := node.(type) {
	case *parser.VectorSelector:
		return renameSelector(n, to)
	case *parser.AggregateExpr:
		renameAll(n.Grouping, to)
	case *parser.BinaryExpr:
		if n.VectorMatching != nil {
			renameAll(n.VectorMatching.MatchingLabels, to)
			renameAll(n.VectorMatching.Include, to)
		}
	case *parser.Call:
		// The arguments that name a label.
		arguments := map[string][]int{"label_replace": {1, 3}, "label_join": {1, 3, 4, 5, 6}, "sort_by_label": {1, 2}}
		for _, i := range arguments[n.Func.Name] {
			if i < len(n.Args) {
				if text, is := n.Args[i].(*parser.StringLiteral); is {
					text.Val = Label(text.Val, to)
				}
			}
		}
	}
	return nil
}

func renameAll(names []string, to Spelling) {
	for i := range names {
		names[i] = Label(names[i], to)
	}
}

func renameSelector(n *parser.VectorSelector, to Spelling) error {
	if n.Name != "" {
		name, err := Series(n.Name, to)
		if err != nil {
			return err
		}
		// The printer does not quote a name; without one it prints the matcher of __name__.
		if n.Name = name; to == Dotted && strings.Contains(name, ".") {
			n.Name = ""
		}
	}
	for i, matcher := range n.LabelMatchers {
		name, value := Label(matcher.Name, to), matcher.Value
		if matcher.Name == model.MetricNameLabel && matcher.Type == labels.MatchEqual {
			var err error
			if value, err = Series(value, to); err != nil {
				return err
			}
		}
		renamed, err := labels.NewMatcher(matcher.Type, name, value)
		if err != nil {
			return err
		}
		n.LabelMatchers[i] = renamed
	}
	return nil
}
