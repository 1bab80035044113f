package querylint

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/prometheus/prometheus/promql/parser"
)

// variable is a variable of Grafana or Perses. Those in strings need no stand-in.
var variable = regexp.MustCompile(`\$\{[^}]*\}|\$[A-Za-z_][A-Za-z0-9_]*|\[\[[A-Za-z_][A-Za-z0-9_]*\]\]`)

var labelList = regexp.MustCompile(`(?i)\b(by|without|on|ignoring|group_left|group_right)\s*\($`)

// longestKeyword is the length of the longest word before a list of labels, with some blanks.
const longestKeyword = 32

// Servers may have switched on what is experimental.
var expressions = parser.NewParser(parser.Options{
	EnableExperimentalFunctions: true, ExperimentalDurationExpr: true, EnableExtendedRangeSelectors: true, EnableBinopFillModifiers: true,
})

// parse parses an expression of which the variables outside of strings are replaced by
// stand-ins of the same length, so that places stay right.
func (c *checker) parse(expr string) (parser.Expr, error) {
	c.source = expr
	c.variables = nil
	root, err := expressions.ParseExpr(c.withoutVariables(expr))
	if err != nil {
		return nil, err
	}
	if deeper(root, maxLevels) {
		return nil, errDeep
	}
	c.present = families(root)
	return root, nil
}

// maxLevels is the number of levels of the deepest expression that is checked: a sum of as many
// terms has as many. The time that some checks take grows with its cube.
const maxLevels = 250

var errDeep = fmt.Errorf("the expression is nested more than %d levels deep", maxLevels)

// deeper reports whether an expression has more levels.
func deeper(node parser.Node, levels int) bool {
	if levels == 0 {
		return true
	}
	for child := range parser.ChildrenIter(node) {
		if deeper(child, levels-1) {
			return true
		}
	}
	return false
}

func (c *checker) withoutVariables(expr string) string {
	if !strings.Contains(expr, "$") && !strings.Contains(expr, "[[") {
		return expr
	}
	out := []byte(expr)
	in := surroundings{expr: expr, paren: -1}
	for _, place := range variable.FindAllStringIndex(expr, -1) {
		begin, end := place[0], place[1]
		in.advance(begin)
		if in.quote != 0 {
			continue
		}
		c.variables = append(c.variables, begin)
		length := end - begin
		switch {
		case in.ranged && isWordAt(expr, end):
			// [${__range_s}s]: the unit is there already.
			copy(out[begin:end], strings.Repeat("0", max(0, length-3))+"300"[max(0, 3-length):])
		case !in.ranged && (isWordAt(expr, begin-1) || isWordAt(expr, end)):
			// A part of a name.
			copy(out[begin:end], "v"+strings.Repeat("_", length-1))
		case in.labels():
			copy(out[begin:end], "v"+strings.Repeat("_", length-1))
		case in.ranged:
			// 300 s: a range that no check can object to.
			copy(out[begin:end], padded("300s", length))
		default:
			c.free = true
			copy(out[begin:end], padded("1", length))
		}
	}
	return string(out)
}

// surroundings says what a place in an expression is in. It goes through the text once.
type surroundings struct {
	expr string
	at   int
	// quote is the one of the string that the place is in; 0 if none.
	quote byte
	// ranged is true within brackets.
	ranged bool
	// paren is the last parenthesis before the place; -1 if none.
	paren int
}

func (s *surroundings) advance(to int) {
	for ; s.at < to; s.at++ {
		ch := s.expr[s.at]
		switch {
		case s.quote != 0 && ch == '\\' && s.quote != '`':
			s.at++
		case s.quote != 0 && ch == s.quote:
			s.quote = 0
		case s.quote != 0:
		case ch == '"' || ch == '\'' || ch == '`':
			s.quote = ch
		case ch == '[' || ch == ']':
			s.ranged = ch == '['
		case ch == '(' || ch == ')':
			s.paren = s.at
		}
	}
}

// labels reports whether the place is in a list of labels.
func (s *surroundings) labels() bool {
	return s.paren >= 0 && s.expr[s.paren] == '(' && labelList.MatchString(s.expr[max(0, s.paren-longestKeyword):s.paren+1])
}

// isWordAt reports whether a byte of an expression can be one of a name.
func isWordAt(expr string, at int) bool {
	return at >= 0 && at < len(expr) && (expr[at] == '_' || expr[at] == ':' || expr[at] >= '0' && expr[at] <= '9' || unicode.IsLetter(rune(expr[at])))
}

// pipes reports whether an expression has a bar outside of strings, which is LogQL and never
// PromQL.
func pipes(expr string) bool {
	in := surroundings{expr: expr}
	for at := range len(expr) {
		in.advance(at)
		if expr[at] == '|' && in.quote == 0 {
			return true
		}
	}
	return false
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

// isVariable reports whether a node is the stand-in of a variable.
func (c *checker) isVariable(node parser.Node) bool {
	_, is := slices.BinarySearch(c.variables, int(node.PositionRange().Start))
	return is
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
