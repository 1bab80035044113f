package vllmprocessor

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
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

// While every request is too slow, the burn rate over a window w is d/w / (1 - target) after
// the time d, so an alert on it fires after factor * (1 - target) * w.
func TestTheReadmeSaysHowLongAnAlertTakes(t *testing.T) {
	readme := readReadme(t)
	short := func(number float64, digits int) string {
		text := strconv.FormatFloat(number, 'f', digits, 64)
		return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	// A hundredth of a percent is exact in all of these.
	for _, hundredths := range []float64{9990, 9900, 9500, 9000, 8000} {
		missed := (10000 - hundredths) / 10000
		row := "| " + short(hundredths/100, 2) + " % |"
		for _, alert := range []struct{ factor, minutes float64 }{{14.4, 60}, {6, 360}} {
			if alert.factor*missed >= 1 {
				row += " never fires | never |"
				continue
			}
			row += fmt.Sprintf(" %s %% | %s min |", short(alert.factor*missed*100, 2), short(alert.factor*missed*alert.minutes, 1))
		}
		assert.Contains(t, readme, row)
	}
	for _, use := range []struct {
		factor, hours float64
		long, short   string
	}{{14.4, 1, "1h", "5m"}, {6, 6, "6h", "30m"}, {3, 24, "1d", "2h"}, {1, 72, "3d", "6h"}} {
		assert.Contains(t, readme, fmt.Sprintf("| %s | %s | %s | %s %% in ",
			short(use.factor, 1), use.long, use.short, short(use.factor*use.hours/(30*24)*100, 2)))
	}
}

// metadata.yaml has the meaning of each reason, and the README gets it from there.
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
	for attribute, reasons := range code {
		assert.ElementsMatch(t, reasons, listed.Attributes[attribute].Enum, "%s of metadata.yaml and the reasons of the code", attribute)
	}
}
