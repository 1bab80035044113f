package content

// wire is the overview for vLLM's own names: for "naming: wire" of the receiver, or for a
// Prometheus that scrapes the servers itself.
func wire() Board {
	return Board{
		UID: "vllm-wire", Title: "vLLM, own names", Set: "wire",
		Question: "Are the servers well, by vLLM's own metrics?",
		Variables: []Variable{
			choice("job", "Service", "vllm:num_requests_running", "job"),
			choice("instance", "Server", `vllm:num_requests_running{job=~"$job"}`, "instance"),
			choice("model", "Model", `vllm:num_requests_running{job=~"$job",instance=~"$instance"}`, "model_name"),
		},
		Rows: []Row{
			{Title: "Traffic, errors and latency", Panels: wireUserPanels()},
			{Title: "Queue and KV cache", Panels: wireWaitingPanels()},
			{Title: "Workload", Panels: wireWorkPanels()},
			{Title: "Diagnosis", Collapsed: true, Needs: "the receiver and the processor vllm", Panels: wireDiagnosisPanels()},
		},
	}
}

const (
	wireServer = `job=~"$job",instance=~"$instance"`
	wireEngine = wireServer + `,model_name=~"$model"`
)

func raw(metric string) string { return selector(metric, wireEngine, nil) }

func rawPercentiles(histogram string) []Query {
	return []Query{rawQuantile(0.95, "p95", histogram), rawQuantile(0.99, "p99", histogram)}
}

func rawQuantile(q float64, name, histogram string) Query {
	return Query{Expr: quantile(q, "le, model_name", raw(histogram+"_bucket")), Legend: name + " {{model_name}}"}
}

func wireUserPanels() []Panel {
	return sized(8, 8,
		Panel{
			Title: "Finished requests by reason", Kind: TimeSeries, Unit: "{request}/s", Min: number(0), Stacked: true,
			About:   "By reason. abort is a request that the engine gave up. Requests whose client left are abort with vLLM's Rust front end and missing else; requests that failed before the engine are missing always.",
			NoValue: noServer,
			Queries: one("sum by (finished_reason) ("+rate(raw("vllm:request_success_total"))+")", "{{finished_reason}}"),
		},
		chart("HTTP error ratio", "1", "Share of the answers with a status of 5xx. A stream that fails after its first byte counts as 2xx. vLLM 0.17 to 0.25 counts some invalid requests as 5xx.",
			noHTTP, one(share(selector("http_requests_total", wireServer, []string{`status=~"5.."`}), selector("http_requests_total", wireServer, nil)), "5xx")),
		chart("Request latency", "s", "From arrival to the last token, over all chosen servers.",
			"No request ended in this time.", rawPercentiles("vllm:e2e_request_latency_seconds")),
		chart("Time to first token", "s", "Percentiles over all chosen servers, from their buckets together.",
			"No request got its first token in this time.", rawPercentiles("vllm:time_to_first_token_seconds")),
		chart("Inter-token latency", "s", "vllm:inter_token_latency_seconds exists since vLLM 0.11; before it was vllm:time_per_output_token_seconds.",
			"No tokens were generated in this time.", rawPercentiles("vllm:inter_token_latency_seconds")),
		chart("Queue time", "s", "Of requests that ended.",
			"No request ended in this time; the metric needs vLLM 0.6.4.", rawPercentiles("vllm:request_queue_time_seconds")),
	)
}

func wireWaitingPanels() []Panel {
	return sized(8, 8,
		Panel{
			Title: "Running and waiting requests", Kind: TimeSeries, Unit: "{request}", Min: number(0),
			About:   "A short queue is normal with bursts. A queue that grows is not.",
			NoValue: noServer,
			Queries: []Query{
				{Expr: byModel(raw("vllm:num_requests_waiting")), Legend: "waiting {{model_name}}"},
				{Expr: byModel(raw("vllm:num_requests_running")), Legend: "running {{model_name}}"},
			},
		},
		Panel{
			Title: "KV cache usage", Kind: TimeSeries, Unit: "1", Min: number(0), Max: number(1),
			About:   "The fullest and the emptiest engine. The name exists since vLLM 0.10; before it was vllm:gpu_cache_usage_perc. The unit is 1 in spite of its name.",
			NoValue: noServer,
			Queries: []Query{
				{Expr: "max(" + raw("vllm:kv_cache_usage_perc") + ")", Legend: "fullest"},
				{Expr: "min(" + raw("vllm:kv_cache_usage_perc") + ")", Legend: "emptiest"},
			},
		},
		chart("Preemptions", "{preemption}/s", "Each is computed again. A few in a burst do no harm. vLLM counts a preemption when the request resumes.",
			noServer, one(byModel(rate(raw("vllm:num_preemptions_total"))), "{{model_name}}")),
	)
}

func wireWorkPanels() []Panel {
	length := func(title, about, histogram string) Panel {
		return Panel{
			Title: title, Kind: TimeSeries, Unit: "{token}", Min: number(0), About: about,
			NoValue: "No request ended in this time.",
			Queries: []Query{rawQuantile(0.5, "p50", histogram), rawQuantile(0.95, "p95", histogram)},
		}
	}
	return sized(6, 8,
		Panel{
			Title: "Token throughput", Kind: TimeSeries, Unit: "{token}/s", Min: number(0),
			About:   "Prompt tokens include those from a cache.",
			NoValue: noServer,
			Queries: []Query{
				{Expr: byModel(rate(raw("vllm:prompt_tokens_total"))), Legend: "prompt {{model_name}}"},
				{Expr: byModel(rate(raw("vllm:generation_tokens_total"))), Legend: "generated {{model_name}}"},
			},
		},
		percent("Prefix cache hit ratio", "Share of the looked-up tokens that were found, over all chosen servers. Before 0.27 vLLM looks a waiting request up again and again, so do not trust the share while requests wait.",
			"No prompt was looked up in this time, or prefix caching is off.", one(byModel(rate(raw("vllm:prefix_cache_hits_total")))+" / ("+byModel(rate(raw("vllm:prefix_cache_queries_total")))+" > 0)", "{{model_name}}")),
		length("Prompt length", "Longer prompts need more prefill.", "vllm:request_prompt_tokens"),
		length("Output length", "Longer answers hold their place for longer.", "vllm:request_generation_tokens"),
	)
}

func wireDiagnosisPanels() []Panel {
	return sized(24, 6,
		Panel{
			Title: "Condition by engine", Kind: StateTimeline, Unit: "{state}", Mappings: conditionWords(), Width: 14,
			About:   "One line for each engine. The colour is the severity of the condition.",
			NoValue: noEngine,
			Queries: one(worstConditions(wireEngine), "{{instance}} {{engine}} {{model_name}}"),
		},
		causesTable(Panel{
			Title: "Causes", Width: 10,
			About:   "Each cause is a link to its runbook.",
			NoValue: noCauseOfEngine,
		}, []string{raw("vllm_diagnosis_cause")},
			Column{Label: "detail", Title: "Detail"},
			Column{Label: "model_name", Title: "Model"},
			Column{Label: "instance", Title: "Server"},
		),
	)
}
