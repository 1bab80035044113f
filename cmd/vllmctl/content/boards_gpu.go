package content

// podMatchers are the choices that GPUs have: their job and instance are those of the exporter on
// the node.
const podMatchers = scopeMatchers + `,k8s_pod_name=~"$pod"`

// perGPU identifies a GPU for people: by its pod, and by its number on the node of an exporter.
const (
	perGPU    = "instance, k8s_pod_name, hw_name"
	gpuLegend = "{{k8s_pod_name}} {{hw_name}} {{instance}}"
)

// gpuOf selects a metric of the GPUs of the chosen pods.
func gpuOf(metric string, more ...string) string { return selector(metric, podMatchers, more) }

// gpuPanels show the GPUs of the chosen servers: first what belongs to each engine, then each GPU.
func gpuPanels() []Panel {
	const (
		needs  = "No GPU metrics: read NVIDIA's or AMD's exporter with the receiver (`source: dcgm` or `source: amd`), and let it report pods."
		counts = "No throttling is counted. NVIDIA's exporter counts it only if its list of counters has DCGM_FI_DEV_POWER_VIOLATION and DCGM_FI_DEV_THERMAL_VIOLATION."
	)
	return sized(8, 8,
		percent("GPU utilization", "Share of the time in which any kernel ran; 1 does not mean that the GPU is fully used.",
			needs, ofEngineQuery("vllm_gpu_utilization_ratio")),
		chart("GPU memory used", "By", "vLLM reserves it at its start, so it says nothing about load.",
			needs, ofEngineQuery("vllm_gpu_memory_usage_bytes")),
		chart("GPU power", "W", "Of all GPUs of the engine together.",
			needs, ofEngineQuery("vllm_gpu_power_watts")),
		chart("Energy per generated token", "J/{token}", "With the energy for prompts and for idle time, so it is high with little load. Compare servers with the same load.",
			needs, ofEngineQuery("vllm_energy_per_generated_token_joules")),
		chart("GPU clock", "Hz", "A clock that falls under load makes steps slow. An idle GPU lowers its clock, too, which is normal.",
			needs, one(lowest(perGPU, gpuOf("vllm_accelerator_clock_frequency_hertz", `clock_domain="compute"`)), gpuLegend)),
		chart("GPU temperature", "Cel", "The hottest sensor of each GPU. Near its limit a GPU lowers its clock.",
			needs, one(highest(perGPU, gpuOf("hw_temperature_celsius")), gpuLegend)),
		Panel{
			Title: "GPU throttling", Kind: TimeSeries, Unit: "1", Min: number(0), Max: number(1), NoValue: counts,
			About: "Share of the time in which the power limit or heat lowered the clock. A GPU at full load is often at its power limit: look at what is more than before.",
			Queries: []Query{
				{
					Expr:   highestRate(perGPU+", reason", gpuOf("vllm_accelerator_throttle_time_seconds_total", `reason=~"power|thermal"`)),
					Legend: "{{reason}} " + gpuLegend,
				},
				// AMD's exporter has the share itself.
				{
					Expr:   highest(perGPU+", reason", gpuOf("vllm_accelerator_throttle_ratio", `reason=~"power|thermal"`)),
					Legend: "{{reason}} " + gpuLegend,
				},
			},
		},
		Panel{
			Title: "GPU memory errors", Kind: TimeSeries, Unit: "{error}/s", Min: number(0),
			About:   "Rows of memory that were replaced, and uncorrected errors. Each uncorrected error is worth a look.",
			NoValue: needs,
			Queries: []Query{
				{
					Expr:   highestRate(perGPU+", error_type", gpuOf("vllm_accelerator_row_remap_rows_total")),
					Legend: "rows, {{error_type}} " + gpuLegend,
				},
				{
					Expr:   highestRate(perGPU, gpuOf("hw_errors_total", `error_type="uncorrected"`)),
					Legend: "uncorrected " + gpuLegend,
				},
			},
		},
		chart("GPU link errors", "{error}/s", "Replays and recoveries on NVLink and PCIe. NVLink is counted only if the list of counters of the exporter has it.",
			needs, one(highestRate(perGPU+", link, error_type", gpuOf("vllm_accelerator_link_errors_total")), "{{link}} {{error_type}} "+gpuLegend)),
		chart("GPU errors", "{code}", "The number of the last error (XID) of each GPU; 0 is none. It stays until the driver is loaded again, so only a change is an event. NVIDIA's list says what each number means.",
			needs, one(highest(perGPU, gpuOf("vllm_accelerator_xid_last")), gpuLegend)),
	)
}
