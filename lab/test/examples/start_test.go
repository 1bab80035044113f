//go:build e2e

package examples

import (
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/kubeapi"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

// docs/start/prometheus.md: dashboards for vLLM's own names keep working, and
// "vllm_up" and the severity are on the same page.
func TestDashboardsKeepTheNamesOfTheServer(t *testing.T) {
	t.Parallel()
	vllm := &vllmServer{path: "/metrics"}
	server := vllm.serve(t)
	addr := collector.FreeAddr(t)
	c := startExample(t, example("prometheus-dashboards.yaml"), map[string]string{
		"VLLM_ADDRESS": strings.TrimPrefix(server, "http://"), "PROMETHEUS_ADDR": addr,
	})
	var page string
	c.WaitFor(t, "what is derived from two scrapes", func() bool {
		page = string(collector.Get(t, "http://"+addr+"/metrics"))
		return strings.Contains(page, "\nvllm_time_to_first_token_mean_seconds{")
	})
	c.Stop(t)

	names := 0
	for line := range strings.Lines(string(collector.Get(t, server+"/metrics"))) {
		if name, _, labelled := strings.Cut(line, "{"); labelled {
			names++
			assert.Contains(t, page, "\n"+name+"{", "a query for %s finds nothing", name)
		}
	}
	assert.Greater(t, names, 5)
	assert.Regexp(t, `(?m)^vllm:num_requests_running\{.*engine="0".*model_name="m".*\} 3$`, page)
	assert.Regexp(t, `(?m)^vllm_up\{.*\} 1$`, page)
	assert.Regexp(t, `(?m)^vllm_diagnosis_severity\{.*engine="0".*\} [01]$`, page)
	assert.Empty(t, c.Complaints())
}

// docs/start/poolside.md: the pods of all models are found by the label, and no others.
func TestPoolsideFindsTheServersOfAllModels(t *testing.T) {
	t.Parallel()
	vllm := &vllmServer{path: "/metrics"}
	host, port, err := net.SplitHostPort(strings.TrimPrefix(vllm.serve(t), "http://"))
	require.NoError(t, err)
	api := kubeapi.New(t)
	pod := func(namespace, name, component, ip string) {
		api.Apply(kubeapi.Pods, kubeapi.Pod{
			Namespace: namespace, Name: name, Node: "node-1", IP: ip,
			Labels:     map[string]string{"app.kubernetes.io/component": component, "app.kubernetes.io/model": "agent-small"},
			Containers: []kubeapi.Container{{Name: "inference"}},
		}.Object())
	}
	pod("poolside-models", "inference-0a1b", "inference", host)
	pod("poolside-models", "loader", "download", "127.0.0.8")
	pod("other", "inference-of-others", "inference", "127.0.0.9")
	addr := collector.FreeAddr(t)
	c := startExample(t, example("poolside.yaml"), map[string]string{
		"POOLSIDE_PORT": port, "KUBERNETES_API": api.URL, "PROMETHEUS_ADDR": addr,
	}, "processors::vllm::pool::interval: 1s")
	var page string
	c.WaitFor(t, "the engine's and the pool's severity", func() bool {
		page = string(collector.Get(t, "http://"+addr+"/metrics"))
		return strings.Contains(page, "\nvllm_diagnosis_severity{") && strings.Contains(page, "\nvllm_pool_diagnosis_severity{")
	})
	c.Stop(t)

	line := lineWith(page, "vllm_num_requests_running{", `k8s_pod_name="inference-0a1b"`)
	for _, want := range []string{`k8s_namespace_name="poolside-models"`, `poolside_model="agent-small"`, `model_name="m"`} {
		assert.Contains(t, line, want)
	}
	assert.Equal(t, 1, strings.Count(page, "\nvllm_up{"), "one pod is a model server")
	assert.Regexp(t, `(?m)^vllm_up\{.*\} 1$`, page)
	assert.Regexp(t, `(?m)^vllm_pool_replicas\{.*model_name="m".*\} 1$`, page)
	for _, address := range []string{"127.0.0.8", "127.0.0.9"} {
		assert.NotContains(t, page+c.Log(), address)
	}
	assert.Empty(t, c.Complaints())
}
