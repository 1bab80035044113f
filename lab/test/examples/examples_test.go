//go:build e2e

package examples

import (
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/kubeapi"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

func example(name string) string { return filepath.Join(root, "examples", name) }

// startExample runs an example. env is its whole environment, except for a queue of its
// own. settings, each as "path::to::key: value", override the example.
func startExample(t *testing.T, file string, env map[string]string, settings ...string) *collector.Process {
	t.Helper()
	// A queue in the working folder would be found by the next test.
	all := map[string]string{"QUEUE_DIR": t.TempDir()}
	maps.Copy(all, env)
	configs := []string{
		file,
		// A test does not wait for the intervals of production.
		"yaml:receivers::vllm::collection_interval: 1s",
		"yaml:receivers::vllm::timeout: 1s",
	}
	for _, setting := range settings {
		configs = append(configs, "yaml:"+setting)
	}
	return collector.Collector(t, all, configs...)
}

func examples(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(example("*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

// soon sends a batch when a test wants to see it. What has not been sent when the
// collector ends stays on disk, so a test must wait for what it wants.
const soon = "exporters::otlp_http::sending_queue::batch::flush_timeout: 100ms"

func TestEveryExampleIsValid(t *testing.T) {
	for _, file := range examples(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			command := exec.CommandContext(t.Context(), collector.Binary(t), "validate", "--config", file)
			// A shard that does not know its number is refused, and an agent that does not know its node.
			command.Env = append(os.Environ(), "SHARD=0", "SHARDS=4", "K8S_NODE_NAME=node-1", "POD_NAME=otelcol-vllm-0")
			output, err := command.CombinedOutput()
			require.NoError(t, err, "%s", output)
		})
	}
}

// A user who tries an example often has neither the server nor the backend yet.
func TestEveryExampleStartsAndStopsWithNothingToTalkTo(t *testing.T) {
	for _, file := range examples(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			c := startExample(t, file, map[string]string{
				"VLLM_ENDPOINT":    "http://" + collector.FreeAddr(t),
				"VLLM_ADDRESS":     collector.FreeAddr(t),
				"VLLM_1_ENDPOINT":  "https://" + collector.FreeAddr(t),
				"VLLM_2_ENDPOINT":  "https://" + collector.FreeAddr(t),
				"VLLM_3_ENDPOINT":  "https://" + collector.FreeAddr(t),
				"KUBERNETES_API":   "http://" + collector.FreeAddr(t),
				"PROMETHEUS_ADDR":  collector.FreeAddr(t),
				"OTLP_ENDPOINT":    "http://" + collector.FreeAddr(t),
				"REMOTE_WRITE_URL": "http://" + collector.FreeAddr(t),
				"TARGET_ALLOCATOR": "http://" + collector.FreeAddr(t),
				"POD_NAME":         "otelcol-vllm-0",
				"STATE_DIR":        t.TempDir(),
				"SHARD":            "0",
				"SHARDS":           "4",
				"K8S_NODE_NAME":    "node-1",
			})
			c.WaitFor(t, "the start of all components", c.Ready)
			c.WaitFor(t, "the report of the failing target", func() bool {
				return strings.Contains(c.Log(), "connection refused")
			})
			c.Stop(t)

			assert.Empty(t, c.Complaints("connection refused", "dropping data", "Dropping data"))
		})
	}
}

func TestQuickstartOffersMetricsToPrometheus(t *testing.T) {
	t.Parallel()
	vllm := &vllmServer{path: "/metrics"}
	addr := collector.FreeAddr(t)
	c := startExample(t, example("quickstart.yaml"), map[string]string{
		"VLLM_ENDPOINT": vllm.serve(t), "PROMETHEUS_ADDR": addr,
	})

	var page string
	c.WaitFor(t, "what is derived from two scrapes", func() bool {
		page = string(collector.Get(t, "http://"+addr+"/metrics"))
		return strings.Contains(page, "\nvllm_time_to_first_token_quantile_seconds{")
	})
	c.Stop(t)

	for _, want := range []string{
		`(?m)^vllm_num_requests_running\{.*engine="0".*\} 3$`,
		`(?m)^vllm_generation_tokens_total\{.*model_name="m".*\} \d+00$`,
		`(?m)^vllm_time_to_first_token_seconds_bucket\{.*le="0\.5".*\} \d+$`,
		`(?m)^vllm_up\{.*\} 1$`,
		`(?m)^vllm_time_to_first_token_quantile_seconds\{.*quantile="0\.5".*\} 0\.25$`,
	} {
		assert.Regexp(t, want, page)
	}
	assert.Empty(t, c.Complaints())
}

func TestManyTargetsAreReadThroughTLSWithTheToken(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	first := &vllmServer{path: "/metrics", token: "secret-token"}
	second := &vllmServer{path: "/metrics", token: "secret-token"}
	third := &vllmServer{path: "/engine/metrics", token: "secret-token"}
	addr := collector.FreeAddr(t)
	c := startExample(t, example("many-targets-tls.yaml"), map[string]string{
		"VLLM_1_ENDPOINT": ca.serve(t, first, "127.0.0.1"),
		"VLLM_2_ENDPOINT": ca.serve(t, second, "127.0.0.1"),
		// Reached by its address, known by its name.
		"VLLM_3_ENDPOINT": ca.serve(t, third, "vllm-behind-proxy") + "/engine/metrics",
		"VLLM_3_NAME":     "vllm-behind-proxy",
		"VLLM_CA_FILE":    ca.file, "VLLM_TOKEN": "secret-token",
		"PROMETHEUS_ADDR": addr,
	})

	var page string
	c.WaitFor(t, "metrics of all targets", func() bool {
		page = string(collector.Get(t, "http://"+addr+"/metrics"))
		return strings.Count(page, "\nvllm_num_requests_running{") == 3 &&
			strings.Count(page, "\nvllm_first_token_rate_per_second{") == 3
	})
	c.Stop(t)

	for pod, environment := range map[string]string{"vllm-1": "production", "vllm-2": "production", "vllm-3": "staging"} {
		line := lineWith(page, "vllm_num_requests_running{", `k8s_pod_name="`+pod+`"`)
		assert.Contains(t, line, `deployment_environment_name="`+environment+`"`)
		assert.True(t, strings.HasSuffix(line, "} 3"), "%q", line)
	}
	for _, server := range []*vllmServer{first, second, third} {
		assert.Zero(t, server.refused.Load(), "every request carries the token")
	}
	assert.Empty(t, c.Complaints())
	assert.NotContains(t, c.Log(), "secret-token")
}

func TestDiscoveryScrapesThePodsThatKubernetesHas(t *testing.T) {
	t.Parallel()
	vllm := &vllmServer{path: "/metrics"}
	host, port, err := net.SplitHostPort(strings.TrimPrefix(vllm.serve(t), "http://"))
	require.NoError(t, err)
	pod := func(name string, change func(*kubeapi.Pod)) kubeapi.Object {
		p := kubeapi.Pod{
			Namespace: "inference", Name: name, Node: "node-1", IP: host,
			Labels:     map[string]string{"app.kubernetes.io/component": "inference", "team": "search"},
			Containers: []kubeapi.Container{{Name: "vllm"}},
		}
		if change != nil {
			change(&p)
		}
		return p.Object()
	}
	api := kubeapi.New(t)
	api.Apply(kubeapi.Pods, pod("llama-0", nil))
	api.Apply(kubeapi.Pods, pod("starting", func(p *kubeapi.Pod) { p.IP, p.Unready = "127.0.0.9", true }))
	addr := collector.FreeAddr(t)
	c := startExample(t, example("discovery-kubernetes.yaml"), map[string]string{
		"VLLM_NAMESPACE": "inference", "VLLM_PORT": port, "KUBERNETES_API": api.URL, "PROMETHEUS_ADDR": addr,
	})

	c.WaitFor(t, "the pod's metrics", func() bool {
		return lineWith(string(collector.Get(t, "http://"+addr+"/metrics")), "vllm_num_requests_running{", `k8s_pod_name="llama-0"`) != ""
	})
	line := lineWith(string(collector.Get(t, "http://"+addr+"/metrics")), "vllm_num_requests_running{", `k8s_pod_name="llama-0"`)
	for _, want := range []string{`k8s_namespace_name="inference"`, `k8s_node_name="node-1"`, `k8s_container_name="vllm"`, `team="search"`} {
		assert.Contains(t, line, want)
	}
	api.Delete(kubeapi.Pods, "inference", "llama-0")
	c.WaitFor(t, "the end of the pod's series", func() bool {
		return !strings.Contains(string(collector.Get(t, "http://"+addr+"/metrics")), "llama-0")
	})
	c.Stop(t)
	assert.Empty(t, c.Complaints())
	assert.NotContains(t, c.Log(), "127.0.0.9", "a pod that is not ready is not scraped")
}

func TestOTLPVendorReceivesCumulativeMetrics(t *testing.T) {
	t.Parallel()
	vllm, vendor := &vllmServer{path: "/metrics"}, &backend{header: "api-key", value: "secret-key"}
	vendor.serve(t)
	c := startExample(t, example("otlp-vendor.yaml"), map[string]string{
		"VLLM_ENDPOINT": vllm.serve(t),
		"OTLP_ENDPOINT": vendor.url, "OTLP_API_KEY": "secret-key",
	}, soon)
	c.WaitFor(t, "the counter and what is derived", func() bool {
		return len(vendor.metrics()["vllm.generation_tokens"]) > 1 && len(vendor.metrics()[derivedQuantile]) > 0
	})
	c.Stop(t)

	metrics := vendor.metrics()
	assert.Contains(t, names(metrics), "vllm.num_requests.running")
	require.Contains(t, names(metrics), "vllm.generation_tokens")
	for _, m := range metrics["vllm.generation_tokens"] {
		assert.Equal(t, pmetric.AggregationTemporalityCumulative, m.Sum().AggregationTemporality())
	}
	derives(t, metrics)
	assert.Empty(t, vendor.errors())
	assert.Empty(t, c.Complaints())
	assert.NotContains(t, c.Log(), "secret-key")
}

func TestDeltaVendorReceivesNothingCumulative(t *testing.T) {
	t.Parallel()
	vllm, vendor := &vllmServer{path: "/metrics"}, &backend{header: "Authorization", value: "Api-Token secret-key"}
	vendor.serve(t)
	c := startExample(t, example("delta-vendor.yaml"), map[string]string{
		"VLLM_ENDPOINT": vllm.serve(t),
		"OTLP_ENDPOINT": vendor.url, "OTLP_AUTHORIZATION": "Api-Token secret-key",
	}, soon)
	c.WaitFor(t, "some deltas and what is derived", func() bool {
		return len(vendor.metrics()["vllm.generation_tokens"]) > 1 && len(vendor.metrics()[derivedQuantile]) > 0
	})
	c.Stop(t)

	metrics := vendor.metrics()
	require.Contains(t, names(metrics), "vllm.generation_tokens")
	require.Contains(t, names(metrics), "vllm.time_to_first_token")
	for name, all := range metrics {
		for _, m := range all {
			switch m.Type() {
			case pmetric.MetricTypeSum:
				assert.Equal(t, pmetric.AggregationTemporalityDelta, m.Sum().AggregationTemporality(), name)
			case pmetric.MetricTypeHistogram:
				assert.Equal(t, pmetric.AggregationTemporalityDelta, m.Histogram().AggregationTemporality(), name)
			default:
				assert.Equal(t, pmetric.MetricTypeGauge, m.Type(), name)
			}
		}
	}
	// The server adds 100 tokens per scrape; no delta may count a value twice.
	for _, m := range metrics["vllm.generation_tokens"] {
		for _, point := range m.Sum().DataPoints().All() {
			value := point.DoubleValue()
			if point.ValueType() == pmetric.NumberDataPointValueTypeInt {
				value = float64(point.IntValue())
			}
			assert.Equal(t, 100.0, value)
		}
	}
	derives(t, metrics)
	assert.Empty(t, vendor.errors())
	assert.Empty(t, c.Complaints())
}

func TestPrometheusReceivesRemoteWrites(t *testing.T) {
	t.Parallel()
	vllm, prometheus := &vllmServer{path: "/metrics"}, &backend{header: "X-Scope-OrgID", value: "team-a"}
	prometheus.serve(t)
	c := startExample(t, example("prometheus-remote-write.yaml"), map[string]string{
		"VLLM_ENDPOINT":    vllm.serve(t),
		"REMOTE_WRITE_URL": prometheus.url + "/api/v1/write", "REMOTE_WRITE_TENANT": "team-a",
	})
	received := func() string {
		prometheus.mu.Lock()
		defer prometheus.mu.Unlock()
		var all strings.Builder
		for _, request := range prometheus.written {
			all.Write(request)
		}
		return all.String()
	}
	c.WaitFor(t, "a write request with samples", func() bool {
		return strings.Contains(received(), "vllm_num_requests_running") &&
			strings.Contains(received(), "vllm_time_to_first_token_quantile_seconds")
	})
	time.Sleep(500 * time.Millisecond)
	c.Stop(t)

	// The protocol's encoding contains strings unchanged.
	for _, want := range []string{
		"vllm_generation_tokens_total", "vllm_time_to_first_token_seconds_bucket", "target_info",
		"collector", "otelcol-vllm",
	} {
		assert.Contains(t, received(), want)
	}
	assert.Empty(t, prometheus.errors())
	assert.Empty(t, c.Complaints())
}

// derivedQuantile is a derived metric that the test's server has.
const derivedQuantile = "vllm.time_to_first_token_quantile"

// derives checks that the quantiles of the server's observations arrive as a gauge. All are
// in the bucket up to half a second.
func derives(t *testing.T, metrics map[string][]pmetric.Metric) {
	t.Helper()
	require.Contains(t, names(metrics), derivedQuantile)
	for _, m := range metrics[derivedQuantile] {
		require.Equal(t, pmetric.MetricTypeGauge, m.Type())
		for _, point := range m.Gauge().DataPoints().All() {
			quantile, _ := point.Attributes().Get("quantile")
			rank, err := strconv.ParseFloat(quantile.AsString(), 64)
			require.NoError(t, err)
			assert.InDelta(t, rank/2, point.DoubleValue(), 1e-9)
		}
	}
}

func names(metrics map[string][]pmetric.Metric) []string {
	return slices.Sorted(maps.Keys(metrics))
}

// lineWith returns the first line that begins with start and contains part.
func lineWith(page, start, part string) string {
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, start) && strings.Contains(line, part) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}
