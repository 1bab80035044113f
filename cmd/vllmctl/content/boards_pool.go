package content

import (
	"fmt"
	"strings"
)

// pool answers how the servers of a model do together and what the gateway in front of
// them does.
func pool() Board {
	return Board{
		UID: "vllm-pool", Title: "vLLM pool and gateway", Set: "stable",
		Question: "Is the work spread evenly, is there room, and does the gateway deliver?",
		Variables: append(scopeVariables(),
			choice("model", "Model", `vllm_pool_replicas{k8s_cluster_name=~"$cluster|",k8s_namespace_name=~"$namespace|"}`, "model_name"),
		),
		Annotations: []Annotation{{
			Name: "Pool conditions", Color: Orange,
			Expr: poolOf("vllm_pool_diagnosis_condition") + " == 1 unless " + poolOf("vllm_pool_diagnosis_condition") + " offset $__interval == 1",
			Text: "{{model_name}}: {{condition}}",
		}},
		Rows: []Row{
			{Title: "Pool", Needs: "pool in the processor vllm", Panels: poolStatePanels()},
			{Title: "Load", Needs: "pool in the processor vllm", Panels: poolLoadPanels()},
			{Title: "Balance", Needs: "pool in the processor vllm, two servers", Panels: balancePanels()},
			{Title: "Gateway", Collapsed: true, Needs: "an inference gateway as a target of the receiver", Panels: gatewayPanels()},
			{Title: "Each gateway", Collapsed: true, Needs: "the processor vllm behind the receiver that reads the gateway", Panels: pickerPanels()},
			{Title: "Gateway queue", Collapsed: true, Needs: "flow control in the endpoint picker", Panels: flowPanels()},
			{Title: "Scheduling", Collapsed: true, Needs: "an inference gateway as a target of the receiver", Panels: schedulingPanels()},
		},
	}
}

// pooled is a value of each pool. Several processors may report parts of one pool, so the
// label of the processor stays apart.
func pooled(metric string) []Query {
	return one("max by (model_name, k8s_namespace_name) ("+poolOf(metric)+")", "{{model_name}} {{k8s_namespace_name}}")
}

func poolStatePanels() []Panel {
	return sized(6, 5,
		Panel{
			Title: "Condition", Kind: StateTimeline, Unit: "{state}", Mappings: conditionWords(), Width: 12,
			About:   "The colour is the severity of the condition.",
			Queries: one(conditionCode("vllm_pool_diagnosis_condition", "model_name, k8s_namespace_name", poolMatchers), "{{model_name}} {{k8s_namespace_name}}"),
		},
		Panel{
			Title: "Servers", Kind: Stat, Unit: "{replica}",
			About:   "Servers that the processor has seen within its `max_staleness`.",
			Queries: now("max by (model_name, k8s_namespace_name) ("+poolOf("vllm_pool_replicas")+")", "{{model_name}} {{k8s_namespace_name}}"),
		},
		causesTable(Panel{
			Title:   "Causes",
			About:   "Each cause is a link to its runbook.",
			NoValue: noCauseOfPool,
		}, []string{poolOf("vllm_pool_diagnosis_cause")},
			Column{Label: "model_name", Title: "Model"},
		),
	)
}

func poolLoadPanels() []Panel {
	return sized(8, 8,
		Panel{
			Title: "Arrivals and completions", Kind: TimeSeries, Unit: "{request}/s", Min: number(0),
			About: "Where more arrive than end, queues grow.",
			Queries: []Query{
				{Expr: "max by (model_name, k8s_namespace_name) (" + poolOf("vllm_pool_arrival_rate_per_second") + ")", Legend: "arrive {{model_name}} {{k8s_namespace_name}}"},
				{Expr: "max by (model_name, k8s_namespace_name) (" + poolOf("vllm_pool_request_throughput_per_second") + ")", Legend: "end {{model_name}} {{k8s_namespace_name}}"},
			},
		},
		Panel{
			Title: "Running and waiting requests", Kind: TimeSeries, Unit: "{request}", Min: number(0),
			About: "Of all servers of the pool together.",
			Queries: []Query{
				{Expr: "max by (model_name, k8s_namespace_name) (" + poolOf("vllm_pool_waiting") + ")", Legend: "waiting {{model_name}} {{k8s_namespace_name}}"},
				{Expr: "max by (model_name, k8s_namespace_name) (" + poolOf("vllm_pool_running") + ")", Legend: "running {{model_name}} {{k8s_namespace_name}}"},
			},
		},
		chart("Estimated queue wait", "s", "Absent while no request gets its first token.",
			"", pooled("vllm_pool_request_queue_wait_estimate_seconds")),
		chart("Time to first token, p95", "s", "From the buckets of all servers of the pool together.",
			"", one("max by (model_name, k8s_namespace_name) ("+poolOf("vllm_pool_time_to_first_token_quantile_seconds", `quantile="0.95"`)+")", "{{model_name}} {{k8s_namespace_name}}")),
		chart("Inter-token latency, p95", "s", "From the buckets of all servers of the pool together.",
			"", one("max by (model_name, k8s_namespace_name) ("+poolOf("vllm_pool_inter_token_latency_quantile_seconds", `quantile="0.95"`)+")", "{{model_name}} {{k8s_namespace_name}}")),
		Panel{
			Title: "Token throughput", Kind: TimeSeries, Unit: "{token}/s", Min: number(0),
			About: "Prompt tokens include those from a cache.",
			Queries: []Query{
				{Expr: "max by (model_name, k8s_namespace_name) (" + poolOf("vllm_pool_prompt_throughput_per_second") + ")", Legend: "prompt {{model_name}} {{k8s_namespace_name}}"},
				{Expr: "max by (model_name, k8s_namespace_name) (" + poolOf("vllm_pool_generation_throughput_per_second") + ")", Legend: "generated {{model_name}} {{k8s_namespace_name}}"},
			},
		},
	)
}

func balancePanels() []Panel {
	return sized(8, 8,
		chart("Imbalance: busiest server over the mean", Multiple, "1 is an even spread. Twice the mean of running requests while others wait is imbalanced.",
			"", one("max by (model_name, signal) ("+poolOf("vllm_pool_imbalance_max_ratio")+")", "{{signal}} {{model_name}}")),
		percent("Fullest KV cache", "Of the fullest server of each pool.",
			"", pooled("vllm_pool_kv_cache_utilization_max_ratio")),
		percent("Prefix cache hit ratio", "Of the tokens looked up on all servers of the pool together. It falls if the gateway spreads the prompts that belong together.",
			"", pooled("vllm_pool_prefix_cache_hit_ratio")),
	)
}

const gatewayNeeds = "No gateway in the chosen namespaces: name its metrics page under `targets` of the receiver vllm, or discover it. "

// gatewayErrors is the share of the requests to the gateway that failed. Refused requests
// are only among the errors; what a server answered with an error is in both. Of gateways that
// are no pickers it is derived: here that of the worst replica.
func gatewayErrors() string {
	errors := rate(gatewayOf("inference_gateway_epp_request_errors_total"))
	refused := rate(gatewayOf("inference_gateway_epp_request_errors_total", `error_code!="ModelServerError"`))
	// Without any error there are no series of errors, and the share is 0 where there are
	// requests.
	scheduled := "sum by (model_name) (" + rate(gatewayOf("inference_gateway_epp_requests_total")) + ")"
	return "(sum by (model_name) (" + errors + ") or 0 * " + scheduled + ") / ((" + scheduled + " + (sum by (model_name) (" + refused + ") or 0 * " + scheduled + ")" +
		" or sum by (model_name) (" + refused + ")) > 0) or max by (model_name) (" + gatewayOf("inference_gateway_request_error_ratio", `model_name!=""`) + ")"
}

func gatewayQuantiles() []Query {
	of := func(q float64, name string) Query {
		derived := gatewayOf("inference_gateway_request_duration_quantile_seconds", `model_name!=""`, fmt.Sprintf("quantile=\"%g\"", q))
		return Query{
			Expr:   quantile(q, "le, model_name", gatewayOf("inference_gateway_epp_request_duration_seconds_bucket")) + " or max by (model_name) (" + derived + ")",
			Legend: name + " {{model_name}}",
		}
	}
	return []Query{of(0.5, "p50"), of(0.95, "p95"), of(0.99, "p99")}
}

func gatewayPanels() []Panel {
	return sized(8, 8,
		Panel{
			Title: "Gateway requests", Kind: TimeSeries, Unit: "{request}/s", Min: number(0),
			About: "Requests that the endpoint picker scheduled, or that ended at another gateway.",
			Queries: one("sum by (model_name, target_model_name) ("+rate(gatewayOf("inference_gateway_epp_requests_total"))+
				") or sum by (model_name) ("+gatewayOf("inference_gateway_request_rate_per_second")+")", "{{model_name}} {{target_model_name}}"),
			NoValue: gatewayNeeds,
		},
		chart("Gateway error ratio", "1", "Share of the requests that the picker refused or that a server answered with an error. Behind Envoy, old pickers do not see the errors of servers: add those of the HTTP layer.",
			gatewayNeeds, one(gatewayErrors(), "{{model_name}}")),
		chart("Gateway errors by code", "{error}/s", "Why requests failed at endpoint pickers.",
			"The gateway has counted no error since its start, or there is no gateway.", one("sum by (error_code) ("+rate(gatewayOf("inference_gateway_epp_request_errors_total"))+")", "{{error_code}}")),
		chart("Gateway request latency", "s", "From the request to the end of its answer: of all endpoint pickers together, or of the slowest replica of other gateways.",
			gatewayNeeds+"Or no request ended in this time.", gatewayQuantiles()),
		chart("Gateway delay", "s", "What gateways add to the mean time at the servers. A slow client delays the end, not the first token.",
			"No gateway with the models of the pool in the same processor, or it had other requests than the servers.",
			one("max by (model_name, k8s_namespace_name, until) ("+poolOf("vllm_pool_gateway_delay_seconds")+")", "{{until}} {{model_name}} {{k8s_namespace_name}}")),
		chart("Ready endpoints", "{endpoint}", "Endpoints whose metrics the picker has read within seconds; it is not the readiness of Kubernetes. The picker that knows fewest.",
			gatewayNeeds, one("min by (pool) ("+gatewayOf("inference_gateway_pool_endpoint_ready")+")", "{{pool}}")),
		chart("Requests in flight", "{request}", "Requests that went through the picker and have not ended.",
			gatewayNeeds, one("sum by (model_name) ("+gatewayOf("inference_gateway_epp_request_running")+")", "{{model_name}}")),
	)
}

// pickerPanels show what the processor derives for each gateway. Shares and percentiles of
// several replicas cannot be added up, so each is a line.
func pickerPanels() []Panel {
	const picker = "instance"
	worst := func(metric string, more ...string) string { return highest(picker, gatewayOf(metric, more...)) }
	whole := func(metric string) []Query { return one(worst(metric, `model_name=""`), "{{instance}}") }
	p95 := func(metric string) []Query {
		return one(worst(metric, `model_name=""`, `quantile="0.95"`), "{{instance}}")
	}
	// ofAll is for what other gateways have, too.
	ofAll := func(queries []Query) []Query {
		queries[0].Expr += " or " + strings.ReplaceAll(queries[0].Expr, "inference_gateway_epp_", "inference_gateway_")
		return queries
	}
	return sized(8, 8,
		chart("Error ratio by gateway", "1", "With requests that a picker refused before their model was known. Not all gateways mark errors.",
			gatewayNeeds+"Or no request came in this time.", ofAll(whole("inference_gateway_epp_request_error_ratio"))),
		chart("Shed requests by picker", "1", "They are among the failed requests.",
			gatewayNeeds+"Or no request came in this time.", whole("inference_gateway_epp_request_shed_ratio")),
		chart("Request latency by gateway, p95", "s", "From the request to the end of its answer.",
			gatewayNeeds+"Or no request ended in this time.", ofAll(p95("inference_gateway_epp_request_duration_quantile_seconds"))),
		chart("Time to first token by gateway, p95", "s", "What clients wait for: the queue of the gateway, the network and the server.",
			gatewayNeeds+"Of pickers, it needs llm-d-router 0.9, or the plug-in that predicts latency.", ofAll(p95("inference_gateway_epp_request_time_to_first_token_quantile_seconds"))),
		chart("Queue time by picker, p95", "s", "Of requests that were then sent to a server.",
			"No flow control in the endpoint picker, or no request passed it in this time.", p95("inference_gateway_epp_flow_control_queue_duration_quantile_seconds")),
		Panel{
			Title: "Tokens per request", Kind: TimeSeries, Unit: "{token}", Min: number(0),
			About: "Means of each picker.",
			Queries: []Query{
				{Expr: worst("inference_gateway_epp_request_input_tokens_mean", `model_name=""`), Legend: "prompt {{instance}}"},
				{Expr: worst("inference_gateway_epp_request_output_tokens_mean", `model_name=""`), Legend: "answer {{instance}}"},
			},
			NoValue: gatewayNeeds + "Or no answer contained its usage in this time.",
		},
	)
}

func flowPanels() []Panel {
	return sized(8, 8,
		chart("Gateway queue length", "{request}", "Requests that the picker holds back.",
			"No flow control in the endpoint picker.", one("sum by (pool, priority) ("+gatewayOf("inference_gateway_epp_flow_control_queue_size")+")", "{{pool}} priority {{priority}}")),
		Panel{
			Title: "Gateway queue time, p95", Kind: TimeSeries, Unit: "s", Min: number(0),
			About:   "By outcome: a request that is rejected or evicted failed.",
			Queries: one(quantile(0.95, "le, outcome", gatewayOf("inference_gateway_epp_flow_control_queue_duration_seconds_bucket")), "{{outcome}}"),
			NoValue: "No flow control in the endpoint picker, or no request passed it in this time.",
		},
		chart("Pool saturation", Multiple, "As the picker sees it; above 1 it holds requests back. A picker without any endpoint reports 1. The most saturated pool of each name.",
			"No flow control in the endpoint picker.", one("max by (pool, stage) ("+gatewayOf("inference_gateway_epp_flow_control_pool_saturation_ratio")+")", "{{pool}} {{stage}}")),
	)
}

func schedulingPanels() []Panel {
	return sized(8, 8,
		chart("Scheduling latency, p99", "s", "It is added to each time to first token.",
			gatewayNeeds, one(quantile(0.99, "le", gatewayOf("inference_gateway_epp_scheduler_duration_seconds_bucket")), "p99")),
		chart("Scheduling attempts", "{attempt}/s", "By status. The metric exists since release 1.3 of the Gateway API Inference Extension.",
			gatewayNeeds, one("sum by (status) ("+rate(gatewayOf("inference_gateway_epp_scheduler_attempts_total"))+")", "{{status}}")),
		chart("Queue length by endpoint", "{request}", "Waiting requests as the picker sees them.",
			gatewayNeeds, one(highest("pool, endpoint", gatewayOf("inference_gateway_pool_endpoint_queue_size")), "{{endpoint}} {{pool}}")),
	)
}
