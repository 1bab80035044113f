package content

func collectorGroup(p parameters) Group {
	return Group{
		Name: "vllm-collector", Set: Stable,
		Alerts: []Alert{
			{
				Name: "VLLMCollectorSilent", Severity: Page, For: 10 * minute,
				// Of several clusters one may be silent; the page stays for a day.
				Expr: `absent(vllm_up) or on () (count by (k8s_cluster_name) (last_over_time(vllm_up{k8s_cluster_name!=""}[1d]))` +
					" unless on (k8s_cluster_name) vllm_up)",
				Summary: "No metrics of vLLM servers arrive",
			},
			{
				Name: "VLLMCollectorQueueFilling", Severity: Ticket, For: 15 * minute,
				Expr: "max by (job, instance, exporter, data_type) (otelcol_exporter_queue_size) / (max by (job, instance, exporter, data_type) (otelcol_exporter_queue_capacity) > 0) > " +
					p.number("queueShare"),
				Summary: "The queue of the exporter {{ $labels.exporter }} of {{ $labels.instance }} is {{ $value | humanizePercentage }} full",
			},
			{
				Name: "VLLMCollectorSendFailing", Severity: Ticket, For: 5 * minute, KeepFiringFor: 15 * minute,
				Expr: "sum by (job, instance, exporter) (rate(otelcol_exporter_send_failed_metric_points[5m])) > 0 or " +
					"sum by (job, instance, exporter) (rate(otelcol_exporter_enqueue_failed_metric_points[5m])) > 0",
				Summary: "The exporter {{ $labels.exporter }} of {{ $labels.instance }} loses points",
			},
		},
	}
}
