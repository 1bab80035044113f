package vllmprocessor

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/gpu"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/stages"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

func readReadme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	return string(text)
}

// What a user copies from the README works.
func TestTheReadmesConfigurationsAreValid(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(readReadme(t), -1)
	configurations := 0
	for _, block := range blocks {
		var whole struct {
			Processors map[string]map[string]any `yaml:"processors"`
		}
		require.NoError(t, yaml.Unmarshal([]byte(block[1]), &whole), block[1])
		raw, has := whole.Processors["vllm"]
		if !has {
			continue
		}
		configurations++
		cfg := createDefaultConfig()
		require.NoError(t, confmap.NewFromStringMap(raw).Unmarshal(cfg), block[1])
		assert.NoError(t, confmap.Validate(cfg), block[1])
	}
	assert.GreaterOrEqual(t, configurations, 2)
}

// metadata.yaml has the meaning of each reason, and documentation.md gets it from there.
func TestTheReasonsAreThoseOfMetadata(t *testing.T) {
	text, err := os.ReadFile("metadata.yaml")
	require.NoError(t, err)
	var listed struct {
		Attributes map[string]struct{ Enum []string }
	}
	require.NoError(t, yaml.Unmarshal(text, &listed))
	code := map[string][]string{}
	add := func(attribute string, reason fmt.Stringer) {
		code[attribute] = append(code[attribute], reason.String())
	}
	for r := range collect.NumReasons {
		add("reason_ignored", r)
	}
	for r := range window.NumReasons {
		add("reason_ignored", r)
	}
	for u := range stages.NumUncounted {
		add("reason_uncounted", u)
	}
	for r := range derive.NumReasons {
		if r != derive.OK && r != derive.Missing { // neither is counted
			add("reason_absent", r)
		}
	}
	for o := range gpu.NumOutcomes {
		if o != gpu.Used {
			add("reason_unused", o)
		}
	}
	telemetry, err := os.ReadFile("documentation.md")
	require.NoError(t, err)
	for attribute, reasons := range code {
		for _, reason := range reasons {
			assert.Contains(t, string(telemetry), "<br> `"+reason+"`: ", attribute)
		}
		assert.ElementsMatch(t, reasons, listed.Attributes[attribute].Enum, "%s of metadata.yaml and the reasons of the code", attribute)
	}
}
