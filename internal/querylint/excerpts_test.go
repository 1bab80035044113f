package querylint

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Mistakes that public dashboards and alerts about vLLM and its gateways have, each as a small
// expression of our own with the same mistake.
var excerpts = []struct {
	mistake string
	expr    string
	kind    Kind
	code    Code
	texts   []string
}{
	{"preemptions without _total never have data", `sum(rate(vllm:num_preemptions[5m]))`, Panel, CodeMissingTotal, nil},
	{"an alert on preemptions without _total never fires", `increase(vllm:num_preemptions[10m]) > 20`, Alert, CodeMissingTotal, nil},
	{"a tile reads le=1.0, which OTLP stores as 1", `sum(rate(vllm:time_to_first_token_seconds_bucket{le="1.0"}[5m])) / (sum(rate(vllm:time_to_first_token_seconds_count[5m])) > 0)`, Panel, CodeLeFormat, nil},
	{"a join for the uptime fails where an instance has two models", `up * on (instance) vllm:num_requests_running`, Panel, CodeManyToMany, nil},
	{"no data is drawn as 0 s", `histogram_quantile(0.95, sum by (le) (rate(vllm:e2e_request_latency_seconds_bucket[5m]))) or vector(0)`, Panel, CodeNoDataAsZero, nil},
	{"a mean over the whole life", `sum(vllm:e2e_request_latency_seconds_sum) / sum(vllm:e2e_request_latency_seconds_count)`, Panel, CodeLifetimeRatio, nil},
	{"a hit ratio over the whole life", `vllm:prefix_cache_hits_total / vllm:prefix_cache_queries_total`, Panel, CodeLifetimeRatio, nil},
	{"a removed gauge", `avg_over_time(vllm:gpu_cache_usage_perc[5m])`, Panel, CodeRemovedMetric, nil},
	{"a gauge that vLLM 0.7 removed", `vllm:avg_generation_throughput_toks_per_s`, Panel, CodeRemovedMetric, nil},
	{"the removed name of a latency", `histogram_quantile(0.9, sum by (le) (rate(vllm:time_per_output_token_seconds_bucket[5m])))`, Panel, CodeRemovedMetric, nil},
	{"a share of idle time without bool", `1 - avg(rate(vllm:generation_tokens_total[5m]) > 0)`, Panel, CodeWithoutBool, nil},
	{"ratios of the KV cache are added up", `sum(vllm:kv_cache_usage_perc)`, Panel, CodeAggregatedRatio, nil},
	{"a bucket is divided by a bucket as the mean", `sum(rate(vllm:time_to_first_token_seconds_bucket[5m])) / sum(rate(vllm:e2e_request_latency_seconds_bucket[5m]))`, Panel, CodeBucketUse, nil},
	{"ranges of 30 s", `rate(vllm:prompt_tokens_total[30s])`, Panel, CodeShortRange, nil},
	{"both windows compare with the target", `avg_over_time(vllm_slo_attainment_ratio[1h]) < 0.99 and avg_over_time(vllm_slo_attainment_ratio[5m]) < 0.99`, Alert, CodeBurnThreshold, nil},
	{"1h is paired with 6h", `vllm_slo_burn_rate_ratio{window="1h"} > 14.4 and ignoring (window) vllm_slo_burn_rate_ratio{window="6h"} > 6`, Alert, CodeBurnThreshold, nil},
	{"a sum of up is silent once discovery drops the targets", `sum(up{job="vllm"}) == 0`, Alert, CodeSilentWhenGone, nil},
	{"a label that does not exist, so that the alert always fires", `sum(rate(vllm:request_success_total{finish_reason!="stop"}[5m])) > 0`, Alert, CodeUnknownLabel, nil},
	{"2.0 is no bucket", `rate(vllm:time_to_first_token_seconds_bucket{le="2.0"}[5m])`, Panel, CodeLeUnknown, nil},
	{"a quantile of lifetime buckets", `histogram_quantile(0.99, vllm:time_to_first_token_seconds_bucket)`, Panel, CodeQuantileLifetime, nil},
	{"milliseconds are compared with seconds", `histogram_quantile(0.99, sum by (le) (rate(vllm:time_to_first_token_seconds_bucket[5m]))) > 2000`, Alert, CodeThreshold, nil},
	{"80 percent of a ratio", `vllm:kv_cache_usage_perc > 80`, Alert, CodeThreshold, nil},
	{"a text uses a label that the sum removed", `sum by (model_name) (rate(inference_objective_request_error_total[5m])) / sum by (model_name) (rate(inference_objective_request_total[5m])) > 0.05`, Alert, CodeTemplateLabel, []string{"{{ $labels.target_model_name }} fails"}},
	{"the errors are more than the requests when all are refused", `sum by (model_name) (rate(inference_objective_request_error_total[5m])) / sum by (model_name) (rate(inference_objective_request_total[5m])) > 0.05`, Alert, CodeDivision, nil},
	{"a quantile of each replica is averaged", `avg(histogram_quantile(0.99, rate(inference_objective_request_duration_seconds_bucket[5m])))`, Panel, CodeAggregatedRatio, nil},
	{"throughput is the rate of a gauge", `rate(vllm:num_requests_running[1m])`, Panel, CodeRateOfGauge, nil},
	{"the requests since the start", `sum(vllm:request_success_total)`, Panel, CodeCounterWithoutRate, nil},
}

func TestTheMistakesOfPublicDashboardsAndAlertsAreFound(t *testing.T) {
	l := New(Options{Spelling: Wire})
	for _, e := range excerpts {
		findings := l.Expr(e.expr, Context{Kind: e.kind, For: time.Minute, Templates: e.texts})
		assert.Contains(t, codes(findings), e.code, "%s: %v", e.mistake, findings)
	}
}
