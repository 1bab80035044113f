package querylint

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// Rules and dashboards of users are also about other programs. Those are not the linter's matter.
func TestExpressionsOfOtherProgramsHaveNoFinding(t *testing.T) {
	l := New(Options{})
	for _, expr := range []string{
		`sum(rate(http_requests_total{code=~"5.."}[5m])) / sum(rate(http_requests_total[5m])) > 0.05`,
		`histogram_quantile(0.99, sum by (le, service) (rate(http_request_duration_seconds_bucket{le!="9"}[5m]))) > 2000`,
		`kube_pod_status_ready{condition="true"} == 0`,
		`node_filesystem_avail_bytes / node_filesystem_size_bytes < 0.1`,
		`sum(container_memory_working_set_bytes)`,
		`process_resident_memory_bytes{app="x"} > 1e9`,
		`rate(some_gauge[10s])`,
		`a * on (b) c`,
	} {
		for _, f := range l.Expr(expr, Context{Kind: Alert}) {
			if f.Severity != Info {
				assert.Fail(t, expr, "%s", f)
			}
		}
	}
}

// Right expressions of many forms, as users write them.
func TestRightExpressionsHaveNoFinding(t *testing.T) {
	for spelling, all := range map[Spelling][]string{
		Suffixed: {
			`vllm_up`, `vllm_up{team="a-team"} == 0`, `min by (job) (vllm_up) == 0`, `avg(vllm_up) < 0.9`, `count(vllm_up == 1) < 2 or absent(vllm_up == 1)`,
			`sum by (model_name) (vllm_num_requests_waiting{model_name=~"llama.*"}) > 10`,
			`sum by (finished_reason) (rate(vllm_request_success_total{finished_reason=~"abort|error"}[5m]))`,
			`sum(rate(vllm_request_success_total{finished_reason!="stop"}[5m])) / (sum(rate(vllm_request_success_total[5m])) > 0)`,
			`vllm_kv_cache_utilization_ratio > 0.95 and on (job, instance, engine, model_name) vllm_num_requests_waiting > 0`,
			`max_over_time(vllm_num_requests_waiting[10m]) > 0 unless on (job, instance) rate(vllm_generation_tokens_total[10m]) > 0`,
			`sum by (instance) (increase(vllm_num_preemptions_total[1h])) * on (instance) group_left (service_version) max by (instance, service_version) (vllm_up)`,
			`quantile(0.9, vllm_num_requests_running)`, `stddev by (model_name) (vllm_num_requests_running)`, `predict_linear(vllm_num_requests_waiting[1h], 3600) > 100`,
			`topk(3, sum by (instance) (rate(vllm_prompt_tokens_total[5m])))`, `changes(vllm_up[1h]) > 3`, `resets(vllm_generation_tokens_total[1h]) > 1`,
			`vllm_diagnosis_condition{condition=~"failing|stalled"} == 1`, `label_replace(vllm_up, "pod", "$1", "instance", "(.*):.*")`,
			`vllm_up offset 15m unless vllm_up`, `vllm_prompt_tokens_total offset 15m unless vllm_prompt_tokens_total`, `time() - timestamp(vllm_up) > 300`,
			`sum(rate(vllm_time_to_first_token_seconds_bucket{le="0.5"}[5m])) / (sum(rate(vllm_time_to_first_token_seconds_count[5m])) > 0) < 0.9 and sum(increase(vllm_time_to_first_token_seconds_count[5m])) > 20`,
			`vllm_slo_error_budget_remaining_ratio{bound="lower"} < 0`, `rate(vllm_prompt_tokens_total[5m]) * 60`, `sum(rate(vllm_prompt_tokens_total[5m])) * 3600`,
			`avg_over_time(vllm_kv_cache_utilization_ratio[1h])`, `sum by (instance) (rate(vllm_prompt_tokens_total[$__rate_interval]))`, `sum by ($by) (vllm_num_requests_waiting)`,
		},
		Wire: {
			`sum(vllm:num_requests_waiting) by (model_name)`, `ray_vllm_num_requests_running`, `rate(vllm_generation_tokens_total[5m])`,
			`vllm:kv_cache_usage_perc or vllm:gpu_cache_usage_perc`, `histogram_quantile(0.95, sum by (le, model_name) (rate(vllm:inter_token_latency_seconds_bucket[5m])))`,
			`vllm:cache_config_info{block_size="16"}`, `sum(increase(vllm:request_success_total[1h]))`,
		},
		Dotted: {`sum by ("k8s.pod.name") ({"vllm.num_requests.waiting"})`, `rate({"vllm.prompt_tokens"}[5m])`, `{"vllm.up", "k8s.namespace.name"="a"} == 0`},
	} {
		l := New(Options{Spelling: spelling})
		for _, expr := range all {
			for _, kind := range []Kind{Alert, Panel} {
				for _, f := range l.Expr(expr, Context{Kind: kind}) {
					assert.Fail(t, expr, "%s: %s", kind, f)
				}
			}
		}
	}
}
