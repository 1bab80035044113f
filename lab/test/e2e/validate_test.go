//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

const aroundReceiver = `
exporters: {file: {path: /dev/null}}
service: {pipelines: {metrics: {receivers: [vllm], exporters: [file]}}}
receivers:
  vllm:
`

// program runs the collector to its end.
func program(t *testing.T, receiver string, args ...string) (output string, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	text := aroundReceiver + "    " + strings.ReplaceAll(strings.TrimSpace(receiver), "\n", "\n    ") + "\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	out, err := exec.CommandContext(t.Context(), collector.Binary(t), append(args, "--config", file)...).CombinedOutput()
	return string(out), err
}

func TestValidateFindsAFileThatIsMissing(t *testing.T) {
	t.Parallel()
	out, err := program(t, "endpoint: https://vllm-0:8000\ntls: {ca_file: /does/not/exist.pem}", "validate")
	require.Error(t, err, out)
	assert.Contains(t, out, "tls::ca_file: the file cannot be read: stat /does/not/exist.pem: no such file or directory")
	out, err = program(t, "endpoint: https://vllm-0:8000", "validate")
	require.NoError(t, err, out)
}

func TestValidateFindsAnExtensionThatIsMissing(t *testing.T) {
	t.Parallel()
	out, err := program(t, "endpoint: https://vllm-0:8000\nauth: {authenticator: bearertokenauth}", "validate")
	require.Error(t, err, out)
	assert.Contains(t, out, `receivers::vllm::auth::authenticator names the extension "bearertokenauth", which service::extensions does not list`)
}

// What print-config prints is a configuration that validate accepts.
func TestThePrintedConfigurationIsValid(t *testing.T) {
	t.Parallel()
	const receiver = `
discovery:
  kubernetes: {selector: app=vllm, api_server: "http://127.0.0.1:1"}
  http_sd_configs: [{url: "http://user:hunter2@127.0.0.1:1/?token=hunter2", authorization: {credentials: hunter2}}]
  static_configs: [{targets: ["127.0.0.1:1"]}]
  relabel_configs: [{target_label: team, replacement: ""}]
`
	printed, err := program(t, receiver, "print-config")
	require.NoError(t, err, printed)
	assert.NotContains(t, printed, "hunter2")
	assert.Contains(t, printed, "selector: app=vllm")
	var all map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(printed), &all))
	file := filepath.Join(t.TempDir(), "printed.yaml")
	require.NoError(t, os.WriteFile(file, []byte(printed), 0o600))
	out, err := exec.CommandContext(t.Context(), collector.Binary(t), "validate", "--config", file).CombinedOutput()
	require.NoError(t, err, "%s", out)
}
