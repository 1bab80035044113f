package docs

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
)

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$") //nolint:gocritic // with (?m), ^ is the start of a line

// The README is what a stranger reads first: two screens and a bit, and where to go from there.
func TestTheReadmeIsShort(t *testing.T) {
	assert.LessOrEqual(t, len(strings.Fields(read(t, "README.md"))), 1090, "move what is not needed first to docs")
}

// What a reader copies from the README and the first pages is accepted by the
// components.
func TestTheConfigurationsOfTheFirstPagesAreValid(t *testing.T) {
	pages := []string{"README.md"}
	for _, page := range files(t, ".md") {
		if strings.HasPrefix(page, "docs/start/") {
			pages = append(pages, page)
		}
	}
	require.Len(t, pages, 13)
	tried := 0
	for _, page := range pages {
		for _, block := range yamlBlock.FindAllStringSubmatch(read(t, page), -1) {
			if strings.Contains(block[1], "gomod:") {
				continue // of a manifest of ocb, which lab/test/builder tries
			}
			if strings.Contains(block[1], "- alert:") {
				assert.Contains(t, oneLine(read(t, "content/rules/suffixed/vllm.yaml")), oneLine(block[1]), "%s shows a rule that is not shipped", page)
				continue
			}
			var whole struct{ Receivers, Processors map[string]map[string]any }
			require.NoError(t, yaml.Unmarshal([]byte(block[1]), &whole), "%s: %s", page, block[1])
			valid := func(kind string, config component.Config, settings map[string]any) {
				require.NoError(t, confmap.NewFromStringMap(settings).Unmarshal(config), "%s: %s", page, block[1])
				if kind == "processor" || settings["endpoint"] != nil {
					assert.NoError(t, confmap.Validate(config), "%s: %s", page, block[1])
				}
				tried++
			}
			if settings, has := whole.Receivers["vllm"]; has {
				valid("receiver", vllmreceiver.NewFactory().CreateDefaultConfig(), settings)
			}
			if settings, has := whole.Processors["vllm"]; has {
				valid("processor", vllmprocessor.NewFactory().CreateDefaultConfig(), settings)
			}
		}
	}
	assert.GreaterOrEqual(t, tried, 4)
}

// Every target of make that the README and the first pages name exists.
func TestTheTargetsThatPagesNameExist(t *testing.T) {
	makefile := read(t, "Makefile")
	named := regexp.MustCompile(`(?m)(?:^|` + "`" + `)make ([a-z0-9-]+)`)
	found := 0
	for _, page := range files(t, ".md") {
		for _, match := range named.FindAllStringSubmatch(read(t, page), -1) {
			found++
			assert.Contains(t, makefile, "\n"+match[1]+":", "%s names make %s", page, match[1])
		}
	}
	assert.Greater(t, found, 10)
}

// oneLine is a text without its line breaks and indents.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
