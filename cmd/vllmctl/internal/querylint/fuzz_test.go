package querylint

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
)

// Whatever is parsed, the linter returns, soon, and each finding is about a part of the
// expression.
func FuzzExpr(f *testing.F) {
	for _, e := range append(examples, pitfalls...) {
		f.Add(e.bad, uint8(0))
		f.Add(e.good, uint8(1))
	}
	for _, group := range content.Groups() {
		for _, r := range group.Records {
			f.Add(r.Expr, uint8(5))
		}
		for i := range group.Alerts {
			f.Add(group.Alerts[i].Expr, uint8(0))
		}
	}
	for _, odd := range []string{
		``, `1`, `"a"`, `$x`, `${x}`, `[[x]]`, `vllm_up[5m]`, `vllm_up[5m:]`, `{}`, `{__name__=~".+"}`, `-vllm_up`, `time()`, `vector(1) / vector(0)`,
		`absent(absent(vllm_up))`, `count_values("version", vllm_up)`, `quantile(0.9, vllm_up)`, `topk($k, vllm_up)`, `vllm_up @ end() offset -5m`,
		`label_replace(vllm_up, "a", "$1", "job", "(.*)")`, `sum by ($by) (vllm_up)`, `{"vllm.up"}`, `vllm_up{"k8s.pod.name"="a"}`,
		`histogram_quantile(0.9, vector(1))`, `scalar(vllm_up) / 0`, `1 > bool 2`, `vllm_up == NaN`, `vllm_up > Inf`, `rate(vllm_up[0s])`,
		`vllm_up{le="abc"}`, `vllm_time_to_first_token_seconds_bucket{le=~"("}`, `sort_by_label(vllm_up, "a")`, `histogram_count(vllm_up)`,
		`vllm_up and on () vllm_up`, `vllm_up * on () group_left (a, b) vllm_up`, `min_over_time(vllm_up[1h:1m] offset 5m)`, `mad_over_time(vllm_up[5m])`,
	} {
		f.Add(odd, uint8(0))
	}
	linters := []*Linter{
		New(Options{}), New(Options{Mixed: true}), New(Options{Spelling: Unsuffixed}), New(Options{Spelling: Dotted}), New(Options{Spelling: Wire}),
	}
	kinds := []Kind{Alert, Record, Panel, Threshold}
	f.Fuzz(func(t *testing.T, expr string, choice uint8) {
		l := linters[int(choice)%len(linters)]
		context := Context{
			Kind: kinds[int(choice)/len(linters)%len(kinds)], Name: "vllm_slo:x:rate5m", Unit: "s",
			Templates: []string{"{{job}}", "{{ $labels.instance }}"}, Thresholds: []float64{0, 80},
		}
		begin := time.Now()
		for _, finding := range l.Expr(expr, context) {
			assert.True(t, 0 <= finding.Start && finding.Start <= finding.End && finding.End <= len(expr), "%s", finding)
			assert.NotContains(t, finding.Message, "%!")
		}
		assert.Less(t, time.Since(begin), 20*time.Second)
	})
}

// A Record of anything does not disturb the linter either.
func FuzzRecord(f *testing.F) {
	f.Add(`sum by (job) (rate(vllm_prompt_tokens_total[5m]))`, `a / a`)
	f.Add(`a`, `a + on (job) a`)
	f.Add(`vector(1)`, `1 / a`)
	f.Fuzz(func(_ *testing.T, record, expr string) {
		l := New(Options{})
		l.Record("a", record, map[string]string{"x": "y"})
		l.Record("a", record, nil)
		l.Expr(expr, Context{Kind: Alert})
	})
}

func TestLongAndDeepExpressionsAreBounded(t *testing.T) {
	race.SkipSequential(t)
	l := New(Options{})
	long := strings.Repeat("vllm_up + ", 20_000) + "vllm_up"
	assert.Equal(t, []Code{CodeSyntax}, codes(l.Expr(long, Context{Kind: Panel})))

	begin := time.Now()
	wide := strings.Repeat("vllm_upp or ", 4000) + "vllm_up"
	l.Expr(wide, Context{Kind: Alert})
	t.Log(time.Since(begin))
	deep := strings.Repeat("(", maxLevels-1) + "vllm_up" + strings.Repeat(")", maxLevels-1)
	assert.Empty(t, l.Expr(deep, Context{Kind: Panel}))
	nested := "vllm_up"
	for range 500 {
		nested = "(" + nested + " > 0 and on (job, instance) vllm_up > 0)"
	}
	l.Expr(nested, Context{Kind: Alert})
	assert.Less(t, time.Since(begin), 60*time.Second)
	t.Log(time.Since(begin))
}
