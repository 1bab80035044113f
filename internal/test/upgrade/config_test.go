//go:build e2e

package upgrade

// everything is a configuration that both releases read. It has all that writes to a storage:
// objectives, the diagnosis, a pool, the connector, and a queue on disk. The servers have names
// of their own, because their ports differ from one test to the next.
const everything = `
extensions:
  file_storage:
    directory: ${env:STATE}
    create_directory: true
    recreate: true

receivers:
  vllm:
    collection_interval: 500ms
    timeout: 500ms
    initial_delay: 10ms
    targets:
      - endpoint: ${env:COUNTED}
        resource_attributes: {service.instance.id: "counted:8000"}
      - endpoint: ${env:PLACED}
        resource_attributes: {service.instance.id: "placed:8000", k8s.namespace.name: inference}
      - endpoint: ${env:SIM_1}
        resource_attributes: {service.instance.id: "sim-1:8000"}
      - endpoint: ${env:SIM_2}
        resource_attributes: {service.instance.id: "sim-2:8000"}

processors:
  vllm:
    window: 4s
    objectives:
      - {name: ttft, metric: vllm.time_to_first_token, threshold: 2.5s, target: 0.9}
    budget_window: 30d
    burn_windows: [1h]
    pool: {interval: 1s}
    storage: file_storage
    metrics:
      vllm.diagnosis.signal: {enabled: true}
      vllm.diagnosis.signal_ratio: {enabled: true}

connectors:
  vllm_diagnosis:
    initial: true

exporters:
  otlp_http:
    endpoint: ${env:BACKEND}
    timeout: 20s
    retry_on_failure: {initial_interval: 200ms, max_interval: 500ms, max_elapsed_time: 0}
    sending_queue:
      storage: file_storage
      sizer: bytes
      queue_size: 300000000
      batch: {sizer: items, min_size: 8192, flush_timeout: 300ms, max_size: 16384}
  file:
    path: ${env:OUT}
    flush_interval: 20ms
  # What the receiver alone emits.
  file/raw:
    path: ${env:OUT}.raw
    flush_interval: 20ms

service:
  extensions: [file_storage]
  pipelines:
    metrics:
      receivers: [vllm]
      processors: [vllm]
      exporters: [otlp_http, file, vllm_diagnosis]
    metrics/raw:
      receivers: [vllm]
      exporters: [file/raw]
    logs:
      receivers: [vllm_diagnosis]
      exporters: [otlp_http]
`
