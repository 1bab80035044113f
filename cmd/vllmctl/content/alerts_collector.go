package content

const notSent = "The example does not send the collector's own telemetry to Datadog."

func collectorGroup(p parameters) Group {
	const clusters = `count by (k8s_cluster_name) (last_over_time(vllm_up{k8s_cluster_name!=""}[1d]))`
	return Group{
		Name: "vllm-collector", Set: Stable,
		Alerts: []Alert{
			{
				Name: "VLLMCollectorSilent", Severity: Page, For: 10 * minute,
				// Of several clusters one may be silent; the page stays for a day. A collector that finds no server works: it
				// stands for its cluster, and without that name for all where they read one cluster.
				Expr: "(absent(vllm_up) or on () (" + clusters + " unless on (k8s_cluster_name) vllm_up))" +
					` unless on (k8s_cluster_name) (sum by (k8s_cluster_name) (otelcol_receiver_vllm_discovered_targets{stage="kept",k8s_cluster_name!=""}) == 0)` +
					" unless on () (sum(" + discovered + ") == 0 unless on () count(" + clusters + ") > 1)",
				Summary:     "No metrics of vLLM servers arrive",
				Description: "No metrics of vLLM servers arrive, so no other alert of vLLM can fire.",
				Meaning:     "There is no `vllm_up`, or none of a cluster that had it within the last day. A server that is down still has it, with the value 0.",
				Impact:      "The servers are not monitored. Users may be served or not.",
				Diagnosis: []Step{
					{Text: "See whether the collector runs, why it ended, and the end of its log."},
					{Text: "If it runs, let the check of the collector say what is wrong: targets, permissions, the configuration or the backend."},
					{Text: "Read the own metrics of the collector. No targets: the discovery. Targets and a queue that grows: the backend.", Query: "otelcol_receiver_vllm_targets or otelcol_exporter_queue_size", Board: "vllm-collector", Panel: "Targets"},
				},
				Mitigation: []string{
					"After a change of its configuration, go back to the last one.",
					"Repair what the check names. Points that could not be sent are in the queue, if that is on disk.",
					"If the cluster was given up on purpose, silence the alert for a day.",
				},
				LooksTheSame: "No servers at all, if Prometheus does not scrape the collector's own telemetry (port 8888): with it, discovery that finds none is `VLLMModelWithoutServers`. Rules in the wrong spelling.",
				NotConclude:  "The servers may run.",
				CannotFire:   "The Prometheus server itself is down, or one collector of several in a cluster ended (`VLLMServerVanished`). One of several clusters needs the label `k8s_cluster_name`.",
				Monitor: &Monitor{
					FiresWithoutData: true,
					Query:            "max(last_10m):max:vllm.up{*} < 0",
					Text:             "{{#is_no_data}}No metrics of vLLM servers arrive.{{/is_no_data}}",
					Differs:          "It fires on missing data only, and not for one of several clusters.",
				},
				FiresIn: map[string][]string{"collector silent": nil},
			},
			{
				Name: "VLLMCollectorQueueFilling", Severity: Ticket, For: 15 * minute,
				Expr: "max by (job, instance, exporter, data_type) (otelcol_exporter_queue_size) / (max by (job, instance, exporter, data_type) (otelcol_exporter_queue_capacity) > 0) > " +
					p.number("queueShare"),
				Summary:     "The queue of the exporter {{ $labels.exporter }} of {{ $labels.instance }} is {{ $value | humanizePercentage }} full",
				Description: "The collector reads more than its exporter can send.",
				Meaning:     "More than half of an exporter's queue is full.",
				Impact:      "Alerts see old data. When the queue is full, points are lost.",
				Diagnosis: []Step{
					{Text: "See whether it grows; from its size and its growth, when it will be full.", Query: "otelcol_exporter_queue_size", Board: "vllm-collector", Panel: "Exporter queue usage"},
					{Text: "See whether requests fail: the log of the collector has the answer of the backend, and the check of the collector sends it an empty request.", Query: "rate(otelcol_exporter_sent_metric_points[5m])", Board: "vllm-collector", Panel: "Sent points"},
				},
				Mitigation: []string{
					"Repair the backend, its address, or the credentials.",
					"Raise `sending_queue::num_consumers` if the backend answers slowly but well.",
					"Raise `sending_queue::queue_size` for longer outages. It takes memory, or disk with `storage`.",
				},
				LooksTheSame: "A backend that limits the rate: it answers 429 and the exporter waits.",
				NotConclude:  "No data is lost yet: the queue keeps it.",
				CannotFire:   "Prometheus does not scrape the collector's own telemetry (port 8888), or the exporter has no queue.",
				NoMonitor:    notSent,
				FiresIn:      map[string][]string{"queue filling": nil},
			},
			{
				Name: "VLLMCollectorSendFailing", Severity: Ticket, For: 5 * minute,
				Expr: "sum by (job, instance, exporter) (rate(otelcol_exporter_send_failed_metric_points[5m])) > 0 or " +
					"sum by (job, instance, exporter) (rate(otelcol_exporter_enqueue_failed_metric_points[5m])) > 0",
				Summary:     "The exporter {{ $labels.exporter }} of {{ $labels.instance }} loses points",
				Description: "Points were dropped: the backend refused them, or the queue was full.",
				Meaning:     "An exporter gave up on points, or could not put them into its queue.",
				Impact:      "The backend has gaps. Rates over a gap are too low, and alerts may be late.",
				Diagnosis: []Step{
					{Text: "See how many points are lost.", Query: "sum by (exporter) (rate(otelcol_exporter_send_failed_metric_points[5m]))", Board: "vllm-collector", Panel: "Lost points"},
					{Text: "Read the log of the collector: it has the answer of the backend. 400: it refuses the points, and trying again is useless. 401, 403: credentials. 413: too large. The check of the collector tries the credentials."},
				},
				Mitigation: []string{
					"401 or 403: renew the credentials (`secret.env`, or your Secret), and start the collector again.",
					"400: read which points are refused; often they are too old or out of order.",
					"413: send smaller batches (`sending_queue::batch::max_size`).",
					"A full queue: see `VLLMCollectorQueueFilling`.",
				},
				LooksTheSame: "A backend that refuses one metric of many: the others arrive.",
				NotConclude:  "Not all data is lost.",
				CannotFire:   "Prometheus does not scrape the collector's own telemetry (port 8888). With `max_elapsed_time: 0` the exporter never gives up: the queue fills. With telemetry by OTLP these names end in `_total` or have dots: change the rule.",
				NoMonitor:    notSent,
				FiresIn:      map[string][]string{"sending fails": nil},
			},
		},
	}
}
