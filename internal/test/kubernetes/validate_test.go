//go:build e2e

package kubernetes

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/collector"
)

// run is the collector with configurations, which it merges, and an environment, and
// nothing of this process's own.
func run(t *testing.T, configs []string, env map[string]string, args ...string) *exec.Cmd {
	t.Helper()
	dir := t.TempDir()
	for i, config := range configs {
		file := filepath.Join(dir, fmt.Sprintf("%d.yaml", i))
		require.NoError(t, os.WriteFile(file, []byte(config), 0o600))
		args = append(args, "--config", file)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, collector.Binary(t), args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	return cmd
}

// gates are the arguments of a container that set feature gates.
func gates(container corev1.Container) []string {
	return slices.DeleteFunc(slices.Clone(container.Args), func(arg string) bool { return !strings.HasPrefix(arg, "--feature-gates=") })
}

func validate(t *testing.T, configs []string, env map[string]string, args ...string) (string, error) {
	t.Helper()
	output, err := run(t, configs, env, append([]string{"validate"}, args...)...).CombinedOutput()
	return string(output), err
}

func TestEveryEmbeddedConfigurationIsValidWhereItRuns(t *testing.T) {
	for overlay, rendered := range overlays(t) {
		t.Run(overlay, func(t *testing.T) {
			all := mustDecode(t, rendered)
			w := all.workloads()[0]
			texts, ok := configTexts(all.index(), w, w.ours()[0])
			require.True(t, ok)
			env := variables(all.index(), w, w.ours()[0])

			output, err := validate(t, texts, env, gates(w.ours()[0])...)
			require.NoError(t, err, "%s", output)

			// The check can fail: without the environment there is no backend to send to.
			delete(env, "OTLP_ENDPOINT")
			_, err = validate(t, texts, env, gates(w.ours()[0])...)
			require.Error(t, err)
		})
	}
}

// A StatefulSet with more collectors than InferencePools in settings.env.
func TestACollectorWithoutAPoolSaysWhatIsMissing(t *testing.T) {
	all := mustDecode(t, overlays(t)["pool"])
	w := all.workloads()[0]
	texts, ok := configTexts(all.index(), w, w.ours()[0])
	require.True(t, ok)
	env := variables(all.index(), w, w.ours()[0])
	env["POOL_INDEX"] = "1"
	output, err := validate(t, texts, env, gates(w.ours()[0])...)
	require.Error(t, err)
	assert.Contains(t, output, "inference_pool::name")
	env["POOL_1_NAME"], env["POOL_1_PICKER"] = "second", "http://second.vllm.svc:9090"
	output, err = validate(t, texts, env, gates(w.ours()[0])...)
	require.NoError(t, err, "%s", output)
}
