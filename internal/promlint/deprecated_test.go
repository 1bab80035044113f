package promlint

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

// deprecatedIn returns the findings with the code.
func deprecatedIn(l *Linter, expr string, c Context) (all []Finding) {
	for _, f := range l.Expr(expr, c) {
		if f.Code == CodeDeprecatedName {
			all = append(all, f)
		}
	}
	return all
}

// Each alert and each value of a label in the real table is reported, with what replaces it, and the
// replacement itself is not.
func TestEveryDeprecatedNameIsReported(t *testing.T) {
	checked := 0
	for _, d := range catalog.Deprecations() {
		var bad, good []string
		switch {
		case d.Kind == "alert":
			for _, name := range d.ReplacedBy {
				good = append(good, `ALERTS{alertname="`+name+`"} == 1`)
			}
			bad = append(bad, `ALERTS{alertname="`+d.Name+`"} == 1`, `sum(ALERTS{alertname=~"Other|`+d.Name+`"})`, `ALERTS_FOR_STATE{alertname="`+d.Name+`"}`)
		case d.Kind == "value" && d.Label != "" && d.Name != "ALERTS":
			for _, value := range d.Values {
				bad = append(bad, `rate(`+d.Name+`_total{`+d.Label+`="`+value+`"}[5m])`, `rate(`+d.Name+`{`+d.Label+`=~"x|`+value+`"}[5m])`)
			}
			good = []string{`rate(` + d.Name + `_total{` + d.Label + `="series_limit"}[5m])`, `rate(` + d.Name + `_total[5m])`}
		default:
			continue
		}
		checked++
		for _, spelled := range Spellings() {
			l := New(Options{Spelling: spelled})
			for _, expr := range bad {
				findings := deprecatedIn(l, expr, Context{Kind: Panel})
				require.Len(t, findings, 1, "%s: %s", spelled, expr)
				for _, name := range d.ReplacedBy {
					assert.Contains(t, findings[0].Message, name)
				}
				assert.Contains(t, findings[0].Message, d.Gone)
				want := Error
				if d.Kind == "alert" {
					want = Warning
				}
				assert.Equal(t, want, findings[0].Severity)
			}
			for _, expr := range good {
				assert.Empty(t, deprecatedIn(l, expr, Context{Kind: Panel}), expr)
			}
		}
	}
	assert.GreaterOrEqual(t, checked, 4)
}

// Patterns are written in more than one way, and an exclusion of a name that is gone excludes nothing.
func TestAFormerNameIsFoundInEachKindOfMatcher(t *testing.T) {
	l := New(Options{})
	for expr, want := range map[string]int{
		`sum(ALERTS{alertname=~"VLLM(NotServing|Degraded)"})`:                       2,
		`sum(ALERTS{alertname=~"(VLLMDegraded|Other)"})`:                            1,
		`sum(ALERTS{alertname!="VLLMDegraded"})`:                                    1,
		`sum(ALERTS{alertname!~"Other|VLLMDegraded"})`:                              1,
		`sum(rate(otelcol_receiver_vllm_dropped_points_total{reason!="info"}[5m]))`: 0,
		`sum(ALERTS{alertname=~"VLLM.*"})`:                                          0,
		`sum(ALERTS{alertname=~".+"})`:                                              0,
		`sum(ALERTS{alertname="VLLMDegradedOfSomebody"})`:                           0,
		`sum(a_metric_of_others{alertname="VLLMDegraded",reason="info"})`:           0,
	} {
		assert.Len(t, deprecatedIn(l, expr, Context{Kind: Panel}), want, expr)
	}
}

func TestARuleWithTheFormerNameOfAnAlertIsWorthALook(t *testing.T) {
	l := New(Options{})
	findings := deprecatedIn(l, `vllm_diagnosis_severity == 3`, Context{Kind: Alert, Name: "VLLMNotServing"})
	require.Len(t, findings, 1)
	assert.Equal(t, Info, findings[0].Severity)
	assert.Contains(t, findings[0].Message, "VLLMServerNotServing")
	assert.Empty(t, deprecatedIn(l, `vllm_diagnosis_severity == 3`, Context{Kind: Alert, Name: "VLLMServerNotServing"}))
	assert.Empty(t, deprecatedIn(l, `vllm_diagnosis_severity == 3`, Context{Kind: Panel, Name: "VLLMNotServing"}))
}

// The table has no metric yet, so these are made up: one that still works, and one that is gone.
func TestADeprecatedMetricIsReported(t *testing.T) {
	before := deprecations
	t.Cleanup(func() { deprecations = before })
	deprecations = func() []catalog.Deprecation {
		return []catalog.Deprecation{
			{Kind: "metric", Name: "vllm.prompt_tokens", Since: "0.3.0", ReplacedBy: []string{"vllm.generation_tokens"}, Note: "It is an example."},
			{Kind: "metric", Name: "vllm.time_to_first_token", Since: "0.3.0", ReplacedBy: []string{"vllm.e2e_request_latency"}, Note: "A histogram."},
			{Kind: "metric", Name: "vllm.old", Spelled: []string{"vllm_old_seconds"}, Since: "0.3.0", Gone: "0.5.0", Note: "There is nothing in its place."},
		}
	}
	for _, test := range []struct {
		spelling Spelling
		expr     string
		severity Severity
		says     string
	}{
		{Suffixed, `rate(vllm_prompt_tokens_total[5m])`, Warning, "vllm_prompt_tokens_total is deprecated since 0.3.0. Write vllm.generation_tokens. It is an example."},
		{Unsuffixed, `rate(vllm_prompt_tokens[5m])`, Warning, "deprecated since 0.3.0"},
		{Dotted, `rate({"vllm.prompt_tokens"}[5m])`, Warning, "deprecated since 0.3.0"},
		{Suffixed, `histogram_quantile(0.9, sum by (le) (rate(vllm_time_to_first_token_seconds_bucket[5m])))`, Warning, "vllm_time_to_first_token_seconds_bucket is deprecated since 0.3.0"},
		{Suffixed, `rate(vllm_old_seconds_count[5m])`, Error, "vllm_old_seconds_count is gone since 0.5.0"},
		{Suffixed, `sum by (le) (rate(vllm_old_seconds_bucket[5m]))`, Error, "vllm_old_seconds_bucket is gone since 0.5.0"},
		{Suffixed, `vllm_old_seconds`, Error, "vllm_old_seconds is gone since 0.5.0. There is nothing in its place."},
		{Dotted, `{"vllm.old"}`, Error, "gone since 0.5.0"},
	} {
		l := New(Options{Spelling: test.spelling, Strict: true})
		findings := l.Expr(test.expr, Context{Kind: Panel})
		require.Len(t, findings, 1, "%s: only this one", test.expr)
		assert.Equal(t, CodeDeprecatedName, findings[0].Code)
		assert.Equal(t, test.severity, findings[0].Severity, test.expr)
		assert.Contains(t, findings[0].Message, test.says)
	}
	for _, expr := range []string{
		`rate(vllm_generation_tokens_total[5m])`,
		`histogram_quantile(0.9, sum by (le) (rate(vllm:time_to_first_token_seconds_bucket[5m])))`,
		`rate(vllm_e2e_request_latency_seconds_count[5m])`,
	} {
		assert.Empty(t, deprecatedIn(New(Options{}), expr, Context{Kind: Panel}), expr)
	}
}
