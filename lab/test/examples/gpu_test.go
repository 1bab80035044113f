//go:build e2e

package examples

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/kubeapi"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

// gpuBody is what dcgm-exporter of one node says: a GPU of a vLLM pod, and an idle one.
const gpuBody = `# TYPE DCGM_FI_DEV_POWER_USAGE gauge
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-a",modelName="H100",hostname="node-1",container="inference",namespace="models",pod="llama-0"} 612.5
DCGM_FI_DEV_POWER_USAGE{gpu="1",UUID="GPU-b",modelName="H100",hostname="node-1"} 71
# TYPE DCGM_FI_DEV_POWER_VIOLATION counter
DCGM_FI_DEV_POWER_VIOLATION{gpu="0",UUID="GPU-a",modelName="H100",hostname="node-1",container="inference",namespace="models",pod="llama-0"} 2500000000
`

// The agent of a node reads its servers and the exporter of their GPUs, and no exporter of
// another node. The GPU has the pod of the server, and never that of the exporter.
func TestTheGPUsOfANodeHaveThePodsThatUseThem(t *testing.T) {
	t.Parallel()
	vllm := &vllmServer{path: "/metrics"}
	host, port, err := net.SplitHostPort(strings.TrimPrefix(vllm.serve(t), "http://"))
	require.NoError(t, err)
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = io.WriteString(w, gpuBody)
	}))
	t.Cleanup(exporter.Close)
	gpuHost, gpuPort, err := net.SplitHostPort(strings.TrimPrefix(exporter.URL, "http://"))
	require.NoError(t, err)
	api := kubeapi.New(t)
	apply := func(namespace, name, node, ip string, labels map[string]string) {
		api.Apply(kubeapi.Pods, kubeapi.Pod{
			Namespace: namespace, Name: name, Node: node, IP: ip, Labels: labels,
			OwnerKind: "DaemonSet", OwnerName: "of-" + name, Containers: []kubeapi.Container{{Name: "inference"}},
		}.Object())
	}
	dcgm := map[string]string{"app": "nvidia-dcgm-exporter"}
	apply("models", "llama-0", "node-1", host, map[string]string{"app.kubernetes.io/component": "inference"})
	apply("gpu-operator", "exporter-x", "node-1", gpuHost, dcgm)
	apply("gpu-operator", "exporter-of-others", "node-2", "127.0.0.9", dcgm)
	addr := collector.FreeAddr(t)
	c := startExample(t, example("gpu.yaml"), map[string]string{
		"VLLM_NAMESPACE": "models", "VLLM_PORT": port, "GPU_PORT": gpuPort, "K8S_NODE_NAME": "node-1",
		"KUBERNETES_API": api.URL, "PROMETHEUS_ADDR": addr,
	}, "receivers::vllm/gpu::collection_interval: 1s", "receivers::vllm/gpu::timeout: 1s")
	var page string
	c.WaitFor(t, "the server and its GPU", func() bool {
		page = string(collector.Get(t, "http://"+addr+"/metrics"))
		return strings.Contains(page, "\nvllm_num_requests_running{") && strings.Contains(page, "\nhw_power_watts{") &&
			strings.Contains(page, "\nvllm_diagnosis_severity{")
	})
	c.Stop(t)

	for _, want := range []struct{ name, id, pod, value string }{
		{"hw_power_watts", "GPU-a", "llama-0", "612.5"},
		{"vllm_accelerator_throttle_time_seconds_total", "GPU-a", "llama-0", "2.5"},
		{"hw_power_watts", "GPU-b", "", "71"},
	} {
		line := lineWith(page, want.name+"{", fmt.Sprintf("hw_id=%q", want.id))
		require.NotEmpty(t, line, want)
		assert.True(t, strings.HasSuffix(strings.TrimSpace(line), " "+want.value), line)
		for _, label := range []string{`k8s_node_name="node-1"`, `host_name="node-1"`, `vllm_server_kind="accelerator"`, `service_name="gpu-exporter"`} {
			assert.Contains(t, line, label)
		}
		if want.pod == "" {
			assert.NotContains(t, line, "k8s_pod_name")
		} else {
			assert.Contains(t, line, `k8s_pod_name="`+want.pod+`"`)
			assert.Contains(t, line, `k8s_container_name="inference"`)
			assert.Contains(t, line, `k8s_namespace_name="models"`)
		}
	}
	for _, other := range []string{"exporter-x", "of-exporter", "exporter-of-others", "127.0.0.9"} {
		assert.NotContains(t, page, other)
	}
	assert.Empty(t, c.Complaints())
}
