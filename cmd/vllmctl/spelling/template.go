package spelling

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
)

var (
	action = regexp.MustCompile(`\{\{.*?\}\}`)
	label  = regexp.MustCompile(`(\$labels|\$?[a-z]*\.Labels)\.([A-Za-z_][A-Za-z0-9_]*)`)
	legend = regexp.MustCompile(`^\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}$`)
	query  = regexp.MustCompile("`[^`]*`")
)

// A query of a template has verbs of printf: %s for matchers, %.3f for a time; in a list of matchers %q is
// the value of one. While it is parsed, something that no query has stands for each.
var (
	hideVerbs   = strings.NewReplacer("%s", `zzz_matchers="x"`, "%q", `"zzz_value"`, "%.3f", "9000000001")
	revealVerbs = strings.NewReplacer(`zzz_matchers="x"`, "%s", `"zzz_value"`, "%q", "9000000001.000", "%.3f")
)

// Queries changes each query of a template: what stands between backquotes, which is an expression
// or a list of matchers. It is an error if it is neither.
func Queries(text string, change func(parser.Expr) error) (string, error) {
	var failed error
	text = query.ReplaceAllStringFunc(text, func(quoted string) string {
		written, err := changed(strings.Trim(quoted, "`"), change)
		if err != nil {
			failed = fmt.Errorf("%s: %w", quoted, err)
		}
		return "`" + written + "`"
	})
	return text, failed
}

func changed(written string, change func(parser.Expr) error) (string, error) {
	if !strings.ContainsAny(written, "{(") {
		// Each matcher by itself: the printer sorts them, and their verbs have an order.
		list := strings.Split(written, ",")
		for i := range list {
			one, err := changed("{"+list[i]+"}", change)
			if err != nil {
				return "", err
			}
			list[i] = strings.Trim(one, "{}")
		}
		return strings.Join(list, ","), nil
	}
	expr, err := Parse(hideVerbs.Replace(written))
	if err == nil {
		err = change(expr)
	}
	if err != nil {
		return "", err
	}
	return revealVerbs.Replace(quotedName.ReplaceAllString(expr.String(), `"$1"`)), nil
}

// Annotation translates the labels and the queries of an annotation. It is an error if a query is no
// PromQL, or a series is not known.
func Annotation(text string, to Spelling) (string, error) {
	text, err := Queries(text, func(expr parser.Expr) error { return renameIn(expr, to) })
	return Template(text, to), err
}

// Template translates the labels of a template: those of an annotation, {{ $labels.x }},
// and those of a legend, {{x}}.
func Template(text string, to Spelling) string {
	return action.ReplaceAllStringFunc(text, func(part string) string {
		if match := legend.FindStringSubmatch(part); match != nil {
			return "{{" + Label(match[1], to) + "}}"
		}
		return label.ReplaceAllStringFunc(part, func(use string) string {
			cut := strings.LastIndexByte(use, '.')
			name := Label(use[cut+1:], to)
			if strings.Contains(name, ".") {
				return "(index " + use[:cut] + ` "` + name + `")`
			}
			return use
		})
	})
}
