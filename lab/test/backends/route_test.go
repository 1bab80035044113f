//go:build e2e

package backends

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

// The configuration of the page about alerts, with the inhibition rules where it says: Alertmanager accepts it, and
// only a page wakes somebody.
func TestThePagesRouteWakesSomebodyForAPage(t *testing.T) {
	amtool := collector.Tool(t, "amtool")
	page, err := os.ReadFile(filepath.Join(root, "docs", "alerts.md"))
	require.NoError(t, err)
	_, config, _ := strings.Cut(string(page), "```yaml\nroute:")
	config, _, found := strings.Cut("route:"+config, "# Here: inhibit_rules, all of content/alertmanager/inhibition.yaml\n```")
	require.True(t, found)
	inhibition, err := os.ReadFile(filepath.Join(root, "content", "alertmanager", "inhibition.yaml"))
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "alertmanager.yml")
	require.NoError(t, os.WriteFile(file, append([]byte(config), inhibition...), 0o600))
	out, err := exec.CommandContext(t.Context(), amtool, "check-config", file).CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Regexp(t, `[1-9]\d* inhibit rules`, string(out))
	for alert, receiver := range map[string]string{
		"alertname=VLLMModelDown severity=page": "pager", "alertname=VLLMModelWithoutServers severity=ticket": "queue",
		"alertname=TargetDown severity=page": "null",
	} {
		arguments := append([]string{"config", "routes", "test", "--config.file=" + file, "--verify.receivers=" + receiver}, strings.Fields(alert)...)
		out, err := exec.CommandContext(t.Context(), amtool, arguments...).CombinedOutput()
		assert.NoError(t, err, "%s: %s", alert, out)
	}
}
