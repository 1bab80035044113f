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
				Name: "VLLMGPUSlowsServer", Severity: Ticket, For: 5 * minute,
				Expr: "max by (" + serverModelLabels + ", detail) (" +
					`vllm_diagnosis_cause{cause="slow_steps", detail=~"power_cap|thermal|memory_error|interconnect|clocks_low"}) == 1`,
				Summary:     "{{ $labels.instance }} is slow because of a GPU ({{ $labels.detail }})",
				Description: "The same work takes longer than before, and at the same time a GPU of the server shows the reason.",
				Meaning: "The diagnosis has the cause `slow_steps` with a detail about a GPU. `power_cap`: its power limit holds the clock down. `thermal`: heat does. `clocks_low`: its clock is low, and no limit was seen. " +
					"`memory_error`, `interconnect`: its memory or its links have errors.",
				Impact: "Users of this server wait longer for each token. With tensor parallelism one GPU slows all GPUs of the engine.",
				Diagnosis: []Step{
					{Text: "Read the detail: the page of this alert has a step for each.", Query: gpuDetails, Board: "vllm-engine", Panel: "Causes"},
					{Text: "For `power_cap` and `thermal`: see which GPU it is, and since when.", Query: `rate(vllm_accelerator_throttle_time_seconds_total{reason=~"power|thermal"}[5m])`, Board: "vllm-engine", Panel: "GPU throttling"},
					{Text: "For `thermal`: compare the temperature with other GPUs of the node. If all are hot, it is the room or the fans.", Query: "hw_temperature_celsius", Board: "vllm-engine", Panel: "GPU temperature"},
					{Text: "For `clocks_low`: on the node, `nvidia-smi -q -d CLOCK,PERFORMANCE` shows a fixed clock, and the active limits.", Query: `vllm_accelerator_clock_frequency_hertz{clock_domain="compute"}`, Board: "vllm-engine", Panel: "GPU clock"},
					{Text: "For `memory_error`: see how many errors there are, and read the kernel's log for lines with `Xid`.", Query: "increase(vllm_accelerator_row_remap_rows_total[1h])", Board: "vllm-engine", Panel: "GPU memory errors"},
					{Text: "For `interconnect`: see which link has errors; `nvidia-smi nvlink -e` counts them for each link.", Query: "rate(vllm_accelerator_link_errors_total[5m])", Board: "vllm-engine", Panel: "GPU link errors"},
				},
				Mitigation: []string{
					"If the other servers have room, take this one out of rotation. A new pod on another node needs minutes to load the model.",
					"`power_cap`: raise the limit (`nvidia-smi -pl`), if the rack has the power. Otherwise plan with fewer requests.",
					"`thermal`: repair fans and air flow; until then use the node less.",
					"`clocks_low`: remove the fixed clock (`nvidia-smi -rgc`, `nvidia-smi -rac`).",
					"`memory_error`, `interconnect`: drain the node and test the GPU (`dcgmi diag -r 3`). A reset of the GPU takes replaced rows into use; it ends all processes on it.",
				},
				LooksTheSame: "A GPU at full load is often at its power limit: that alone is not reported.",
				NotConclude:  "With `power_cap` or `clocks_low` the GPU may be well: both are settings.",
				CannotFire:   "No exporter of GPU metrics is read, it does not report pods, GPUs are shared or partitioned, or the counters are off: NVIDIA's exporter has those of throttling and NVLink off by default.",
				Monitor: &Monitor{
					Query: "min(last_5m):max:vllm.diagnosis.cause{cause:slow_steps AND detail IN (power_cap,thermal,memory_error,interconnect,clocks_low)}" +
						" by {service.instance.id,model_name,detail} >= 1",
					Text: "{{[service.instance.id].name}} is slow because of a GPU ({{detail.name}}).",
				},
				FiresIn: map[string][]string{
					"gpu-amd": nil, "gpu-clocks-low": nil, "gpu-exporter-restarts": nil, "gpu-hot": nil,
					"gpu-link-errors": nil, "gpu-memory-errors": nil, "gpu-power-cap": nil,
				},
			},
			{
				Name: "VLLMGPUMemoryErrors", Severity: Ticket,
				Expr: "sum by (" + gpuLabels + `) (increase(vllm_accelerator_row_remap_rows_total{error_type="uncorrected"}[1h])) > 0 or ` +
					"sum by (" + gpuLabels + `) (increase(hw_errors_total{error_type="uncorrected"}[1h])) > 0 or ` +
					"max by (" + gpuLabels + ") (vllm_accelerator_row_remap_failed) > 0",
				Summary:     "The memory of the GPU {{ $labels.hw_name }}{{ with $labels.k8s_pod_name }} of {{ . }}{{ end }} has uncorrected errors",
				Description: "An error in the memory of this GPU could not be corrected within the last hour, or a row could not be replaced.",
				Meaning:     "The exporter has counted an uncorrected memory error or a replaced row, or a replacement has failed.",
				Impact:      "The process that read the bad memory usually ends, and its requests are lost.",
				Diagnosis: []Step{
					{Text: "See which GPU and which pod it is, and whether it has had errors before.", Query: `increase(vllm_accelerator_row_remap_rows_total{error_type="uncorrected"}[1d])`, Board: "vllm-engine", Panel: "GPU memory errors"},
					{Text: "See whether a replacement has failed.", Query: "vllm_accelerator_row_remap_failed == 1"},
					{Text: "On the node, read the kernel's log for lines with `Xid`, and `nvidia-smi -q -d ROW_REMAPPER,ECC`."},
				},
				Mitigation: []string{
					"After one error: reset the GPU or restart the node at a quiet time, so that the replaced row comes into use (`nvidia-smi --gpu-reset -i N`). All processes on the GPU end.",
					"After several, or if a replacement has failed: drain the node and have the GPU exchanged.",
				},
				LooksTheSame: "Corrected errors are counted separately, and this alert ignores them.",
				NotConclude:  "The server may be as fast as before: otherwise the diagnosis says `memory_error`.",
				CannotFire:   "No exporter of GPU metrics is read, or the GPU has no error correction. NVIDIA's exporter counts replaced rows by default, errors only if configured.",
				Monitor: &Monitor{
					Query:   "sum(last_1h):sum:vllm.accelerator.row_remap.rows{error.type:uncorrected} by {service.instance.id,hw.name}.as_count() > 0",
					Text:    "The memory of the GPU {{[hw.name].name}} of {{[service.instance.id].name}} has uncorrected errors.",
					Differs: "It counts replaced rows only.",
				},
				FiresIn: map[string][]string{"gpu-memory-errors": nil},
			},
			{
				Name: "VLLMGPUExporterSilent", Severity: Ticket, For: 10 * minute,
				Expr: "count by (" + exporterLabels + ") (last_over_time(vllm_accelerator_workloads[1h]))" +
					" unless on (" + exporterLabels + ") vllm_accelerator_workloads and on (k8s_cluster_name) vllm_up",
				Summary:     "The exporter of GPU metrics {{ $labels.instance }} is not read any more",
				Description: "The diagnosis can neither name nor exclude a GPU as the cause.",
				Meaning:     "An exporter of GPU metrics was read within the last hour, but not for ten minutes.",
				Impact:      "Users notice nothing. Details about GPUs and energy per token are missing for this node.",
				Diagnosis: []Step{
					{Text: "See whether its scrapes fail, and why.", Query: "vllm_scrape_failure == 1", Board: "vllm-engine", Panel: "Scrape failures"},
					{Text: "See whether its pod runs on that node (the address is in `instance`), and read its log. After an error of the driver the exporter often ends again and again."},
					{Text: "See whether the receiver has fewer targets.", Query: "otelcol_receiver_vllm_targets", Board: "vllm-collector", Panel: "Targets"},
				},
				Mitigation: []string{
					"Restart the exporter. The servers do not notice it.",
					"If it does not start, the driver may have an error: `kubectl cordon` keeps new pods from the node until it is tested.",
					"If the node was removed on purpose, nothing: the alert is resolved an hour later.",
				},
				LooksTheSame: "A node that was removed, for example by an autoscaler.",
				NotConclude:  "The GPUs may work: the servers have their own alerts.",
				CannotFire:   "The exporter was never read. After an hour the alert is resolved although the exporter is still gone.",
				NoMonitor:    "A query cannot compare the exporters with those of an hour ago.",
				ShownBy:      "TestAnExporterThatIsNotReadAnyMoreIsReported",
			},
		},
	}
}

const gpuDetails = `vllm_diagnosis_cause{cause="slow_steps", detail!=""} == 1`
