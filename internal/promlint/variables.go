package promlint

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/prometheus/prometheus/promql/parser"
)

// variable is a variable of Grafana or Perses. Those in strings need no stand-in.
var variable = regexp.MustCompile(`\$\{[^}]*\}|\$[A-Za-z_][A-Za-z0-9_]*|\[\[[A-Za-z_][A-Za-z0-9_]*\]\]`)

var labelList = regexp.MustCompile(`(?i)\b(by|without|on|ignoring|group_left|group_right)\s*\([^()]*$`)

// Servers may have switched on what is experimental.
var expressions = parser.NewParser(parser.Options{
	EnableExperimentalFunctions: true, ExperimentalDurationExpr: true, EnableExtendedRangeSelectors: true, EnableBinopFillModifiers: true,
})

// parse parses an expression of which the variables outside of strings are replaced by
// stand-ins of the same length, so that places stay right.
func (c *checker) parse(expr string) (parser.Expr, error) {
	c.source = expr
	c.variables = map[int]bool{}
	root, err := expressions.ParseExpr(c.withoutVariables(expr))
	if err != nil {
		return nil, err
	}
	c.present = families(root)
	return root, nil
}

func (c *checker) withoutVariables(expr string) string {
	if !strings.Contains(expr, "$") && !strings.Contains(expr, "[[") {
		return expr
	}
	places := variable.FindAllStringIndex(expr, -1)
	out := []byte(expr)
	for _, place := range places {
		begin, end := place[0], place[1]
		before := expr[:begin]
		if inString(before) {
			continue
		}
		c.variables[begin] = true
		length := end - begin
		switch {
		case inBrackets(before) && isWordAt(expr, end):
			// [${__range_s}s]: the unit is there already.
			copy(out[begin:end], strings.Repeat("0", max(0, length-3))+"300"[max(0, 3-length):])
		case !inBrackets(before) && (isWordAt(expr, begin-1) || isWordAt(expr, end)):
			// A part of a name.
			copy(out[begin:end], "v"+strings.Repeat("_", length-1))
		case labelList.MatchString(before):
			copy(out[begin:end], "v"+strings.Repeat("_", length-1))
		case inBrackets(before):
			// 300 s: a range that no check can object to.
			copy(out[begin:end], padded("300s", length))
		default:
			copy(out[begin:end], padded("1", length))
		}
	}
	return string(out)
}

// isWordAt reports whether a byte of an expression can be one of a name.
func isWordAt(expr string, at int) bool {
	return at >= 0 && at < len(expr) && (expr[at] == '_' || expr[at] == ':' || expr[at] >= '0' && expr[at] <= '9' || unicode.IsLetter(rune(expr[at])))
}

// hasFreeVariable reports whether a variable stands outside of strings and of ranges. It can
// be an operator, a function or a matcher, for which there is no stand-in.
func hasFreeVariable(expr string) bool {
	return slices.ContainsFunc(variable.FindAllStringIndex(expr, -1), func(place []int) bool {
		return !inString(expr[:place[0]]) && !inBrackets(expr[:place[0]])
	})
}

// padded returns a number of the length; if it has no room, zeros and ones are kept short.
func padded(number string, length int) string {
	if length >= len(number) {
		if number == "1" {
			// A leading zero would make it octal: 1.0000.
			if length > 2 {
				return "1." + strings.Repeat("0", length-2)
			}
			return "1" + strings.Repeat(" ", length-1)
		}
		return strings.Repeat("0", length-len(number)) + number
	}
	return "5m" + strings.Repeat(" ", max(0, length-2))
}

func inString(before string) bool {
	quote := byte(0)
	for i := 0; i < len(before); i++ {
		switch ch := before[i]; {
		case quote == 0 && (ch == '"' || ch == '\'' || ch == '`'):
			quote = ch
		case quote != 0 && ch == '\\' && quote != '`':
			i++
		case ch == quote:
			quote = 0
		}
	}
	return quote != 0
}

func inBrackets(before string) bool {
	return strings.LastIndexByte(before, '[') > strings.LastIndexByte(before, ']')
}

// isVariable reports whether a node is the stand-in of a variable.
func (c *checker) isVariable(node parser.Node) bool {
	return c.variables[int(node.PositionRange().Start)]
}

// errorPlace returns the part of an expression that an error of the parser is about.
func errorPlace(err error, length int) (start, end int) {
	var all parser.ParseErrors
	if errors.As(err, &all) && len(all) > 0 {
		at := all[0].PositionRange
		start, end = int(at.Start), int(at.End)
	}
	if start < 0 || end > length || start > end {
		return 0, 0
	}
	return start, end
}
