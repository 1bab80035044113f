//go:build e2e

package kubernetes

import (
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// The chart in two releases, with the values and the policy of examples/tiers/chart: both
// configurations are valid, the agents neither derive nor batch, and reach the second tier.
func TestTheChartMakesTwoTiers(t *testing.T) {
	const dir = root + "/examples/tiers/chart/"
	tier := func(file string) (cluster, workload, map[string]string, map[string]any) {
		// Helm names objects by the release; only the names of the agents would differ.
		rendered, _, err := helm(load(t, charts+"/otelcol-vllm"), values(t, dir+file), "otelcol-vllm")
		require.NoError(t, err)
		all := mustDecode(t, namespaced(rendered))
		w := all.workloads()[0]
		valid(t, all.index(), w, w.ours()[0])
		texts, ok := configTexts(all.index(), w, w.ours()[0])
		require.True(t, ok)
		text, err := merged(texts)
		require.NoError(t, err)
		var config map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(text), &config))
		return all, w, variables(all.index(), w, w.ours()[0]), config
	}
	agents, agent, env, config := tier("agents.yaml")
	metrics := at(config, "service", "pipelines", "metrics")
	assert.Equal(t, []any{"vllm"}, metrics["receivers"])
	assert.Equal(t, []any{"memory_limiter"}, metrics["processors"])
	queue := at(config, "exporters", "otlp_http", "sending_queue")
	assert.Equal(t, false, at(queue, "batch")["enabled"])
	assert.EqualValues(t, 1, queue["num_consumers"])
	assert.Equal(t, "file_storage", queue["storage"])
	pools, pool, _, config := tier("pool.yaml")
	metrics = at(config, "service", "pipelines", "metrics")
	assert.Equal(t, []any{"otlp"}, metrics["receivers"])
	assert.Equal(t, []any{"memory_limiter", "vllm"}, metrics["processors"])

	address, err := url.Parse(env["OTLP_ENDPOINT"])
	require.NoError(t, err)
	name, namespace, _ := strings.Cut(strings.TrimSuffix(address.Hostname(), ".svc"), ".")
	service, ok := pools.index()[key("Service", namespace, name)].(*corev1.Service)
	require.True(t, ok, "the address of the agents is a Service of the second tier")
	assert.Equal(t, corev1.ClusterIPNone, service.Spec.ClusterIP, "a headless Service needs no port to be named")
	assert.True(t, labelsMatch(pool.selector, service.Spec.Selector))
	port, err := strconv.Atoi(address.Port())
	require.NoError(t, err)
	assert.Equal(t, "[${env:POD_IP}]:"+address.Port(), at(config, "receivers", "otlp", "protocols", "http")["endpoint"])
	out, ok := agents.index()[key("NetworkPolicy", agent.namespace, "otelcol-vllm-agent")].(*networkingv1.NetworkPolicy)
	require.True(t, ok)
	assert.Contains(t, ports(out), port)

	content, err := os.ReadFile(dir + "networkpolicy.yaml")
	require.NoError(t, err)
	policy, ok := mustDecode(t, content)[0].(*networkingv1.NetworkPolicy)
	require.True(t, ok)
	assert.Equal(t, pool.namespace, policy.Namespace)
	assert.True(t, labelsMatch(&policy.Spec.PodSelector, pool.template.Labels))
	assert.False(t, labelsMatch(&policy.Spec.PodSelector, agent.template.Labels))
	rule := policy.Spec.Ingress[0]
	assert.True(t, labelsMatch(rule.From[0].PodSelector, agent.template.Labels))
	assert.Equal(t, port, rule.Ports[0].Port.IntValue())
}
