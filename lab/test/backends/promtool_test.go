//go:build e2e

package backends

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
	"github.com/otelcol-vllm/otelcol-vllm/lab/content/shipped"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

// The Prometheus of the distribution accepts the shipped rules and evaluates them as the newest
// one does. It is older than 3, so it cannot read the dotted names; the parser of
// the newest one reads them in cmd/vllmctl/rulefile.
func TestPromtoolAcceptsTheShippedRules(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	readable := []spelling.Spelling{spelling.Suffixed, spelling.Unsuffixed, spelling.Wire}
	require.NoError(t, shipped.WriteIn(dir, readable...))
	for _, to := range readable {
		rules := filepath.Join(dir, "rules", string(to), "vllm.yaml")
		output, err := exec.CommandContext(t.Context(), collector.Tool(t, "promtool"), "check", "rules", "--lint-fatal", rules).CombinedOutput()
		assert.NoError(t, err, string(output))
	}
}

func TestPromtoolPlaysTheShippedAlerts(t *testing.T) {
	t.Parallel()
	// promtool reads the rules from the folder of the test.
	dir := t.TempDir()
	for from, to := range map[string]string{
		filepath.Join(root, "content", "rules", "suffixed", "vllm.yaml"): "vllm.yaml",
		filepath.Join("testdata", "alerts.yaml"):                         "alerts.yaml",
	} {
		data, err := os.ReadFile(from)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, to), data, 0o600))
	}
	output, err := exec.CommandContext(t.Context(), collector.Tool(t, "promtool"), "test", "rules", filepath.Join(dir, "alerts.yaml")).CombinedOutput()
	assert.NoError(t, err, string(output))
}
