package content

// wall answers one question for a screen on a wall: does anything need a person?
func wall() Board {
	return Board{
		UID: "vllm-wall", Title: "vLLM status wall", Set: "stable",
		Question: "Does anything need a person now?",
		Variables: append(scopeVariables(),
			choice("model", "Model", `vllm_diagnosis_severity{`+scopeMatchers+`}`, "model_name"),
		),
		Rows: []Row{{Title: "Health", Panels: wallPanels()}, {Title: "Timeline", Panels: wallTimelines()}},
	}
}

func wallPanels() []Panel {
	const matchers = scopeMatchers + `,model_name=~"$model"`
	return sized(12, 8,
		Panel{
			Title: "Severity by model", Kind: Stat, Unit: "{level}", Mappings: severityWords(),
			About:   "The worst engine of each model.",
			NoValue: noEngine,
			Queries: now("max by (model_name) ("+selector("vllm_diagnosis_severity", matchers, nil)+")", "{{model_name}}"),
			Links:   []Link{{Title: "Overview", Board: "vllm-overview"}},
		},
		Panel{
			Title: "Severity by pool", Kind: Stat, Unit: "{level}", Mappings: severityWords(),
			About:   "The severity of each pool.",
			Queries: now("max by (model_name, k8s_namespace_name) ("+poolOf("vllm_pool_diagnosis_severity")+")", "{{model_name}} {{k8s_namespace_name}}"),
			Links:   []Link{{Title: "Pool and gateway", Board: "vllm-pool"}},
		},
		Panel{
			Title: "Servers down", Kind: Stat, Unit: "{server}", Thresholds: anyIsBad(Red),
			About:   "Targets that the last scrape could not read.",
			NoValue: noTarget,
			Queries: now("sum(1 - "+selector("vllm_up", scopeMatchers, []string{notServers})+")", "down"),
		},
		Panel{
			Title: "Primary causes", Kind: Table, Unit: "{state}",
			About:   "Of engines and of pools. Each cause is a link to its runbook.",
			NoValue: noCauseOfEngine,
			Queries: now("count by (cause, model_name) ("+selector("vllm_diagnosis_cause", matchers, []string{`role="primary"`})+" == 1"+
				" or "+poolOf("vllm_pool_diagnosis_cause", `role="primary"`)+" == 1)", ""),
			Columns: []Column{
				{Label: "cause", Title: "Cause", Runbook: true},
				{Label: "model_name", Title: "Model"},
				{Label: ValueColumn, Title: "Engines and pools", Descending: true},
			},
		},
	)
}

func wallTimelines() []Panel {
	const matchers = scopeMatchers + `,model_name=~"$model"`
	return sized(24, 7,
		Panel{
			Title: "Severity by model over time", Kind: StateTimeline, Unit: "{level}", Mappings: severityWords(),
			About:   "The worst engine of each model.",
			NoValue: noEngine,
			Queries: one("max by (model_name) ("+selector("vllm_diagnosis_severity", matchers, nil)+")", "{{model_name}}"),
		},
	)
}
