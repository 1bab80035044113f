package querylint

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A pair is an expression with a mistake and the same without it.
type example struct {
	code      Code
	bad, good string
	context   Context
	spelling  Spelling
	suggests  string
	// options are those of the linter; by default only the spelling.
	options Options
}

func (e *example) linter() Options {
	if e.options.Spelling != "" || e.options.Version != "" {
		return e.options
	}
	return Options{Spelling: e.spelling}
}

const (
	ttft  = "vllm_time_to_first_token_seconds"
	queue = "vllm_num_requests_waiting"
)

var alert = Context{Kind: Alert}

func panel(unit string, templates ...string) Context {
	return Context{Kind: Panel, Unit: unit, Templates: templates}
}

// Each is written by hand: the mistake that the code is for, and what should be there.
var examples = []example{
	{code: CodeSyntax, bad: `sum(vllm_up`, good: `sum(vllm_up)`},
	{code: CodeUnknownMetric, bad: `vllm_num_request_waiting`, good: queue, suggests: "vllm_num_requests_waiting"},
	{code: CodeUnknownMetric, bad: `vllm_flux_capacitor_charge_joules`, good: queue},
	{code: CodeUnknownMetric, bad: `{__name__=~"vllm_foo_.*"}`, good: `{__name__=~"vllm_num_requests_.*"}`},
	{code: CodeOtherSpelling, bad: `vllm:num_requests_waiting`, good: queue, suggests: "vllm_num_requests_waiting"},
	{code: CodeOtherSpelling, bad: `vllm_kv_cache_utilization_ratio`, good: `vllm:kv_cache_usage_perc`, spelling: Wire, suggests: "vllm:kv_cache_usage_perc"},
	{code: CodeOtherSpelling, bad: `{"vllm.diagnosis.severity"}`, good: `vllm_diagnosis_severity`, spelling: Wire},
	{code: CodeOtherSpelling, bad: `vllm_prompt_tokens_total`, good: `rate(vllm_prompt_tokens[5m])`, spelling: Unsuffixed, suggests: "vllm_prompt_tokens"},
	{code: CodeOtherSpelling, bad: `rate(vllm_prompt_tokens[5m])`, good: `rate({"vllm.prompt_tokens"}[5m])`, spelling: Dotted},
	{code: CodeRemovedMetric, bad: `vllm:gpu_cache_usage_perc`, good: `vllm:kv_cache_usage_perc`, spelling: Wire, suggests: "vllm:kv_cache_usage_perc"},
	{code: CodeRemovedMetric, bad: `vllm:gpu_cache_usage_perc`, good: `vllm:kv_cache_usage_perc or vllm:gpu_cache_usage_perc`, spelling: Wire},
	{code: CodeMissingTotal, bad: `rate(vllm_num_preemptions[5m])`, good: `rate(vllm_num_preemptions_total[5m])`, suggests: "vllm_num_preemptions_total"},
	{code: CodeMissingTotal, bad: `rate(vllm:prompt_tokens[5m])`, good: `rate(vllm:prompt_tokens_total[5m])`, spelling: Wire},
	{code: CodeExtraTotal, bad: `vllm_num_requests_waiting_total`, good: queue, suggests: queue},
	{code: CodeHistogramPart, bad: `rate(` + ttft + `[5m])`, good: `rate(` + ttft + `_count[5m])`},
	{code: CodeNotAHistogram, bad: `rate(vllm_num_requests_waiting_count[5m])`, good: queue},
	{code: CodeCounterWithoutRate, bad: `sum(vllm_prompt_tokens_total)`, good: `sum(rate(vllm_prompt_tokens_total[5m]))`},
	{code: CodeCounterWithoutRate, bad: `vllm_num_preemptions_total > 10`, good: `increase(vllm_num_preemptions_total[1h]) > 10`},
	{code: CodeCounterWithoutRate, bad: `max_over_time(vllm_prompt_tokens_total[1h])`, good: `resets(vllm_prompt_tokens_total[1h])`},
	{code: CodeCounterWithoutRate, bad: `topk(5, vllm_prompt_tokens_total)`, good: `count(vllm_prompt_tokens_total)`},
	{code: CodeRateOfGauge, bad: `rate(vllm_num_requests_waiting[5m])`, good: `deriv(vllm_num_requests_waiting[5m])`},
	{code: CodeRateOfGauge, bad: `increase(vllm_arrival_rate_per_second[5m])`, good: `avg_over_time(vllm_arrival_rate_per_second[5m])`},
	{code: CodeRateOfGauge, bad: `rate(vllm:kv_cache_usage_perc[5m])`, good: `vllm:kv_cache_usage_perc`, spelling: Wire},
	{code: CodeDeltaOfCounter, bad: `delta(vllm_prompt_tokens_total[5m])`, good: `increase(vllm_prompt_tokens_total[5m])`},
	{code: CodeDeltaOfCounter, bad: `deriv(vllm_prompt_tokens_total[5m])`, good: `rate(vllm_prompt_tokens_total[5m])`},
	{code: CodeShortRange, bad: `rate(vllm_prompt_tokens_total[30s])`, good: `rate(vllm_prompt_tokens_total[1m])`},
	{code: CodeLeUnknown, bad: `rate(` + ttft + `_bucket{le="0.3"}[5m])`, good: `rate(` + ttft + `_bucket{le="0.25"}[5m])`},
	{code: CodeLeUnknown, bad: `rate(` + ttft + `_bucket{le="0.50"}[5m])`, good: `rate(` + ttft + `_bucket{le="0.5"}[5m])`},
	{code: CodeLeUnknown, bad: `rate(` + ttft + `_bucket{le=~"3(\\.0)?"}[5m])`, good: `rate(` + ttft + `_bucket{le=~"1(\\.0)?"}[5m])`},
	{code: CodeLeFormat, bad: `rate(` + ttft + `_bucket{le="1.0"}[5m])`, good: `rate(` + ttft + `_bucket{le=~"1(\\.0)?"}[5m])`},
	{code: CodeLeFormat, bad: `rate(` + ttft + `_bucket{le="1"}[5m])`, good: `rate(` + ttft + `_bucket{le="+Inf"}[5m])`},
	{code: CodeQuantileLifetime, bad: `histogram_quantile(0.9, sum by (le) (` + ttft + `_bucket))`, good: `histogram_quantile(0.9, sum by (le) (rate(` + ttft + `_bucket[5m])))`},
	{code: CodeBucketUse, bad: `sum(rate(` + ttft + `_bucket[5m]))`, good: `sum(rate(` + ttft + `_bucket{le="0.5"}[5m]))`},
	{code: CodeBucketUse, bad: `sum(rate(` + ttft + `_bucket[5m])) * 2`, good: `sum by (le) (rate(` + ttft + `_bucket[5m]))`},
	{code: CodeAggregatedRatio, bad: `avg(vllm_prefix_cache_hit_ratio)`, good: `max(vllm_prefix_cache_hit_ratio)`},
	{code: CodeAggregatedRatio, bad: `avg by (job) (vllm_time_to_first_token_quantile_seconds{quantile="0.95"})`, good: `max by (job) (vllm_time_to_first_token_quantile_seconds{quantile="0.95"})`},
	{code: CodeAggregatedRatio, bad: `sum by (objective) (vllm_slo_burn_rate_ratio{window="1h"})`, good: `max by (objective) (vllm_slo_burn_rate_ratio{window="1h"})`},
	{code: CodeAggregatedRatio, bad: `avg(histogram_quantile(0.9, rate(` + ttft + `_bucket[5m])))`, good: `histogram_quantile(0.9, sum by (le) (rate(` + ttft + `_bucket[5m])))`},
	{
		code: CodeAggregatedRatio, bad: `sum(rate(` + ttft + `_sum[5m]) / (rate(` + ttft + `_count[5m]) > 0))`,
		good: `sum(rate(` + ttft + `_sum[5m])) / (sum(rate(` + ttft + `_count[5m])) > 0)`,
	},
	{code: CodeAggregatedRatio, bad: `sum(vllm:kv_cache_usage_perc)`, good: `max(vllm:kv_cache_usage_perc)`, spelling: Wire},
	{
		code: CodeAggregatedRatio, bad: `sum without (model_name) (vllm_request_finished_ratio{finished_reason!="stop"})`,
		good: `sum without (finished_reason) (vllm_request_finished_ratio{finished_reason!="stop"})`,
	},
	{
		code: CodeCounterWithoutRate, bad: `vllm_num_requests_waiting and on (instance) topk(5, vllm_prompt_tokens_total)`,
		good: `vllm_num_requests_waiting and on (instance) topk(5, rate(vllm_prompt_tokens_total[5m]))`,
	},
	{
		code: CodeLifetimeRatio, bad: `vllm_prefix_cache_hits_total / vllm_prefix_cache_queries_total`,
		good: `rate(vllm_prefix_cache_hits_total[5m]) / (rate(vllm_prefix_cache_queries_total[5m]) > 0)`,
	},
	{code: CodeUnknownLabel, bad: `vllm_request_success_total{finish_reason!="stop"} and vllm_up`, good: `rate(vllm_request_success_total{finished_reason!="stop"}[5m])`},
	{code: CodeUnknownLabel, bad: `vllm_up{model="x"}`, good: `vllm_num_requests_waiting{model_name="x"}`},
	{code: CodeUnknownLabel, bad: `sum by (objective) (vllm_num_requests_waiting)`, good: `sum by (model_name) (vllm_num_requests_waiting)`},
	{code: CodeUnknownLabel, bad: `vllm_num_requests_waiting * on (job, instance, objective) group_left () vllm_up`, good: `vllm_num_requests_waiting * on (job, instance) group_left () vllm_up`},
	{code: CodeUnknownLabel, bad: `vllm_num_requests_waiting * on (job, instance) group_left (model_name) vllm_up`, good: `vllm_num_requests_waiting * on (job, instance) group_left (k8s_pod_name) vllm_up`},
	{code: CodeLostLabel, bad: `max by (objective) (sum by (job) (rate(vllm_slo_good_total[5m])))`, good: `max by (objective) (sum by (job, objective) (rate(vllm_slo_good_total[5m])))`},
	{
		code: CodeLostLabel, bad: `sum by (job) (vllm_num_requests_waiting) > on (job, model_name) sum by (job, model_name) (vllm_num_requests_running)`,
		good: `sum by (job, model_name) (vllm_num_requests_waiting) > on (job, model_name) sum by (job, model_name) (vllm_num_requests_running)`, context: alert,
	},
	{code: CodeUnknownValue, bad: `vllm_diagnosis_condition{condition="broken"} == 1`, good: `vllm_diagnosis_condition{condition="degraded"} == 1`, context: alert},
	{code: CodeUnknownValue, bad: `vllm_diagnosis_condition{condition=~"failing|broken"}`, good: `vllm_diagnosis_condition{condition=~"failing|stalled"}`},
	{code: CodeUnknownValue, bad: `vllm_diagnosis_cause{role="main"}`, good: `vllm_diagnosis_cause{role="primary"}`},
	{code: CodeUnknownValue, bad: `vllm_slo_burn_rate_ratio{bound="low"}`, good: `vllm_slo_burn_rate_ratio{bound="lower"}`},
	{code: CodeUnknownValue, bad: `vllm_diagnosis_condition{condition=~"stal.*x"}`, good: `vllm_diagnosis_condition{condition=~"stal.*"}`},
	{code: CodeTemplateLabel, bad: `sum by (job) (vllm_num_requests_waiting) > 5`, good: `sum by (job, model_name) (vllm_num_requests_waiting) > 5`, context: Context{
		Kind: Alert, Templates: []string{"{{ $labels.job }}: {{ $labels.model_name }} has {{ $value }}"},
	}},
	{code: CodeTemplateLabel, bad: `sum by (job) (vllm_num_requests_waiting)`, good: `sum by (instance) (vllm_num_requests_waiting)`, context: panel("", "{{instance}}")},
	{code: CodeTemplateLabel, bad: `absent(vllm_up)`, good: `absent(vllm_up{job="vllm"})`, context: Context{Kind: Alert, Templates: []string{"{{ $labels.job }} is gone"}}},
	{code: CodeTemplateLabel, bad: `sum by (job) (vllm_num_requests_waiting)`, good: `sum by (k8s_pod_name) (vllm_num_requests_waiting)`, context: panel("", `{{ index $labels "k8s_pod_name" }}`)},
	{code: CodeWithoutBool, bad: `1 - (vllm_num_requests_waiting > 0)`, good: `1 - (vllm_num_requests_waiting > bool 0)`},
	{code: CodeWithoutBool, bad: `1 - avg(rate(vllm_prompt_tokens_total[5m]) > 0)`, good: `1 - avg(rate(vllm_prompt_tokens_total[5m]) > bool 0)`},
	{code: CodeWithoutBool, bad: `sum(vllm_up == 0)`, good: `sum(vllm_up == bool 0)`},
	{code: CodeWithoutBool, bad: `avg_over_time((vllm_num_requests_waiting > 0)[1h:1m])`, good: `avg_over_time((vllm_num_requests_waiting > bool 0)[1h:1m])`},
	{code: CodeWithoutBool, bad: `(vllm_num_requests_waiting > 0) + (vllm_num_requests_running > bool 0)`, good: `(vllm_num_requests_waiting > bool 0) + (vllm_num_requests_running > bool 0)`},
	{code: CodeManyToMany, bad: `vllm_num_requests_waiting * on (job, instance) vllm_up`, good: `vllm_num_requests_waiting * on (job, instance) group_left () vllm_up`},
	{code: CodeManyToMany, bad: `vllm_up * on (job, instance) vllm_num_requests_waiting`, good: `vllm_up * on (job, instance) sum by (job, instance) (vllm_num_requests_waiting)`},
	{code: CodeManyToMany, bad: `vllm_num_requests_waiting * on (job) group_left () vllm_up`, good: `vllm_num_requests_waiting * on (job) group_left () max by (job) (vllm_up)`},
	{code: CodeManyToMany, bad: `vllm_num_requests_waiting / ignoring (engine) (vllm_num_requests_running > 0)`, good: `vllm_num_requests_waiting / (vllm_num_requests_running > 0)`},
	{
		code: CodeManyToMany, bad: `vllm_slo_target_ratio{objective="objective-1"} * on (job, instance) vllm_up`,
		good: `vllm_slo_target_ratio{objective="objective-1", model_name="model_name-1"} * on (job, instance) vllm_up`,
	},
	{code: CodeNeverMatches, bad: `vllm_num_requests_waiting * vllm_up`, good: `vllm_num_requests_waiting * on (job, instance) group_left () vllm_up`},
	{code: CodeNeverMatches, bad: `vllm_num_requests_waiting > 5 and vllm_up == 1`, good: `vllm_num_requests_waiting > 5 and on (job, instance) vllm_up == 1`, context: alert},
	{
		code: CodeNeverMatches, bad: `rate(vllm_request_success_total{finished_reason="error"}[5m]) / (sum without (finished_reason) (rate(vllm_request_success_total[5m])) > 0)`,
		good: `rate(vllm_request_success_total{finished_reason="error"}[5m]) / ignoring (finished_reason) (sum without (finished_reason) (rate(vllm_request_success_total[5m])) > 0)`,
	},
	{code: CodeUnit, bad: `vllm_kv_cache_utilization_ratio`, good: `vllm_kv_cache_utilization_ratio * 100`, context: panel("%")},
	{code: CodeUnit, bad: `rate(vllm_prompt_tokens_total[5m])`, good: `increase(vllm_prompt_tokens_total[5m])`, context: panel("{token}")},
	{code: CodeUnit, bad: `histogram_quantile(0.9, rate(` + ttft + `_bucket[5m]))`, good: `histogram_quantile(0.9, rate(` + ttft + `_bucket[5m])) * 1000`, context: panel("ms")},
	{code: CodeSumWithoutCount, bad: `rate(` + ttft + `_sum[5m])`, good: `rate(` + ttft + `_sum[5m]) / (rate(` + ttft + `_count[5m]) > 0)`, context: panel("s")},
	{code: CodeUnit, bad: `vllm_num_requests_waiting + on (job, instance, engine, model_name) vllm_request_queue_time_mean_seconds`, good: `vllm_num_requests_waiting + vllm_num_requests_running`},
	{code: CodeThreshold, bad: `vllm_kv_cache_utilization_ratio > 80`, good: `vllm_kv_cache_utilization_ratio > 0.8`, context: alert},
	{code: CodeThreshold, bad: `histogram_quantile(0.95, rate(` + ttft + `_bucket[5m])) > 2000`, good: `histogram_quantile(0.95, rate(` + ttft + `_bucket[5m])) > 2`},
	{code: CodeThreshold, bad: `vllm_time_to_first_token_mean_seconds > 2000`, good: `vllm_time_to_first_token_mean_seconds > 2`, context: alert},
	{code: CodeThreshold, bad: `vllm_up < 0`, good: `vllm_up < 1`, context: alert},
	{code: CodeThreshold, bad: `vllm_diagnosis_severity > 3`, good: `vllm_diagnosis_severity >= 3`, context: alert},
	{code: CodeThreshold, bad: `histogram_quantile(0.9, rate(vllm_inter_token_latency_seconds_bucket[5m])) > 100`, good: `histogram_quantile(0.9, rate(vllm_inter_token_latency_seconds_bucket[5m])) > 10`},
	{
		code: CodeBurnThreshold, bad: `vllm_slo_burn_rate_ratio{window="1h"} > 14.4 and ignoring (window) vllm_slo_burn_rate_ratio{window="6h"} > 6`,
		good: `vllm_slo_burn_rate_ratio{window="1h"} > 14.4 and ignoring (window) vllm_slo_burn_rate_ratio{window="5m"} > 14.4`, context: alert,
	},
	{code: CodeThreshold, bad: `vllm_kv_cache_utilization_ratio`, good: `vllm_kv_cache_utilization_ratio * 100`, context: Context{Kind: Panel, Thresholds: []float64{0, 80}}},
	{code: CodeNoDataAsZero, bad: `histogram_quantile(0.9, rate(` + ttft + `_bucket[5m])) or vector(0)`, good: `sum(rate(` + ttft + `_count[5m])) or vector(0)`},
	{code: CodeSilentWhenGone, bad: `sum(vllm_up) == 0`, good: `sum(vllm_up) == 0 or absent(vllm_up)`, context: alert},
	{code: CodeSilentWhenGone, bad: `count(vllm_up) < 3`, good: `(count(vllm_up) or vector(0)) < 3`, context: alert},
	{code: CodeSilentWhenGone, bad: `count by (job) (vllm_up) == 0`, good: `absent(vllm_up)`, context: alert},
}

func codes(findings []Finding) []Code {
	var all []Code
	for _, f := range findings {
		all = append(all, f.Code)
	}
	return all
}

func TestEachRuleFindsItsMistakeAndOnlyThat(t *testing.T) {
	for _, e := range append(examples, pitfalls...) {
		t.Run(string(e.code)+" "+e.bad, func(t *testing.T) {
			if e.context.Kind == "" {
				e.context.Kind = Panel
			}
			l := New(e.linter())
			findings := l.Expr(e.bad, e.context)
			at := slices.IndexFunc(findings, func(f Finding) bool { return f.Code == e.code })
			require.GreaterOrEqual(t, at, 0, "found %v", findings)
			if e.suggests != "" {
				assert.Equal(t, e.suggests, findings[at].Suggestion)
			}
			for _, f := range findings {
				assert.GreaterOrEqual(t, f.End, f.Start)
				assert.LessOrEqual(t, f.End, len(e.bad))
				assert.Regexp(t, `^.*[.?]$`, f.Message)
				assert.NotContains(t, f.Message, "%!")
			}
			assert.Empty(t, l.Expr(e.good, e.context))
		})
	}
}

func TestEachCodeHasAnExampleAndASentence(t *testing.T) {
	seen := map[Code]bool{}
	for _, e := range append(examples, pitfalls...) {
		seen[e.code] = true
	}
	for _, rule := range Rules() {
		assert.True(t, seen[rule.Code], rule.Code)
		assert.Regexp(t, `^[a-z]+(-[a-z]+)*$`, string(rule.Code))
		assert.Regexp(t, `^["A-Z\x60].*\.$`, rule.Finds)
		delete(seen, rule.Code)
	}
	assert.Empty(t, seen, "codes that are missing in the table")
}
