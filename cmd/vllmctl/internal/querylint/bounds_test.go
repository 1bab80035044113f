package querylint

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
)

// A file can come from another person, so no expression keeps the linter busy. The checks are quadratic in
// the length and cubic in the levels of an expression, which is why both are bounded.
func TestTheTimeOfAnExpressionIsBounded(t *testing.T) {
	race.SkipSequential(t)
	fill := func(unit, end string) string {
		return strings.Repeat(unit, (maxLength-len(end))/len(unit)) + end
	}
	levels := func(unit, end string) string { return strings.Repeat(unit, maxLevels-10) + end }
	many := func(format, begin, end string) string {
		var b strings.Builder
		for i := 0; b.Len()+len(begin)+len(end)+len(format)+8 < maxLength; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return begin + b.String() + end
	}
	l := New(Options{Spelling: Wire, Mixed: true})
	for name, expr := range map[string]string{
		"a sum":            levels("vllm:num_requests_running+", "1"),
		"long names":       levels("vllm:spec_decode_num_accepted_tokens_per_pos_total + ", "1"),
		"a quotient":       levels("rate(vllm:prompt_tokens_total[5m])/", "vllm:num_requests_running"),
		"conditions":       levels("rate(vllm:prompt_tokens_total[5m]) > 1 and ", "up"),
		"aggregations":     strings.Repeat("sum(", maxLevels-10) + "vllm:num_requests_running" + strings.Repeat(")", maxLevels-10),
		"wrong names":      levels("vllm:num_request_runnin+", "1"),
		"one matcher":      "vllm:num_requests_running{" + fill(`a="b",`, "")[:maxLength-30-maxLength%6] + `}`,
		"matchers":         many(`a%d="b",`, "vllm:num_requests_running{", "}"),
		"grouping":         many("finish_reaso%d,", "sum by (", "a) (vllm:request_success_total)"),
		"one long label":   "sum by (" + strings.Repeat("a", maxLength-60) + ") (vllm:num_requests_running)",
		"wrong values":     many(`stop%d|`, `vllm:request_success_total{finished_reason=~"`, `x"}`),
		"a pattern":        many(`.*a%d|`, `{__name__=~"vllm:(`, `b)"}`),
		"one long name":    "vllm:" + strings.Repeat("a", maxLength-10),
		"variables":        levels("$a+", "vllm:num_requests_running"),
		"strings":          many(`"$a%d","`, `label_join(vllm:num_requests_running,"a",`, `")`),
		"functions":        strings.Repeat("abs(", maxLevels-10) + "vllm:num_requests_running" + strings.Repeat(")", maxLevels-10),
		"bounds":           many(`%d|`, `vllm:time_to_first_token_seconds_bucket{le=~"`, `1"}`),
		"what is no query": fill("(", ""),
	} {
		for _, kind := range []Kind{Alert, Panel} {
			begin := time.Now()
			findings := l.Expr(expr, Context{Kind: kind, Templates: []string{strings.Repeat("{{a}}", 3000)}})
			assert.Less(t, time.Since(begin), time.Second, name)
			assert.LessOrEqual(t, len(expr), maxLength, name)
			assert.LessOrEqual(t, len(findings), maxFindings, name)
		}
	}
	for _, expr := range []string{fill("vllm:num_requests_running + ", "1") + strings.Repeat(" ", maxLength), strings.Repeat("-", maxLevels+1) + "vllm:num_requests_running"} {
		findings := l.Expr(expr, Context{Kind: Panel})
		if assert.Equal(t, []Code{CodeSyntax}, codes(findings)) {
			assert.Contains(t, findings[0].Message, "was not checked")
		}
	}
}
