package content

var gatewayWords = map[string]runbook{
	"VLLMGatewayErrors": {
		description: "{{ $value | humanizePercentage }} of the requests that reached the gateway's endpoint picker failed in the last five minutes.",
		meaning:     "The share of failed requests at the endpoint picker is above 5 % for five minutes. Requests that the picker refused count: they are errors without being among its scheduled requests, so errors divided by requests alone would be wrong, and undefined while everything is refused.",
		impact:      "These users get an error.",
		diagnosis: []Step{
			{Text: "See which error it is.", Query: "sum by (model_name, error_code) (rate(inference_gateway_epp_request_errors_total[5m]))", Board: "vllm-pool", Panel: "Errors by code"},
			{Text: "Refused because there is no room: see whether the servers are full.", Query: "vllm_pool_request_queue_wait_estimate_seconds", Board: "vllm-pool", Panel: "Wait of a request that arrives now"},
			{Text: "Not found or bad request: see whether one client or one model name does it; the model name may be empty."},
			{Text: "Errors of model servers: see which server is failing.", Query: conditionNow, Board: "vllm-overview", Panel: "Condition of each engine"},
		},
		mitigation: []string{
			"Refused for lack of room: add servers, or let less important requests go first. Clients that try again at once make it worse: send Retry-After.",
			"Errors of model servers: follow the page of their condition.",
			"Errors of a client: inform its owner. If a model name was removed, restore it.",
		},
		looksTheSame: "One client with wrong requests looks like a fault of the service.",
		notConclude:  "Do not conclude that the servers are well because there is no error_code ModelServerError: behind Envoy the picker of releases up to 1.5.0 does not see their errors.",
		cannotFire:   "The collector does not read the endpoint picker, fewer than 20 requests came in five minutes, or the errors are made in front of the picker or behind it, unseen.",
	},
	"VLLMGatewayNoReadyEndpoints": {
		description: "The endpoint picker knows no server whose metrics are fresh.",
		meaning:     "No replica of the endpoint picker has a ready endpoint in this pool for a minute.",
		impact:      "The gateway refuses all requests for the pool, or routes them blindly.",
		diagnosis: []Step{
			{Text: "See whether the servers run and can be read by the collector.", Query: "vllm_up", Board: "vllm-overview", Panel: "Servers up"},
			{Text: "If they can, compare the selector and the port of the InferencePool with the labels and the port of the pods."},
			{Text: "See since when.", Query: "inference_gateway_pool_endpoint_ready", Board: "vllm-pool", Panel: "Endpoints that are ready"},
		},
		mitigation: []string{
			"Start servers if there are none.",
			"Correct the selector, the port, or the network policy between the picker and the pods.",
		},
		looksTheSame: "A pool that was scaled to zero on purpose.",
		notConclude:  "Do not conclude that pods are not ready in the sense of Kubernetes: ready means here that the picker read their metrics within two seconds.",
		cannotFire:   "Releases of the picker up to 1.2 keep the last number when every server is dead. The collector does not read the picker.",
	},
	"VLLMGatewayLatencyHigh": {
		description: "The p99 of the time from the arrival at the gateway to the end of the response is above the threshold.",
		meaning:     "For ten minutes, 1 % of the requests took longer at the endpoint picker than the threshold, 10 s by default.",
		impact:      "The slowest users wait for the whole answer that long. Long answers take long without any fault.",
		diagnosis: []Step{
			{Text: "See whether the first token is late, or the answers are long.", Query: `vllm_pool_time_to_first_token_quantile_seconds{quantile="0.95"}`, Board: "vllm-pool", Panel: "Time to first token, p95"},
			{Text: "See whether requests wait at the gateway.", Query: "inference_gateway_epp_flow_control_queue_size", Board: "vllm-pool", Panel: "Requests in the gateway's queue"},
			{Text: "Read the causes of the pool.", Query: "vllm_pool_diagnosis_cause == 1", Board: "vllm-pool", Panel: "Causes now"},
		},
		mitigation: []string{
			"Follow the page of the pool's cause.",
			"Set the threshold to what your users accept for your lengths of answers, or use objectives instead of this alert.",
		},
		looksTheSame: "Longer answers: `vllm_request_generation_tokens` grows with the duration.",
		notConclude:  "Do not compare the value with the number exactly: a percentile is interpolated in its bucket, and above the last bound it is that bound.",
		cannotFire:   "Only responses that were read to their end count: requests that never end do not. Fewer than 20 requests came in five minutes.",
	},
	"VLLMLoRAAdapterNotLoaded": {
		description: "The syncers of some servers have this adapter loaded, those of others have not.",
		meaning:     "For 15 minutes, fewer LoRA syncers of a service have the adapter loaded than there are syncers.",
		impact:      "Requests for the adapter fail on the servers that lack it, or wait until it is loaded.",
		diagnosis: []Step{
			{Text: "See which servers have it.", Query: "inference_gateway_lora_adapter_status", Board: "vllm-features", Panel: "Adapters of the syncer"},
			{Text: "Read the log of the syncer on a server that lacks it: a failed load has no metric."},
			{Text: "See whether requests ask for it. Since 0.11.1 vLLM in Python lists each adapter in use here, whether it waits or not.", Query: "vllm_lora_adapter_waiting", Board: "vllm-features", Panel: "Adapters that wait"},
		},
		mitigation: []string{
			"Repair the source of the adapter, or the permission to read it; the syncer tries again.",
			"Raise `--max-loras` or `--max-cpu-loras` if the server has no slot. Each slot takes GPU memory from the KV cache.",
			"If the adapter was removed on purpose, restart the syncers that still show it.",
		},
		looksTheSame: "Deployments with different adapters that have one `service.name`: give the syncers of each a `service_name` of their own. An adapter that was removed from the configuration: a syncer shows it until it restarts, so after the restart of one pod the others have it and this one does not.",
		notConclude:  "Do not conclude from the value 1 that the server has the adapter now: the value is the last action of the syncer.",
		cannotFire:   "All servers lack the adapter, or there is only one server: a failed load has no series. A syncer that has loaded nothing at all has none either.",
	},
}

var collectorWords = map[string]runbook{
	"VLLMCollectorSilent": {
		description: "No metrics of vLLM servers arrive, so no other alert of vLLM can fire.",
		meaning:     "For ten minutes there is no `vllm_up` at all, or none of a cluster that had it within the last day. A server that is down still has it, with the value 0.",
		impact:      "The servers are not monitored. Users may be served or not.",
		diagnosis: []Step{
			{Text: "See whether the collector runs, and read the end of its log."},
			{Text: "See whether Prometheus can scrape it.", Query: `up{job=~".*otelcol.*"}`},
			{Text: "See whether it has targets.", Query: "otelcol_receiver_vllm_targets", Board: "vllm-collector", Panel: "Targets"},
			{Text: "See whether it can send.", Query: "otelcol_exporter_queue_size", Board: "vllm-collector", Panel: "Queue in use"},
		},
		mitigation: []string{
			"Start the collector again. What it scraped before is in its queue, if the queue is on disk.",
			"After a change of its configuration, go back to the last one; `otelcol-vllm validate` finds most mistakes.",
			"If the cluster was given up on purpose, silence the alert for a day.",
		},
		looksTheSame: "No servers at all, where discovery is the only source of targets. Rules in the wrong spelling: the metric then has another name.",
		notConclude:  "Do not conclude that the servers are down.",
		cannotFire:   "The Prometheus server itself is down, or one collector of several in a cluster ended; then its servers vanish (`VLLMServerVanished`). Of several clusters one is seen only by its label `k8s_cluster_name`.",
	},
	"VLLMCollectorQueueFilling": {
		description: "The collector reads more than its exporter can send.",
		meaning:     "For 15 minutes more than half of an exporter's queue is full.",
		impact:      "Alerts see old data. When the queue is full, points are lost.",
		diagnosis: []Step{
			{Text: "See whether it grows, and how long it will last.", Query: "otelcol_exporter_queue_size", Board: "vllm-collector", Panel: "Queue in use"},
			{Text: "See whether requests fail: the log of the collector has the answer of the backend.", Query: "rate(otelcol_exporter_sent_metric_points[5m])", Board: "vllm-collector", Panel: "Points sent"},
		},
		mitigation: []string{
			"Repair the backend, its address, or the credentials.",
			"Raise `sending_queue::num_consumers` if the backend answers slowly but well. It gets more requests at a time.",
			"Raise `sending_queue::queue_size` for longer outages. It takes memory, or disk with `storage`.",
		},
		looksTheSame: "A backend that limits the rate: it answers 429 and the exporter waits.",
		notConclude:  "Do not conclude that data is lost already: the queue keeps it.",
		cannotFire:   "Prometheus does not scrape the collector's own telemetry (port 8888), or the exporter has no queue.",
	},
	"VLLMCollectorSendFailing": {
		description: "Points were dropped: the backend refused them, or the queue was full.",
		meaning:     "An exporter gave up on points, or could not put them into its queue, for five minutes.",
		impact:      "The backend has gaps. Rates over a gap are too low, and alerts may be late.",
		diagnosis: []Step{
			{Text: "See how many points are lost.", Query: "sum by (exporter) (rate(otelcol_exporter_send_failed_metric_points[5m]))", Board: "vllm-collector", Panel: "Points lost"},
			{Text: "Read the log of the collector: it has the answer of the backend. 400 means that the backend refuses the points and that trying again is useless; 401 and 403 mean credentials; 413 means too large."},
		},
		mitigation: []string{
			"400: read which points are refused; often they are too old or out of order.",
			"413: send smaller batches (`sending_queue::batch::max_size`).",
			"A full queue: see `VLLMCollectorQueueFilling`.",
		},
		looksTheSame: "A backend that refuses one metric of many: the others arrive.",
		notConclude:  "Do not conclude that all data is lost.",
		cannotFire:   "Prometheus does not scrape the collector's own telemetry (port 8888). With `max_elapsed_time: 0` the exporter never gives up: then the queue fills. A collector whose telemetry is exported by OTLP has these names with `_total` or with dots: change the rule.",
	},
}
