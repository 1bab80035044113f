package vllmprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/stages"
)

func TestTheConfigurationOfPools(t *testing.T) {
	for name, c := range map[string]struct {
		yaml map[string]any
		want *stages.PoolsConfig
	}{
		"absent": {map[string]any{}, nil},
		"empty":  {map[string]any{"pool": map[string]any{}}, &stages.PoolsConfig{GroupBy: []string{"model_name"}, Interval: 15 * time.Second}},
		"null":   {map[string]any{"pool": nil}, &stages.PoolsConfig{GroupBy: []string{"model_name"}, Interval: 15 * time.Second}},
		"own": {
			map[string]any{"pool": map[string]any{"group_by": []any{"k8s.namespace.name"}, "interval": "1m"}},
			&stages.PoolsConfig{GroupBy: []string{"k8s.namespace.name"}, Interval: time.Minute},
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := createDefaultConfig().(*Config)
			require.NoError(t, confmap.NewFromStringMap(c.yaml).Unmarshal(config))
			require.NoError(t, config.Validate())
			assert.Equal(t, c.want, config.Pool.Get())
		})
	}
}
