package vllmdiagnosisconnector

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/consumer"

	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector/internal/metadata"
)

// NewFactory returns the factory of the vllm_diagnosis connector.
func NewFactory() connector.Factory {
	return connector.NewFactory(
		metadata.Type,
		createDefaultConfig,
		connector.WithMetricsToLogs(createMetricsToLogs, metadata.MetricsToLogsStability),
	)
}

func createMetricsToLogs(
	_ context.Context, settings connector.Settings, cfg component.Config, next consumer.Logs,
) (connector.Metrics, error) {
	return newConnector(cfg.(*Config), settings, next)
}
