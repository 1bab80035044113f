package querylint

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
)

func page(labels map[string]string, templates ...string) Context {
	return Context{Kind: Alert, Labels: labels, Templates: templates}
}

func at(version string) Options { return Options{Spelling: Wire, Version: version} }

var onWire = Options{Spelling: Wire}

// pitfalls are pairs as in examples, for mistakes about what the metrics mean.
var pitfalls = []example{
	{code: CodeMetricTooNew, bad: `rate(vllm:prompt_tokens_by_source_total[5m])`, good: `rate(vllm:prompt_tokens_total[5m])`, options: at("0.11.0")},
	{code: CodeMetricTooNew, bad: `vllm:kv_cache_usage_perc`, good: `vllm:gpu_cache_usage_perc`, options: at("0.8.5"), suggests: "vllm:gpu_cache_usage_perc"},
	{code: CodeMetricTooNew, bad: `vllm:kv_cache_usage_perc`, good: `vllm:kv_cache_usage_perc or vllm:gpu_cache_usage_perc`, options: at("0.8.5")},
	{code: CodeMetricTooNew, bad: `histogram_quantile(0.9, rate(vllm_kv_block_lifetime_seconds_bucket[5m]))`, good: `vllm_num_requests_waiting`, options: Options{Version: "0.9.0"}},
	{code: CodeMetricTooNew, bad: `vllm_model_flops_utilization_ratio`, good: `vllm_num_requests_waiting`, options: Options{Version: "0.15.0"}},
	{code: CodeRemovedMetric, bad: `vllm:gpu_cache_usage_perc`, good: `vllm:kv_cache_usage_perc`, options: at("0.20.0"), suggests: "vllm:kv_cache_usage_perc"},
	{code: CodeRemovedMetric, bad: `vllm:num_requests_swapped`, good: `vllm:num_requests_waiting`, options: at("v0.10.1.1")},
	{code: CodeRemovedMetric, bad: `ray_vllm_gpu_cache_usage_perc`, good: `ray_vllm_kv_cache_usage_perc`, options: onWire, suggests: "ray_vllm_kv_cache_usage_perc"},
	{
		code: CodeRemovedMetric, bad: `rate(vllm:time_per_output_token_seconds_count[5m])`, good: `rate(vllm:inter_token_latency_seconds_count[5m])`, options: onWire,
		suggests: "vllm:inter_token_latency_seconds_count",
	},
	{code: CodeOldPrefix, bad: `ray_vllm:num_requests_running`, good: `ray_vllm_num_requests_running`, options: onWire, suggests: "ray_vllm_num_requests_running"},
	{code: CodeOldPrefix, bad: `ray_vllm:num_requests_running`, good: `ray_vllm:num_requests_running or ray_vllm_num_requests_running`, options: onWire},
	{code: CodeOldGeneration, bad: `rate(inference_model_request_total[5m])`, good: `rate(inference_model_request_total[5m]) or rate(llm_d_epp_request_total[5m])`, options: onWire},
	{code: CodeOldGeneration, bad: `rate(inference_objective_request_total[5m])`, good: `rate(llm_d_epp_request_total[5m])`, options: onWire},
	{code: CodeNeedsFlag, bad: `rate(vllm:kv_block_lifetime_seconds_count[5m])`, good: `rate(vllm:prompt_tokens_total[5m])`, options: onWire},
	{code: CodeNeedsFlag, bad: `vllm_lora_adapter_waiting > 0`, good: `vllm_num_requests_waiting > 0`, context: alert},
	{code: CodeStableName, bad: `vllm:kv_cache_usage_perc`, good: `vllm_kv_cache_utilization_ratio`, options: Options{Spelling: Wire, Stable: Suffixed, Mixed: true}, suggests: "vllm_kv_cache_utilization_ratio"},
	{
		code: CodeStableName, bad: `rate(vllm:prompt_tokens_total{job="a"}[5m])`, good: `rate({"vllm.prompt_tokens"}[5m])`,
		options: Options{Spelling: Wire, Stable: Dotted, Mixed: true}, suggests: `{"vllm.prompt_tokens", job="a"}`,
	},
	{
		code: CodeConstantRatio, bad: `sum(rate(vllm:inter_token_latency_seconds_sum[5m])) / (sum(rate(vllm:inter_token_latency_seconds_sum[5m])) > 0)`,
		good: `sum(rate(vllm:inter_token_latency_seconds_sum[5m])) / (sum(rate(vllm:inter_token_latency_seconds_count[5m])) > 0)`, options: onWire,
	},
	{
		code: CodeConstantRatio, bad: `avg(vllm:num_requests_running) / sum(vllm:num_requests_running)`,
		good: `vllm:num_requests_running / on () group_left () (sum(vllm:num_requests_running) > 0)`, options: onWire,
	},
	{
		code: CodeWrongDenominator, bad: `rate(vllm:prompt_tokens_total[5m]) / ignoring (finished_reason) (sum without (finished_reason) (rate(vllm:request_success_total[5m])) > 0)`,
		good: `rate(vllm:request_prompt_tokens_sum[5m]) / (rate(vllm:request_prompt_tokens_count[5m]) > 0)`, options: onWire,
	},
	{code: CodeDoubleCount, bad: `sum(vllm:num_requests_waiting) + sum(vllm:num_requests_waiting_by_reason)`, good: `sum(vllm:num_requests_waiting) + sum(vllm:num_requests_running)`, options: onWire},
	{
		code: CodeDoubleCount, bad: `sum(rate(inference_objective_request_total[5m])) + sum(rate(llm_d_epp_request_total[5m]))`,
		good: `sum(rate(llm_d_epp_request_total[5m])) or sum(rate(inference_objective_request_total[5m]))`, options: onWire,
	},
	{
		code: CodeDoubleCount, bad: `sum(rate({__name__=~"inference_objective_request_total|llm_d_epp_request_total"}[5m]))`,
		good: `sum(rate({__name__=~"llm_d_epp_request_total"}[5m]))`, options: onWire,
	},
	{code: CodeInfoValue, bad: `sum(vllm:lora_requests_info)`, good: `topk(1, vllm:lora_requests_info)`, options: onWire, context: Context{Kind: Panel, Described: "--enable-lora"}},
	{code: CodeInfoValue, bad: `vllm:lora_requests_info > 0`, good: `time() - max(vllm:lora_requests_info) > 600`, options: onWire, context: Context{Kind: Alert, Described: "--enable-lora"}},
	{code: CodeSumWithoutCount, bad: `rate(vllm:request_queue_time_seconds_sum[5m])`, good: `rate(vllm:request_queue_time_seconds_sum[5m]) / rate(vllm:request_queue_time_seconds_count[5m])`, options: onWire, suggests: `rate(vllm:request_queue_time_seconds_sum[5m]) / rate(vllm:request_queue_time_seconds_count[5m])`},
	{code: CodeSumWithoutCount, bad: `sum by (pod) (rate(vllm:request_decode_time_seconds_sum[5m])) * 1000`, good: `rate(vllm:request_prompt_tokens_sum[5m])`, options: onWire},
	{code: CodeSumWithoutCount, bad: `max(increase(vllm_request_prefill_time_seconds_sum[5m]))`, good: `sum(rate(vllm_request_prefill_time_seconds_sum[5m])) / (sum(rate(vllm_time_to_first_token_seconds_count[5m])) > 0)`, context: panel("s")},
	{code: CodeSumWithoutCount, bad: `rate(vllm:request_max_num_generation_tokens_sum[5m])`, good: `rate(vllm:request_generation_tokens_sum[5m])`, options: onWire},
	{code: CodeSeveralSeries, bad: `vllm:num_requests_waiting{namespace="a"}`, good: `sum(vllm:num_requests_waiting{namespace="a"})`, options: onWire, context: Context{Kind: Condition, Single: true}},
	{code: CodePerEngine, bad: `avg(vllm:num_requests_waiting) > 5`, good: `avg(sum without (engine) (vllm:num_requests_waiting)) > 5`, options: onWire, context: alert},
	{code: CodePerEngine, bad: `max by (pod) (vllm:num_requests_running)`, good: `sum by (pod) (vllm:num_requests_running)`, options: onWire},
	{
		code: CodeFullCache, bad: `vllm:kv_cache_usage_perc > 0.9`, good: `vllm:kv_cache_usage_perc > 0.9 and vllm:num_requests_waiting > 0`, options: onWire,
		context: page(map[string]string{"severity": "critical"}),
	},
	{
		code: CodeFullCache, bad: `vllm:kv_cache_usage_perc`, good: `vllm:num_requests_waiting`, options: onWire,
		context: Context{Kind: Panel, Thresholds: []float64{0, 0.98}},
	},
	{
		code: CodeNotSuccess, bad: `sum(rate(vllm:request_success_total[5m]))`, good: `sum(rate(vllm:request_success_total{finished_reason=~"stop|length"}[5m]))`, options: onWire,
		context: Context{Kind: Panel, Name: "Successful requests"},
	},
	{
		code: CodeWrongAdvice, bad: `increase(vllm:num_preemptions_total[10m]) > 20`, good: `increase(vllm:corrupted_requests_total[10m]) > 20`, options: onWire,
		context: Context{Kind: Alert, Described: "VLLM_COMPUTE_NANS_IN_LOGITS=1", Templates: []string{"Lower --gpu-memory-utilization and restart."}},
	},
	{code: CodeShortRange, bad: `rate(vllm:prompt_tokens_total[$__interval])`, good: `rate(vllm:prompt_tokens_total[$__rate_interval])`, options: onWire, suggests: `rate(vllm:prompt_tokens_total[$__rate_interval])`},
	{code: CodeUnknownLabel, bad: `vllm:cache_config_info{model_name="llama"}`, good: `vllm:cache_config_info{engine="0"}`, options: onWire},
	{code: CodeUnknownLabel, bad: `topk(1, vllm:lora_requests_info{engine="0"})`, good: `topk(1, vllm:lora_requests_info{max_lora="4"})`, options: onWire, context: Context{Kind: Panel, Described: "--enable-lora"}},
	{code: CodeDoubleCount, bad: `sum by (server) (vllm:num_requests_running)`, good: `sum by (server) (vllm:num_requests_running{server!=""})`, options: onWire},
	{
		code: CodeUnknownLabel, bad: `rate(vllm:request_success_total{finish_reason="stop"}[5m])`, good: `rate(vllm:request_success_total{finished_reason="stop"}[5m])`, options: onWire,
		suggests: `vllm:request_success_total{finished_reason="stop"}`,
	},
	{
		code: CodeThreshold, bad: `histogram_quantile(0.99, sum by (le) (rate(vllm:e2e_request_latency_seconds_bucket[5m]))) > 0.2`,
		good: `histogram_quantile(0.99, sum by (le) (rate(vllm:e2e_request_latency_seconds_bucket[5m]))) > 20`, options: onWire, context: Context{Kind: Panel},
	},
	{
		code: CodeThreshold, bad: `sum(rate(vllm:e2e_request_latency_seconds_sum[5m])) / (sum(rate(vllm:e2e_request_latency_seconds_count[5m])) > 0) > 0.3`,
		good: `sum(rate(vllm:e2e_request_latency_seconds_sum[5m])) / (sum(rate(vllm:e2e_request_latency_seconds_count[5m])) > 0) > 30`, options: onWire, context: Context{Kind: Panel},
	},
	{
		code: CodeThreshold, bad: `histogram_quantile(0.99, sum by (le) (rate(vllm:time_to_first_token_seconds_bucket[5m])))`,
		good: `vllm:num_requests_waiting`, options: onWire, context: Context{Kind: Panel, Thresholds: []float64{2000}},
	},
	{
		code: CodeThreshold, bad: `vllm:kv_cache_usage_perc`, good: `100 * vllm:kv_cache_usage_perc`, options: onWire,
		context: Context{Kind: Condition, Thresholds: []float64{80}, Templates: []string{"{{ $labels.model_name }} {{ end }}"}},
	},
}

// A fix may write these replacements, and the result has no such finding any more.
func TestCertainSuggestionsCureTheirFinding(t *testing.T) {
	certain := map[Code]int{}
	for _, e := range append(examples, pitfalls...) {
		l := New(e.linter())
		for _, f := range l.Expr(e.bad, e.context) {
			if !f.Certain {
				continue
			}
			require.NotEmpty(t, f.Suggestion, e.bad)
			certain[f.Code]++
			fixed := e.bad[:f.Start] + f.Suggestion + e.bad[f.End:]
			for _, after := range l.Expr(fixed, e.context) {
				assert.False(t, after.Code == f.Code && after.Start == f.Start, "%s becomes %s: %s", e.bad, fixed, after)
				assert.NotEqual(t, CodeSyntax, after.Code, fixed)
			}
		}
	}
	for _, code := range []Code{CodeMissingTotal, CodeExtraTotal, CodeRemovedMetric, CodeLeFormat, CodeUnknownLabel, CodeShortRange, CodeOldPrefix, CodeStableName} {
		assert.NotZero(t, certain[code], code)
	}
	assert.Zero(t, certain[CodeUnknownMetric], "the most similar name is a guess")
}

// A family that once counted blocks is not replaced by one that counts tokens.
func TestAFamilyThatChangedItsMeaningIsNotReplaced(t *testing.T) {
	for _, o := range []Options{onWire, at("0.20.0"), {Spelling: Wire, Stable: Suffixed}} {
		found := 0
		for _, f := range New(o).Expr(`rate(vllm:gpu_prefix_cache_hits_total[5m])`, Context{Kind: Panel}) {
			found++
			assert.False(t, f.Certain, "%s", f)
		}
		assert.NotZero(t, found)
	}
}

// Names of several spellings may stand beside each other; a counter without _total is still
// found.
func TestMixedSpellingsAreAccepted(t *testing.T) {
	l := New(Options{Mixed: true})
	for _, expr := range []string{
		`vllm:num_requests_waiting`, `vllm_num_requests_waiting + on (job) group_left () sum by (job) (vllm:num_requests_running)`,
		`{"vllm.num_requests.waiting", "k8s.pod.name"="a"}`, `vllm:kv_cache_usage_perc or vllm_kv_cache_utilization_ratio`,
	} {
		assert.Empty(t, l.Expr(expr, Context{Kind: Panel}), expr)
	}
	assert.Equal(t, []Code{CodeMissingTotal}, codes(l.Expr(`rate(vllm_num_preemptions[5m])`, Context{Kind: Panel})))
	assert.Contains(t, codes(l.Expr(`vllm:prompt_tokens_total`, Context{Kind: Panel})), CodeCounterWithoutRate)
}

// Nothing is said about a version that has the metric, and about other programs.
func TestAVersionIsOnlyAskedForWhatDependsOnIt(t *testing.T) {
	for version, all := range map[string][]string{
		"0.10.0": {`vllm:gpu_cache_usage_perc`, `vllm:kv_cache_usage_perc`, `ray_vllm:num_requests_running`},
		"0.30.0": {`vllm:kv_cache_usage_perc`, `rate(http_requests_total[5m])`, `vllm_slo_burn_rate_ratio`, `rate(llm_d_epp_request_total[5m])`},
	} {
		l := New(Options{Spelling: Wire, Mixed: true, Version: version})
		for _, expr := range all {
			assert.Empty(t, l.Expr(expr, Context{Kind: Panel}), version+": "+expr)
		}
	}
}

// A series that variables list needs no rate, but it needs a right name and right labels.
func TestSeriesOfVariablesNeedNoRate(t *testing.T) {
	l := New(Options{Spelling: Wire})
	assert.Empty(t, l.Expr(`vllm:prompt_tokens_total{job=~"$job"}`, Context{Kind: Series, Templates: []string{"{{model_name}}"}}))
	assert.Equal(t, []Code{CodeTemplateLabel}, codes(l.Expr(`vllm:prompt_tokens_total`, Context{Kind: Series, Templates: []string{"{{model}}"}})))
	assert.Equal(t, []Code{CodeMissingTotal}, codes(l.Expr(`vllm:prompt_tokens`, Context{Kind: Series})))
}

// The names in the tables are those of the catalogue.
func TestTheTablesOfPitfallsAreAboutTheCatalogue(t *testing.T) {
	names := append([]string{wholeRequest, "vllm.request.success", "vllm.num_preemptions"}, fullCache...)
	for pair := range quotients {
		names = append(names, pair[:]...)
	}
	for pair := range overlaps {
		names = append(names, pair[:]...)
	}
	for _, name := range names {
		_, known := catalog.ByName(name)
		assert.True(t, known, name)
	}
	assert.NotEmpty(t, catalog.BySource(loraFamily))
	bounds := catalog.Bounds(wholeRequest)
	assert.InDelta(t, 0.3, bounds[0], 0, "the message of the threshold has the smallest bound")
}

// The examples of the documentation are what they say.
func TestTheExamplesOfTheDocumentationAreRight(t *testing.T) {
	contexts := map[Code]Context{
		CodeTemplateLabel: panel("", "{{instance}}"), CodeFullCache: page(map[string]string{"severity": "page"}),
		CodeNotSuccess: {Kind: Panel, Name: "Success rate"}, CodeSilentWhenGone: alert, CodeBurnThreshold: alert, CodeSeveralSeries: {Kind: Condition, Single: true},
	}
	without := map[Code]bool{CodeWrongAdvice: true, CodeUnit: true}
	for _, r := range Rules() {
		o := Options{Spelling: Wire, Mixed: true}
		switch r.Code {
		case CodeMetricTooNew:
			o.Version = "0.11.0"
		case CodeStableName:
			o.Stable = Suffixed
		case CodeOtherSpelling:
			o.Mixed = false
		}
		c, given := contexts[r.Code]
		if !given {
			c = panel("")
		}
		l := New(o)
		if !without[r.Code] {
			assert.Contains(t, codes(l.Expr(r.Bad, c)), r.Code, "%s: %s", r.Code, r.Bad)
		}
		assert.NotContains(t, codes(l.Expr(r.Good, c)), r.Code, "%s: %s", r.Code, r.Good)
		assert.NotContains(t, codes(l.Expr(r.Good, c)), CodeSyntax, r.Good)
		assert.Regexp(t, `^[A-Z].*\.$`, r.Remedy)
		if strings.Contains(r.Bad, ":") && r.Code != CodeSyntax {
			_, err := Selectors(r.Bad)
			assert.NoError(t, err, r.Bad)
		}
	}
}

// KEDA's own rule: one series, or none (pkg/scalers/prometheus_scaler.go of KEDA refuses several).
func TestOneSeriesIsWhatKEDATakes(t *testing.T) {
	for expr, several := range map[string]bool{
		`vllm:num_requests_waiting`:                                                                true,
		`sum by (namespace) (vllm:num_requests_waiting)`:                                           true,
		`rate(vllm:prompt_tokens_total{namespace="a"}[5m])`:                                        true,
		`sum(vllm:num_requests_waiting) or vector(0)`:                                              false,
		`topk(1, vllm:num_requests_waiting)`:                                                       false,
		`vllm:num_requests_waiting{instance="a"}`:                                                  false,
		`scalar(vllm:num_requests_waiting)`:                                                        false,
		`sum by (namespace) (vllm:num_requests_waiting{namespace="a"})`:                            false,
		`histogram_quantile(0.9, sum by (le) (rate(vllm:time_to_first_token_seconds_bucket[5m])))`: false,
		`some_metric_of_another_program or vllm:num_requests_waiting * 0`:                          false,
	} {
		findings := New(Options{Spelling: Wire}).Expr(expr, Context{Kind: Condition, Single: true})
		assert.Equal(t, several, slices.Contains(codes(findings), CodeSeveralSeries), "%s: %v", expr, findings)
		assert.Empty(t, New(Options{Spelling: Wire}).Expr(expr, Context{Kind: Condition}), expr)
	}
}

// A proposal keeps what the author has grouped by.
func TestTheAdviceToAddUpEnginesKeepsTheGrouping(t *testing.T) {
	for expr, want := range map[string]string{
		`avg by (pod) (vllm:num_requests_waiting)`:                    "avg by (pod) (sum without (engine) (vllm:num_requests_waiting))",
		`max(vllm:num_requests_running{namespace="a"}) by (instance)`: "max by (instance) (sum without (engine) (vllm:num_requests_running{namespace=\"a\"}))",
		`avg(vllm:num_requests_waiting) > 5`:                          "avg (sum without (engine) (vllm:num_requests_waiting))",
		`avg without (engine, instance) (vllm:num_requests_waiting)`:  "avg without (instance) (sum without (engine) (vllm:num_requests_waiting))",
		`max without (engine) (vllm:num_requests_waiting)`:            "sum without (engine) (vllm:num_requests_waiting)",
	} {
		l := New(Options{Spelling: Wire})
		findings := l.Expr(expr, Context{Kind: Panel})
		if assert.Equal(t, []Code{CodePerEngine}, codes(findings), expr) {
			assert.Contains(t, findings[0].Message, "first: "+want+".", expr)
			assert.Empty(t, l.Expr(want, Context{Kind: Panel}), "the proposal is right")
		}
	}
}

// Where the panel says that it shows a time, it is certain that the time of one request is meant.
func TestTheRateOfASumThatIsShownAsATimeIsAnError(t *testing.T) {
	for unit, want := range map[string]Severity{"": Warning, "1": Warning, "s": Error, "ms": Error} {
		findings := New(Options{Spelling: Wire}).Expr(`sum(rate(vllm:request_queue_time_seconds_sum[5m]))`, panel(unit))
		if assert.Equal(t, []Code{CodeSumWithoutCount}, codes(findings), unit) {
			assert.Equal(t, want, findings[0].Severity, unit)
		}
	}
}

// Only shares and burn rates have one threshold for both windows. A baseline, a rate and a latency
// have their own in each.
func TestAPairOfWindowsIsJudgedOnlyWhereItIsOneOfBurnRates(t *testing.T) {
	const waits = `histogram_quantile(0.9, sum by (le) (rate(vllm:request_queue_time_seconds_bucket`
	for expr, want := range map[string][]Code{
		`rate(vllm:num_preemptions_total[5m]) > 3 * rate(vllm:num_preemptions_total[1h]) and rate(vllm:num_preemptions_total[1h]) > 0.1`: nil,
		`sum(rate(vllm:request_success_total{finished_reason="error"}[5m])) / (sum(rate(vllm:request_success_total[5m])) > 0) > 4 * sum(rate(vllm:request_success_total{finished_reason="error"}[1d])) / (sum(rate(vllm:request_success_total[1d])) > 0)` +
			` and sum(rate(vllm:request_success_total{finished_reason="error"}[1d])) / (sum(rate(vllm:request_success_total[1d])) > 0) > 0.01`: nil,
		`increase(vllm:num_preemptions_total[5m]) > 10 and increase(vllm:num_preemptions_total[1h]) > 50`:              nil,
		waits + `[5m]))) > 5 and ` + waits + `[1h]))) > 2`:                                                             nil,
		`vllm_slo_burn_rate_ratio{window="1h"} > 14.4 and ignoring (window) vllm_slo_burn_rate_ratio{window="6h"} > 6`: {CodeBurnThreshold},
		`job:latency:p95_5m > 2 and job:latency:p95_1h > 1 and on () vllm:num_requests_running`:                        nil,
		`job:errors:ratio5m > 0.01 and job:errors:ratio1h > 0.01 and on () vllm:num_requests_running`:                  {CodeBurnThreshold},
		`1 - avg_over_time(vllm_up[1h]) > 14.4 * 0.001 and 1 - avg_over_time(vllm_up[5m]) > 14.4 * 0.002`:              {CodeBurnThreshold},
	} {
		assert.Equal(t, want, codes(New(Options{Spelling: Wire, Mixed: true}).Expr(expr, Context{Kind: Alert})), expr)
	}
}
