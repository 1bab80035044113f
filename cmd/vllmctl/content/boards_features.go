package content

// features answers whether caches and optional features of vLLM pay.
func features() Board {
	return Board{
		UID: "vllm-features", Title: "vLLM caches and features", Set: "stable",
		Question:  "Do the caches help, and do the features that are switched on pay?",
		Variables: serverVariables(), Annotations: changes(),
		Rows: []Row{
			{Title: "Prefix cache", Panels: prefixPanels()},
			{Title: "Speculative decoding", Collapsed: true, Needs: "--speculative-config", Panels: speculationPanels()},
			{Title: "LoRA", Collapsed: true, Needs: "--enable-lora", Panels: loraPanels()},
			{Title: "KV connector", Collapsed: true, Needs: "--kv-transfer-config", Panels: connectorPanels()},
			{Title: "KV offloading", Collapsed: true, Needs: "--kv-offloading-size", Panels: offloadPanels()},
			{Title: "Multi-modal cache", Collapsed: true, Needs: "a multi-modal model", Panels: multiModalPanels()},
			{Title: "Model FLOPs utilization", Collapsed: true, Needs: "--enable-mfu-metrics, and hardware in the processor vllm", Panels: mfuPanels()},
			{Title: "Sleep", Collapsed: true, Needs: "--enable-sleep-mode", Panels: sleepPanels()},
		},
	}
}

// shareOver is a share from sums over all chosen servers of a model.
func shareOver(part, whole string) []Query {
	return one(byModel(rate(engineOf(part)))+" / ("+byModel(rate(engineOf(whole)))+" > 0)", "{{model_name}}")
}

func ofEngineQuery(metric string) []Query {
	return one(ofEngine(metric), "{{instance}} {{engine}} {{model_name}}")
}

func prefixPanels() []Panel {
	return sized(8, 8,
		percent("Prefix cache hit ratio", "Share of the looked-up tokens that were found, over all chosen servers. Different prompts make a low share normal; a fall with the same work is worth a look. Before 0.27 vLLM looks a waiting request up again and again, so do not trust the share while requests wait.",
			"No prompt was looked up in this time, or prefix caching is off.", shareOver("vllm_prefix_cache_hits_total", "vllm_prefix_cache_queries_total")),
		percent("Prefix cache hit ratio by engine", "An engine that differs from the others gets other prompts.",
			"", one(leastOfEngine("vllm_prefix_cache_hit_ratio"), "{{instance}} {{engine}} {{model_name}}")),
		Panel{
			Title: "Cached prompt tokens by tier", Kind: TimeSeries, Unit: "{token}/s", Min: number(0), Stacked: true,
			About:   "Where the cached part of the prompts was: device is the GPU, host its server's memory.",
			NoValue: "No cached tokens in this time; the metric needs vLLM 0.32.",
			Queries: one("sum by (source) ("+rate(engineOf("vllm_prompt_tokens_cached_by_source_total"))+")", "{{source}}"),
		},
		Panel{
			Title: "Prompt tokens by source", Kind: TimeSeries, Unit: "{token}/s", Min: number(0), Stacked: true,
			About:   "What was computed, and what came from a cache.",
			NoValue: "The metric needs vLLM 0.16.",
			Queries: one("sum by (source) ("+rate(engineOf("vllm_prompt_tokens_by_source_total"))+")", "{{source}}"),
		},
		chart("Recomputed cached tokens", "{token}/s", "A cache that is too small throws prompts away that come again. vLLM also recomputes the last token of a prompt that is cached as a whole.",
			"The metric needs vLLM 0.16.", one(byModel(rate(engineOf("vllm_prompt_tokens_recomputed_total"))), "{{model_name}}")),
		chart("Wasted tokens", "1", "The worst engine, by reason, at least.",
			"", one("max by (reason, model_name) ("+engineOf("vllm_wasted_tokens_ratio", `bound=~"|lower"`)+")", "{{reason}} {{model_name}}")),
	)
}

func speculationPanels() []Panel {
	return sized(8, 8,
		percent("Draft acceptance ratio", "Share of the draft tokens of all chosen servers. A low share wastes work.",
			"No drafts: speculative decoding is off, or there was no traffic.", shareOver("vllm_spec_decode_num_accepted_tokens_total", "vllm_spec_decode_num_draft_tokens_total")),
		Panel{
			Title: "Mean acceptance length", Kind: TimeSeries, Unit: "{token}", Min: number(1),
			About:   "1 means no gain.",
			Queries: one(leastOfEngine("vllm_spec_decode_mean_acceptance_length"), "{{instance}} {{engine}} {{model_name}}"),
		},
		percent("Acceptance by draft position", "The engine that accepts least. Late positions that are hardly ever accepted are not worth their drafts.",
			"", one("min by (position, model_name) ("+engineOf("vllm_spec_decode_position_acceptance_ratio")+")", "position {{position}} {{model_name}}")),
	)
}

func loraPanels() []Panel {
	return sized(8, 8,
		chart("Running adapters", "{adapter}", "On how many servers each adapter has running requests.",
			"No adapter has run: no LoRA adapter is loaded, or none was asked for.", one("sum by (adapter_name) ("+server("vllm_lora_adapter_running")+")", "{{adapter_name}}")),
		chart("Waiting adapters", "{adapter}", "On how many servers requests for an adapter wait. More adapters at once than slots make requests wait. Since 0.11.1 vLLM in Python lists each adapter in use here, whether it waits or not.",
			"No adapter has waited.", one("sum by (adapter_name) ("+server("vllm_lora_adapter_waiting")+")", "{{adapter_name}}")),
		Panel{
			Title: "Adapter slots", Kind: TimeSeries, Unit: "{adapter}", Min: number(0),
			About:   "How many adapters can run at once on a server (`--max-loras`): the servers with the most and the fewest.",
			NoValue: "LoRA is off.",
			Queries: []Query{
				{Expr: "max(" + server("vllm_lora_max_adapters") + ")", Legend: "most"},
				{Expr: "min(" + server("vllm_lora_max_adapters") + ")", Legend: "fewest"},
			},
		},
		Panel{
			Title: "Adapters loaded by the syncer", Kind: StateTimeline, Unit: "{state}", Width: 24, Height: 6,
			Mappings: []Mapping{{0, "not loaded", Red}, {1, "loaded", Green}},
			About:    "What the LoRA syncer of each server has loaded. The worst server of each adapter.",
			NoValue:  "No LoRA syncer is a target of the receiver.",
			Queries:  one("min by (adapter_name) ("+gatewayOf("inference_gateway_lora_adapter_status")+")", "{{adapter_name}}"),
		},
	)
}

func connectorPanels() []Panel {
	return sized(8, 8,
		percent("External cache hit ratio", "Share of the tokens looked up through the connector that it found, over all chosen servers.",
			"Nothing was looked up: there is no KV connector, or no traffic.", shareOver("vllm_external_prefix_cache_hits_total", "vllm_external_prefix_cache_queries_total")),
		chart("Failed transfers (NIXL)", "{transfer}/s", "After a failed transfer the prompt is computed again. Each rank of tensor parallelism counts its own.",
			"The connector is not NIXL.", one(highestRate("instance", engineOf("vllm_nixl_num_failed_transfers_total")), "{{instance}}")),
		chart("Transfer time, p95 (NIXL)", "s", "Over all chosen servers.",
			"The connector is not NIXL, or nothing was transferred.", one(quantileOf(0.95, "vllm_nixl_xfer_time_seconds_bucket"), "{{model_name}}")),
	)
}

func offloadPanels() []Panel {
	return sized(12, 8,
		Panel{
			Title: "Offload throughput", Kind: TimeSeries, Unit: "By/s", Min: number(0),
			About:   "Between the GPU and the place to which KV is offloaded.",
			NoValue: "No offloading connector.",
			Queries: []Query{
				{Expr: byModel(rate(engineOf("vllm_kv_offload_load_bytes_total"))), Legend: "loaded {{model_name}}"},
				{Expr: byModel(rate(engineOf("vllm_kv_offload_store_bytes_total"))), Legend: "stored {{model_name}}"},
			},
		},
		percent("Offload cache usage", "The fullest engine of each server.",
			"No offloading connector.", one(highest("instance, model_name", engineOf("vllm_kv_offload_cpu_cache_utilization_ratio")), "{{instance}} {{model_name}}")),
	)
}

func multiModalPanels() []Panel {
	return sized(12, 8,
		percent("Multi-modal cache hit ratio", "Share of the looked-up items, over all chosen servers.",
			"Nothing was looked up: the model takes text only, or there was no traffic.", shareOver("vllm_mm_cache_hits_total", "vllm_mm_cache_queries_total")),
	)
}

func mfuPanels() []Panel {
	return sized(12, 8,
		percent("FLOPs utilization", "Estimated by vLLM from the shapes of its steps. It misses most of the work of some quantized models, and that of draft models.",
			"", ofEngineQuery("vllm_model_flops_utilization_ratio")),
		percent("Memory bandwidth utilization", "Decode is limited by it, prefill by arithmetic.",
			"", ofEngineQuery("vllm_memory_bandwidth_utilization_ratio")),
	)
}

func sleepPanels() []Panel {
	return sized(24, 6,
		Panel{
			Title: "Awake", Kind: StateTimeline, Unit: "{state}", Mappings: []Mapping{{0, "asleep", Grey}, {1, "awake", Green}},
			About:   "An engine that sleeps serves nothing until it is woken.",
			NoValue: "The metric needs vLLM 0.11.1.",
			Queries: one(lowest(perEngine, engineOf("vllm_engine_sleep_state", `sleep_state="awake"`)), "{{instance}} {{engine}} {{model_name}}"),
		},
	)
}
