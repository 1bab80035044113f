package vllmreceiver

import (
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/discover"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/scrape"
)

// The configuration. Its own documentation is docs/reference/configuration.md.
type (
	// Config is the configuration of the receiver.
	Config = scrape.Config
	// TargetConfig is one server.
	TargetConfig = scrape.TargetConfig
	// CanaryConfig has the settings of canaries.
	CanaryConfig = scrape.CanaryConfig
	// LimitsConfig has the limits of each target.
	LimitsConfig = scrape.LimitsConfig
	// GatewayConfig has the settings for inference gateways.
	GatewayConfig = scrape.GatewayConfig
	// GenAIConfig is the mirror of three histograms under the OpenTelemetry GenAI conventions.
	GenAIConfig = scrape.GenAIConfig
	// MetricConfig switches one metric.
	MetricConfig = scrape.MetricConfig
	// ByteSize is a number of bytes, written as "16MiB" or 16777216.
	ByteSize = scrape.ByteSize
	// Naming selects the names of the metrics.
	Naming = scrape.Naming
	// Source is the kind of the targets.
	Source = scrape.Source
	// DiscoveryConfig configures the discovery of servers.
	DiscoveryConfig = scrape.DiscoveryConfig
	// KubernetesDiscovery finds the pods of a selector.
	KubernetesDiscovery = discover.Kubernetes
	// InferencePoolDiscovery finds the pods of an InferencePool.
	InferencePoolDiscovery = discover.InferencePool
	// PodDiscovery has the settings of both.
	PodDiscovery = discover.Pods
)

// The names of the metrics: those of the catalogue, which is the default, or those of the server.
const (
	NamingCanonical = scrape.NamingCanonical
	NamingWire      = scrape.NamingWire
)

// The sources. With SourceAuto, the default, the content of a body decides.
const (
	SourceAuto    = scrape.SourceAuto
	SourceVLLM    = scrape.SourceVLLM
	SourceGateway = scrape.SourceGateway
	SourceLoRA    = scrape.SourceLoRA
	SourceDCGM    = scrape.SourceDCGM
	SourceAMD     = scrape.SourceAMD
)
