package content

// overview answers whether the servers are well, for whom they are not, since when and why.
func overview() Board {
	return Board{
		UID: "vllm-overview", Title: "vLLM overview", Set: "stable",
		Question:  "Are the servers well; if not, for whom, since when and why?",
		Variables: serverVariables(), Annotations: changes(),
		Rows: []Row{
			{Title: "Health", Panels: wellPanels()},
			{Title: "For whom, and since when?", Panels: whenPanels()},
			{Title: "Why?", Panels: whyPanels()},
			{Title: "Traffic, errors and latency", Panels: userPanels()},
			{Title: "Queue and KV cache", Panels: waitingPanels()},
			{Title: "Workload", Panels: workPanels()},
		},
	}
}

func wellPanels() []Panel {
	return sized(4, 4,
		Panel{
			Title: "Worst severity", Kind: Stat, Unit: "{level}", Mappings: severities(),
			About:   "The worst severity of all chosen engines. The causes are below.",
			NoValue: "No engine is known: the processor vllm is missing, or it has read no server yet.",
			Queries: now("max("+engineOf("vllm_diagnosis_severity")+")", "worst"),
			Links:   []Link{{Title: "Severities and conditions", URL: Repository + "docs/diagnosis.md"}},
		},
		Panel{
			Title: "Worst severity of a pool", Kind: Stat, Unit: "{level}", Mappings: severities(),
			About:   "A pool is at 3 while half or more of its servers do not serve.",
			Queries: now("max("+poolOf("vllm_pool_diagnosis_severity")+")", "worst"),
			Links:   []Link{{Title: "Pool and gateway", Board: "vllm-pool"}},
		},
		Panel{
			Title: "Servers up", Kind: Stat, Unit: "{server}",
			About:   "Servers that the last scrape could read.",
			NoValue: "No target: the receiver vllm has none, or the collector does not send.",
			Queries: now("sum("+server("vllm_up", notServers)+")", "up"),
		},
		Panel{
			Title: "Servers down", Kind: Stat, Unit: "{server}", Thresholds: anyIsBad(Red),
			About:   "Targets that the last scrape could not read. A target that discovery has removed is not among them.",
			NoValue: "No target: the receiver vllm has none, or the collector does not send.",
			Queries: now("sum(1 - "+server("vllm_up", notServers)+")", "down"),
		},
		Panel{
			Title: "Least budget left", Kind: Stat, Unit: "1", Thresholds: []Threshold{{-1000, Red}, {0, Orange}, {0.25, Green}},
			About:   "The error budget of 30 days of the objective that has least of it, from sums over all servers, so that it outlives a pod. What cannot be decided counts as bad. While less than 30 days were observed, it covers the time that was.",
			Queries: now("min("+ofServers.budget("30d", lower)+")", "left"),
			Links:   []Link{{Title: "Objectives", Board: "vllm-objectives"}},
		},
		Panel{
			Title: "Fastest burn", Kind: Stat, Unit: "1", Factor: true, Thresholds: []Threshold{{0, Green}, {6, Orange}, {14.4, Red}},
			About:   "How many times faster than allowed the budget was certainly used in the last hour. At 14.4 a budget of 30 days lasts two days.",
			Queries: now("max("+ofServers.burn("1h", lower)+")", "burn"),
			Links:   []Link{{Title: "Objectives", Board: "vllm-objectives"}},
		},
	)
}

func whenPanels() []Panel {
	return sized(24, 7,
		Panel{
			Title: "Condition by engine", Kind: StateTimeline, Unit: "{state}", Mappings: conditionWords(),
			About:   "One line for each engine. The colour is the severity of the condition.",
			NoValue: "No engine is known: the processor vllm is missing, or it has read no server yet.",
			Queries: one(worstConditions(engineMatchers), "{{instance}} {{engine}} {{model_name}}"),
			Links:   []Link{{Title: "Engine", Board: "vllm-engine"}},
		},
		Panel{
			Title: "Condition by pool", Kind: StateTimeline, Unit: "{state}", Mappings: conditionWords(), Width: 16, Height: 5,
			About:   "A pool is what users meet: one bad server among many need not harm it.",
			Queries: one(conditionCode("vllm_pool_diagnosis_condition", "k8s_namespace_name, model_name", poolMatchers), "{{model_name}} {{k8s_namespace_name}}"),
			Links:   []Link{{Title: "Pool and gateway", Board: "vllm-pool"}},
		},
		Panel{
			Title: "Time at warning or page", Kind: Table, Unit: "s", Width: 8, Height: 5,
			About:   "How long the worst engine of each server was at severity 2 or 3 within the chosen time, counted by the minute.",
			NoValue: "No engine was at warning or page in this time, or no engine is known.",
			Queries: now("max by (instance, model_name) (sum_over_time(("+engineOf("vllm_diagnosis_severity")+" >= bool 2)[$__range:1m])) * 60 > 0", ""),
			Columns: []Column{
				{Label: "model_name", Title: "Model"},
				{Label: "instance", Title: "Server", Board: "vllm-engine", Variable: "instance"},
				{Label: ValueColumn, Title: "Time", Descending: true},
			},
		},
	)
}

func whyPanels() []Panel {
	return sized(24, 7,
		causesTable(Panel{
			Title: "Causes", Width: 15,
			About:   "Begin with the primary cause. Each cause is a link to its runbook, each server to its signals. A notice does no harm.",
			NoValue: noCauseOfEngine,
			Links:   []Link{{Title: "Engine", Board: "vllm-engine"}},
		}, engineOf("vllm_diagnosis_cause"),
			Column{Label: "detail", Title: "Detail"},
			Column{Label: "model_name", Title: "Model"},
			Column{Label: "instance", Title: "Server", Board: "vllm-engine", Variable: "instance"},
			Column{Label: "engine", Title: "Engine"},
			Column{Label: "k8s_pod_name", Title: "Pod"},
		),
		causesTable(Panel{
			Title: "Causes of pools now", Width: 9,
			About:   "Each cause is a link to its runbook.",
			NoValue: noCauseOfPool,
			Links:   []Link{{Title: "Pool and gateway", Board: "vllm-pool"}},
		}, poolOf("vllm_pool_diagnosis_cause"),
			Column{Label: "detail", Title: "Detail"},
			Column{Label: "model_name", Title: "Model"},
			Column{Label: "k8s_namespace_name", Title: "Namespace"},
		),
	)
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
			NoValue: "No HTTP answers in this time; the metric needs vLLM 0.8.3.",
		},
		Panel{
			Title: "Finished requests by reason", Kind: TimeSeries, Unit: "{request}/s", Min: number(0), Stacked: true,
			About:   "Requests that ended, by reason. error is a failure of the engine, abort a request that the engine gave up. Requests whose client left are abort with vLLM's Rust front end and missing else; requests that failed before the engine are missing always.",
			Queries: one("sum by (finished_reason) ("+rate(engineOf("vllm_request_success_total"))+")", "{{finished_reason}}"),
		},
		Panel{
			Title: "Time to first token", Kind: TimeSeries, Unit: "s", Min: number(0),
			About:   "Percentiles over all chosen servers, from their buckets together. " + drawnByName + "a name with ttft or first.",
			NoValue: "No request got its first token in this time.",
			Queries: percentiles("vllm_time_to_first_token_seconds_bucket", ttftObjectives),
		},
		Panel{
			Title: "Inter-token latency", Kind: TimeSeries, Unit: "s", Min: number(0),
			About:   "How smoothly answers stream. With speculative decoding a gap can yield several tokens. " + drawnByName + "a name with itl or inter.",
			NoValue: "No tokens were generated in this time.",
			Queries: percentiles("vllm_inter_token_latency_seconds_bucket", itlObjectives),
		},
		Panel{
			Title: "Request latency", Kind: TimeSeries, Unit: "s", Min: number(0),
			About:   "From arrival to the last token; long answers take long. It changes when requests end. " + drawnByName + "a name with e2e or end.",
			NoValue: "No request ended in this time.",
			Queries: percentiles("vllm_e2e_request_latency_seconds_bucket", e2eObjectives),
		},
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
			NoValue: "No server was read.",
		},
		Panel{
			Title: "Estimated queue wait", Kind: TimeSeries, Unit: "s", Min: number(0),
			About:   "Of each server's worst engine. It is live, while the queue time is known only when requests end.",
			NoValue: "No request got its first token in this time, so the wait is not known.",
			Queries: one(highest("instance, model_name", engineOf("vllm_request_queue_wait_estimate_seconds")), "{{instance}} {{model_name}}"),
		},
		Panel{
			Title: "Queue time", Kind: TimeSeries, Unit: "s", Min: number(0),
			About:   "Percentiles over all chosen servers, of requests that ended.",
			NoValue: "No request ended in this time; the metric needs vLLM 0.6.4.",
			Queries: percentiles("vllm_request_queue_time_seconds_bucket", ""),
		},
		Panel{
			Title: "KV cache usage", Kind: TimeSeries, Unit: "1", Min: number(0), Max: number(1),
			About: "The fullest and the emptiest engine. A full cache is not bad by itself: preemptions and waiting show whether it is.",
			Queries: []Query{
				{Expr: "max(" + engineOf("vllm_kv_cache_utilization_ratio") + ")", Legend: "fullest"},
				{Expr: "min(" + engineOf("vllm_kv_cache_utilization_ratio") + ")", Legend: "emptiest"},
			},
			NoValue: "No server was read.",
		},
		Panel{
			Title: "Preemptions", Kind: TimeSeries, Unit: "{preemption}/s", Min: number(0),
			About:   "Each is computed again. A few in a burst do no harm. vLLM counts a preemption when the request resumes.",
			Queries: one(byModel(engineOf("vllm_preemption_rate_per_second")), "{{model_name}}"),
			NoValue: "No server counts preemptions, or the processor vllm is missing.",
		},
		Panel{
			Title: "Dropped requests", Kind: TimeSeries, Unit: "{request}/s", Min: number(0),
			About:   "Requests that the servers refused or dropped before they served them. Each is a failure for a user.",
			Queries: one(byModel(engineOf("vllm_drop_rate_per_second")), "{{model_name}}"),
		},
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
