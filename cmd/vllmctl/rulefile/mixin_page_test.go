package rulefile_test

import (
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/google/go-jsonnet"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A user pastes the page's Jsonnet, and Prometheus loads what comes out. No group may be there
// twice, and no alert may lose its series to the selector.
func TestPrometheusLoadsWhatThePageMakesOfTheMixin(t *testing.T) {
	page, err := os.ReadFile("../../../docs/alerts.md")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(page), "```jsonnet\n")
	require.True(t, found)
	snippet, _, found := strings.Cut(after, "```")
	require.True(t, found)
	vm := jsonnet.MakeVM()
	vm.Importer(&jsonnet.MemoryImporter{Data: map[string]jsonnet.Contents{
		"mixin.libsonnet": jsonnet.MakeContents(string(files(t)["content/mixin/mixin.libsonnet"])),
	}})
	out, err := vm.EvaluateAnonymousSnippet("user.jsonnet", snippet)
	require.NoError(t, err)
	groups, errs := rulefmt.Parse([]byte(out), false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	require.Empty(t, errs)
	alerts, records := 0, 0
	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			if r.Alert != "" {
				alerts++
			} else {
				records++
			}
			assert.NotContains(t, r.Expr, `job="`, "the gateway, the pools and the collector have jobs of their own: %s%s", r.Alert, r.Record)
		}
	}
	assert.Positive(t, alerts)
	assert.Positive(t, records)
}
