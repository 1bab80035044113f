//go:build e2e

package kubernetes

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
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
	for from, renderings := range map[string]map[string][]byte{"overlay ": overlays(t), "chart ": helmed(t)} {
		for overlay, rendered := range renderings {
			t.Run(from+overlay, func(t *testing.T) {
				t.Parallel()
				all := mustDecode(t, rendered)
				w := all.workloads()[0]
				valid(t, all.index(), w, w.ours()[0])
			})
		}
	}
	for name, pod := range samples {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			index, w, container := pod(t)
			valid(t, index, w, container)
		})
	}
}

func TestTheConfigurationsOfTheComponentsAreValid(t *testing.T) {
	files := copied(t)
	for component, overlays := range map[string][]string{
		"agent-gpu":      {"agent"},
		"pool-gpu":       {"pool"},
		"cluster-name":   {"agent", "gateway", "pool", "pool-label", "shards"},
		"pool-probes":    {"pool"},
		"sidecar-probes": {"sidecar"},
	} {
		for _, overlay := range overlays {
			all := above(t, files, overlay, component)
			w := all.workloads()[0]
			valid(t, all.index(), w, w.ours()[0])
		}
	}
}

// valid checks the configuration of a container with its environment.
func valid(t *testing.T, index map[string]runtime.Object, w workload, container corev1.Container) {
	t.Helper()
	texts, ok := configTexts(index, w, container)
	require.True(t, ok)
	env := variables(index, w, container)
	output, err := validate(t, texts, env, gates(container)...)
	require.NoError(t, err, "%s", output)

	// The check can fail: without the environment there is nothing to read, and no backend to send to.
	clear(env)
	_, err = validate(t, texts, env, gates(container)...)
	require.Error(t, err)
}

// Objectives and a configuration of the user's own pass through the chart's values.
func TestWhatValuesConfigureIsValid(t *testing.T) {
	const change = `
objectives: [{name: e2e, metric: vllm.e2e_request_latency, threshold: 10s, target: 0.9}]
budgetWindow: 7d
config: {processors: {vllm: {window: 30s}}, exporters: {debug: {}}, service: {pipelines: {metrics: {exporters: [otlp_http, debug]}}}}
`
	for _, overlay := range []string{"agent", "pool"} {
		all := mustDecode(t, thin(t, overlay, change))
		w := all.workloads()[0]
		valid(t, all.index(), w, w.ours()[0])
		all = mustDecode(t, thin(t, overlay, "clusterName: east", "engines: 3000", "prometheus: {scrape: true}",
			"backend: {headers: [{name: X-Tenant, secret: mine, key: name}]}"))
		w = all.workloads()[0]
		valid(t, all.index(), w, w.ours()[0])

		all = mustDecode(t, thin(t, overlay, change, "config: {processors: {vllm: {windows: 30s}}}"))
		w = all.workloads()[0]
		texts, ok := configTexts(all.index(), w, w.ours()[0])
		require.True(t, ok)
		output, err := validate(t, texts, variables(all.index(), w, w.ours()[0]), gates(w.ours()[0])...)
		require.Error(t, err)
		assert.Contains(t, output, "windows", "the collector names what it does not know")
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

// fences are the blocks of YAML of a page.
var fences = regexp.MustCompile("(?s)\n```yaml\n(.*?\n)```\n")

// The values that the chart's page prints can be taken as they are.
func TestTheValuesOfThePageWork(t *testing.T) {
	page, err := os.ReadFile(charts + "/otelcol-vllm/README.md")
	require.NoError(t, err)
	blocks := fences.FindAllSubmatch(page, -1)
	require.Len(t, blocks, 2)
	file := filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(file, blocks[0][1], 0o600))
	rendered, _, err := helm(load(t, charts+"/otelcol-vllm"), values(t, file), "otelcol-vllm")
	require.NoError(t, err)
	all := mustDecode(t, append([]byte("apiVersion: v1\nkind: Secret\nmetadata: {name: backend, namespace: otelcol-vllm}\ndata: {token: YQ==}\n---\n"), namespaced(rendered)...))
	assert.Empty(t, all.complaints())
	w := all.workloads()[0]
	valid(t, all.index(), w, w.ours()[0])

	all = mustDecode(t, thin(t, "gateway", string(blocks[1][1])))
	w = all.workloads()[0]
	valid(t, all.index(), w, w.ours()[0])
}
