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

// stated are the blocks of YAML of a page.
func stated(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(root + "/" + page)
	require.NoError(t, err)
	var all []string
	for _, block := range fences.FindAllStringSubmatch(string(text), -1) {
		all = append(all, block[1])
	}
	return all
}

// The values that pages print can be taken as they are: those of the installation, each case of where the metrics go
// over them, OpenShift's, and the example of "config".
func TestTheValuesOfThePagesWork(t *testing.T) {
	blocks, chart := stated(t, "docs/start/kubernetes.md"), stated(t, "examples/helm/otelcol-vllm/README.md")
	require.Len(t, blocks, 5)
	require.Len(t, chart, 2)
	blocks = slices.DeleteFunc(blocks, func(block string) bool { return strings.HasPrefix(block, "scrape_configs:") })
	install := filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(install, []byte(blocks[0]), 0o600))
	const secrets = "apiVersion: v1\nkind: Secret\nmetadata: {name: backend, namespace: otelcol-vllm}\ndata: {token: YQ==}\n---\n"
	for _, block := range slices.Concat(blocks, chart[:1], stated(t, "docs/start/poolside.md"), stated(t, "docs/start/air-gapped.md")) {
		rendered, _, err := helm(load(t, charts+"/otelcol-vllm"), values(t, install, block), "otelcol-vllm")
		require.NoError(t, err, block)
		all := mustDecode(t, append([]byte(secrets), namespaced(rendered)...))
		w := all.workloads()[0]
		valid(t, all.index(), w, w.ours()[0])
		if strings.Contains(block, "runAsUser") {
			rule := all.index()[key("PrometheusRule", "otelcol-vllm", "vllm")].(*prometheusRule)
			assert.NotContains(t, rule.Labels, "release")
		}
	}
	all := mustDecode(t, thin(t, "gateway", chart[1]))
	w := all.workloads()[0]
	valid(t, all.index(), w, w.ours()[0])
}

// A vendor's preset makes of the pod's configuration what its example says, with the pod's own queue.
func TestThePresetsAreTheExamplesOfTheBackends(t *testing.T) {
	files, err := filepath.Glob(charts + "/otelcol-vllm/files/backends/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		preset := strings.TrimSuffix(filepath.Base(file), ".yaml")
		all := mustDecode(t, thin(t, "pool-label-scrape", "clusterName: east", "env: [{name: ANY, value: a}]", "backend: {preset: "+preset+"}"))
		w := all.workloads()[0]
		container := w.ours()[0]
		texts, ok := configTexts(all.index(), w, container)
		require.True(t, ok)
		env := variables(all.index(), w, container)
		output, err := validate(t, texts, env, gates(container)...)
		require.NoError(t, err, "%s: %s", preset, output)
		with := mustDecode(t, thin(t, "pool-label-scrape", "clusterName: east", "prometheus: {podMonitor: true}", "env: [{name: ANY, value: a}]", "backend: {preset: "+preset+"}"))
		both, ok := configTexts(with.index(), with.workloads()[0], with.workloads()[0].ours()[0])
		require.True(t, ok)
		output, err = validate(t, both, env, gates(container)...)
		require.NoError(t, err, "%s beside Prometheus: %s", preset, output)
		got := mergedConfig(t, texts)
		example, err := os.ReadFile(root + "/examples/backends/" + filepath.Base(file))
		require.NoError(t, err)
		want := mergedConfig(t, []string{string(example)})
		list := func(config map[string]any) []any {
			all, _ := at(config, "service", "pipelines", "metrics")["processors"].([]any)
			return all
		}
		assert.Equal(t, slices.Insert(list(want), 2, any("transform/cluster")), list(got), preset+": after vllm, before labels are made of it")
		address := "endpoint"
		if at(want, "exporters", "otlp_http")[address] == nil {
			address = "metrics_endpoint" // counts more than "endpoint"
		}
		require.NotEmpty(t, at(want, "exporters", "otlp_http")[address], preset)
		assert.Equal(t, at(want, "exporters", "otlp_http")[address], at(got, "exporters", "otlp_http")[address], preset)
		assert.Equal(t, at(want, "exporters", "otlp_http", "headers"), at(got, "exporters", "otlp_http", "headers"), preset)
		queue := at(got, "exporters", "otlp_http", "sending_queue")
		assert.Equal(t, "bytes", queue["sizer"])
		assert.EqualValues(t, 300000000, queue["queue_size"])
		assert.Equal(t, at(want, "exporters", "otlp_http", "sending_queue")["num_consumers"], queue["num_consumers"])
		assert.Equal(t, at(want, "exporters", "otlp_http", "sending_queue", "batch")["max_size"], at(queue, "batch")["max_size"])
	}
}
