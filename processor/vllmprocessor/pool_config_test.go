package vllmprocessor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/stages/pools"
)

func TestTheConfigurationOfPools(t *testing.T) {
	for name, c := range map[string]struct {
		yaml map[string]any
		want *pools.Config
	}{
		"absent": {map[string]any{}, nil},
		"empty":  {map[string]any{"pool": map[string]any{}}, &pools.Config{GroupBy: []string{"model_name"}, Interval: 15 * time.Second}},
		"null":   {map[string]any{"pool": nil}, &pools.Config{GroupBy: []string{"model_name"}, Interval: 15 * time.Second}},
		"own": {
			map[string]any{"pool": map[string]any{"group_by": []any{"k8s.namespace.name"}, "interval": "1m"}},
			&pools.Config{GroupBy: []string{"k8s.namespace.name"}, Interval: time.Minute},
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

func TestInvalidValuesOfPoolsAreReportedInSentences(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*pools.Config)
		want   string
	}{
		"no interval":       {func(p *pools.Config) { p.Interval = 0 }, "pool::interval: 0s is too short; write the time between two scrapes, for example 15s"},
		"negative interval": {func(p *pools.Config) { p.Interval = -time.Second }, "pool::interval: -1s is too short; write the time between two scrapes, for example 15s"},
		"short interval":    {func(p *pools.Config) { p.Interval = time.Second - 1 }, "pool::interval: 999.999999ms is too short; write the time between two scrapes, for example 15s"},
		"no unit":           {func(p *pools.Config) { p.Interval = 15 }, "pool::interval: 15 has no unit; write 15s"},
		"no attribute":      {func(p *pools.Config) { p.GroupBy = []string{} }, "pool::group_by: is empty; write for example [model_name], or an attribute that all servers share for one pool of all"},
		"twice":             {func(p *pools.Config) { p.GroupBy = []string{"a", "b", "a"} }, "pool::group_by::2: a is there twice; remove one"},
		"empty name":        {func(p *pools.Config) { p.GroupBy = []string{""} }, `pool::group_by::0: "" cannot be the name of an attribute; write for example model_name`},
		"spaces":            {func(p *pools.Config) { p.GroupBy = []string{"model name"} }, `pool::group_by::0: "model name" cannot be the name of an attribute; write for example model_name`},
		"engine":            {func(p *pools.Config) { p.GroupBy = []string{"engine"} }, "pool::group_by::0: a pool adds up the engines of its servers, so it cannot be grouped by engine; remove it"},
		"quantile":          {func(p *pools.Config) { p.GroupBy = []string{"quantile"} }, "pool::group_by::0: quantile is an attribute that the metrics of pools have already; remove it, or rename yours before this processor"},
		"finished reason":   {func(p *pools.Config) { p.GroupBy = []string{"finished_reason"} }, "pool::group_by::0: finished_reason distinguishes values of one server, not servers; remove it"},
		"misspelt":          {func(p *pools.Config) { p.GroupBy = []string{"model.name"} }, `pool::group_by::0: "model.name" is not what the attribute is called; write model_name`},
	} {
		t.Run(name, func(t *testing.T) {
			config := createDefaultConfig().(*Config)
			pool := pools.DefaultConfig()
			c.change(&pool)
			config.Pool = configoptional.Some(pool)
			assert.EqualError(t, config.Validate(), c.want)
		})
	}
}
