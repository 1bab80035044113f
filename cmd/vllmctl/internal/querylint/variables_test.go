package querylint

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
)

// A variable can be an operator, a function, or a matcher. Then nothing can be said.
func TestAnExpressionWhoseVariableHasNoStandInIsARemarkAndNoError(t *testing.T) {
	l := New(Options{Spelling: Wire})
	for _, expr := range []string{
		`$agg by (pod) (vllm:num_requests_running)`,
		`${agg}(vllm:num_requests_running)`,
		`$func(vllm:prompt_tokens_total[5m])`,
		`rate(vllm:prompt_tokens_total[$interval]) $op 5`,
		`sum(vllm:num_requests_running{$filter})`,
		`sum(vllm:num_requests_running{model_name=~"${model:regex}", $extra})`,
	} {
		all := l.Expr(expr, Context{Kind: Panel})
		require.Len(t, all, 1, expr)
		assert.Equal(t, CodeSyntax, all[0].Code, expr)
		assert.Equal(t, Info, all[0].Severity, expr)
		assert.Contains(t, all[0].Message, "was not checked", expr)
	}
	for _, expr := range []string{
		`sum(rate(vllm:prompt_tokens_total[$__rate_interval])`,
		`sum(rate(vllm:prompt_tokens_total{pod="$pod"}[5m])`,
	} {
		all := l.Expr(expr, Context{Kind: Panel})
		require.Len(t, all, 1, expr)
		assert.Equal(t, Error, all[0].Severity, expr)
	}
}

func TestANameWithAVariableIsNoNameOfASelector(t *testing.T) {
	for _, expr := range []string{`rate(vllm:${metric}_total[5m])`, `$metric`, `${prefix}num_requests_running`} {
		all, err := Selectors(expr)
		require.NoError(t, err, expr)
		for _, s := range all {
			assert.Empty(t, s.Name, expr)
		}
	}
}

func TestExpressionsOfOtherLanguagesAreNoErrors(t *testing.T) {
	l := New(Options{Spelling: Wire})
	for _, expr := range []string{
		`sum by (app) (rate({app="vllm"} |= "error" [5m])) > 5`,
		`sum(count_over_time({app="vllm"} | json | metric="vllm:num_requests_running" [5m])) > 5`,
	} {
		assert.Empty(t, l.Expr(expr, Context{Kind: Alert}), expr)
	}
	assert.NotEmpty(t, l.Expr(`sum(vllm:num_requests_running{model_name=~"a|b"}`, Context{Kind: Alert}), "a bar in a string")
	all := l.Expr(`increase(vllm:num_preemptions_total[5m]) keep_metric_names > 10`, Context{Kind: Alert, Extended: true})
	require.Len(t, all, 1)
	assert.Equal(t, Info, all[0].Severity)
}

// The bounds of length and depth bound the time: before, 20 000 variables took minutes.
func TestLargeExpressionsAreCheckedInBoundedTime(t *testing.T) {
	race.SkipSequential(t)
	l := New(Options{Spelling: Wire, Mixed: true})
	for name, expr := range map[string]string{
		"a sum of variables":    "vllm:num_requests_running" + strings.Repeat("+$a", 20_000),
		"the deepest sum":       "vllm:num_requests_running" + strings.Repeat("+$a", maxLevels-2),
		"lists that never end":  strings.Repeat("$a by (", 8_000),
		"bars":                  "vllm:x {" + strings.Repeat("|'", 30_000),
		"parentheses":           strings.Repeat("(", 9_000) + "vllm:num_requests_running" + strings.Repeat(")", 9_000),
		"alternatives of names": "vllm:num_requests_running" + strings.Repeat(" or vllm:num_requests_running", 2_000),
	} {
		begin := time.Now()
		l.Expr(expr, Context{Kind: Record})
		_, _ = Selectors(expr)
		assert.Less(t, time.Since(begin), 60*time.Second, name)
	}
	all := l.Expr("vllm:num_requests_running"+strings.Repeat("+1", 2_000), Context{Kind: Record})
	require.Len(t, all, 1)
	assert.Contains(t, all[0].Message, "levels deep")
}
