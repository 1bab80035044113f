package content

// collectorMatchers are the choices of the board about collectors. Their telemetry is
// scraped from port 8888, so job and instance are those of that scrape.
// The names of the variables differ from those of servers: a link from another board must
// not choose the collectors whose name is that of a server.
const collectorMatchers = `job=~"$scrapejob",instance=~"$collector"`

func own(metric string) string { return selector(metric, collectorMatchers, nil) }

// collectorBoard answers whether the collector reads, computes and delivers. Its metrics have
// the names of the page on port 8888; see docs/start/dashboards.md.
func collectorBoard() Board {
	return Board{
		UID: "vllm-collector", Title: "vLLM collector", Set: "stable",
		Question: "Does the collector read all servers, and does everything arrive?",
		Variables: []Variable{
			choice("scrapejob", "Job", "otelcol_process_uptime", "job"),
			choice("collector", "Collector", `otelcol_process_uptime{job=~"$scrapejob"}`, "instance"),
		},
		Rows: []Row{
			{Title: "Health", Panels: collectorPanels()},
			{Title: "Receiver", Panels: receiverPanels()},
			{Title: "Processor", Panels: processorPanels()},
			{Title: "Exporters", Panels: exporterPanels()},
			{Title: "Connector", Collapsed: true, Needs: "the connector vllm_diagnosis", Panels: diagnosisConnectorPanels()},
		},
	}
}

const notScraped = "No telemetry of a collector: let Prometheus scrape its port 8888."

func increasesOf(metric, by, legend string) []Query {
	return one("sum by ("+by+") ("+rate(own(metric))+")", legend)
}

func collectorPanels() []Panel {
	return sized(6, 6,
		Panel{
			Title: "Targets", Kind: Stat, Unit: "{target}", NoValue: notScraped,
			About:   "Targets that are being scraped.",
			Queries: now("sum by (instance) ("+own("otelcol_receiver_vllm_targets")+")", "{{instance}}"),
		},
		Panel{
			Title: "Fullest queue", Kind: Stat, Unit: "1", NoValue: notScraped + " Or no exporter has a queue.",
			Thresholds: []Threshold{{0, Green}, {0.5, Orange}, {0.9, Red}},
			About:      "A full queue loses data. It fills while a backend does not accept what is sent.",
			Queries:    now("max(max by (instance, exporter) ("+own("otelcol_exporter_queue_size")+") / (max by (instance, exporter) ("+own("otelcol_exporter_queue_capacity")+") > 0))", "fullest"),
		},
		chart("Memory", "By", "Resident memory of each collector.",
			notScraped, one("max by (instance) ("+own("otelcol_process_memory_rss")+")", "{{instance}}")),
		chart("CPU", "{core}", "Cores that each collector uses.",
			notScraped, one("sum by (instance) ("+rate(own("otelcol_process_cpu_seconds"))+")", "{{instance}}")),
	)
}

func receiverPanels() []Panel {
	return sized(8, 7,
		chart("Scrapes by outcome", "{scrape}/s", "Anything but ok is a target that could not be read; the log names it once.",
			notScraped, increasesOf("otelcol_receiver_vllm_scrapes", "outcome", "{{outcome}}")),
		chart("Dropped points", "{datapoint}/s", "By reason. It does not increase for a healthy server within the limits.",
			"Nothing was lost since the start of the collector, or its telemetry is not scraped.", increasesOf("otelcol_receiver_vllm_dropped_points", "reason", "{{reason}}")),
		chart("Unreadable lines", "{line}/s", "By reason. All other lines of the body were delivered.",
			"All lines could be read since the start of the collector, or its telemetry is not scraped.", increasesOf("otelcol_receiver_vllm_bad_lines", "reason", "{{reason}}")),
		chart("Parse time, p99", "s", "Over all targets of a collector.",
			notScraped, one(quantile(0.99, "le, instance", own("otelcol_receiver_vllm_parse_duration_bucket")), "{{instance}}")),
		chart("Server restarts", "{reset}/s", "Detected by counters that fell.",
			"No server has restarted since the start of the collector, or its telemetry is not scraped.", increasesOf("otelcol_receiver_vllm_resets", "instance", "{{instance}}")),
		chart("Targets over the limit", "{target}", "Discovered targets that are not scraped: raise `limits::targets`.",
			notScraped, one("sum by (instance) ("+own("otelcol_receiver_vllm_target_overflow")+")", "{{instance}}")),
	)
}

func processorPanels() []Panel {
	return sized(8, 7,
		chart("Derived points", "{datapoint}/s", "What the processor adds.",
			notScraped, increasesOf("otelcol_processor_vllm_derived_points", "instance", "{{instance}}")),
		chart("Series in memory", "{series}", "At most `max_series`.",
			notScraped, one("sum by (instance) ("+own("otelcol_processor_vllm_series")+")", "{{instance}}")),
		chart("Ignored points", "{datapoint}/s", "By reason; they are passed on all the same.",
			"All points were used since the start of the collector, or its telemetry is not scraped.", increasesOf("otelcol_processor_vllm_ignored_points", "reason", "{{reason}}")),
	)
}

func exporterPanels() []Panel {
	return sized(8, 7,
		Panel{
			Title: "Exporter queue usage", Kind: TimeSeries, Unit: "1", Min: number(0), Max: number(1), NoValue: "No exporter has a queue, or the telemetry of the collector is not scraped.",
			About: "Of each exporter. A queue that grows means that the backend does not keep up or does not answer.",
			Queries: one("max by (instance, exporter) ("+own("otelcol_exporter_queue_size")+") / (max by (instance, exporter) ("+own("otelcol_exporter_queue_capacity")+") > 0)",
				"{{exporter}} {{instance}}"),
		},
		chart("Sent points", "{datapoint}/s", "Accepted by the backend.",
			"Nothing was sent since the start of the collector, or its telemetry is not scraped. A Prometheus exporter is scraped and does not send.", increasesOf("otelcol_exporter_sent_metric_points", "exporter", "{{exporter}}")),
		Panel{
			Title: "Lost points", Kind: TimeSeries, Unit: "{datapoint}/s", Min: number(0),
			NoValue: "Nothing was lost since the start of the collector, or its telemetry is not scraped.",
			About:   "Permanently refused by the backend, or refused by a full queue.",
			Queries: []Query{
				{Expr: "sum by (exporter) (" + rate(own("otelcol_exporter_send_failed_metric_points")) + ")", Legend: "refused {{exporter}}"},
				{Expr: "sum by (exporter) (" + rate(own("otelcol_exporter_enqueue_failed_metric_points")) + ")", Legend: "queue full {{exporter}}"},
			},
		},
	)
}

func diagnosisConnectorPanels() []Panel {
	return sized(8, 7,
		chart("Diagnosis log records", "{record}/s", "One for each change of a condition or a cause.",
			"No change of a diagnosis since the start of the collector, or no connector.", increasesOf("otelcol_connector_vllm_diagnosis_events", "instance", "{{instance}}")),
		chart("Lost log records", "{record}/s", "The metrics have these changes all the same.",
			"Nothing was lost since the start of the collector, or no connector.", increasesOf("otelcol_connector_vllm_diagnosis_dropped_events", "instance", "{{instance}}")),
		chart("Known engines", "{engine}", "Engines whose diagnosis the connector follows.",
			"No connector.", one("sum by (instance) ("+own("otelcol_connector_vllm_diagnosis_engines")+")", "{{instance}}")),
	)
}
