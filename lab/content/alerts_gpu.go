package content

// gpuLabels identify a GPU, exporterLabels the exporter that reports it.
const (
	gpuLabels      = "k8s_cluster_name, k8s_namespace_name, k8s_pod_name, job, instance, hw_id, hw_name"
	exporterLabels = "k8s_cluster_name, job, instance"
)

// gpuGroup are the alerts on what exporters of GPU metrics report.
func gpuGroup() Group {
	return Group{
		Name: "vllm-gpu", Set: Stable,
		Alerts: []Alert{
			{
				Name: "VLLMGPUSlowsServer", Severity: Ticket, For: 5 * minute, KeepFiringFor: 15 * minute,
				Expr: "max by (" + serverModelLabels + ", detail) (" +
					`vllm_diagnosis_cause{cause="slow_steps", detail=~"power_cap|thermal|memory_error|interconnect|clocks_low"}) == 1`,
				Summary: "{{ $labels.instance }} is slow because of a GPU ({{ $labels.detail }})",
			},
			{
				Name: "VLLMGPUMemoryErrors", Severity: Ticket, KeepFiringFor: 15 * minute,
				Expr: "sum by (" + gpuLabels + `) (increase(vllm_accelerator_row_remap_rows_total{error_type="uncorrected"}[1h])) > 0 or ` +
					"sum by (" + gpuLabels + `) (increase(hw_errors_total{error_type="uncorrected"}[1h])) > 0 or ` +
					"max by (" + gpuLabels + ") (vllm_accelerator_row_remap_failed) > 0",
				Summary: "The memory of the GPU {{ $labels.hw_name }}{{ with $labels.k8s_pod_name }} of {{ . }}{{ end }} has uncorrected errors",
			},
			{
				Name: "VLLMGPUExporterSilent", Severity: Ticket, For: 10 * minute,
				Expr: "count by (" + exporterLabels + ") (last_over_time(vllm_accelerator_workloads[1h]))" +
					" unless on (" + exporterLabels + ") vllm_accelerator_workloads and on (k8s_cluster_name) vllm_up",
				Summary: "The exporter of GPU metrics {{ $labels.instance }} is not read any more",
			},
		},
	}
}
