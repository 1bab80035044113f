package scrape

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/exposition"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/fetch"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/normalize"
)

// metadata.yaml has the meaning of each reason and outcome, and documentation.md gets it from there.
func TestTheReasonsAreThoseOfMetadata(t *testing.T) {
	text, err := os.ReadFile("../../metadata.yaml")
	require.NoError(t, err)
	var listed struct {
		Attributes map[string]struct {
			Description string
			Enum        []string
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &listed))
	code := map[string][]string{}
	add := func(attribute string, name fmt.Stringer) {
		code[attribute] = append(code[attribute], name.String())
	}
	for _, outcome := range fetch.Outcomes() {
		add("outcome", outcome)
	}
	for _, reason := range exposition.Reasons() {
		add("reason_line", reason)
	}
	for _, reason := range normalize.Reasons() {
		if isOmission(reason) {
			add("reason_omitted", reason)
		} else {
			add("reason_dropped", reason)
		}
	}
	for attribute, names := range code {
		assert.ElementsMatch(t, names, listed.Attributes[attribute].Enum, "%s of metadata.yaml and of the code", attribute)
		for _, name := range names {
			assert.Contains(t, listed.Attributes[attribute].Description, "`"+name+"`: ", attribute)
		}
	}
}
