package kubernetes

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

const named = "kubernetes.io/metadata.name"

// above renders an overlay of the user's own, with components above one of ours.
func above(t *testing.T, files filesys.FileSystem, overlay, component string) cluster {
	t.Helper()
	return mustDecode(t, renderedAbove(t, files, overlay, component))
}

func renderedAbove(t *testing.T, files filesys.FileSystem, overlay, component string) []byte {
	t.Helper()
	in := "/k/examples/kubernetes/overlays/mine-" + overlay
	require.NoError(t, files.WriteFile(in+"/kustomization.yaml",
		[]byte("resources: [../"+overlay+"]\ncomponents: [../../components/"+component+"]\n")))
	return build(t, files, in)
}

func TestCollectorsWithGPUsMayReadTheExporterAndNothingElse(t *testing.T) {
	for _, row := range []struct{ overlay, component, account, receivers string }{
		{"agent", "agent-gpu", "otelcol-vllm-agent", "[vllm, vllm/gpu]"},
		{"agent-hostpath", "agent-gpu", "otelcol-vllm-agent", "[vllm, vllm/gpu]"},
		{"pool", "pool-gpu", "otelcol-vllm-pool", "[vllm, vllm/picker, vllm/gpu]"},
	} {
		files := copied(t)
		require.NoError(t, files.WriteFile("/k/examples/kubernetes/components/"+row.component+"/gpu.env",
			[]byte("GPU_NAMESPACE=gpus\nGPU_SELECTOR=app=exporter\nGPU_PORT=5000\n")))
		all := above(t, files, row.overlay, row.component)
		// The namespace of the exporter is the cluster's, like that of the models.
		others := slices.DeleteFunc(all.complaints(), func(c string) bool { return strings.Contains(c, "no namespace gpus") })
		assert.Empty(t, others)

		index := all.index()
		role, ok := index[key("Role", "gpus", row.account+"-gpu")].(*rbacv1.Role)
		require.True(t, ok)
		assert.Equal(t, []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch"}}}, role.Rules)
		binding, ok := index[key("RoleBinding", "gpus", row.account+"-gpu")].(*rbacv1.RoleBinding)
		require.True(t, ok)
		assert.Equal(t, all.workloads()[0].template.Spec.ServiceAccountName, binding.Subjects[0].Name)
		assert.NotNil(t, index[key("Role", "vllm", row.account)], "that of the models stays where it was")

		policy, ok := index[key("NetworkPolicy", "otelcol-vllm", row.account)].(*networkingv1.NetworkPolicy)
		require.True(t, ok)
		before, ok := mustDecode(t, overlays(t)[row.overlay]).index()[key("NetworkPolicy", "otelcol-vllm", row.account)].(*networkingv1.NetworkPolicy)
		require.True(t, ok)
		assert.Equal(t, "gpus", policy.Spec.Egress[0].To[0].NamespaceSelector.MatchLabels[named])
		assert.Equal(t, 5000, policy.Spec.Egress[0].Ports[0].Port.IntValue())
		assert.Equal(t, before.Spec.Egress, policy.Spec.Egress[1:], "the other rules are as they were")

		w := all.workloads()[0]
		texts, ok := configTexts(index, w, w.ours()[0])
		require.True(t, ok)
		assert.Contains(t, texts[len(texts)-1], "receivers: "+row.receivers, "the list that replaces the others is the last")
	}
}

func TestTheNameOfTheClusterFitsEveryDeployment(t *testing.T) {
	files := copied(t)
	for _, overlay := range []string{"agent", "agent-hostpath", "gateway", "pool", "pool-label", "pool-label-prometheus-operator", "pool-label-scrape", "shards"} {
		all := above(t, files, overlay, "cluster-name")
		assert.Empty(t, all.complaints(), overlay)
		w := all.workloads()[0]
		texts, ok := configTexts(all.index(), w, w.ours()[0])
		require.True(t, ok)
		assert.Contains(t, texts[len(texts)-1], "processors: [memory_limiter, vllm, transform/cluster]", "%s: the list that replaces the others is the last", overlay)
	}
}

// A Role or a policy that a user adds for another namespace stays there. The settings once
// moved each Role to the namespace of the models.
func TestTheSettingsMoveOnlyTheirOwnObjects(t *testing.T) {
	const mine = `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: mine, namespace: elsewhere}
rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: mine, namespace: otelcol-vllm}
spec:
  podSelector: {}
  policyTypes: [Egress]
  egress:
    - to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: one}}}]
      ports: [{protocol: TCP, port: 1}]
    - to: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: elsewhere}}}]
      ports: [{protocol: TCP, port: 2}]
`
	for _, overlay := range []string{"agent", "gateway", "pool", "pool-label", "shards"} {
		files := copied(t)
		in := "/k/examples/kubernetes/overlays/" + overlay
		require.NoError(t, files.WriteFile(in+"/mine.yaml", []byte(mine)))
		content, err := files.ReadFile(in + "/kustomization.yaml")
		require.NoError(t, err)
		require.NoError(t, files.WriteFile(in+"/kustomization.yaml",
			[]byte(strings.Replace(string(content), "\nresources:\n", "\nresources:\n  - mine.yaml\n", 1))))
		index := mustDecode(t, build(t, files, in)).index()
		assert.NotNil(t, index[key("Role", "elsewhere", "mine")], overlay)
		policy, ok := index[key("NetworkPolicy", "otelcol-vllm", "mine")].(*networkingv1.NetworkPolicy)
		require.True(t, ok, overlay)
		assert.Equal(t, "elsewhere", policy.Spec.Egress[1].To[0].NamespaceSelector.MatchLabels[named], overlay)
		assert.Equal(t, 2, policy.Spec.Egress[1].Ports[0].Port.IntValue(), overlay)
	}
}

// kube-prometheus-stack takes only what has its label, and rules that a Prometheus has twice
// alert twice.
func TestTheOperatorGetsTheRulesOnceAndWithItsLabel(t *testing.T) {
	index := mustDecode(t, overlays(t)["pool-label-prometheus-operator"]).index()
	monitor, ok := index[key("PodMonitor", "otelcol-vllm", "otelcol-vllm")].(*podMonitor)
	require.True(t, ok)
	rules, ok := index[key("PrometheusRule", "otelcol-vllm", "vllm")].(*prometheusRule)
	require.True(t, ok)
	assert.Equal(t, "kube-prometheus-stack", monitor.Labels["release"])
	assert.Equal(t, "kube-prometheus-stack", rules.Labels["release"])
	assert.Nil(t, index[key("ConfigMap", "otelcol-vllm", "vllm-rules")])
	_, ok = index[key("ConfigMap", "otelcol-vllm", "vllm-overview")].(*corev1.ConfigMap)
	assert.True(t, ok, "the dashboards stay")
}

// Whoever keeps the Secret elsewhere takes its generator out, and gives it the name that the
// pods ask for.
func TestASecretOfOnesOwnKeepsItsName(t *testing.T) {
	const generator = "secretGenerator:\n  - name: otelcol-vllm-%\n    namespace: otelcol-vllm\n    envs:\n      - secret.env\n"
	for overlay, workload := range map[string]string{"agent": "agent", "gateway": "gateway", "pool": "pool", "pool-label": "pool", "shards": "pool"} {
		files := copied(t)
		in := "/k/examples/kubernetes/overlays/" + overlay
		content, err := files.ReadFile(in + "/kustomization.yaml")
		require.NoError(t, err)
		without := strings.Replace(string(content), strings.Replace(generator, "%", workload+"-backend", 1), "", 1)
		require.NotEqual(t, string(content), without, overlay)
		require.NoError(t, files.WriteFile(in+"/kustomization.yaml", []byte(without)))
		all := mustDecode(t, build(t, files, in))
		asked := all.workloads()[0].ours()[0].EnvFrom[1].SecretRef.Name
		assert.Equal(t, "otelcol-vllm-"+workload+"-backend", asked, overlay)
	}
}
