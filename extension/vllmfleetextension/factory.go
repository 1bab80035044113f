package vllmfleetextension

import (
	"context"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension"

	"github.com/otelcol-vllm/otelcol-vllm/extension/vllmfleetextension/internal/metadata"
)

// NewFactory returns the factory of the vllm_fleet extension.
func NewFactory() extension.Factory {
	return extension.NewFactory(metadata.Type, createDefaultConfig, create, metadata.ExtensionStability)
}

func create(_ context.Context, settings extension.Settings, cfg component.Config) (extension.Extension, error) {
	return newServer(cfg.(*Config), settings), nil
}
