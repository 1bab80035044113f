package content

// overview answers whether the servers are well, for whom they are not, since when and why.
func overview() Board {
	return Board{
		UID: "vllm-overview", Title: "vLLM overview", Set: "stable",
		Question:  "Are the servers well; if not, for whom, since when and why?",
		Variables: serverVariables(), Annotations: changes(),
		Rows: []Row{
			{Title: "Health", Panels: append(headlines(), serversTable())},
			{Title: "Models", Panels: []Panel{modelsTable()}},
			{Title: "Timeline", Panels: timelinePanels()},
			{Title: "Causes", Panels: []Panel{causesPanel()}},
			{Title: "Traffic, errors and latency", Panels: userPanels()},
			{Title: "Queue and KV cache", Panels: waitingPanels()},
			{Title: "Workload", Panels: workPanels()},
		},
	}
}

// headlines are the numbers that a person reads first.
func headlines() []Panel {
	tile := func(title, about, unit, expr, noValue string) Panel {
		return Panel{Title: title, Kind: Stat, Unit: unit, About: about, NoValue: noValue, Queries: now(expr, title)}
	}
	p95 := func(bucket string) string { return quantile(0.95, "le", engineOf(bucket)) }
	attained := ofServers.attained("5m", upper)
	kept := tile("Objectives met", "Share of the objectives that the last 5 minutes did not certainly miss, over all servers of a model.", "1",
		"(count("+attained+" >= "+ofServers.target()+") or 0 * count("+attained+")) / count("+attained+")",
		"No `objectives` in the processor vllm, or no traffic in these 5 minutes.")
	kept.Thresholds, kept.Links = []Threshold{{0, Orange}, {1, Green}}, []Link{{Title: "Objectives", Board: "vllm-objectives"}}
	up := tile("Servers up", "Servers that the last scrape could read.", "{server}", "sum("+server("vllm_up", notServers)+")", noTarget)
	down := tile("Servers down", "Servers that the last scrape could not read. One that discovery has removed is not among them.", "{server}",
		"sum(1 - "+server("vllm_up", notServers)+")", noTarget)
	down.Thresholds = anyIsBad(Red)
	return sized(4, 4,
		tile("Requests/s", "Finished requests.", "{request}/s", "sum("+rate(engineOf("vllm_request_success_total"))+")", noServer),
		tile("Generated tokens/s", "Of all chosen servers.", "{token}/s", "sum("+rate(engineOf("vllm_generation_tokens_total"))+")", noServer),
		tile("Time to first token, p95", "Of requests that got it. Those that still wait are in the table below.", "s",
			p95("vllm_time_to_first_token_seconds_bucket"), "No request got its first token."),
		tile("Inter-token latency, p95", "Pauses between the tokens of an answer.", "s", p95("vllm_inter_token_latency_seconds_bucket"), "No tokens were generated."),
		tile("Request latency, p95", "From arrival to the last token, of finished requests.", "s", p95("vllm_e2e_request_latency_seconds_bucket"), "No request ended."),
		kept, up, down,
		Panel{
			Title: "Servers by condition", Kind: Table, Unit: "{server}", Width: 16,
			About:   "A server with several engines counts in the condition of each.",
			NoValue: noEngine,
			Queries: now("count by (condition) (max by (k8s_cluster_name, instance, condition) ("+engineOf("vllm_diagnosis_condition")+" == 1))", ""),
			Columns: []Column{
				{Label: "condition", Title: "Condition", Mappings: conditionWords()},
				{Label: ValueColumn, Title: "Servers", Descending: true},
			},
			Links: []Link{{Title: "Severities and conditions", URL: Repository + "docs/diagnosis.md"}},
		},
	)
}

const (
	noEngine = "No engine is known: the processor vllm is missing, or it has read no server yet."
	noServer = "No server was read."
	noHTTP   = "No HTTP answers in this time; the metric needs vLLM 0.8.3."
	noTarget = "No target: the receiver vllm has none, or the collector does not send."
)

// serversTable has a row for each server, the worst first. Its subqueries read one series of an engine at 288 to
// 2,880 moments, so that a thousand engines stay at a tenth of what Prometheus loads for a query by default.
func serversTable() Panel {
	const row = "k8s_cluster_name, instance, model_name"
	const by = "max by (" + row + ") "
	severities := engineOf("vllm_diagnosis_severity")
	// Of several engines the condition and the cause are those of the worst.
	worst := func(label, series, others string) Query {
		of := "(" + series + " == 1) * ignoring (" + others + ") group_left () " + severities
		return Query{Expr: "topk by (" + row + ") (1, max by (" + row + ", " + label + ") (" + of + "))", Instant: true}
	}
	severity := by + "(" + severities + ")"
	firstToken := by + "(" + engineOf("vllm_diagnosis_first_token_wait_seconds") + ")"
	eachToken := by + "(" + engineOf("vllm_inter_token_latency_mean_seconds") + ")"
	total := func(metric string) string { return "sum by (" + row + ") (" + engineOf(metric) + ")" }
	// It is the usual value of the messages of alerts, without the start of the harm as its end.
	usual := func(value string) string {
		return value + " / (quantile_over_time(0.5, (" + value + " unless " + severity + " >= 2)[1d:5m]) > 0)"
	}
	value := func(query int, title, unit string) Column {
		return Column{Label: ValueColumn, Query: query, Title: title, Unit: unit, Width: 96}
	}
	level := value(0, "Severity", "{level}")
	level.Mappings, level.Descending = severityWords(), true
	return sized(24, 9, Panel{
		Title: "Servers", Kind: Table, Unit: "1",
		About: "The worst first. The cause is the primary one and links to its runbook, a server to its board. *Bad for* is the time since the severity was last below 2, " +
			"up to a day. TTFT is the mean wait for the first token now, with the wait so far of those that still wait. *usual* is the median of up to 24 hours without harm.",
		NoValue: noEngine,
		Queries: []Query{
			worst("condition", engineOf("vllm_diagnosis_condition"), "condition"),
			worst("cause", engineOf("vllm_diagnosis_cause", `role="primary"`), "cause, role, detail"),
			{Expr: "(time() - (max_over_time(timestamp(" + severity + " < 2)[1d:1m]) or min_over_time(timestamp(" + severity + ")[1d:1m]))) and " + severity + " >= 2", Instant: true},
			{Expr: total("vllm_num_requests_running"), Instant: true},
			{Expr: total("vllm_num_requests_waiting"), Instant: true},
			{Expr: by + "(" + engineOf("vllm_kv_cache_utilization_ratio") + ")", Instant: true},
			{Expr: firstToken, Instant: true},
			{Expr: usual(firstToken), Instant: true},
			{Expr: eachToken, Instant: true},
			{Expr: usual(eachToken), Instant: true},
		},
		Columns: []Column{
			{Label: "instance", Title: "Server", Board: "vllm-engine", Variable: "instance"},
			{Label: "model_name", Title: "Model"},
			{Label: "k8s_cluster_name", Title: "Cluster"},
			level,
			{Label: "condition", Title: "Condition", Mappings: conditionWords()},
			{Label: "cause", Title: "Cause", Runbook: true},
			value(2, "Bad for", "s"), value(3, "Running", "{request}"), value(4, "Waiting", "{request}"), value(5, "KV cache", "1"),
			value(6, "TTFT", "s"), value(7, "TTFT/usual", Multiple), value(8, "ITL", "s"), value(9, "ITL/usual", Multiple),
		},
		Links: []Link{{Title: "Engine", Board: "vllm-engine"}, {Title: "Runbooks", URL: Repository + "docs/runbooks/README.md"}},
	})[0]
}

// modelsTable says which models are harmed.
func modelsTable() Panel {
	p95 := func(bucket string) Query { return Query{Expr: quantileOf(0.95, bucket), Instant: true} }
	severity := "max by (k8s_cluster_name, instance, model_name) (" + engineOf("vllm_diagnosis_severity") + ")"
	all := "count by (model_name) (" + severity + ")"
	finished := byModel(rate(engineOf("vllm_request_success_total")))
	return sized(24, 5, Panel{
		Title: "Models", Kind: Table, Unit: "{server}",
		About:   "Over all chosen servers of a model. Unhealthy is severity 2 or 3. Errors are failures of the engine; 5xx are in the panel of HTTP errors: they have no model.",
		NoValue: noEngine,
		Queries: []Query{
			{Expr: all, Instant: true},
			{Expr: "count by (model_name) (" + severity + " >= 2) or 0 * " + all, Instant: true},
			{Expr: finished, Instant: true},
			{Expr: byModel(rate(engineOf("vllm_generation_tokens_total"))), Instant: true},
			{Expr: byModel(rate(engineOf("vllm_request_success_total", `finished_reason="error"`))) + " / (" + finished + " > 0)", Instant: true},
			p95("vllm_time_to_first_token_seconds_bucket"), p95("vllm_inter_token_latency_seconds_bucket"), p95("vllm_e2e_request_latency_seconds_bucket"),
		},
		Columns: []Column{
			{Label: "model_name", Title: "Model"},
			{Label: ValueColumn, Title: "Servers"},
			{Label: ValueColumn, Query: 1, Title: "Unhealthy", Descending: true},
			{Label: ValueColumn, Query: 2, Title: "Requests/s", Unit: "{request}/s"},
			{Label: ValueColumn, Query: 3, Title: "Generated tokens/s", Unit: "{token}/s"},
			{Label: ValueColumn, Query: 4, Title: "Errors", Unit: "1"},
			{Label: ValueColumn, Query: 5, Title: "TTFT p95", Unit: "s"},
			{Label: ValueColumn, Query: 6, Title: "ITL p95", Unit: "s"},
			{Label: ValueColumn, Query: 7, Title: "Latency p95", Unit: "s"},
		},
		Links: []Link{{Title: "Pool and gateway", Board: "vllm-pool"}},
	})[0]
}

func timelinePanels() []Panel {
	return sized(24, 7,
		Panel{
			Title: "Condition by engine", Kind: StateTimeline, Unit: "{state}", Mappings: conditionWords(),
			About:   "One line for each engine. The colour is the severity of the condition.",
			NoValue: noEngine,
			Queries: one(worstConditions(engineMatchers), "{{instance}} {{engine}} {{model_name}}"),
			Links:   []Link{{Title: "Engine", Board: "vllm-engine"}},
		},
		Panel{
			Title: "Condition by pool", Kind: StateTimeline, Unit: "{state}", Mappings: conditionWords(), Height: 5,
			About:   "A pool is what users meet: one bad server among many need not harm it.",
			Queries: one(conditionCode("vllm_pool_diagnosis_condition", "k8s_namespace_name, model_name", poolMatchers), "{{model_name}} {{k8s_namespace_name}}"),
			Links:   []Link{{Title: "Pool and gateway", Board: "vllm-pool"}},
		},
	)
}

func causesPanel() Panel {
	return sized(24, 7, causesTable(Panel{
		Title:   "Causes",
		About:   "All causes, the primary ones first, with their details. A row without a server is about a pool. A notice does no harm.",
		NoValue: noCauseOfEngine,
	}, []string{engineOf("vllm_diagnosis_cause"), poolOf("vllm_pool_diagnosis_cause")},
		Column{Label: "detail", Title: "Detail"},
		Column{Label: "model_name", Title: "Model"},
		Column{Label: "instance", Title: "Server", Board: "vllm-engine", Variable: "instance"},
		Column{Label: "engine", Title: "Engine"},
		Column{Label: "k8s_pod_name", Title: "Pod"},
	))[0]
}

func userPanels() []Panel {
	return sized(8, 8,
		Panel{
			Title: "Requests", Kind: TimeSeries, Unit: "{request}/s", Min: number(0),
			About: "Requests that got their first token, and requests that ended. Where more arrive than end, a queue grows.",
			Queries: []Query{
				{Expr: byModel(rate(engineOf("vllm_time_to_first_token_seconds_count"))), Legend: "first token {{model_name}}"},
				{Expr: byModel(rate(engineOf("vllm_request_success_total"))), Legend: "ended {{model_name}}"},
			},
		},
		Panel{
			Title: "HTTP error ratio", Kind: TimeSeries, Unit: "1", Min: number(0),
			About: "Share of the answers of all chosen servers with a status of 4xx or 5xx. A stream that fails after its first byte counts as 2xx. vLLM 0.17 to 0.25 counts some invalid requests as 5xx.",
			Queries: []Query{
				{Expr: httpShare("4.."), Legend: "4xx"},
				{Expr: httpShare("5.."), Legend: "5xx"},
			},
			NoValue: noHTTP,
		},
		Panel{
			Title: "Finished requests by reason", Kind: TimeSeries, Unit: "{request}/s", Min: number(0), Stacked: true,
			About:   "Requests that ended, by reason. error is a failure of the engine, abort a request that the engine gave up. Requests whose client left are abort with vLLM's Rust front end and missing else; requests that failed before the engine are missing always.",
			Queries: one("sum by (finished_reason) ("+rate(engineOf("vllm_request_success_total"))+")", "{{finished_reason}}"),
		},
		chart("Time to first token", "s", "Percentiles over all chosen servers, from their buckets together. "+drawnLimit,
			"No request got its first token in this time.", percentiles("vllm_time_to_first_token_seconds_bucket", ttft)),
		chart("Inter-token latency", "s", "How smoothly answers stream. With speculative decoding a gap can yield several tokens. "+drawnLimit,
			"No tokens were generated in this time.", percentiles("vllm_inter_token_latency_seconds_bucket", itl)),
		chart("Request latency", "s", "From arrival to the last token; long answers take long. It changes when requests end. "+drawnLimit,
			"No request ended in this time.", percentiles("vllm_e2e_request_latency_seconds_bucket", e2e)),
	)
}

// httpShare is the share of the HTTP answers with such a status.
func httpShare(status string) string {
	return share(server("http_requests_total", `status=~"`+status+`"`), server("http_requests_total"))
}

// share is a part of a rate. A part that never was has no series; where there is traffic, it
// is really 0.
func share(part, whole string) string {
	all := "sum(" + rate(whole) + ")"
	return "(sum(" + rate(part) + ") or 0 * " + all + ") / (" + all + " > 0)"
}

func waitingPanels() []Panel {
	return sized(8, 8,
		Panel{
			Title: "Running and waiting requests", Kind: TimeSeries, Unit: "{request}", Min: number(0),
			About: "A short queue is normal with bursts. A queue that grows is not.",
			Queries: []Query{
				{Expr: byModel(engineOf("vllm_num_requests_waiting")), Legend: "waiting {{model_name}}"},
				{Expr: byModel(engineOf("vllm_num_requests_running")), Legend: "running {{model_name}}"},
			},
			NoValue: noServer,
		},
		chart("Estimated queue wait", "s", "Of each server's worst engine. It is live, while the queue time is known only when requests end.",
			"No request got its first token in this time, so the wait is not known.", one(highest("instance, model_name", engineOf("vllm_request_queue_wait_estimate_seconds")), "{{instance}} {{model_name}}")),
		chart("Queue time", "s", "Percentiles over all chosen servers, of requests that ended.",
			"No request ended in this time; the metric needs vLLM 0.6.4.", percentiles("vllm_request_queue_time_seconds_bucket", "")),
		Panel{
			Title: "KV cache usage", Kind: TimeSeries, Unit: "1", Min: number(0), Max: number(1),
			About: "The fullest and the emptiest engine. A full cache is not bad by itself: preemptions and waiting show whether it is.",
			Queries: []Query{
				{Expr: "max(" + engineOf("vllm_kv_cache_utilization_ratio") + ")", Legend: "fullest"},
				{Expr: "min(" + engineOf("vllm_kv_cache_utilization_ratio") + ")", Legend: "emptiest"},
			},
			NoValue: noServer,
		},
		chart("Preemptions", "{preemption}/s", "Each is computed again. A few in a burst do no harm. vLLM counts a preemption when the request resumes.",
			"No server counts preemptions, or the processor vllm is missing.", one(byModel(engineOf("vllm_preemption_rate_per_second")), "{{model_name}}")),
		chart("Dropped requests", "{request}/s", "Requests that the servers refused or dropped before they served them. Each is a failure for a user.",
			"", one(byModel(engineOf("vllm_drop_rate_per_second")), "{{model_name}}")),
	)
}

func workPanels() []Panel {
	return sized(8, 8,
		Panel{
			Title: "Token throughput", Kind: TimeSeries, Unit: "{token}/s", Min: number(0),
			About: "Prompt tokens include those from a cache. Fewer tokens can mean fewer requests, shorter answers, or slower ones.",
			Queries: []Query{
				{Expr: byModel(rate(engineOf("vllm_prompt_tokens_total"))), Legend: "prompt {{model_name}}"},
				{Expr: byModel(rate(engineOf("vllm_generation_tokens_total"))), Legend: "generated {{model_name}}"},
			},
		},
		Panel{
			Title: "Prompt length", Kind: TimeSeries, Unit: "{token}", Min: number(0),
			About: "Percentiles over all chosen servers. Longer prompts need more prefill: a later first token need not be a fault.",
			Queries: []Query{
				{Expr: quantileOf(0.5, "vllm_request_prompt_tokens_bucket"), Legend: "p50 {{model_name}}"},
				{Expr: quantileOf(0.95, "vllm_request_prompt_tokens_bucket"), Legend: "p95 {{model_name}}"},
			},
			NoValue: "No request ended in this time.",
		},
		Panel{
			Title: "Output length", Kind: TimeSeries, Unit: "{token}", Min: number(0),
			About: "Percentiles over all chosen servers. Longer answers hold their place in the batch and in the KV cache for longer.",
			Queries: []Query{
				{Expr: quantileOf(0.5, "vllm_request_generation_tokens_bucket"), Legend: "p50 {{model_name}}"},
				{Expr: quantileOf(0.95, "vllm_request_generation_tokens_bucket"), Legend: "p95 {{model_name}}"},
			},
			NoValue: "No request ended in this time.",
		},
	)
}
