package stages

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadata"
)

func TestInvalidValuesOfPoolsAreReportedInSentences(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*PoolsConfig)
		want   string
	}{
		"no interval":       {func(p *PoolsConfig) { p.Interval = 0 }, "pool::interval: 0s is too short; write the time between two scrapes, for example 15s"},
		"negative interval": {func(p *PoolsConfig) { p.Interval = -time.Second }, "pool::interval: -1s is too short; write the time between two scrapes, for example 15s"},
		"short interval":    {func(p *PoolsConfig) { p.Interval = time.Second - 1 }, "pool::interval: 999.999999ms is too short; write the time between two scrapes, for example 15s"},
		"no unit":           {func(p *PoolsConfig) { p.Interval = 15 }, "pool::interval: 15 has no unit; write 15s"},
		"no attribute":      {func(p *PoolsConfig) { p.GroupBy = []string{} }, "pool::group_by: is empty; write for example [model_name], or an attribute that all servers share for one pool of all"},
		"twice":             {func(p *PoolsConfig) { p.GroupBy = []string{"a", "b", "a"} }, "pool::group_by::2: a is there twice; remove one"},
		"empty name":        {func(p *PoolsConfig) { p.GroupBy = []string{""} }, `pool::group_by::0: "" cannot be the name of an attribute; write for example model_name`},
		"spaces":            {func(p *PoolsConfig) { p.GroupBy = []string{"model name"} }, `pool::group_by::0: "model name" cannot be the name of an attribute; write for example model_name`},
		"engine":            {func(p *PoolsConfig) { p.GroupBy = []string{"engine"} }, "pool::group_by::0: a pool adds up the engines of its servers, so it cannot be grouped by engine; remove it"},
		"quantile":          {func(p *PoolsConfig) { p.GroupBy = []string{"quantile"} }, "pool::group_by::0: quantile is an attribute that the metrics of pools have already; remove it, or rename yours before this processor"},
		"finished reason":   {func(p *PoolsConfig) { p.GroupBy = []string{"finished_reason"} }, "pool::group_by::0: finished_reason distinguishes values of one server, not servers; remove it"},
		"misspelt":          {func(p *PoolsConfig) { p.GroupBy = []string{"model.name"} }, `pool::group_by::0: "model.name" is not what the attribute is called; write model_name`},
	} {
		t.Run(name, func(t *testing.T) {
			config := DefaultPoolsConfig()
			c.change(&config)
			var invalid []string
			config.Check(func(key, format string, args ...any) {
				invalid = append(invalid, key+": "+fmt.Sprintf(format, args...))
			})
			assert.Equal(t, []string{c.want}, invalid)
		})
	}
}

func TestTheDefaultConfigurationIsValid(t *testing.T) {
	t.Parallel()
	config := DefaultPoolsConfig()
	config.Check(func(key, format string, _ ...any) { t.Errorf("%s: %s", key, format) })
	config.Interval, config.GroupBy = time.Second, []string{"model_name", "model_namez"}
	config.Check(func(key, format string, _ ...any) { t.Errorf("%s: %s", key, format) })
}

// Sidecars make a pool each, so a pool needs the instance of its collector and, in one
// collector, the name of the processor.
func TestAPoolBelongsToItsCollectorAndProcessor(t *testing.T) {
	t.Parallel()
	settings := processortest.NewNopSettings(metadata.Type)
	settings.ID = component.NewIDWithName(metadata.Type, "one")
	settings.Resource.Attributes().PutStr("service.instance.id", "collector-a")
	settings.Resource.Attributes().PutStr("host.name", "node-7")
	assert.Equal(t, map[string]any{"service.instance.id": "collector-a", "otelcol.component.id": "vllm/one"}, resourceOf(settings).Attributes().AsRaw())
}
