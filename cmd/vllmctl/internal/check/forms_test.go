package check_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/internal/check"
)

// The forms of examples/tiers and examples/prometheus-receiver: the scrape and the processor are in different collectors.
func TestAScrapeWithoutProcessorAndAProcessorWithoutScrapeAreNoMistakes(t *testing.T) {
	t.Parallel()
	agent := checked(t, written(t, "receivers: {vllm: {"+patient+"endpoint: "+serve(t, healthy(t))+"}}\nexporters: {load_balancing: {}}\n"+
		"service: {pipelines: {metrics: {receivers: [vllm], exporters: [load_balancing]}}}\n"))
	assert.Empty(t, codesOf(agent, check.Problem, check.Warning))
	pool := checked(t, written(t, "receivers: {otlp: {}}\nprocessors: {vllm: {}}\nexporters: {debug: {}}\n"+
		"service: {pipelines: {metrics: {receivers: [otlp], processors: [vllm], exporters: [debug]}}}\n"))
	assert.Empty(t, codesOf(pool, check.Problem, check.Warning))
	assert.Contains(t, shown(t, pool), "the pipeline metrics gets metrics of vLLM from otlp, whose servers are not checked here")
}

// Without --verbose too, each exporter has a line.
func TestEachExporterHasALine(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	listens := strings.TrimPrefix(serve(t, http.NotFoundHandler()), "http://")
	text := shown(t, checked(t, written(t, "receivers: {vllm: {"+patient+"endpoint: "+serve(t, healthy(t))+"}}\nprocessors: {vllm: {}}\nexporters:\n"+
		"  otlp_http: {endpoint: "+backend(t, http.StatusOK)+"}\n  prometheus: {endpoint: 127.0.0.1:0}\n  file: {path: "+filepath.Join(folder, "m.json")+"}\n"+
		"  file/none: {path: "+filepath.Join(folder, "none", "m.json")+"}\n  other: {endpoint: "+listens+"}\n  other/refused: {endpoint: \"http://127.0.0.1:1/x\"}\n  other/none: {}\n"+
		"service: {pipelines: {metrics: {receivers: [vllm], processors: [vllm], exporters: [otlp_http, prometheus, file, file/none, other, other/refused, other/none]}}}\n")))
	for _, line := range []string{
		"otlp_http: 127.0.0.1:", "prometheus: 127.0.0.1:0 is free", "file: " + folder + " can be written to",
		"exporters::file/none: the folder " + filepath.Join(folder, "none") + " does not exist. [exporter-settings]",
		"exporters::other: an exporter of this kind is not checked, but " + listens + " accepts connections.",
		"exporters::other/refused: 127.0.0.1:1 refuses the connection. [exporter-refused]", "exporters::other/none: an exporter of this kind is not checked.",
	} {
		assert.Contains(t, text, line)
	}
}

// Where an authenticator asks for its token is not a proxy.
func TestATokenThatCannotBeFetchedNamesItsAddress(t *testing.T) {
	t.Parallel()
	text := shown(t, checked(t, written(t, "extensions: {oauth2client: {client_id: a, client_secret: b, token_url: \"http://127.0.0.1:1/token\"}}\n"+
		"receivers: {vllm: {"+patient+"endpoint: "+serve(t, healthy(t))+"}}\nprocessors: {vllm: {}}\nexporters: {otlp_http: {endpoint: "+backend(t, http.StatusOK)+", auth: {authenticator: oauth2client}}}\n"+
		"service: {extensions: [oauth2client], pipelines: {metrics: {receivers: [vllm], processors: [vllm], exporters: [otlp_http]}}}\n")))
	assert.Contains(t, text, "exporters::otlp_http: the token endpoint or proxy 127.0.0.1:1 refuses the connection")
}

// Of many servers those that are well have a line each, so that the others are seen.
func TestManyServersAreShort(t *testing.T) {
	t.Parallel()
	list := func(n int) *check.Report {
		targets := "{endpoint: \"http://127.0.0.1:1\"}"
		for range n {
			targets += ", {endpoint: \"" + serve(t, healthy(t)) + "\"}"
		}
		return checked(t, configuration(t, "targets: ["+targets+"]", ""))
	}
	text := shown(t, list(5))
	assert.Contains(t, text, "127.0.0.1:1  (receiver vllm)\n  problem connection    Connection refused")
	assert.Equal(t, 5, strings.Count(text, ": vllm 0.20.0, "), text)
	assert.NotContains(t, text, "samples")
	assert.Equal(t, 4, strings.Count(shown(t, list(4)), "samples"), "a few are shown whole")
}

// shown is the text without --verbose.
func shown(t *testing.T, report *check.Report) string {
	t.Helper()
	var text strings.Builder
	require.NoError(t, report.Write(&text, check.Style{}))
	return text.String()
}
