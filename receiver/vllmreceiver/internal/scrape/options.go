package scrape

import (
	"github.com/otelcol-vllm/otelcol-vllm/internal/catalog"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/emit"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

// planOptions returns the settings that change a plan.
func planOptions(cfg *Config) normalize.Options {
	return normalize.Options{
		Wire: cfg.Naming == NamingWire, Enabled: switches(cfg), Prefixes: cfg.Prefixes,
		CapacityFromBlocks: cfg.CapacityFromBlocks,
		GenAI:              cfg.GenAI.Enabled,
		Source:             planSources[cfg.Source], KeepFairness: cfg.Gateway.FairnessID,
		MaxAdapters: cfg.Limits.Adapters, MaxDevices: cfg.Limits.Devices,
	}
}

func switches(cfg *Config) map[string]bool {
	out := map[string]bool{}
	for name, m := range cfg.Metrics {
		if m.Enabled != nil {
			out[name] = *m.Enabled
		}
	}
	return out
}

// ownMetrics returns the enabled metrics about the scrape itself.
func ownMetrics(cfg *Config) map[string]*catalog.Metric {
	on := switches(cfg)
	out := map[string]*catalog.Metric{}
	for _, name := range emit.OwnMetrics() {
		metric, ok := catalog.ByName(name)
		if !ok {
			continue
		}
		enabled := metric.Enabled || name == emit.MetricHealthy && cfg.HealthCheck
		if chosen, set := on[name]; set {
			enabled = chosen
		}
		if enabled {
			out[name] = metric
		}
	}
	return out
}
