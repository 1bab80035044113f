//go:build e2e

package kubernetes

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/collector"
)

// run is the collector with a configuration and an environment, and nothing of this
// process's own.
func run(t *testing.T, config string, env map[string]string, args ...string) *exec.Cmd {
	t.Helper()
	file := filepath.Join(t.TempDir(), "collector.yaml")
	require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, collector.Binary(t), append(args, "--config", file)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	return cmd
}

func validate(t *testing.T, config string, env map[string]string) (string, error) {
	t.Helper()
	output, err := run(t, config, env, "validate").CombinedOutput()
	return string(output), err
}

// knowsDiscovery reports whether the built receiver has the key "discovery" at all.
func knowsDiscovery(t *testing.T) bool {
	t.Helper()
	output, err := validate(t, `
receivers: {vllm: {discovery: {kubernetes: {selector: a=b, port: 1}}}}
exporters: {nop: }
service: {pipelines: {metrics: {receivers: [vllm], exporters: [nop]}}}
`, nil)
	return err == nil || !strings.Contains(output, "invalid keys: discovery")
}

// discovery is the block of that name in a receiver. It ends before the first line that is
// indented less.
var discovery = regexp.MustCompile(`(?m)^ {4}discovery:\n(?: {6}.*\n)+`)

func TestEveryEmbeddedConfigurationIsValidWhereItRuns(t *testing.T) {
	known := knowsDiscovery(t)
	for overlay, rendered := range overlays(t) {
		t.Run(overlay, func(t *testing.T) {
			all := mustDecode(t, rendered)
			w := all.workloads()[0]
			text, ok := configText(all.index(), w, w.ours()[0])
			require.True(t, ok)
			env := variables(all.index(), w, w.ours()[0])

			if !known && discovery.MatchString(text) {
				t.Log("the built receiver has no key \"discovery\"; everything else is validated")
				text = discovery.ReplaceAllString(text, "    endpoint: http://127.0.0.1:8000\n")
			}
			output, err := validate(t, text, env)
			require.NoError(t, err, "%s", output)

			// The check can fail: without the environment there is no backend to send to.
			delete(env, "OTLP_ENDPOINT")
			_, err = validate(t, text, env)
			require.Error(t, err)
		})
	}
}
