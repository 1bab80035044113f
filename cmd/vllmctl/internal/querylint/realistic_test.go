package querylint

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// written is an expression as a user's rule or dashboard has it.
type written struct {
	expr string
	kind Kind
	unit string
}

// realistic are right expressions, written with what people join and wrap: other programs,
// subqueries, native histograms, modifiers of time.
var realistic = map[Spelling][]written{
	Wire: {
		{`histogram_quantile(0.99, sum by (le, model_name) (rate(vllm:time_to_first_token_seconds_bucket{namespace="$namespace", model_name=~"$model"}[$__rate_interval])))`, Panel, "s"},
		{`sum by (model_name) (rate(vllm:e2e_request_latency_seconds_sum[5m])) / (sum by (model_name) (rate(vllm:e2e_request_latency_seconds_count[5m])) > 0)`, Panel, "s"},
		{`sum by (namespace, pod) (vllm:num_requests_waiting) * on (namespace, pod) group_left (node) kube_pod_info`, Panel, ""},
		{`max by (pod) (vllm:kv_cache_usage_perc{pod=~"llama-.+"}) * 100`, Panel, "%"},
		{`100 * (1 - max by (model_name) (vllm:kv_cache_usage_perc))`, Panel, "%"},
		{`sum by (pod) (vllm:num_requests_running) / on (pod) group_left () max by (pod) (DCGM_FI_DEV_POWER_USAGE > 0)`, Panel, ""},
		{`max by (gpu, Hostname) (DCGM_FI_DEV_GPU_UTIL)`, Panel, "%"},
		{`DCGM_FI_DEV_FB_USED / (DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE) > 0.97`, Alert, ""},
		{`rate(DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION[5m]) / 1000`, Panel, ""},
		{`changes(DCGM_FI_DEV_XID_ERRORS[10m]) > 0`, Panel, ""},
		{`sum by (model_name) (rate(vllm:generation_tokens_total[5m])) / on () group_left () (sum(rate(DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION[5m])) > 0)`, Panel, ""},
		{`sum(rate(vllm:prefix_cache_hits_total[15m])) / (sum(rate(vllm:prefix_cache_queries_total[15m])) > 0)`, Panel, "1"},
		{`sum(rate(vllm:spec_decode_num_accepted_tokens_total[5m])) / clamp_min(sum(rate(vllm:spec_decode_num_draft_tokens_total[5m])), 1)`, Panel, ""},
		{`1 + sum(rate(vllm:spec_decode_num_accepted_tokens_total[5m])) / (sum(rate(vllm:spec_decode_num_drafts_total[5m])) > 0)`, Panel, ""},
		{`absent_over_time(vllm:num_requests_running{job="vllm"}[10m])`, Alert, ""},
		{`up{job="vllm"} == 0 or absent(up{job="vllm"})`, Alert, ""},
		{`label_replace(sum by (pod) (vllm:num_requests_running), "deployment", "$1", "pod", "(.*)-[a-z0-9]+-[a-z0-9]+")`, Panel, ""},
		{`sum by (deployment) (label_replace(vllm:num_requests_running, "deployment", "$1", "pod", "(.*)-[^-]+-[^-]+"))`, Panel, ""},
		{`topk(5, sum by (pod) (vllm:num_requests_waiting))`, Panel, ""},
		{`vllm:num_requests_waiting > 0 and vllm:num_requests_running == 0`, Alert, ""},
		{`sum(vllm:num_requests_waiting) by (model_name) > 5 * sum(vllm:num_requests_running) by (model_name)`, Alert, ""},
		{`histogram_quantile(0.5, sum(rate(vllm:request_prompt_tokens_bucket[$__rate_interval])) by (le))`, Panel, "{token}"},
		{`sum(rate(vllm:time_to_first_token_seconds_bucket{le="+Inf"}[5m]))`, Panel, ""},
		{`sum by (le) (increase(vllm:time_to_first_token_seconds_bucket[$__rate_interval]))`, Panel, ""},
		{`(process_resident_memory_bytes{job="vllm"} and on (instance) vllm:num_requests_running) / 1024 / 1024 / 1024`, Panel, ""},
		{`count by (block_size) (vllm:cache_config_info)`, Panel, ""},
		{`avg_over_time(sum by (model_name) (vllm:num_requests_waiting)[30m:1m]) > 10`, Alert, ""},
		{`max_over_time(sum(rate(vllm:generation_tokens_total[5m]))[1d:5m])`, Panel, ""},
		{`sum(rate(vllm:request_success_total[5m])) - sum(rate(vllm:request_success_total[5m] offset 1w))`, Panel, ""},
		{`sum(increase(vllm:generation_tokens_total[$__range] @ end()))`, Panel, ""},
		{`sum by (model_name) (rate(vllm:prompt_tokens_total[5m]) or vllm:num_requests_running * 0)`, Panel, ""},
		{`vllm:lora_requests_info{running_lora_adapters=~".*sql-lora.*"}`, Panel, ""},
		{`time() - process_start_time_seconds{job="vllm"} < 600`, Alert, ""},
		{`kube_deployment_status_replicas_available{deployment="vllm"} < kube_deployment_spec_replicas{deployment="vllm"}`, Alert, ""},
		{`time() - max by (pod) (vllm:prompt_tokens_created)`, Panel, "s"},
		{`min by (pod) (vllm:e2e_request_latency_seconds_created)`, Panel, ""},
		{`count by (build_ref) (llm_d_epp_info)`, Panel, ""},
		{`inference_extension_info{commit=~".+"}`, Panel, ""},
		{`sum by (namespace, pod) (vllm:num_requests_waiting) * on (namespace, pod) group_left (label_team) max by (namespace, pod, label_team) (kube_pod_labels{label_app="vllm"})`, Panel, ""},
		{`sum by (namespace) (vllm:num_requests_waiting) / on (namespace) group_left () sum by (namespace) (kube_deployment_status_replicas_ready{deployment=~"vllm-.*"} > 0)`, Panel, ""},
		{`sum by (model_name) (rate(vllm:time_to_first_token_seconds_sum[5m])) / (sum by (model_name) (rate(vllm:time_to_first_token_seconds_count[5m])) > 0.1) > 1`, Alert, ""},
		{`sum by (model_name) (rate(vllm:time_to_first_token_seconds_bucket{le=~"1(\\.0)?"}[5m]))`, Panel, ""},
		{`sum(rate(vllm:time_to_first_token_seconds_bucket{le=~"1\\.0|1"}[1h])) / (sum(rate(vllm:time_to_first_token_seconds_count[1h])) > 0)`, Panel, ""},
		{`rate(vllm:${metric}_total[5m])`, Panel, ""},
		{`sum(rate(vllm:${metric}_tokens_total{model_name=~"$model"}[$__rate_interval]))`, Panel, ""},
		{`${prefix}num_requests_running`, Panel, ""},
		{`increase(vllm:request_success_total[${__range_s}s])`, Panel, ""},
		{`sum(increase(vllm:generation_tokens_total[${d}m]))`, Panel, ""},
		{`sum(kube_pod_container_resource_requests{resource="nvidia_com_gpu"}) - sum(vllm:num_requests_running > bool 0)`, Panel, ""},
	},
	Suffixed: {
		{`vllm_kv_cache_utilization_ratio * on (job, instance) group_left (k8s_pod_name) target_info`, Panel, ""},
		{`sum by (k8s_cluster_name, model_name) (rate(vllm_generation_tokens_total[5m]) * on (job, instance) group_left (k8s_cluster_name) target_info)`, Panel, ""},
		{`info(vllm_num_requests_running, {k8s_cluster_name=~".+"})`, Panel, ""},
		{`histogram_quantile(0.95, sum(rate(vllm_time_to_first_token_seconds[5m])))`, Panel, "s"},
		{`histogram_quantile(0.95, sum by (model_name) (rate(vllm_time_to_first_token_seconds{k8s_namespace_name="llm"}[5m])))`, Panel, "s"},
		{`histogram_fraction(0, 0.5, sum by (job) (rate(vllm_time_to_first_token_seconds[1h])))`, Panel, "1"},
		{`histogram_avg(sum(rate(vllm_e2e_request_latency_seconds[5m])))`, Panel, "s"},
		{`histogram_count(sum(rate(vllm_e2e_request_latency_seconds[5m]))) > 1`, Alert, ""},
		{`histogram_sum(sum(rate(vllm_e2e_request_latency_seconds[5m]))) / (histogram_count(sum(rate(vllm_e2e_request_latency_seconds[5m]))) > 0)`, Panel, "s"},
		{`predict_linear(vllm_kv_cache_utilization_ratio[30m], 1800) > 1`, Alert, ""},
		{`deriv(vllm_num_requests_waiting[15m]) > 0.5`, Alert, ""},
		{`delta(vllm_kv_cache_utilization_ratio[1h])`, Panel, ""},
		{`sum(vllm_num_requests_waiting) or vector(0)`, Panel, "{request}"},
		{`sum(rate(vllm_request_success_total{finished_reason="error"}[5m])) or vector(0)`, Panel, ""},
		{`max by (job, instance) (vllm_diagnosis_severity) >= 2 unless on (job, instance) ALERTS{alertname="Maintenance", alertstate="firing"}`, Alert, ""},
		{`vllm_diagnosis_condition{condition="failing"} == 1 unless on (instance) (max by (instance) (vllm_diagnosis_condition{condition="failing"} offset 10m) == 1)`, Alert, ""},
		{`count by (condition) (vllm_diagnosis_condition == 1)`, Panel, ""},
		{`sum by (cause) (vllm_diagnosis_cause{role="primary"})`, Panel, ""},
		{`avg_over_time((vllm_up == bool 1)[1d:1m]) * 100`, Panel, "%"},
		{`avg_over_time(vllm_up[30d]) < 0.999 and count_over_time(vllm_up[30d]) > 10000`, Alert, ""},
		{`sum(increase(vllm_slo_good_total[30d])) / (sum(increase(vllm_slo_valid_total[30d])) > 0)`, Panel, "1"},
		{`1 - sum by (objective) (rate(vllm_slo_good_total[$__range])) / (sum by (objective) (rate(vllm_slo_valid_total[$__range])) > 0)`, Panel, "1"},
		{`vllm_slo_attainment_ratio{bound="upper"} - ignoring (bound) vllm_slo_attainment_ratio{bound="lower"}`, Panel, "1"},
		{`max by (objective) (vllm_slo_burn_rate_ratio{window="1h", bound="lower"})`, Panel, ""},
		{`sum by (instance) (rate(vllm_prompt_tokens_total[5m])) > 2 * scalar(quantile(0.5, sum by (instance) (rate(vllm_prompt_tokens_total[5m]))))`, Alert, ""},
		{`abs(vllm_num_requests_running - on (job) group_left () avg by (job) (vllm_num_requests_running)) > on (job) group_left () 2 * stddev by (job) (vllm_num_requests_running)`, Alert, ""},
		{`sum by (model_name) (vllm_arrival_rate_per_second @ start())`, Threshold, ""},
		{`round(sum by (model_name) (increase(vllm_num_preemptions_total[1h])))`, Panel, ""},
		{`sort_desc(sum by (finished_reason) (increase(vllm_request_success_total[$__range])))`, Panel, ""},
		{`clamp_max(max by (instance) (vllm_kv_cache_utilization_ratio), 1)`, Panel, "1"},
		{`count_values("version", vllm_num_requests_running)`, Panel, ""},
		{`min_over_time(vllm_up[5m]) == 0 and on (job, instance) max_over_time(vllm_up[1h] offset 5m) == 1`, Alert, ""},
		{`sgn(vllm_num_requests_waiting)`, Panel, ""},
		{`hour() >= 8 and on () (sum(vllm_num_requests_running) or vector(0)) == 0`, Alert, ""},
		{`rate(otelcol_exporter_send_failed_metric_points_total[5m]) > 0`, Alert, ""},
		{`otelcol_exporter_queue_size / (otelcol_exporter_queue_capacity > 0) > 0.8`, Alert, ""},
		{`sum by (model_name) (inference_gateway_epp_request_rate_per_second) > 0 and on (model_name) sum by (model_name) (vllm_num_requests_running) == 0`, Alert, ""},
		{`sum by (error_code) (rate(inference_gateway_epp_request_errors_total[5m]))`, Panel, ""},
	},
	Dotted: {
		{`histogram_quantile(0.9, sum by (le, "gen_ai.request.model") (rate({"gen_ai.server.request.duration_bucket"}[5m])))`, Panel, "s"},
		{`sum by ("k8s.namespace.name", model_name) (rate({"vllm.generation_tokens"}[5m] offset 1d))`, Panel, ""},
		{`{"vllm.kv_cache.utilization", "k8s.cluster.name"=~"eu-.*"} > 0.95`, Alert, ""},
	},
	Unsuffixed: {
		{`sum by (model_name) (rate(vllm_generation_tokens[5m]))`, Panel, "{token}/s"},
		{`rate(vllm_request_success{finished_reason="length"}[5m]) > 1`, Alert, ""},
		{`vllm_kv_cache_utilization > 0.95`, Alert, ""},
	},
}

func TestRealisticExpressionsHaveNoFinding(t *testing.T) {
	for spelling, all := range realistic {
		l := New(Options{Spelling: spelling})
		for _, e := range all {
			for _, f := range l.Expr(e.expr, Context{Kind: e.kind, Unit: e.unit, Described: "--enable-lora --speculative-config"}) {
				assert.Fail(t, e.expr, "%s", f)
			}
		}
	}
}

// What stands for one bound in both of its forms selects one bucket; a pattern that matches two
// bounds does not.
func TestAPatternOfLeIsJudgedByTheBoundsThatItMatches(t *testing.T) {
	l := New(Options{Spelling: Wire})
	codes := func(le string) map[Code]Severity {
		all := map[Code]Severity{}
		for _, f := range l.Expr(`sum(rate(vllm:time_to_first_token_seconds_bucket{le`+le+`}[5m]))`, Context{Kind: Panel}) {
			all[f.Code] = f.Severity
		}
		return all
	}
	assert.Empty(t, codes(`=~"1|1\\.0"`))
	assert.Empty(t, codes(`="0.5"`))
	assert.Equal(t, map[Code]Severity{CodeLeFormat: Warning}, codes(`="1.0"`), "what a scrape stores")
	assert.Equal(t, map[Code]Severity{CodeLeFormat: Error}, codes(`="1"`), "what no scrape stores")
	assert.Equal(t, map[Code]Severity{CodeLeFormat: Warning}, codes(`=~"1|1.0"`), "the dot also matches 160")
	assert.Contains(t, codes(`=~"0.5|0.75"`), CodeBucketUse)
	assert.Equal(t, map[Code]Severity{CodeLeUnknown: Error, CodeBucketUse: Error}, codes(`=~"0.51|0.52"`))
}
