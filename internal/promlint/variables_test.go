package promlint

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
