package docs

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Pages and manifests for users name the release of the Collector that go.mod has.
func TestEveryPageNamesTheSameCollectorRelease(t *testing.T) {
	goMod := read(t, "go.mod")
	release := func(module string) string {
		match := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(module) + ` (v\S+)`).FindStringSubmatch(goMod)
		require.NotNil(t, match, module)
		return match[1]
	}
	// The stable modules have numbers of their own.
	stable := release("go.opentelemetry.io/collector/component")
	others := release("go.opentelemetry.io/collector/processor/processortest")
	require.NotEqual(t, stable, others)
	version := regexp.MustCompile(`\b(v0\.1\d\d\.\d+|v1\.\d\d\.\d+)\b`)
	for _, path := range []string{
		"docs/reference/versions.md", "docs/start/own-collector.md", "examples/builder/checkout.yaml", "examples/builder/release.yaml",
		"examples/prometheus-receiver/builder.yaml",
	} {
		found := version.FindAllString(read(t, path), -1)
		assert.NotEmpty(t, found, path)
		for _, v := range found {
			assert.Contains(t, []string{stable, others}, v, path)
		}
	}
}
