package querylint

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Mistakes in forms that the table of rules does not have: nested, joined, in other spellings
// and orders.
var wrong = []struct {
	spelling Spelling
	expr     string
	context  Context
	code     Code
}{
	{Wire, `rate(vllm:prompt_tokens[5m]) * on (pod) group_left () kube_pod_info`, panel(""), CodeMissingTotal},
	{Wire, `topk(5, rate(vllm:generation_tokens[5m]))`, panel(""), CodeMissingTotal},
	{Suffixed, `sum(increase(vllm_num_preemptions[1h] offset 1d))`, panel(""), CodeMissingTotal},
	{Suffixed, `max_over_time(rate(vllm_generation_tokens[5m])[1d:5m])`, panel(""), CodeMissingTotal},
	{Unsuffixed, `rate(vllm_generation_tokens_total[5m])`, panel(""), CodeOtherSpelling},
	{Dotted, `rate(vllm_generation_tokens_total[5m])`, panel(""), CodeOtherSpelling},
	{Suffixed, `rate(vllm:generation_tokens_total[5m])`, panel(""), CodeOtherSpelling},
	{Suffixed, `{__name__="vllm_prompt_token_total"}`, panel(""), CodeUnknownMetric},
	{Wire, `vllm:num_request_running`, panel(""), CodeUnknownMetric},
	{Dotted, `{"vllm.num_requests_running"}`, panel(""), CodeUnknownMetric},
	{Wire, `sum(vllm:num_requests_running_total)`, panel(""), CodeExtraTotal},
	{Wire, `rate(vllm:time_to_first_token_seconds[5m])`, panel(""), CodeHistogramPart},
	{Suffixed, `histogram_quantile(0.9, sum by (le, job) (rate(vllm_time_to_first_token_seconds[5m])))`, panel("s"), CodeHistogramPart},
	{Suffixed, `histogram_quantile(0.9, sum by (le) (vllm_time_to_first_token_seconds_bucket))`, panel("s"), CodeQuantileLifetime},
	{Wire, `quantile(0.9, sum by (le) (rate(vllm:time_to_first_token_seconds_bucket[5m])))`, panel(""), CodeBucketUse},
	{Suffixed, `sum(rate(vllm_time_to_first_token_seconds_bucket[5m]))`, panel(""), CodeBucketUse},
	{Suffixed, `avg by (job) (histogram_quantile(0.9, sum by (job, instance, le) (rate(vllm_time_to_first_token_seconds_bucket[5m]))))`, panel("s"), CodeAggregatedRatio},
	{Suffixed, `sum(vllm_kv_cache_utilization_ratio) / 4`, panel(""), CodeAggregatedRatio},
	{Suffixed, `avg(rate(vllm_prefix_cache_hits_total[5m]) / (rate(vllm_prefix_cache_queries_total[5m]) > 0))`, panel(""), CodeAggregatedRatio},
	{Suffixed, `irate(vllm_num_requests_waiting[5m])`, panel(""), CodeRateOfGauge},
	{Suffixed, `increase(vllm_kv_cache_utilization_ratio[1h]) > 0.1`, alert, CodeRateOfGauge},
	{Suffixed, `predict_linear(vllm_generation_tokens_total[1h], 3600)`, panel(""), CodeDeltaOfCounter},
	{Suffixed, `max_over_time(vllm_generation_tokens_total[1h])`, panel(""), CodeCounterWithoutRate},
	{Suffixed, `vllm_request_success_total{finished_reason="error"} > 10`, alert, CodeCounterWithoutRate},
	{Suffixed, `sum by (model_name) (vllm_generation_tokens_total) > 1000`, alert, CodeCounterWithoutRate},
	{Wire, `sum by (model) (vllm:num_requests_running)`, panel(""), CodeUnknownLabel},
	{Suffixed, `vllm_num_requests_running{k8s_pod="a"}`, panel(""), CodeUnknownLabel},
	{Suffixed, `vllm_num_requests_running * on (job, server) group_left () vllm_up`, panel(""), CodeUnknownLabel},
	{Suffixed, `sum by (instance) (max by (model_name) (vllm_num_requests_running))`, panel(""), CodeLostLabel},
	{Suffixed, `vllm_diagnosis_condition{condition=~"failed|stalled"} == 1`, alert, CodeUnknownValue},
	{Suffixed, `rate(vllm_request_success_total{finished_reason="success"}[5m])`, panel(""), CodeUnknownValue},
	{Suffixed, `vllm_diagnosis_cause{cause="kv_presure"} == 1`, alert, CodeUnknownValue},
	{Suffixed, `sum(rate(vllm_time_to_first_token_seconds_bucket{le=~"0.4|0.6"}[5m]))`, panel(""), CodeLeUnknown},
	{Wire, `rate(vllm:e2e_request_latency_seconds_bucket{le="60s"}[5m])`, panel(""), CodeLeUnknown},
	{Suffixed, `avg_over_time((vllm_up == 1)[1d:1m])`, panel(""), CodeWithoutBool},
	{Suffixed, `vllm_generation_tokens_total / vllm_prompt_tokens_total`, panel(""), CodeLifetimeRatio},
	{Suffixed, `vllm_num_requests_waiting * on (instance) rate(vllm_request_success_total[5m])`, panel(""), CodeManyToMany},
	{Suffixed, `sum by (model_name) (vllm_num_requests_waiting) / (sum by (job) (vllm_num_requests_running) > 0)`, panel(""), CodeNeverMatches},
	{Suffixed, `sum(vllm_num_requests_waiting) > 10 and vllm_up == 1`, alert, CodeNeverMatches},
	{Suffixed, `vllm_kv_cache_utilization_ratio >= 95`, alert, CodeThreshold},
	{Wire, `100 < vllm:kv_cache_usage_perc`, alert, CodeThreshold},
	{Suffixed, `vllm_kv_cache_utilization_ratio * 100 > 0.95`, panel("1"), CodeUnit},
	{Suffixed, `increase(vllm_generation_tokens_total[5m])`, panel("{token}/s"), CodeUnit},
	{Suffixed, `rate(vllm_e2e_request_latency_seconds_sum[5m]) / (rate(vllm_e2e_request_latency_seconds_count[5m]) > 0)`, panel("ms"), CodeUnit},
	{Suffixed, `rate(vllm_generation_tokens_total[15s])`, panel(""), CodeShortRange},
	{Suffixed, `sum(vllm_num_requests_running) < 1`, alert, CodeSilentWhenGone},
	{Suffixed, `count(vllm_up == 1) < 2`, alert, CodeSilentWhenGone},
	{Suffixed, `sum(vllm_num_requests_waiting) by (job) > 5`, Context{Kind: Alert, Templates: []string{"{{ $labels.instance }}"}}, CodeTemplateLabel},
	{Suffixed, `histogram_quantile(0.9, rate(vllm_time_to_first_token_seconds_bucket[5m])) or on () vector(0)`, panel("s"), CodeNoDataAsZero},
	{Wire, `sum(vllm:gpu_cache_usage_perc > bool 0.9)`, panel(""), CodeRemovedMetric},
}

func TestMistakesInOtherFormsAreFound(t *testing.T) {
	for _, e := range wrong {
		findings := New(Options{Spelling: e.spelling}).Expr(e.expr, e.context)
		assert.Contains(t, codes(findings), e.code, "%s: %v", e.expr, findings)
	}
}
