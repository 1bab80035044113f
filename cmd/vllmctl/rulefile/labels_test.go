package rulefile_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/rulefile"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
)

// leaves reports whether the series of an expression can have a label; recorded are the expressions of its records.
func leaves(t *testing.T, node parser.Expr, label string, recorded map[string]string) bool {
	t.Helper()
	of := func(e parser.Expr) bool { return leaves(t, e, label, recorded) }
	switch n := node.(type) {
	case *parser.AggregateExpr:
		return slices.Contains(n.Grouping, label)
	case *parser.ParenExpr:
		return of(n.Expr)
	case *parser.BinaryExpr:
		return of(n.LHS) || n.Op == parser.LOR && of(n.RHS)
	case *parser.Call:
		return n.Func.Name != "absent" && slices.ContainsFunc(n.Args, of)
	case *parser.MatrixSelector:
		return of(n.VectorSelector)
	case *parser.VectorSelector:
		expr, is := recorded[nameOf(n)]
		if !is {
			return true
		}
		parsed, err := spelling.Parse(expr)
		require.NoError(t, err)
		return of(parsed)
	}
	return false
}

// An AlertmanagerConfig finds the alerts of its namespace by the label namespace. An alert has it and pod where its
// series have these of Kubernetes, and not with an empty value.
func TestAlertsHaveTheLabelsThatRoutesLookFor(t *testing.T) {
	for _, to := range spelling.All() {
		groups, err := rulefile.Groups(content.Groups(), to)
		require.NoError(t, err)
		recorded := map[string]string{}
		for _, g := range groups {
			for _, r := range g.Rules {
				recorded[r.Record] = r.Expr
			}
		}
		seen := map[string]int{}
		for _, g := range groups {
			for _, r := range g.Rules {
				if r.Alert == "" {
					continue
				}
				parsed, err := spelling.Parse(r.Expr)
				require.NoError(t, err)
				place := map[string]string{"namespace": spelling.Label("k8s_namespace_name", to), "pod": spelling.Label("k8s_pod_name", to)}
				want, all := map[string]string{}, labels.NewBuilder(labels.EmptyLabels())
				for name, from := range place {
					if leaves(t, parsed, from, recorded) {
						want[name] = "the " + name
						all.Set(from, "the "+name)
						seen[name]++
					}
				}
				rule := rules.NewAlertingRule(r.Alert, parsed, 0, 0, labels.FromMap(r.Labels), labels.EmptyLabels(), labels.EmptyLabels(), "", true, nil)
				for _, c := range []struct {
					of   labels.Labels
					want map[string]string
				}{{all.Labels(), want}, {labels.EmptyLabels(), map[string]string{}}} {
					answer := func(context.Context, string, time.Time) (promql.Vector, error) {
						return promql.Vector{{Metric: c.of, F: 1}}, nil
					}
					_, err := rule.Eval(t.Context(), 0, time.Unix(0, 0), answer, nil, 0)
					require.NoError(t, err)
					got := map[string]string{}
					// What Alertmanager gets. Where a value is empty, the series ALERTS has the template's text.
					for _, a := range rule.ActiveAlerts() {
						if a.State != rules.StateFiring {
							continue
						}
						a.Labels.Range(func(l labels.Label) {
							if _, is := place[l.Name]; is {
								got[l.Name] = l.Value
							}
						})
					}
					assert.Equal(t, c.want, got, "%s in %s", r.Alert, to)
				}
			}
		}
		assert.Greater(t, seen["namespace"], seen["pod"])
		assert.Positive(t, seen["pod"])
	}
}
