package content

import "fmt"

// engine answers what an engine does with its time.
func engine() Board {
	return Board{
		UID: "vllm-engine", Title: "vLLM engine", Set: "stable",
		Question:  "What is different in this engine from how it usually works, and where does the time of a request go?",
		Variables: serverVariables(), Annotations: changes(),
		Rows: []Row{
			{Title: "Health", Panels: statePanels()},
			{Title: "Signals against their baseline", Collapsed: true, Needs: "vllm.diagnosis.signal and vllm.diagnosis.signal_ratio, which are off by default", Panels: signalPanels()},
			{Title: "Latency", Panels: timePanels()},
			{Title: "Scheduler", Panels: stepPanels()},
			{Title: "API server", Panels: serverPanels()},
			{Title: "KV cache", Panels: kvPanels()},
			{Title: "GPU", Collapsed: true, Needs: "an exporter of GPU metrics among the targets of the receiver", Panels: gpuPanels()},
		},
	}
}

const perEngine = "instance, engine, model_name"

// ofEngine is a gauge of each engine. Where a server has several engines, its series
// without the label engine is the value over all of them.
func ofEngine(metric string, more ...string) string {
	return highest(perEngine, engineOf(metric, more...))
}

// leastOfEngine is the same where low values are the ones to look at.
func leastOfEngine(metric string) string { return lowest(perEngine, engineOf(metric)) }

func statePanels() []Panel {
	return sized(24, 6,
		Panel{
			Title: "Condition", Kind: StateTimeline, Unit: "{state}", Mappings: conditionWords(), Width: 16,
			About:   "The colour is the severity of the condition.",
			NoValue: noEngine,
			Queries: one(worstConditions(engineMatchers), "{{instance}} {{engine}} {{model_name}}"),
		},
		Panel{
			Title: "Up", Kind: StateTimeline, Unit: "{state}", Mappings: upDown(), Width: 8,
			About:   "Whether the last scrape could read the server.",
			NoValue: noTarget,
			Queries: one(lowest("instance", server("vllm_up", notServers)), "{{instance}}"),
		},
		causesTable(Panel{
			Title: "Causes", Width: 16,
			About:   "Each cause is a link to its runbook.",
			NoValue: noCauseOfEngine,
		}, []string{engineOf("vllm_diagnosis_cause")},
			Column{Label: "detail", Title: "Detail"},
			Column{Label: "model_name", Title: "Model"},
			Column{Label: "instance", Title: "Server"},
			Column{Label: "engine", Title: "Engine"},
		),
		Panel{
			Title: "Scrape failures", Kind: TimeSeries, Unit: "{state}", Width: 8, Min: number(0), Max: number(1),
			About:   "The outcome of scrapes that failed.",
			NoValue: "No scrape failed in this time.",
			Queries: one("max by (instance, outcome) ("+server("vllm_scrape_failure", notServers)+")", "{{instance}} {{outcome}}"),
		},
		Panel{
			Title: "Share of the harm by cause", Kind: TimeSeries, Unit: "1", Min: number(0), Max: number(1), Width: 24,
			About:   "How much of the harm each cause explains; what is missing to 1 is not explained.",
			NoValue: noCauseOfEngine,
			Queries: one(highest("instance, engine, cause", engineOf("vllm_diagnosis_cause_share_ratio")), "{{cause}} {{instance}} {{engine}}"),
		},
	)
}

// signalOf are the chosen signals. A queue that is usually empty has ratios of millions, which would hide all
// else, so 20 is the most that is drawn.
func signalOf(metric, signals string) string {
	series := engineOf(metric, `signal=~"`+signals+`"`)
	const all = "max by (instance, engine, signal) ("
	return all + "clamp_max(" + series + ", 20)) and topk by (signal) (5, " + all + "avg_over_time(" + series + "[$__range] @ end())))"
}

func signalPanels() []Panel {
	ratio := func(title, about, signals string) Panel {
		return Panel{
			Title: title, Kind: TimeSeries, Unit: Multiple, Min: number(0),
			About: about + " 1 is the reference: the objective, else the baseline of this engine, else a documented default. 20 is 20 or more.",
			Queries: []Query{
				{Expr: signalOf("vllm_diagnosis_signal_ratio", signals), Legend: "{{signal}} {{instance}} {{engine}}"},
			},
			NoValue: "Switch it on in the processor: `metrics: {vllm.diagnosis.signal_ratio: {enabled: true}}`.",
		}
	}
	return sized(12, 8,
		ratio("Latency signals", "What users feel, relative to the reference.", "time_to_first_token_mean|inter_token_latency_mean|queue_time_mean|prefill_time_mean|frontend_overhead_mean"),
		ratio("Load signals", "What was asked for, relative to the reference.", "arrival_rate|prompt_tokens_per_request|output_tokens_per_request|computed_tokens_per_request|running"),
		ratio("Speed signals", "How fast the same work is done, relative to the reference.", "step_time_mean|step_time_factor|prefill_time_factor|generation_throughput|acceptance_length"),
		Panel{
			Title: "Failure signals", Kind: TimeSeries, Unit: "1", Min: number(0),
			About: "Shares of requests that were dropped, ended in errors or have corrupted output.",
			Queries: one(signalOf("vllm_diagnosis_signal", "dropped_ratio|error_ratio|corrupted_ratio|objective_missed_ratio"),
				"{{signal}} {{instance}} {{engine}}"),
			NoValue: "Switch it on in the processor: `metrics: {vllm.diagnosis.signal: {enabled: true}}`.",
		},
	)
}

// meanOver is a mean of observations over all chosen servers of a model.
func meanOver(histogram string) string {
	return fmt.Sprintf("sum by (model_name) (%s) / (sum by (model_name) (%s) > 0)",
		rate(engineOf(histogram+"_sum")), rate(engineOf(histogram+"_count")))
}

func timePanels() []Panel {
	mean := func(histogram, name string) Query {
		return Query{Expr: meanOver(histogram), Legend: name + " {{model_name}}"}
	}
	return sized(12, 8,
		Panel{
			Title: "Mean time by request phase", Kind: TimeSeries, Unit: "s", Min: number(0), Stacked: true,
			About: "Of the requests that ended, over all chosen servers: sums of times divided by numbers of requests. The rest of the whole latency is the API server.",
			Queries: []Query{
				mean("vllm_request_queue_time_seconds", "queue"),
				mean("vllm_request_prefill_time_seconds", "prefill"),
				mean("vllm_request_decode_time_seconds", "decode"),
			},
			NoValue: "No request ended in this time; the metrics need vLLM 0.6.4.",
		},
		Panel{
			Title: "Time to first token, p95", Kind: TimeSeries, Unit: "s", Min: number(0),
			About: "Of each server. Compare servers: one that differs is the place to look. " + drawnLimit,
			Queries: []Query{
				{Expr: ofEngine("vllm_time_to_first_token_quantile_seconds", `quantile="0.95"`), Legend: "{{instance}} {{engine}} {{model_name}}"},
				strictest(ttft),
			},
			NoValue: "No request got its first token in this time.",
		},
		Panel{
			Title: "Inter-token latency, p95", Kind: TimeSeries, Unit: "s", Min: number(0),
			About: "Of each server. " + drawnLimit,
			Queries: []Query{
				{Expr: ofEngine("vllm_inter_token_latency_quantile_seconds", `quantile="0.95"`), Legend: "{{instance}} {{engine}} {{model_name}}"},
				strictest(itl),
			},
			NoValue: "No tokens were generated in this time.",
		},
		chart("Time per output token (TPOT)", "s", "Each request counts once, so it hides single pauses: see the time between tokens for these. "+drawnLimit,
			"No request ended in this time; the metric needs vLLM 0.11.", percentiles("vllm_request_time_per_output_token_seconds_bucket", tpot)),
		chart("Request latency, p95", "s", "Of each server. "+drawnLimit, "No request ended in this time.", []Query{
			{Expr: ofEngine("vllm_e2e_request_latency_quantile_seconds", `quantile="0.95"`), Legend: "{{instance}} {{engine}} {{model_name}}"}, strictest(e2e),
		}),
		chart("Requests by server", "{request}/s", "First tokens per second. Servers of one pool should get similar shares.",
			noServer, one(highestRate("instance, model_name", engineOf("vllm_time_to_first_token_seconds_count")), "{{instance}} {{model_name}}")),
	)
}

// serverPanels show what the API server answered, for requests that never reach the engine, too.
func serverPanels() []Panel {
	const by = "sum by (handler) ("
	duration := func(part string) string { return by + rate(server("http_request_duration_seconds_"+part)) + ")" }
	return sized(12, 8,
		Panel{
			Title: "API server overhead, mean", Kind: TimeSeries, Unit: "s",
			About:   "Time outside of queue and engine: the worst engine of each server.",
			Queries: one(ofEngine("vllm_frontend_overhead_mean_seconds"), "{{instance}} {{engine}} {{model_name}}"),
		},
		chart("HTTP requests by route", "{request}/s", "Of all chosen servers, also those that fail before the engine.",
			noHTTP, one("sum by (handler, status) ("+rate(server("http_requests_total"))+")", "{{handler}} {{status}}")),
		chart("HTTP duration by route, mean", "s", "To the end of the answer, also of a stream.", noHTTP, one(duration("sum")+" / ("+duration("count")+" > 0)", "{{handler}}")),
		chart("Open file descriptors", "{file_descriptor}", "Of each API server; each connection holds one.",
			"Not reported with several API server processes.", one(highest("instance", server("process_open_fds")), "{{instance}}")),
	)
}

func stepPanels() []Panel {
	return sized(8, 8,
		chart("Running requests", "{request}", "Requests in the batch of each engine.",
			noServer, one(ofEngine("vllm_num_requests_running"), "{{instance}} {{engine}} {{model_name}}")),
		chart("Waiting requests", "{request}", "Requests that wait at each engine, for a place in its batch or for something else.",
			noServer, one(ofEngine("vllm_num_requests_waiting"), "{{instance}} {{engine}} {{model_name}}")),
		chart("Waiting requests by reason", "{request}", "capacity is a full engine; deferred waits for something else: a LoRA slot, a compiled grammar or KV from another server.",
			"No reasons: the metric needs vLLM 0.20.", one(chosenSeries("topk", "sum", "instance, reason", engineOf("vllm_num_requests_waiting_by_reason")), "{{reason}} {{instance}}")),
		chart("Tokens per engine step", "{token}", "How well work is batched.",
			"", one(ofEngine("vllm_tokens_per_iteration"), "{{instance}} {{engine}} {{model_name}}")),
		chart("Output token throughput", "{token}/s", "It stays constant while an engine is full. It falls to 0 with running requests if the engine stalls.",
			"", one(leastOfEngine("vllm_generation_throughput_per_second"), "{{instance}} {{engine}} {{model_name}}")),
		chart("Prefill throughput", "{token}/s", "Without those from a cache: the work of prefill.",
			"", one(ofEngine("vllm_prefill_compute_throughput_per_second"), "{{instance}} {{engine}} {{model_name}}")),
	)
}

func kvPanels() []Panel {
	return sized(8, 8,
		percent("KV cache usage", "Of each engine. A full cache is not bad by itself.",
			noServer, one(ofEngine("vllm_kv_cache_utilization_ratio"), "{{instance}} {{engine}} {{model_name}}")),
		chart("Free KV cache", "{token}", "Tokens that still fit.",
			"", one(leastOfEngine("vllm_kv_cache_free"), "{{instance}} {{engine}} {{model_name}}")),
		chart("Preemptions per first token", "{preemption}", "With waiting requests and late tokens, a sign that the cache is too small.",
			"", one(ofEngine("vllm_preemptions_per_first_token"), "{{instance}} {{engine}} {{model_name}}")),
		Panel{
			Title: "Configuration", Kind: Table, Unit: "{token}", Width: 24, Height: 6,
			About: "What differs between servers of one model is worth a look. The capacity is what vLLM found room for at its start.",
			Queries: []Query{
				{Expr: "max by (instance, engine, service_version) (" + server("vllm_kv_cache_capacity") + ")", Instant: true},
			},
			Columns: []Column{
				{Label: "instance", Title: "Server"},
				{Label: "engine", Title: "Engine"},
				{Label: "service_version", Title: "vLLM"},
				{Label: ValueColumn, Title: "KV cache, tokens"},
			},
		},
	)
}
