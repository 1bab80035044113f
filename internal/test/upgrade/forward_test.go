//go:build e2e

package upgrade

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/collector"
)

// refused are the configurations of the last release that this one does not accept, by file:
// what it writes, which must say what to write instead. Each is in the notes on upgrades of
// CHANGELOG.md.
var refused = map[string]string{}

func oldExamples(t *testing.T) (files []string) {
	t.Helper()
	for _, pattern := range []string{"*.yaml", "backends/*.yaml", "kubernetes/base/*/collector.yaml"} {
		found, err := filepath.Glob(fixture("examples", pattern))
		require.NoError(t, err)
		files = append(files, found...)
	}
	require.Len(t, files, 23, "%s had so many examples", released)
	return files
}

// nowhere has an address on which nothing listens for whatever an example reads.
func nowhere(t *testing.T) map[string]string {
	t.Helper()
	env := map[string]string{
		"STATE_DIR": t.TempDir(), "QUEUE_DIR": t.TempDir(), "POD_NAME": "collector-0", "K8S_NODE_NAME": "node-1",
		"POD_IP": "127.0.0.1", "POD_NAMESPACE": "monitoring", "POD_UID": "1", "VLLM_NAMESPACE": "inference", "VLLM_PORT": "8000",
		"VLLM_SELECTOR": "app=vllm", "LORA_SELECTOR": "app=lora", "LORA_PORT": "8080", "PICKER_ENDPOINT": "http://127.0.0.1:9090",
		"OTLP_AUTHORIZATION": "Bearer none",
		"PROMETHEUS_ADDR":    collector.FreeAddr(t), "KUBERNETES_API": "http://" + collector.FreeAddr(t),
	}
	for _, name := range []string{"VLLM_ENDPOINT", "OTLP_ENDPOINT", "REMOTE_WRITE_URL"} {
		env[name] = "http://" + collector.FreeAddr(t)
	}
	for _, name := range []string{"VLLM_1_ENDPOINT", "VLLM_2_ENDPOINT", "VLLM_3_ENDPOINT"} {
		env[name] = "https://" + collector.FreeAddr(t)
	}
	return env
}

func TestEveryConfigurationOfTheLastReleaseIsValid(t *testing.T) {
	for _, file := range oldExamples(t) {
		name := strings.TrimPrefix(file, fixture("examples")+"/")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			command := exec.CommandContext(t.Context(), collector.Binary(t), "validate", "--config", file)
			command.Env = os.Environ()
			for key, value := range nowhere(t) {
				command.Env = append(command.Env, key+"="+value)
			}
			output, err := command.CombinedOutput()
			if sentence, known := refused[name]; known {
				require.Error(t, err)
				assert.Contains(t, string(output), sentence)
				return
			}
			require.NoError(t, err, "%s", output)
		})
	}
}

// The first examples send to no vendor, so that they start without a secret.
func TestConfigurationsOfTheLastReleaseStart(t *testing.T) {
	started := 0
	for _, file := range oldExamples(t) {
		name := strings.TrimPrefix(file, fixture("examples")+"/")
		if strings.Contains(name, "/") {
			continue
		}
		started++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := collector.Collector(t, nowhere(t), file, "yaml:receivers::vllm::collection_interval: 1s", "yaml:receivers::vllm::timeout: 1s")
			c.WaitFor(t, "the start of all components", c.Ready)
			c.WaitFor(t, "the report of the failing target", func() bool { return strings.Contains(c.Log(), "connection refused") })
			c.Stop(t)
			assert.Empty(t, c.Complaints("connection refused", "ropping data"))
		})
	}
	assert.Equal(t, 8, started)
}

// changed are the shapes of the last release that this one does not emit for the same bodies,
// with the reason. docs/reference/deprecations.md or CHANGELOG.md has each.
var changed = []struct{ shape, server, reason string }{
	{"schema false", "pool", "the resource of a pool has the schema URL, too"},
	{"metric vllm.prefix_cache.hit_ratio ", "v1-0.8.5", "before vLLM 0.16 lookups are counted again while a request waits"},
	{"metric vllm.prefix_cache.hit_ratio ", "v1-0.13.0", "before vLLM 0.16 lookups are counted again while a request waits"},
	{"metric vllm.tokens_per_iteration ", "v1-0.8.5", "before vLLM 0.16 the tokens of steps include cached ones"},
	{"metric vllm.tokens_per_iteration ", "v1-multiproc-0.10.2", "before vLLM 0.16 the tokens of steps include cached ones"},
	{"metric vllm.tokens_per_iteration ", "v1-0.13.0", "before vLLM 0.16 the tokens of steps include cached ones"},
	{"metric vllm.generation_throughput ", "ray-old-0.6.3", "vLLM 0.6.0 to 0.6.3 count too few tokens where an engine takes several steps at once"},
	{"metric vllm.inter_token_latency_mean ", "ray-old-0.6.3", "vLLM 0.6.0 to 0.6.3 observe too few times where an engine takes several steps at once"},
	{"metric vllm.inter_token_latency_quantile ", "ray-old-0.6.3", "vLLM 0.6.0 to 0.6.3 observe too few times where an engine takes several steps at once"},
}

func TestWhatTheLastReleaseEmittedIsStillEmitted(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(fixture("emitted.txt"))
	require.NoError(t, err)
	before, err := parseShapes(string(content))
	require.NoError(t, err)
	require.Greater(t, len(before), 300)
	now := emitted(t, collector.Binary(t))
	used := make([]bool, len(changed))
	for _, shape := range slices.Sorted(maps.Keys(before)) {
	servers:
		for _, server := range slices.Sorted(maps.Keys(before[shape])) {
			if now[shape][server] {
				continue
			}
			for i, c := range changed {
				if strings.HasPrefix(shape, c.shape) && (c.server == "" || c.server == server) {
					used[i] = true
					continue servers
				}
			}
			t.Errorf("%s emitted for %s, and this tree does not: %s", released, server, shape)
		}
	}
	for i, c := range changed {
		assert.True(t, used[i], "%s is emitted again; the exception can go", c.shape)
	}
}
