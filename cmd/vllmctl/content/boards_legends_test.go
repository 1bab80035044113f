package content_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
)

// Where a column of a table would be empty, its label does not survive a query; where rows would
// be there twice, a query has a label that no column shows, or not the labels that make a row.
func TestColumnsSurviveTheirQueries(t *testing.T) {
	for _, b := range content.Boards() {
		for _, row := range b.Rows {
			for _, p := range row.Panels {
				if p.Kind != content.Table {
					continue
				}
				var columns, shown, of []string
				for _, c := range p.Columns {
					if c.Label != content.ValueColumn {
						columns = append(columns, c.Label)
					}
				}
				common := map[string]int{}
				for i, q := range p.Queries {
					expr, err := spelling.Parse(q.Expr)
					require.NoError(t, err)
					of = tableLabels(expr)
					shown = append(shown, of...)
					for _, label := range of {
						common[label]++
					}
					assert.True(t, len(p.Queries) == 1 || slices.ContainsFunc(p.Columns, func(c content.Column) bool {
						return c.Label == content.ValueColumn && c.Query == i || slices.Contains(of, c.Label) && common[c.Label] == 1
					}), "%s / %s: nothing shows query %d", b.UID, p.Title, i)
				}
				slices.Sort(shown)
				assert.ElementsMatch(t, slices.Compact(shown), columns, "%s / %s", b.UID, p.Title)
				for label, queries := range common {
					assert.True(t, queries == 1 || queries == len(p.Queries), "%s / %s: %s is of some queries", b.UID, p.Title, label)
				}
				assert.Contains(t, slices.Collect(maps.Values(common)), len(p.Queries), "%s / %s: what makes a row?", b.UID, p.Title)
			}
		}
	}
}

// tableLabels are those of the result. topk keeps the labels of what it chooses from.
func tableLabels(expr parser.Expr) []string {
	switch e := expr.(type) {
	case *parser.AggregateExpr:
		if e.Op == parser.TOPK {
			return tableLabels(e.Expr)
		}
		return e.Grouping
	case *parser.ParenExpr:
		return tableLabels(e.Expr)
	case *parser.SubqueryExpr:
		return tableLabels(e.Expr)
	case *parser.BinaryExpr:
		return append(tableLabels(e.LHS), tableLabels(e.RHS)...)[:max(len(tableLabels(e.LHS)), len(tableLabels(e.RHS)))]
	case *parser.Call:
		for _, a := range e.Args {
			if labels := tableLabels(a); len(labels) > 0 {
				return slices.DeleteFunc(slices.Clone(labels), func(l string) bool { return l == "le" })
			}
		}
	}
	return nil
}

// A line of a threshold stands beside the latency that its objective is about: it is chosen by the label for that.
func TestThresholdsAreOfTheLatencyBesideThem(t *testing.T) {
	drawn := map[string]bool{}
	eachQuery(t, func(b content.Board, p content.Panel, q content.Query, expr parser.Expr) {
		s := selectors(expr)
		if !q.AsThreshold || len(s) == 0 || s[0].Name != "vllm_slo_threshold_seconds" {
			return
		}
		i := slices.IndexFunc(s[0].LabelMatchers, func(m *labels.Matcher) bool { return m.Name == "metric" && m.Type == labels.MatchEqual })
		require.GreaterOrEqual(t, i, 0, "%s / %s", b.UID, p.Title)
		drawn[s[0].LabelMatchers[i].Value] = true
		beside, err := spelling.Parse(p.Queries[0].Expr)
		require.NoError(t, err)
		m, _, known := spelling.Metric(selectors(beside)[0].Name)
		require.True(t, known)
		assert.True(t, strings.HasPrefix(m.Name, s[0].LabelMatchers[i].Value), "%s / %s: %s", b.UID, p.Title, m.Name)
	})
	assert.Len(t, drawn, 4, "first token, between tokens, per token, whole request")
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
