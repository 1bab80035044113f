// Package datadog writes monitors and a dashboard for Datadog. Its queries are not PromQL
// and cannot be translated from it, so they are written here, for the names, tags and
// types that examples/backends/datadog.yaml sends.
package datadog

import "strings"

// Monitor is the counterpart of an alert.
type Monitor struct {
	// Alert is the name of the alert in package content.
	Alert string
	// Query is the monitor's query. PARAMETER stands for the value of Parameter.
	Query string
	// Parameter is the parameter of package content that the query compares with; empty
	// if the query has a number.
	Parameter string
	// Text says what happens, with Datadog's template variables.
	Text string
	// MissingData is what Datadog does without data.
	MissingData string
	// Differs is how the monitor differs from the alert; empty if it does not.
	Differs string
}

// What Datadog does without data. The series of a server that ends are no data, so a monitor
// about it resolves.
const (
	resolve = "resolve"
	notify  = "show_and_notify_no_data"
)

// The groups of monitors. A tag is the name of an attribute.
const (
	byServer    = " by {service.instance.id,model_name}"
	byPool      = " by {model_name}"
	byObjective = " by {service.instance.id,model_name,objective}"

	server = "{{[service.instance.id].name}}"
	model  = "{{model_name.name}}"
)

const perServerBudget = "It is about each server and has no guard on traffic: see [Objectives](#objectives)."

// burn is the lower of the certain burn rates over two windows, so it exceeds a factor only
// where both do. IN and a comma cannot be in one filter.
func burn(long, short string) string {
	return "max(last_5m):min:vllm.slo.burn_rate{bound:lower AND window IN (" + long + "," + short + ")}" + byObjective + " > PARAMETER"
}

func burnText(long, short string) string {
	return server + " misses the objective {{objective.name}} of " + model + " so often that its error budget is used {{value}} times faster than allowed, over " +
		long + " and over " + short + "."
}

// Monitors returns all monitors in the order of the alerts.
func Monitors() []Monitor {
	return []Monitor{
		{
			Alert: "VLLMPoolNotServing", MissingData: resolve,
			Query:   "min(last_2m):max:vllm.pool.diagnosis.severity{*}" + byPool + " >= 3",
			Text:    "The pool of " + model + " does not serve its users.",
			Differs: "Pools of one model in several namespaces are one group; add their tags to `by` if `group_by` has them.",
		},
		{
			Alert: "VLLMPoolDegraded", MissingData: resolve,
			Query: "min(last_5m):max:vllm.pool.diagnosis.severity{*}" + byPool + " == 2",
			Text:  "The pool of " + model + " serves some of its users badly.",
		},
		{
			Alert: "VLLMServerNotServing", MissingData: resolve,
			Query:   "min(last_2m):max:vllm.diagnosis.severity{*}" + byServer + " >= 3",
			Text:    server + " does not serve " + model + ".",
			Differs: "It pages for servers of a pool, too: a query cannot leave out what another one has. Where you have pools, do not send it to a pager.",
		},
		{
			Alert: "VLLMServerDegraded", MissingData: resolve,
			Query: "min(last_5m):max:vllm.diagnosis.severity{*}" + byServer + " == 2",
			Text:  server + " serves " + model + " badly.",
		},
		{
			Alert: "VLLMTooFewServers", MissingData: notify, Parameter: "serversExpected",
			Query: "max(last_10m):count_not_null(max:vllm.diagnosis.severity{*} by {service.instance.id}) < PARAMETER",
			Text:  "{{value}} servers are reported, fewer than there should be.",
			Differs: "Set the number in the query and in the threshold. It counts only servers with a diagnosis, so it also fires " +
				"where the processor is missing.",
		},
		{
			Alert: "VLLMGPUSlowsServer", MissingData: resolve,
			Query: "min(last_5m):max:vllm.diagnosis.cause{cause:slow_steps AND detail IN (power_cap,thermal,memory_error,interconnect,clocks_low)}" +
				" by {service.instance.id,model_name,detail} >= 1",
			Text: server + " is slow because of a GPU ({{detail.name}}).",
		},
		{
			Alert: "VLLMGPUMemoryErrors", MissingData: resolve,
			Query:   "sum(last_1h):sum:vllm.accelerator.row_remap.rows{error.type:uncorrected} by {service.instance.id,hw.name}.as_count() > 0",
			Text:    "The memory of the GPU {{[hw.name].name}} of " + server + " has uncorrected errors.",
			Differs: "It counts replaced rows only, not errors without one, nor a replacement that failed.",
		},
		{
			Alert: "VLLMBudgetBurnFast", MissingData: resolve, Parameter: "burnFast",
			Query: burn("1h", "5m"), Text: burnText("1 h", "5 min"), Differs: perServerBudget,
		},
		{
			Alert: "VLLMBudgetBurnMedium", MissingData: resolve, Parameter: "burnMedium",
			Query: burn("6h", "30m"), Text: burnText("6 h", "30 min"), Differs: perServerBudget,
		},
		{
			Alert: "VLLMBudgetBurnSlow", MissingData: resolve, Parameter: "burnSlow",
			Query: burn("1d", "2h"), Text: burnText("1 day", "2 h"), Differs: perServerBudget,
		},
		{
			Alert: "VLLMBudgetBurnLeak", MissingData: resolve, Parameter: "burnLeak",
			Query: burn("3d", "6h"), Text: burnText("3 days", "6 h"), Differs: perServerBudget,
		},
		{
			Alert: "VLLMGatewayErrors", MissingData: resolve,
			// More than one error beyond 5 % of what arrived: with few requests the
			// share alone would fire.
			Query: "sum(last_5m):" + gatewayErrors("*") + " - 0.05 * (" + gatewayArrivals("*") + ") > 1",
			Text:  "More than 5 % of the requests for " + model + " fail at the gateway.",
			Differs: "It fires on errors beyond 5 % of the requests, so that few requests need no second condition. " +
				"It has no `for`.",
		},
		{
			Alert: "VLLMGatewayNoReadyEndpoints", MissingData: resolve,
			Query: "max(last_2m):max:inference_gateway.pool.endpoint.ready{*} by {pool} <= 0",
			Text:  "The gateway has no ready endpoint in the pool {{pool.name}}.",
		},
		{
			Alert: "VLLMGatewayLatencyHigh", MissingData: resolve, Parameter: "gatewayLatencySeconds",
			Query: "min(last_10m):max:inference_gateway.epp.request.duration_quantile{quantile:0.99} by {model_name} > PARAMETER",
			Text:  "1 % of the requests for " + model + " take longer than {{value}} s at the gateway.",
			Differs: "It is the slowest replica of the picker, not all of them together, and has no guard on traffic. " +
				"The group without a model is the whole picker.",
		},
		{
			Alert: "VLLMCollectorSilent", MissingData: notify,
			Query:   "max(last_10m):max:vllm.up{*} < 0",
			Text:    "{{#is_no_data}}No metrics of vLLM servers arrive.{{/is_no_data}}",
			Differs: "It never fires on a value, only on missing data, and not for one of several clusters.",
		},
	}
}

// WithoutMonitor has the alerts without a monitor, each with the reason.
func WithoutMonitor() map[string]string {
	const notSent = "The example does not send the collector's own telemetry to Datadog."
	return map[string]string{
		"VLLMReplicaNotServing": "It is the query of VLLMServerNotServing: Datadog cannot join a server with its pool.",
		"VLLMServerVanished": "A query cannot compare which servers there are with those of an hour ago; " +
			"missing data of one server fires at each rollout, too. Use VLLMTooFewServers.",
		"VLLMGPUExporterSilent": "A query cannot compare which exporters there are with those of an hour ago; " +
			"missing data of one fires as well where a node is removed on purpose.",
		"VLLMDiagnosisMissing":      "A query cannot leave out the servers that another one has.",
		"VLLMBudgetExhausted":       "A monitor cannot require the coverage besides the budget. Use an alert on the error budget of the SLO below.",
		"VLLMLoRAAdapterNotLoaded":  "A query cannot compare the counts of two groupings.",
		"VLLMCollectorQueueFilling": notSent,
		"VLLMCollectorSendFailing":  notSent,
	}
}

// The picker counts as requests only what it scheduled, so what it refused is added.
func gatewayErrors(scope string) string {
	return "default_zero(sum:inference_gateway.epp.request.errors{" + scope + "}" + byPool + ".as_count())"
}

func gatewayArrivals(scope string) string {
	// Datadog may have changed the value of the tag to lower case.
	refused := strings.TrimPrefix(scope+",!error_code:ModelServerError,!error_code:modelservererror", "*,")
	return "default_zero(sum:inference_gateway.epp.requests{" + scope + "}" + byPool + ".as_count()) + " +
		"default_zero(sum:inference_gateway.epp.request.errors{" + refused + "}" + byPool + ".as_count())"
}
