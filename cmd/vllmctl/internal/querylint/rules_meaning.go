package querylint

// ruleTableMeaning has the codes about units, alerts, versions and what the metrics mean.
var ruleTableMeaning = []Rule{
	{
		Code: CodeUnit, Finds: "The result has another unit than declared, or units are mixed.",
		Remedy: "Declare the unit of the result, or convert the value.",
		Bad:    `vllm:kv_cache_usage_perc + vllm:num_requests_running * rate(vllm:time_to_first_token_seconds_sum[5m])`,
		Good:   `vllm:num_requests_waiting + vllm:num_requests_running`,
	},
	{
		Code: CodeThreshold, Finds: "The threshold is out of reach, or in another unit.",
		Remedy: "Use a number in the unit of the value: seconds for latencies, 0 to 1 for shares.",
		Bad:    `histogram_quantile(0.99, sum by (le) (rate(vllm:time_to_first_token_seconds_bucket[5m]))) > 2000`,
		Good:   `histogram_quantile(0.99, sum by (le) (rate(vllm:time_to_first_token_seconds_bucket[5m]))) > 2`,
	},
	{
		Code: CodeBurnThreshold, Finds: "The thresholds of a burn-rate pair differ, or lack a burn factor.",
		Remedy: "Compare both windows with the same burn factor times the budget.",
		Bad:    `vllm_slo_burn_rate_ratio{window="1h"} > 14.4 and ignoring (window) vllm_slo_burn_rate_ratio{window="6h"} > 6`,
		Good:   `vllm_slo_burn_rate_ratio{window="1h"} > 14.4 and ignoring (window) vllm_slo_burn_rate_ratio{window="5m"} > 14.4`,
	},
	{
		Code: CodeNoDataAsZero, Finds: "`or vector(0)` after a quantile or a mean shows missing data as 0.",
		Remedy: "Remove `or vector(0)`: no latency is not a latency of 0.",
		Bad:    `histogram_quantile(0.9, sum by (le) (rate(vllm:time_to_first_token_seconds_bucket[5m]))) or vector(0)`,
		Good:   `histogram_quantile(0.9, sum by (le) (rate(vllm:time_to_first_token_seconds_bucket[5m])))`,
	},
	{
		Code: CodeSilentWhenGone, Finds: "An alert on a sum or count is silent once the last series is gone.",
		Remedy: "Write `(... or vector(0))`, or add `or absent(...)`.",
		Bad:    `sum(up{job="vllm"}) == 0`,
		Good:   `(sum(up{job="vllm"}) or vector(0)) == 0`,
	},
	{
		Code: CodeMetricTooNew, Finds: "The version of `--vllm-version` does not have the metric yet.",
		Remedy: "Use what the version has, or upgrade the servers.",
		Bad:    `rate(vllm:prompt_tokens_by_source_total[5m])`,
		Good:   `rate(vllm:prompt_tokens_total[5m])`,
	},
	{
		Code: CodeOldPrefix, Finds: "Ray has the prefix `ray_vllm_` since vLLM 0.11, not `ray_vllm:`.",
		Remedy: "Write `ray_vllm_`.",
		Bad:    `ray_vllm:num_requests_running`,
		Good:   `ray_vllm_num_requests_running`,
	},
	{
		Code: CodeOldGeneration, Finds: "A gateway metric has a newer name, and the expression has no alternative.",
		Remedy: "Use the newest name, or the receiver's one name for all generations.",
		Bad:    `rate(inference_model_request_total[5m])`,
		Good:   `rate(llm_d_epp_request_total[5m])`,
	},
	{
		Code: CodeNeedsFlag, Finds: "The metric needs a flag or an environment variable that is off by default.",
		Remedy: "Start the servers with the setting, or say in the title or the description that it is needed.",
		Bad:    `rate(vllm:kv_block_lifetime_seconds_count[5m])`,
		Good:   `rate(vllm:prompt_tokens_total[5m])`,
	},
	{
		Code: CodeStableName, Finds: "With `--stable-names`: the receiver has one name for all versions of vLLM.",
		Remedy: "Write the stable name. It needs the receiver of this project; `--fix` writes it.",
		Bad:    `vllm:kv_cache_usage_perc`,
		Good:   `vllm_kv_cache_utilization_ratio`,
	},
	{
		Code: CodeConstantRatio, Finds: "A division of a series by itself always has the same result.",
		Remedy: "Divide the `_sum` of the histogram by its `_count`.",
		Bad:    `rate(vllm:inter_token_latency_seconds_sum[5m]) / rate(vllm:inter_token_latency_seconds_sum[5m])`,
		Good:   `rate(vllm:inter_token_latency_seconds_sum[5m]) / (rate(vllm:inter_token_latency_seconds_count[5m]) > 0)`,
	},
	{
		Code: CodeWrongDenominator, Finds: "A division mixes different requests, so the mean is wrong.",
		Remedy: "Divide a histogram's `_sum` by its own `_count`.",
		Bad:    `rate(vllm:prompt_tokens_total[5m]) / (rate(vllm:request_success_total[5m]) > 0)`,
		Good:   `rate(vllm:request_prompt_tokens_sum[5m]) / (rate(vllm:request_prompt_tokens_count[5m]) > 0)`,
	},
	{
		Code: CodeDoubleCount, Finds: "A sum counts the same thing twice.",
		Remedy: "Use one of the two, or write `or` between them.",
		Bad:    `sum(vllm:num_requests_waiting) + sum(vllm:num_requests_waiting_by_reason)`,
		Good:   `sum(vllm:num_requests_waiting)`,
	},
	{
		Code: CodeInfoValue, Finds: "The value of `vllm:lora_requests_info` is a timestamp, not a count.",
		Remedy: "Take the newest series with `topk(1, ...)` and read the labels.",
		Bad:    `sum(vllm:lora_requests_info)`,
		Good:   `topk(1, vllm:lora_requests_info)`,
	},
	{
		Code: CodePerEngine, Finds: "A mean or maximum over engines is wrong for servers with data parallelism.",
		Remedy: "Add up the engines of a server first.",
		Bad:    `avg(vllm:num_requests_waiting) > 5`,
		Good:   `avg(sum without (engine) (vllm:num_requests_waiting)) > 5`,
	},
	{
		Code: CodeSumWithoutCount, Finds: "The rate of `_sum` alone grows with the traffic; it is not a latency.",
		Remedy: "Divide it by the rate of the `_count`.",
		Bad:    `rate(vllm:request_queue_time_seconds_sum[5m])`,
		Good:   `rate(vllm:request_queue_time_seconds_sum[5m]) / rate(vllm:request_queue_time_seconds_count[5m])`,
	},
	{
		Code: CodeSeveralSeries, Finds: "KEDA needs one value, but the query has a series per server.",
		Remedy: "Aggregate the servers, with `sum` for what is counted.",
		Bad:    `vllm:num_requests_waiting`,
		Good:   `sum(vllm:num_requests_waiting)`,
	},
	{
		Code: CodeFullCache, Finds: "A page or a red panel is about a full KV cache alone, which is harmless.",
		Remedy: "Require that requests wait as well, or alert on the time to the first token.",
		Bad:    `vllm:kv_cache_usage_perc > 0.9`,
		Good:   `vllm:kv_cache_usage_perc > 0.9 and vllm:num_requests_waiting > 0`,
	},
	{
		Code: CodeNotSuccess, Finds: "`vllm:request_success_total` counts all finished requests, not only successes.",
		Remedy: "Select the reasons that are successes.",
		Bad:    `sum(rate(vllm:request_success_total[5m]))`,
		Good:   `sum(rate(vllm:request_success_total{finished_reason=~"stop|length"}[5m]))`,
	},
	{
		Code: CodeWrongAdvice, Finds: "The advice in a text makes preemptions more frequent.",
		Remedy: "Advise a larger `--gpu-memory-utilization`, or fewer or shorter requests at a time.",
		Bad:    `increase(vllm:num_preemptions_total[10m]) > 20`,
		Good:   `increase(vllm:num_preemptions_total[10m]) > 20`,
	},
}
