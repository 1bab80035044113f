package content

const gatewayPoolLabels = jobLabels + ", pool"

func gatewayGroup(p parameters) Group {
	enough := " and on (" + gatewayLabels + ") vllm_gateway:requests:rate5m * 300 >= " + p.number("gatewayRequests")
	return Group{
		Name: "vllm-gateway", Set: Stable,
		Records: gatewayRecords(),
		Alerts: []Alert{
			{
				Name: "VLLMGatewayErrors", Severity: Page, For: 5 * minute, KeepFiringFor: 5 * minute,
				Expr:    "vllm_gateway:error_ratio:rate5m > " + p.number("gatewayErrorRatio") + enough,
				Summary: "{{ $value | humanizePercentage }} of the requests for " + model("an unknown model") + " fail at the gateway",
			},
			{
				Name: "VLLMGatewayNoReadyEndpoints", Severity: Page, For: minute, KeepFiringFor: 5 * minute,
				Expr:    "max by (" + gatewayPoolLabels + ") (inference_gateway_pool_endpoint_ready) == 0",
				Summary: "The gateway has no ready endpoint in the pool {{ $labels.pool }}",
			},
			{
				Name: "VLLMGatewayLatencyHigh", Severity: Ticket, For: 10 * minute, KeepFiringFor: 10 * minute,
				Expr: "histogram_quantile(0.99, sum by (" + gatewayLabels + ", le) (rate(inference_gateway_epp_request_duration_seconds_bucket[5m]))) > " +
					p.number("gatewayLatencySeconds") + enough,
				Summary: "1 % of the requests for " + model("an unknown model") + " take longer than {{ $value | humanizeDuration }} at the gateway",
			},
			{
				Name: "VLLMLoRAAdapterNotLoaded", Severity: Ticket, For: 15 * minute,
				Expr: "count by (" + jobLabels + ", adapter_name) (max by (" + jobLabels + ", instance, adapter_name) (inference_gateway_lora_adapter_status) == 1)" +
					" < on (" + jobLabels + ") group_left () count by (" + jobLabels + ") (" +
					"count by (" + jobLabels + ", instance) (inference_gateway_lora_adapter_status))",
				Summary: "The LoRA adapter {{ $labels.adapter_name }} is loaded on only {{ $value }} of the servers of {{ $labels.job }}",
			},
		},
	}
}
