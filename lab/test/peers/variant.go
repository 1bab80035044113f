package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// variant is one of the programs that are compared.
type variant struct {
	// Name is its name in the tables.
	Name string
	// program is what is run, with this configuration.
	program string
	config  func(setting) string
}

// setting is what a program needs to be started.
type setting struct {
	addresses []string
	interval  time.Duration
	// delay is how long our receiver waits before its first scrape.
	delay time.Duration
	// own is the address of the program's own metrics.
	own string
	// sink is where it exports to; empty: nowhere.
	sink string
	gzip bool
}

const (
	oursName          = "ours, receiver"
	oursProcessorName = "ours with processor"
	peerName          = "peer, receiver"
	peerProcessorName = "peer with processors"
)

func variants(bin string) []variant {
	return []variant{
		{Name: oursName, program: bin + "/collector-ours", config: func(s setting) string { return ours(s, "") }},
		{Name: oursProcessorName, program: bin + "/collector-ours", config: func(s setting) string { return ours(s, "processors:\n  vllm:\n") }},
		{Name: peerName, program: bin + "/collector-peer", config: func(s setting) string { return peer(s, "", "") }},
		{Name: peerProcessorName, program: bin + "/collector-peer", config: func(s setting) string { return peer(s, peerProcessors, peerOrder) }},
	}
}

// arguments writes what the program reads to a folder, and returns its arguments.
func (v variant) arguments(dir string, s setting) ([]string, error) {
	file := dir + "/config.yaml"
	return []string{"--config", file}, os.WriteFile(file, []byte(v.config(s)), 0o600)
}

func ours(s setting, processors string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "receivers:\n  vllm:\n    collection_interval: %s\n    initial_delay: %s\n    timeout: %s\n", s.interval, s.delay, s.interval)
	if s.gzip {
		b.WriteString("    compression: gzip\n")
	}
	if len(s.addresses) == 0 {
		b.WriteString("    endpoint: http://127.0.0.1:1\n")
	} else {
		b.WriteString("    targets:\n")
	}
	for _, address := range s.addresses {
		fmt.Fprintf(&b, "      - endpoint: http://%s\n", address)
	}
	names := "[]"
	if processors != "" {
		names = "[vllm]"
	}
	return b.String() + processors + rest(s, "vllm", names)
}

// peerProcessors bring what the dashboards need: renamed metrics, ratios, rates.
const peerProcessors = `processors:
  metricstransform:
    transforms:
      - include: ^vllm:(.*)$$
        match_type: regexp
        action: update
        new_name: vllm.$${1}
  cumulativetodelta:
    include:
      match_type: regexp
      metrics: ["vllm.*_total", "vllm.*_seconds"]
  deltatorate:
    metrics: ["vllm.prompt_tokens_total", "vllm.generation_tokens_total", "vllm.request_success_total"]
  metricsgeneration:
    rules:
      - name: vllm.kv_cache_usage_percent
        type: scale
        metric1: vllm.kv_cache_usage_perc
        scale_by: 100
        operation: multiply
      - name: vllm.prefix_cache_hit_ratio
        type: calculate
        metric1: vllm.prefix_cache_hits_total
        metric2: vllm.prefix_cache_queries_total
        operation: divide
`

const peerOrder = "[metricstransform, cumulativetodelta, deltatorate, metricsgeneration]"

func peer(s setting, processors, order string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "receivers:\n  prometheus:\n    config:\n      scrape_configs:\n        - job_name: vllm\n"+
		"          scrape_interval: %s\n          scrape_timeout: %s\n          enable_compression: %t\n"+
		"          static_configs:\n            - targets: [%s]\n", s.interval, s.interval, s.gzip, strings.Join(s.addresses, ", "))
	if order == "" {
		order = "[]"
	}
	return b.String() + processors + rest(s, "prometheus", order)
}

// rest is what is equal for all collectors.
func rest(s setting, receiver, processors string) string {
	exporters, exporter := "exporters:\n  nop:\n", "nop"
	if s.sink != "" {
		exporters = fmt.Sprintf("exporters:\n  otlphttp:\n    endpoint: http://%s\n    compression: none\n    sending_queue: {enabled: false}\n    retry_on_failure: {enabled: false}\n", s.sink)
		exporter = "otlphttp"
	}
	host, port, _ := strings.Cut(s.own, ":")
	return exporters + fmt.Sprintf(`service:
  pipelines:
    metrics:
      receivers: [%s]
      processors: %s
      exporters: [%s]
  telemetry:
    logs: {level: warn}
    metrics:
      readers:
        - pull: {exporter: {prometheus: {host: %s, port: %s}}}
`, receiver, processors, exporter, host, port)
}
