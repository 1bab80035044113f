package soak

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
)

// setup is what the soak changes of the example's configuration.
type setup struct {
	example, dir   string
	interval       time.Duration
	backend        string
	listFile, list string
	// telemetry is where the collector's own metrics are.
	telemetry string
	logFile   string
	// staleness is how long what has ended is remembered; 0 keeps the example's.
	staleness time.Duration
}

// config is the example with the changes of the setup, as YAML.
func config(s setup) ([]byte, error) {
	content, err := os.ReadFile(s.example)
	if err != nil {
		return nil, err
	}
	var c map[string]any
	if err := yaml.Unmarshal(content, &c); err != nil {
		return nil, fmt.Errorf("%s: %w", s.example, err)
	}
	at := func(path ...string) map[string]any { return fleet.Section(c, path...) }
	vllm := at("receivers", "vllm")
	delete(vllm, "endpoint")
	vllm["collection_interval"] = s.interval.String()
	vllm["discovery"] = map[string]any{
		"file_sd_configs": []any{map[string]any{"files": []any{s.listFile}}},
		"http_sd_configs": []any{map[string]any{"url": s.list, "refresh_interval": "1s"}},
	}
	if s.staleness > 0 {
		at("processors", "vllm")["max_staleness"] = s.staleness.String()
		at("processors", "vllm")["window"] = (s.staleness / 2).String()
		at("connectors", "vllm_diagnosis")["max_staleness"] = s.staleness.String()
	}
	at("extensions", "file_storage")["directory"] = filepath.Join(s.dir, "queue")
	exporter := at("exporters", "otlp_http")
	exporter["endpoint"] = s.backend
	delete(exporter, "headers")
	// The example's queue is made for fewer servers that are read less often.
	at("exporters", "otlp_http", "sending_queue")["queue_size"] = int64(8e9)
	// It prints each record to the terminal.
	delete(at("exporters"), "debug")
	at("service", "pipelines", "logs")["exporters"] = []any{"otlp_http"}
	at("service", "telemetry", "logs")["output_paths"] = []any{s.logFile}
	at("service", "telemetry", "logs")["error_output_paths"] = []any{s.logFile}
	own, err := netip.ParseAddrPort(s.telemetry)
	if err != nil {
		return nil, err
	}
	at("service", "telemetry", "metrics")["readers"] = []any{map[string]any{"pull": map[string]any{
		"exporter": map[string]any{"prometheus": map[string]any{"host": own.Addr().String(), "port": own.Port()}},
	}}}
	return yaml.Marshal(c)
}
