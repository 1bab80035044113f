//go:build e2e

package examples

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

// docs/start/prometheus.md: dashboards for vLLM's own names keep working, and
// "vllm_up" and the severity are on the same page.
func TestDashboardsKeepTheNamesOfTheServer(t *testing.T) {
	t.Parallel()
	vllm := &vllmServer{path: "/metrics"}
	server := vllm.serve(t)
	addr := collector.FreeAddr(t)
	c := startExample(t, example("prometheus-dashboards.yaml"), map[string]string{
		"VLLM_ADDRESS": strings.TrimPrefix(server, "http://"), "PROMETHEUS_ADDR": addr,
	})
	var page string
	c.WaitFor(t, "what is derived from two scrapes", func() bool {
		page = string(collector.Get(t, "http://"+addr+"/metrics"))
		return strings.Contains(page, "\nvllm_time_to_first_token_quantile_seconds{")
	})
	c.Stop(t)

	names := 0
	for line := range strings.Lines(string(collector.Get(t, server+"/metrics"))) {
		if name, _, labelled := strings.Cut(line, "{"); labelled {
			names++
			assert.Contains(t, page, "\n"+name+"{", "a query for %s finds nothing", name)
		}
	}
	assert.Greater(t, names, 5)
	assert.Regexp(t, `(?m)^vllm:num_requests_running\{.*engine="0".*model_name="m".*\} 3$`, page)
	assert.Regexp(t, `(?m)^vllm_up\{.*\} 1$`, page)
	assert.Regexp(t, `(?m)^vllm_diagnosis_severity\{.*engine="0".*\} [01]$`, page)
	assert.Empty(t, c.Complaints())
}
