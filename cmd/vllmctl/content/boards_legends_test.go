package content_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
)

// Where a column of a table would be empty, its label does not survive the query.
func TestColumnsSurviveTheirQuery(t *testing.T) {
	eachQuery(t, func(b content.Board, p content.Panel, _ content.Query, expr parser.Expr) {
		if p.Kind != content.Table {
			return
		}
		var grouping []string
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			if a, is := node.(*parser.AggregateExpr); is && grouping == nil {
				grouping = a.Grouping
			}
			return nil
		})
		var columns []string
		for _, c := range p.Columns {
			if c.Label != content.ValueColumn {
				columns = append(columns, c.Label)
			}
		}
		assert.ElementsMatch(t, grouping, columns, "%s / %s", b.UID, p.Title)
	})
}

var inLegend = regexp.MustCompile(`\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}`)

// A legend names labels that the result has.
func TestLegendsNameLabelsOfTheResult(t *testing.T) {
	eachQuery(t, func(b content.Board, p content.Panel, q content.Query, expr parser.Expr) {
		have := resultLabels(expr)
		for _, match := range inLegend.FindAllStringSubmatch(q.Legend, -1) {
			assert.Contains(t, have, match[1], "%s / %s: %s", b.UID, p.Title, q.Legend)
		}
		// Two series of one panel must have different names.
		for _, label := range have {
			repeated := slices.ContainsFunc(b.Variables, func(v content.Variable) bool { return v.Name == p.Repeat && v.LabelName == label })
			if p.Kind != content.Table && !repeated {
				assert.Contains(t, q.Legend, "{{"+label+"}}", "%s / %s: series that differ by %s have one name", b.UID, p.Title, label)
			}
		}
	})
}

// resultLabels returns the labels that the result of an expression of aggregations has.
func resultLabels(expr parser.Expr) []string {
	switch e := expr.(type) {
	case *parser.AggregateExpr:
		return e.Grouping
	case *parser.ParenExpr:
		return resultLabels(e.Expr)
	case *parser.BinaryExpr:
		if left := resultLabels(e.LHS); len(left) > 0 {
			return left
		}
		return resultLabels(e.RHS)
	case *parser.Call:
		if e.Func.Name == "histogram_quantile" {
			return slices.DeleteFunc(slices.Clone(resultLabels(e.Args[1])), func(l string) bool { return l == "le" })
		}
		return nil
	default:
		return nil
	}
}
