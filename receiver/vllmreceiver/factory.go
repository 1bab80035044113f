package vllmreceiver

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/receiver"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/discover"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/metadata"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/scrape"
)

// NewFactory returns the factory of the vllm receiver.
func NewFactory() receiver.Factory {
	return receiver.NewFactory(
		metadata.Type,
		func() component.Config { return scrape.DefaultConfig() },
		receiver.WithMetrics(createMetricsReceiver, metadata.MetricsStability),
	)
}

func createMetricsReceiver(
	_ context.Context, settings receiver.Settings, cfg component.Config, next consumer.Metrics,
) (receiver.Metrics, error) {
	return newReceiver(cfg.(*Config), settings, next)
}

// What a program needs to make a configuration; docs/reference/configuration.md has each setting.
type (
	// Config is the configuration of the receiver.
	Config = scrape.Config
	// TargetConfig is one server.
	TargetConfig = scrape.TargetConfig
	// CanaryConfig has the settings of canaries.
	CanaryConfig = scrape.CanaryConfig
	// MetricConfig switches one metric.
	MetricConfig = scrape.MetricConfig
	// KubernetesDiscovery finds the pods of a selector.
	KubernetesDiscovery = discover.Kubernetes
	// InferencePoolDiscovery finds the pods of an InferencePool.
	InferencePoolDiscovery = discover.InferencePool
	// PodDiscovery has the settings of both.
	PodDiscovery = discover.Pods
	// Naming selects the names of the metrics: those of the catalogue, or those of the server.
	Naming = scrape.Naming
	// ByteSize is a number of bytes, written as "16MiB" or 16777216.
	ByteSize = scrape.ByteSize
)

// The names of the metrics. NamingCanonical is the default.
const (
	NamingCanonical = scrape.NamingCanonical
	NamingWire      = scrape.NamingWire
)
