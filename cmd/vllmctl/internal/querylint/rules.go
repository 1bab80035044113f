package querylint

// Rule describes a code for the documentation.
type Rule struct {
	Code Code `json:"code"`
	// Finds is one sentence: what is wrong.
	Finds string `json:"finds"`
	// Remedy is what to do, one or two sentences.
	Remedy string `json:"remedy"`
	// Bad has the mistake and Good has not. They have vLLM's own names, and those of this
	// project for what vLLM does not have. Both are empty where no expression shows it.
	Bad  string `json:"bad,omitempty"`
	Good string `json:"good,omitempty"`
}

// Rules returns all codes in the order of the documentation.
func Rules() []Rule { return rules }

var rules = append(ruleTable, ruleTableMeaning...)

// ruleTable has the codes about names, types, histograms, labels and matching.
var ruleTable = []Rule{
	{
		Code: CodeSyntax, Finds: "The expression does not parse.",
		Remedy: "Correct the expression; the message has the place and what Prometheus's parser says.",
		Bad:    `sum(vllm:num_requests_waiting`,
		Good:   `sum(vllm:num_requests_waiting)`,
	},
	{
		Code: CodeUnknownMetric, Finds: "No metric and no recording rule has this name.",
		Remedy: "Take the name from the list of metrics. If it is a recording rule, check its file together with this one.",
		Bad:    `vllm:num_request_waiting`,
		Good:   `vllm:num_requests_waiting`,
	},
	{
		Code: CodeOtherSpelling, Finds: "The name has another spelling: suffixed, unsuffixed, dotted, or the wire.",
		Remedy: "Use one spelling: the one in which your backend stores the names.",
		Bad:    `vllm_kv_cache_utilization_ratio`,
		Good:   `vllm:kv_cache_usage_perc`,
	},
	{
		Code: CodeRemovedMetric, Finds: "Newer versions of vLLM lack the metric, and the expression has no alternative.",
		Remedy: "Use the new name, or both with `or` as long as you have older servers.",
		Bad:    `vllm:gpu_cache_usage_perc`,
		Good:   `vllm:kv_cache_usage_perc or vllm:gpu_cache_usage_perc`,
	},
	{
		Code: CodeMissingTotal, Finds: "A counter lacks `_total`, so the expression is always empty.",
		Remedy: "Add `_total`.",
		Bad:    `rate(vllm:num_preemptions[5m])`,
		Good:   `rate(vllm:num_preemptions_total[5m])`,
	},
	{
		Code: CodeExtraTotal, Finds: "A metric other than a counter has `_total`.",
		Remedy: "Remove `_total`.",
		Bad:    `vllm:num_requests_waiting_total`,
		Good:   `vllm:num_requests_waiting`,
	},
	{
		Code: CodeHistogramPart, Finds: "A histogram lacks `_bucket`, `_sum` or `_count`.",
		Remedy: "Choose `_bucket` for a quantile, `_sum` and `_count` for a mean, `_count` for a number.",
		Bad:    `rate(vllm:iteration_tokens_total[5m])`,
		Good:   `rate(vllm:iteration_tokens_total_sum[5m])`,
	},
	{
		Code: CodeNotAHistogram, Finds: "A metric other than a histogram has `_bucket`, `_sum` or `_count`.",
		Remedy: "Remove the suffix.",
		Bad:    `rate(vllm:num_requests_running_count[5m])`,
		Good:   `vllm:num_requests_running`,
	},
	{
		Code: CodeCounterWithoutRate, Finds: "A counter without `rate` or `increase` counts since the server started.",
		Remedy: "Put `rate(...[5m])` or `increase(...[1h])` around the counter.",
		Bad:    `sum(vllm:prompt_tokens_total)`,
		Good:   `sum(rate(vllm:prompt_tokens_total[5m]))`,
	},
	{
		Code: CodeRateOfGauge, Finds: "`rate`, `irate` or `increase` needs a counter.",
		Remedy: "Use the gauge itself, or `deriv` or `delta` for its change.",
		Bad:    `rate(vllm:num_requests_running[5m])`,
		Good:   `deriv(vllm:num_requests_running[5m])`,
	},
	{
		Code: CodeDeltaOfCounter, Finds: "After a restart, `delta` or `deriv` of a counter is negative.",
		Remedy: "Use `increase` or `rate`, which handle restarts.",
		Bad:    `delta(vllm:prompt_tokens_total[5m])`,
		Good:   `increase(vllm:prompt_tokens_total[5m])`,
	},
	{
		Code: CodeShortRange, Finds: "The range is shorter than four scrapes; one lost scrape makes a gap.",
		Remedy: "Use a range of at least four scrapes, and `$__rate_interval` in Grafana.",
		Bad:    `rate(vllm:prompt_tokens_total[30s])`,
		Good:   `rate(vllm:prompt_tokens_total[1m])`,
	},
	{
		Code: CodeLeUnknown, Finds: "The histogram does not have this bound `le`, so nothing matches.",
		Remedy: "Use a bound that the histogram has; the message lists them.",
		Bad:    `rate(vllm:time_to_first_token_seconds_bucket{le="2"}[5m])`,
		Good:   `rate(vllm:time_to_first_token_seconds_bucket{le="2.5"}[5m])`,
	},
	{
		Code: CodeLeFormat, Finds: "A whole number in `le` is `1` or `1.0`, depending on the ingestion.",
		Remedy: "Match both forms with a pattern.",
		Bad:    `rate(vllm:time_to_first_token_seconds_bucket{le="1.0"}[5m])`,
		Good:   `rate(vllm:time_to_first_token_seconds_bucket{le=~"1(\\.0)?"}[5m])`,
	},
	{
		Code: CodeQuantileLifetime, Finds: "`histogram_quantile` without `rate` covers the whole life of the server.",
		Remedy: "Put `rate(...[5m])` around the buckets.",
		Bad:    `histogram_quantile(0.9, vllm:time_to_first_token_seconds_bucket)`,
		Good:   `histogram_quantile(0.9, rate(vllm:time_to_first_token_seconds_bucket[5m]))`,
	},
	{
		Code: CodeBucketUse, Finds: "Buckets are summed or compared, but each contains the smaller ones.",
		Remedy: "Select one `le`, or use the series that ends in `_count`.",
		Bad:    `sum(rate(vllm:time_to_first_token_seconds_bucket[5m]))`,
		Good:   `sum(rate(vllm:time_to_first_token_seconds_count[5m]))`,
	},
	{
		Code: CodeAggregatedRatio, Finds: "Ratios, means, quantiles or burn rates of servers are summed or averaged.",
		Remedy: "Add up the parts before you divide, or use `max` or `min`.",
		Bad:    `sum(vllm:kv_cache_usage_perc)`,
		Good:   `max(vllm:kv_cache_usage_perc)`,
	},
	{
		Code: CodeLifetimeRatio, Finds: "A ratio of counters without `rate` covers the whole life of the servers.",
		Remedy: "Put `rate(...[5m])` around both counters.",
		Bad:    `sum(vllm:prefix_cache_hits_total) / sum(vllm:prefix_cache_queries_total)`,
		Good:   `sum(rate(vllm:prefix_cache_hits_total[5m])) / (sum(rate(vllm:prefix_cache_queries_total[5m])) > 0)`,
	},
	{
		Code: CodeUnknownLabel, Finds: "The metric does not have this label.",
		Remedy: "Use a label that the metric has; the message lists them. If your deployment adds the label, name it with `--label`.",
		Bad:    `rate(vllm:request_success_total{finish_reason="error"}[5m])`,
		Good:   `rate(vllm:request_success_total{finished_reason="error"}[5m])`,
	},
	{
		Code: CodeLostLabel, Finds: "An aggregation or a match has removed this label.",
		Remedy: "Keep the label in the aggregation or in the match before.",
		Bad:    `max by (model_name) (sum by (job) (vllm:num_requests_waiting))`,
		Good:   `max by (model_name) (sum by (job, model_name) (vllm:num_requests_waiting))`,
	},
	{
		Code: CodeUnknownValue, Finds: "The label never has this value.",
		Remedy: "Use a value that the label has; the message lists them.",
		Bad:    `rate(vllm:request_success_total{finished_reason="failed"}[5m])`,
		Good:   `rate(vllm:request_success_total{finished_reason="error"}[5m])`,
	},
	{
		Code: CodeTemplateLabel, Finds: "A legend or an annotation uses a label that the result does not have.",
		Remedy: "Keep the label in the expression, or remove it from the text.",
		Bad:    `sum by (job) (vllm:num_requests_waiting)`,
		Good:   `sum by (job, instance) (vllm:num_requests_waiting)`,
	},
	{
		Code: CodeWithoutBool, Finds: "A comparison without `bool` only filters, but its result is used as a number.",
		Remedy: "Write `bool` after the operator, or use `count` to count.",
		Bad:    `1 - avg(rate(vllm:generation_tokens_total[5m]) > 0)`,
		Good:   `1 - avg(rate(vllm:generation_tokens_total[5m]) > bool 0)`,
	},
	{
		Code: CodeManyToMany, Finds: "The labels of `on` or `ignoring` match several series: the evaluation fails.",
		Remedy: "Aggregate one side by the labels of the match, or add `group_left` or more labels.",
		Bad:    `up * on (instance) vllm:num_requests_running`,
		Good:   `up * on (job, instance) sum by (job, instance) (vllm:num_requests_running)`,
	},
	{
		Code: CodeNeverMatches, Finds: "The two sides have different labels, so no series match.",
		Remedy: "Match with `on` and the labels that both sides have.",
		Bad:    `vllm:num_requests_waiting > up`,
		Good:   `vllm:num_requests_waiting > on (job, instance) group_left () up`,
	},
}
