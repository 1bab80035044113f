package vllmprocessor

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/derive"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/telemetry"
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

// Users find a setting only in the table.
func TestTheReadmeListsEverySetting(t *testing.T) {
	readme := readReadme(t)
	listed := 0
	var check func(of reflect.Type)
	check = func(of reflect.Type) {
		for i := range of.NumField() {
			switch key := of.Field(i).Tag.Get("mapstructure"); {
			case key == ",squash":
				check(of.Field(i).Type)
			case key != "":
				listed++
				if !strings.Contains(readme, "\n| `"+key) {
					t.Errorf("the README's table of settings does not have %s", key)
				}
			}
		}
	}
	check(reflect.TypeFor[Config]())
	assert.Equal(t, 15, listed)
}

func TestTheReadmeExplainsEveryReason(t *testing.T) {
	readme := readReadme(t)
	explained := func(reason fmt.Stringer) {
		if !strings.Contains(readme, "| `"+reason.String()+"` |") {
			t.Errorf("the README does not explain %s", reason)
		}
	}
	for r := range collect.NumReasons {
		explained(r)
	}
	for r := range window.NumReasons {
		explained(r)
	}
	for u := range telemetry.NumUncounted {
		explained(u)
	}
	for r := range derive.NumReasons {
		if r != derive.OK && r != derive.Missing { // neither is counted
			explained(r)
		}
	}
}
