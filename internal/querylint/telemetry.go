package querylint

// telemetry are the metrics of the project's components about themselves, by their names on
// the page of the collector's own telemetry, and those of every collector that are often
// used. Some ways of export add units and _total. A test compares the former with the
// components' metadata.yaml.
var telemetry = []Foreign{
	{Name: "otelcol_receiver_vllm_bad_lines", Type: "counter", Unit: "{line}", Labels: []string{"reason"}},
	{Name: "otelcol_receiver_vllm_body_size", Type: "histogram", Unit: "By", Labels: []string{}},
	{Name: "otelcol_receiver_vllm_discovered_targets", Type: "gauge", Unit: "{target}", Labels: []string{"receiver", "stage"}},
	{Name: "otelcol_receiver_vllm_dropped_ends", Type: "counter", Unit: "{datapoint}", Labels: []string{}},
	{Name: "otelcol_receiver_vllm_dropped_points", Type: "counter", Unit: "{datapoint}", Labels: []string{"reason"}},
	{Name: "otelcol_receiver_vllm_duplicate_samples", Type: "counter", Unit: "{sample}", Labels: []string{}},
	{Name: "otelcol_receiver_vllm_layout_overflow", Type: "counter", Unit: "{layout}", Labels: []string{"receiver"}},
	{Name: "otelcol_receiver_vllm_layouts", Type: "gauge", Unit: "{layout}", Labels: []string{"receiver"}},
	{Name: "otelcol_receiver_vllm_omitted_points", Type: "counter", Unit: "{datapoint}", Labels: []string{"reason"}},
	{Name: "otelcol_receiver_vllm_parse_duration", Type: "histogram", Unit: "s", Labels: []string{}},
	{Name: "otelcol_receiver_vllm_resets", Type: "counter", Unit: "{reset}", Labels: []string{}},
	{Name: "otelcol_receiver_vllm_scrapes", Type: "counter", Unit: "{scrape}", Labels: []string{"outcome"}},
	{Name: "otelcol_receiver_vllm_target_overflow", Type: "gauge", Unit: "{target}", Labels: []string{"receiver"}},
	{Name: "otelcol_receiver_vllm_targets", Type: "gauge", Unit: "{target}", Labels: []string{"receiver"}},
	{Name: "otelcol_receiver_vllm_type_conflicts", Type: "counter", Unit: "{family}", Labels: []string{}},
	{Name: "otelcol_receiver_vllm_unknown_families", Type: "counter", Unit: "{family}", Labels: []string{}},
	{Name: "otelcol_processor_vllm_absent_values", Type: "counter", Unit: "{value}", Labels: []string{"reason"}},
	{Name: "otelcol_processor_vllm_derived_points", Type: "counter", Unit: "{datapoint}", Labels: []string{}},
	{Name: "otelcol_processor_vllm_devices", Type: "gauge", Unit: "{device}", Labels: []string{"processor"}},
	{Name: "otelcol_processor_vllm_dropped_ends", Type: "counter", Unit: "{series}", Labels: []string{}},
	{Name: "otelcol_processor_vllm_dropped_states", Type: "counter", Unit: "{state}", Labels: []string{}},
	{Name: "otelcol_processor_vllm_ended_series", Type: "counter", Unit: "{series}", Labels: []string{}},
	{Name: "otelcol_processor_vllm_expired_resources", Type: "counter", Unit: "{resource}", Labels: []string{}},
	{Name: "otelcol_processor_vllm_failed_saves", Type: "counter", Unit: "{attempt}", Labels: []string{}},
	{Name: "otelcol_processor_vllm_ignored_points", Type: "counter", Unit: "{datapoint}", Labels: []string{"reason"}},
	{Name: "otelcol_processor_vllm_objective_trackers", Type: "gauge", Unit: "{tracker}", Labels: []string{"processor"}},
	{Name: "otelcol_processor_vllm_pool_left_out", Type: "counter", Unit: "{replica}", Labels: []string{}},
	{Name: "otelcol_processor_vllm_pool_lost_points", Type: "counter", Unit: "{datapoint}", Labels: []string{}},
	{Name: "otelcol_processor_vllm_resets", Type: "counter", Unit: "{reset}", Labels: []string{}},
	{Name: "otelcol_processor_vllm_resources", Type: "gauge", Unit: "{resource}", Labels: []string{"processor"}},
	{Name: "otelcol_processor_vllm_series", Type: "gauge", Unit: "{series}", Labels: []string{"processor"}},
	{Name: "otelcol_processor_vllm_unused_device_readings", Type: "counter", Unit: "{reading}", Labels: []string{"reason"}},
	{Name: "otelcol_processor_vllm_skipped_times", Type: "counter", Unit: "{time}", Labels: []string{}},
	{Name: "otelcol_processor_vllm_uncounted_steps", Type: "counter", Unit: "{step}", Labels: []string{"reason"}},
	{Name: "otelcol_processor_vllm_unlogged_changes", Type: "counter", Unit: "{change}", Labels: []string{}},
	{Name: "otelcol_connector_vllm_diagnosis_dropped_events", Type: "counter", Unit: "{record}", Labels: []string{"severity"}},
	{Name: "otelcol_connector_vllm_diagnosis_engines", Type: "gauge", Unit: "{engine}", Labels: []string{"connector"}},
	{Name: "otelcol_connector_vllm_diagnosis_events", Type: "counter", Unit: "{record}", Labels: []string{"severity"}},
	{Name: "otelcol_connector_vllm_diagnosis_expired_engines", Type: "counter", Unit: "{engine}", Labels: []string{}},
	{Name: "otelcol_connector_vllm_diagnosis_failed_events", Type: "counter", Unit: "{record}", Labels: []string{"severity"}},
	{Name: "otelcol_connector_vllm_diagnosis_ignored_points", Type: "counter", Unit: "{datapoint}", Labels: []string{"reason"}},
	{Name: "otelcol_extension_storage_check_damaged_files", Type: "counter", Unit: "{file}", Labels: []string{}},

	{Name: "otelcol_exporter_enqueue_failed_metric_points", Type: "counter", Unit: "{datapoint}", Labels: []string{"exporter"}},
	{Name: "otelcol_exporter_queue_capacity", Type: "gauge", Unit: "{batch}", Labels: []string{"exporter", "data_type"}},
	{Name: "otelcol_exporter_queue_size", Type: "gauge", Unit: "{batch}", Labels: []string{"exporter", "data_type"}},
	{Name: "otelcol_exporter_send_failed_metric_points", Type: "counter", Unit: "{datapoint}", Labels: []string{"exporter", "error.permanent", "error.type"}},
	{Name: "otelcol_exporter_sent_metric_points", Type: "counter", Unit: "{datapoint}", Labels: []string{"exporter"}},
	{Name: "otelcol_process_cpu_seconds", Type: "counter", Unit: "s", Labels: []string{}},
	{Name: "otelcol_process_memory_rss", Type: "gauge", Unit: "By", Labels: []string{}},
	{Name: "otelcol_process_runtime_heap_alloc_bytes", Type: "gauge", Unit: "By", Labels: []string{}},
	{Name: "otelcol_process_uptime", Type: "counter", Unit: "s", Labels: []string{}},
	{Name: "otelcol_receiver_accepted_metric_points", Type: "counter", Unit: "{datapoint}", Labels: []string{"receiver", "transport"}},
	{Name: "otelcol_receiver_refused_metric_points", Type: "counter", Unit: "{datapoint}", Labels: []string{"receiver", "transport"}},
}

var (
	gpuLabels = []string{
		"gpu", "UUID", "device", "pci_bus_id", "modelName", "Hostname", "DCGM_FI_DRIVER_VERSION", "GPU_I_PROFILE", "GPU_I_ID", "err_code", "err_msg",
	}
	gpuKey = []string{"gpu"}
)

// gpu are the metrics of NVIDIA's exporter that it exposes by default.
var gpu = []Foreign{
	{Name: "DCGM_FI_DEV_BOARD_LIMIT_VIOLATION", Type: "counter", Labels: gpuLabels, Key: gpuKey},
	{Name: "DCGM_FI_DEV_DEC_UTIL", Type: "gauge", Unit: "%", Labels: gpuLabels, Key: gpuKey},
	{Name: "DCGM_FI_DEV_ENC_UTIL", Type: "gauge", Unit: "%", Labels: gpuLabels, Key: gpuKey},
	{Name: "DCGM_FI_DEV_FB_FREE", Type: "gauge", Unit: "MiBy", Labels: gpuLabels, Key: gpuKey},
	{Name: "DCGM_FI_DEV_FB_RESERVED", Type: "gauge", Unit: "MiBy", Labels: gpuLabels, Key: gpuKey},
	{Name: "DCGM_FI_DEV_FB_USED", Type: "gauge", Unit: "MiBy", Labels: gpuLabels, Key: gpuKey},
	{Name: "DCGM_FI_DEV_GPU_TEMP", Type: "gauge", Labels: gpuLabels, Key: gpuKey},
	{Name: "DCGM_FI_DEV_GPU_UTIL", Type: "gauge", Unit: "%", Labels: gpuLabels, Key: gpuKey},
	{Name: "DCGM_FI_DEV_LOW_UTIL_VIOLATION", Type: "counter", Labels: gpuLabels, Key: gpuKey},
	{Name: "DCGM_FI_DEV_MEMORY_TEMP", Type: "gauge", Labels: gpuLabels, Key: gpuKey},
	{Name: "DCGM_FI_DEV_MEM_CLOCK", Type: "gauge", Labels: gpuLabels, Key: gpuKey},
	{Name: "DCGM_FI_DEV_MEM_COPY_UTIL", Type: "gauge", Unit: "%", Labels: gpuLabels, Key: gpuKey},
	{Name: "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", Type: "counter", Labels: gpuLabels, Key: gpuKey},
	{Name: "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", Type: "counter", Labels: gpuLabels, Key: gpuKey},
	{Name: "DCGM_FI_DEV_POWER_USAGE", Type: "gauge", Labels: gpuLabels, Key: gpuKey},
	{Name: "DCGM_FI_DEV_POWER_VIOLATION", Type: "counter", Labels: gpuLabels, Key: gpuKey},
	{Name: "DCGM_FI_DEV_RELIABILITY_VIOLATION", Type: "counter", Labels: gpuLabels, Key: gpuKey},
	{Name: "DCGM_FI_DEV_SM_CLOCK", Type: "gauge", Labels: gpuLabels, Key: gpuKey},
	{Name: "DCGM_FI_DEV_SYNC_BOOST_VIOLATION", Type: "counter", Labels: gpuLabels, Key: gpuKey},
	{Name: "DCGM_FI_DEV_THERMAL_VIOLATION", Type: "counter", Labels: gpuLabels, Key: gpuKey},
	{Name: "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", Type: "counter", Labels: gpuLabels, Key: gpuKey},
	{Name: "DCGM_FI_DEV_XID_ERRORS", Type: "gauge", Labels: gpuLabels, Key: gpuKey},
	{Name: "DCGM_FI_PROF_DRAM_ACTIVE", Type: "gauge", Unit: "1", Labels: gpuLabels, Key: gpuKey},
	{Name: "DCGM_FI_PROF_GR_ENGINE_ACTIVE", Type: "gauge", Unit: "1", Labels: gpuLabels, Key: gpuKey},
	{Name: "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", Type: "gauge", Unit: "1", Labels: gpuLabels, Key: gpuKey},
	{Name: "DCGM_FI_PROF_SM_ACTIVE", Type: "gauge", Unit: "1", Labels: gpuLabels, Key: gpuKey},
}
