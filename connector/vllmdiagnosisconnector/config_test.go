package vllmdiagnosisconnector

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-vllm/otelcol-vllm/connector/vllmdiagnosisconnector/internal/collect"
)

func TestTheDefaultIsComplete(t *testing.T) {
	config := createDefaultConfig()
	assert.Equal(t, &Config{MaxStaleness: 5 * time.Minute, MaxEngines: 10000}, config)
	assert.NoError(t, confmap.Validate(config))
}

func TestAllInvalidValuesAreReportedTogether(t *testing.T) {
	for raw, want := range map[string]string{
		"max_staleness: 0s":                                "max_staleness: must be more than 0; write for example 5m",
		"max_staleness: -1m":                               "max_staleness: must be more than 0; write for example 5m",
		"max_staleness: 300":                               "max_staleness: 300 has no unit; write 300s",
		"max_staleness: 10ms":                              "max_staleness: 10ms is too short; write at least twice the time between two scrapes, for example 5m",
		"max_engines: 0":                                   "max_engines: must be at least 1, not 0; the default is 10000",
		"max_engines: -1\nmax_staleness: 0s":               "max_staleness: must be more than 0; write for example 5m\nmax_engines: must be at least 1, not -1; the default is 10000",
		"max_engines: 1\nmax_staleness: 1s\ninitial: true": "",
	} {
		var values map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(raw), &values))
		config := createDefaultConfig()
		require.NoError(t, confmap.NewFromStringMap(values).Unmarshal(config))
		if err := confmap.Validate(config); want == "" {
			assert.NoError(t, err, raw)
		} else {
			assert.EqualError(t, err, want, raw)
		}
	}
}

func readReadme(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile("README.md")
	require.NoError(t, err)
	return string(content)
}

// What a user copies from the README works.
func TestTheReadmesConfigurationsAreValid(t *testing.T) {
	configurations := 0
	for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(readReadme(t), -1) {
		var whole struct {
			Connectors map[string]map[string]any `yaml:"connectors"`
		}
		require.NoError(t, yaml.Unmarshal([]byte(block[1]), &whole), block[1])
		raw, has := whole.Connectors["vllm_diagnosis"]
		if !has {
			continue
		}
		configurations++
		config := createDefaultConfig()
		require.NoError(t, confmap.NewFromStringMap(raw).Unmarshal(config), block[1])
		assert.NoError(t, confmap.Validate(config), block[1])
	}
	assert.GreaterOrEqual(t, configurations, 2)
}

func TestEveryReasonAndAttributeIsExplained(t *testing.T) {
	readme := readReadme(t)
	telemetry, err := os.ReadFile("documentation.md")
	require.NoError(t, err)
	for r := range collect.NumReasons {
		assert.Contains(t, string(telemetry), "<br> `"+r.String()+"`: ")
	}
	for i := range numIgnored {
		assert.Contains(t, string(telemetry), "<br> `"+i.String()+"`: ")
	}
	b := newBench(t, nil)
	s := newServer("a")
	b.consume(t, 0, s.reports(0, healthy)...)
	b.consume(t, 1, s.reports(1, diagnosis{
		severity: 2, condition: "degraded", said: said(),
		causes: []cause{{"decode_load", "primary", "more_sequences"}, {"kv_pressure", "contributing", ""}, {"workload_shift", "notice", ""}},
	})...)
	require.Len(t, b.sink.records(), 1)
	for name := range b.sink.records()[0].Attributes().All() {
		name = strings.NewReplacer(".running", ".NAME", ".waiting", ".NAME").Replace(name)
		assert.Contains(t, readme, "`"+name+"`")
	}
}

// A misspelt key hides no other mistake.
func TestUnknownKeysAndInvalidValuesAreReportedTogether(t *testing.T) {
	config := createDefaultConfig()
	require.NoError(t, confmap.NewFromStringMap(map[string]any{"initials": true, "max_engines": -1}).Unmarshal(config))
	assert.EqualError(t, confmap.Validate(config),
		"initials: is unknown; did you mean initial?\nmax_engines: must be at least 1, not -1; the default is 10000")
}
