//go:build e2e

package examples

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

// examples/kubernetes/README.md says how a second collector on one machine gets a port of its
// own for its own metrics. No page has the version of a scope: an upgrade would rename all series.
func TestTwoCollectorsOnOneMachineServeTheirOwnMetrics(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile(filepath.Join(root, "examples", "kubernetes", "README.md"))
	require.NoError(t, err)
	argument := regexp.MustCompile(`(?m)^--config '(yaml:.*port: )8889(.*)'$`).FindStringSubmatch(string(readme))
	require.NotNil(t, argument)
	for range 2 {
		_, port, err := net.SplitHostPort(collector.FreeAddr(t))
		require.NoError(t, err)
		page := collector.FreeAddr(t)
		env := map[string]string{"PROMETHEUS_ADDR": page, "VLLM_ENDPOINT": "http://" + collector.FreeAddr(t)}
		c := collector.Start(t, env, collector.Binary(t),
			"--config", example("quickstart.yaml"), "--config", argument[1]+port+argument[2])
		c.WaitFor(t, "its own metrics", func() bool {
			// The names are those that rules and dashboards ask for, without suffixes.
			return c.Ready() && strings.Contains(string(collector.Get(t, "http://localhost:"+port+"/metrics")), "\notelcol_process_uptime ")
		})
		t.Cleanup(func() { c.Stop(t) })
		const versioned = `otel_scope_version="[^"]`
		require.NotRegexp(t, versioned, string(collector.Get(t, "http://localhost:"+port+"/metrics")))
		c.WaitFor(t, "metrics", func() bool {
			return strings.Contains(string(collector.Get(t, "http://"+page+"/metrics")), "\nvllm_up{")
		})
		require.NotRegexp(t, versioned, string(collector.Get(t, "http://"+page+"/metrics")))
	}
}
