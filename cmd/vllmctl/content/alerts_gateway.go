package content

const gatewayPoolLabels = jobLabels + ", pool"

func gatewayGroup(p parameters) Group {
	enough := " and on (" + gatewayLabels + ") vllm_gateway:requests:rate5m * 300 >= " + p.number("gatewayRequests")
	return Group{
		Name: "vllm-gateway", Set: Stable,
		Records: gatewayRecords(),
		Alerts: []Alert{
			{
				Name: "VLLMGatewayErrors", Severity: Page, For: 5 * minute,
				// Two minutes without errors are no recovery before it fires, nor where they have few requests.
				Expr: "vllm_gateway:error_ratio:rate5m > " + p.number("gatewayErrorRatio") + enough +
					" unless (vllm_gateway:error_ratio:rate2m < 0.5 * " + p.number("gatewayErrorRatio") +
					" and vllm_gateway:requests:rate2m * 120 >= 4 * " + p.number("gatewayRequests") +
					" and on (" + gatewayLabels + ") " + firing("VLLMGatewayErrors") + ")",
				Summary:     "{{ $value | humanizePercentage }} of the requests for " + model("an unknown model") + " fail at the gateway",
				Description: "{{ $value | humanizePercentage }} of the requests that reached the gateway failed in the last five minutes.",
				Meaning:     "More than 5 % of the requests fail at the gateway. It is resolved when the last two minutes have less than half of that and 80 requests. Refused requests count.",
				Impact:      "These users get an error.",
				Diagnosis: []Step{
					{Text: "See which error it is. The log of the picker has the reasons.", Query: "sum by (model_name, error_code) (rate(inference_gateway_epp_request_errors_total[5m]))", Board: "vllm-pool", Panel: "Gateway errors by code"},
					{Text: "Without an endpoint picker, see which replica of the gateway it is, and read its log.", Query: "inference_gateway_request_error_ratio", Board: "vllm-pool", Panel: "Error ratio by gateway"},
					{Text: "ResourceExhausted (no room): see whether the servers are full.", Query: "vllm_pool_request_queue_wait_estimate_seconds", Board: "vllm-pool", Panel: "Estimated queue wait"},
					{Text: "NotFound or BadRequest: see whether one client or one model name does it; the model name may be empty."},
					{Text: "ModelServerError, or ServiceUnavailable: see which server is failing, or whether none is ready.", Query: conditionNow, Board: "vllm-overview", Panel: "Condition by engine"},
				},
				Mitigation: []string{
					"No room: refuse less important requests first, and send Retry-After. If all servers are busy, add servers.",
					"Errors of model servers: follow the page of their condition.",
					"Errors of a client: inform its owner. If a model name was removed, restore it.",
				},
				LooksTheSame: "One client with wrong requests looks like a fault of the service.",
				NotConclude:  "Without the error_code ModelServerError the servers may still fail: behind Envoy, pickers up to 1.5.0 do not see these.",
				CannotFire:   "The collector does not read the gateway, fewer than 20 requests came in five minutes, or the gateway does not mark errors (agentgateway).",
				Monitor: &Monitor{
					// More than one error beyond 5 % of what arrived: with few requests the share
					// alone would fire.
					Query: "sum(last_5m):default_zero(sum:inference_gateway.epp.request.errors{*} by {model_name}.as_count())" +
						" - 0.05 * (default_zero(sum:inference_gateway.epp.requests{*} by {model_name}.as_count())" +
						" + default_zero(sum:inference_gateway.epp.request.errors{!error_code:ModelServerError,!error_code:modelservererror} by {model_name}.as_count())) > 1",
					Text:    "More than 5 % of the requests for {{model_name.name}} fail at the gateway.",
					Differs: "It fires on errors of endpoint pickers beyond 5 % of the requests, without a `for`.",
				},
				FiresIn: map[string][]string{
					"gateway refuses requests": nil, "no ready endpoints": nil,
				},
			},
			{
				Name: "VLLMGatewayNoReadyEndpoints", Severity: Page, For: minute,
				Expr:        "max by (" + gatewayPoolLabels + ") (inference_gateway_pool_endpoint_ready) == 0",
				Summary:     "The gateway has no ready endpoint in the pool {{ $labels.pool }}",
				Description: "The endpoint picker knows no server whose metrics are fresh.",
				Meaning:     "No replica of the endpoint picker has a ready endpoint in this pool.",
				Impact:      "The gateway refuses all requests for the pool, or routes them blindly.",
				Diagnosis: []Step{
					{Text: "See whether the servers run and can be read by the collector.", Query: "vllm_up", Board: "vllm-overview", Panel: "Servers up"},
					{Text: "If they can, compare the selector and the port of the InferencePool with the labels and the port of the pods."},
					{Text: "See since when, and what the log of the picker says from then on.", Query: "inference_gateway_pool_endpoint_ready", Board: "vllm-pool", Panel: "Ready endpoints"},
				},
				Mitigation: []string{
					"Start servers if there are none.",
					"Correct the selector, the port, or the network policy between the picker and the pods.",
				},
				LooksTheSame: "A pool that was scaled to zero on purpose.",
				NotConclude:  "The pods may be ready for Kubernetes: here ready means that the picker read their metrics within two seconds.",
				CannotFire:   "The collector does not read the picker. Pickers up to 1.2 keep the last number when every server is dead.",
				Monitor: &Monitor{
					Query: "max(last_2m):max:inference_gateway.pool.endpoint.ready{*} by {pool} <= 0",
					Text:  "The gateway has no ready endpoint in the pool {{pool.name}}.",
				},
				FiresIn: map[string][]string{"no ready endpoints": nil},
			},
			{
				Name: "VLLMGatewayLatencyHigh", Severity: Ticket, For: 10 * minute,
				Expr: "(histogram_quantile(0.99, sum by (" + gatewayLabels + ", le) (rate(inference_gateway_epp_request_duration_seconds_bucket[5m]))) or " +
					"max by (" + gatewayLabels + `) (inference_gateway_request_duration_quantile_seconds{quantile="0.99",model_name!=""})) > ` +
					p.number("gatewayLatencySeconds") + enough,
				Summary:     "1 % of the requests for " + model("an unknown model") + " take longer than {{ $value | humanizeDuration }} at the gateway",
				Description: "The p99 of the time from the arrival at the gateway to the end of the response is above the threshold.",
				Meaning:     "1 % of the requests take longer at the gateway than the threshold, 10 s by default.",
				Impact:      "The slowest users wait that long for the whole answer. Long answers take long without any fault.",
				Diagnosis: []Step{
					{Text: "See whether the first token is late. If it is not, answers are long.", Query: `vllm_pool_time_to_first_token_quantile_seconds{quantile="0.95"}`, Board: "vllm-pool", Panel: "Time to first token, p95"},
					{Text: "See what the gateway adds to the time of the servers.", Query: "vllm_pool_gateway_delay_seconds", Board: "vllm-pool", Panel: "Gateway delay"},
					{Text: "See whether requests wait at the gateway.", Query: "inference_gateway_epp_flow_control_queue_size", Board: "vllm-pool", Panel: "Gateway queue length"},
					{Text: "Read the causes of the pool.", Query: "vllm_pool_diagnosis_cause == 1", Board: "vllm-pool", Panel: "Causes"},
				},
				Mitigation: []string{
					"Follow the page of the pool's cause.",
					"Set the threshold to what your users accept for your lengths of answers, or use objectives instead of this alert.",
				},
				LooksTheSame: "Longer answers: `vllm_request_generation_tokens` grows with the duration.",
				NotConclude:  "The value is not exact: a percentile is interpolated in its bucket, and limited by the last bound.",
				CannotFire:   "Fewer than 20 requests came in five minutes. Requests that never end do not count.",
				Monitor: &Monitor{
					Parameter: "gatewayLatencySeconds",
					Query:     "min(last_10m):max:inference_gateway.epp.request.duration_quantile{quantile:0.99} by {model_name} > PARAMETER",
					Text:      "1 % of the requests for {{model_name.name}} take longer than {{value}} s at the gateway.",
					Differs:   "It is about the slowest replica of an endpoint picker, and has no guard on traffic.",
				},
				FiresIn: map[string][]string{"slow gateway": nil},
			},
			{
				Name: "VLLMLoRAAdapterNotLoaded", Severity: Ticket, For: 15 * minute,
				Expr: "count by (" + jobLabels + ", adapter_name) (max by (" + jobLabels + ", instance, adapter_name) (inference_gateway_lora_adapter_status) == 1)" +
					" < on (" + jobLabels + ") group_left () count by (" + jobLabels + ") (" +
					"count by (" + jobLabels + ", instance) (inference_gateway_lora_adapter_status))",
				Summary:     "The LoRA adapter {{ $labels.adapter_name }} is loaded on only {{ $value }} of the servers of {{ $labels.job }}",
				Description: "The syncers of some servers have this adapter loaded, those of others have not.",
				Meaning:     "Not all LoRA syncers of a service have the adapter loaded.",
				Impact:      "Requests for the adapter fail on the servers that lack it, or wait until it is loaded.",
				Diagnosis: []Step{
					{Text: "See which servers have it.", Query: "inference_gateway_lora_adapter_status", Board: "vllm-features", Panel: "Adapters loaded by the syncer"},
					{Text: "Read the log of the syncer on a server that lacks it: a failed load has no metric. The list of models of vLLM has what is loaded."},
					{Text: "See whether requests ask for it. Since 0.11.1 vLLM lists each adapter in use here, whether it waits or not.", Query: "vllm_lora_adapter_waiting", Board: "vllm-features", Panel: "Waiting adapters"},
				},
				Mitigation: []string{
					"Repair the source of the adapter, or the permission to read it; the syncer tries again.",
					"Raise `--max-loras` or `--max-cpu-loras` if the server has no slot. Each slot takes GPU memory from the KV cache.",
					"If the adapter was removed on purpose, restart the syncers that still show it.",
				},
				LooksTheSame: "Deployments with different adapters and one `service.name`: give the syncers of each their own `service_name`. A removed adapter: a syncer shows it until it restarts.",
				NotConclude:  "The value 1 is the last action of the syncer, not the present state.",
				CannotFire:   "All servers lack the adapter, or there is only one server. A syncer that has loaded nothing has no series.",
				NoMonitor:    "A query cannot compare the counts of two groupings.",
				FiresIn:      map[string][]string{"LoRA adapter lost": nil},
			},
		},
	}
}
