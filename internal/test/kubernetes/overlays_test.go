package kubernetes

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func (c cluster) complaints() []string { return append(c.podComplaints(), c.ruleComplaints()...) }

func TestEveryOverlayIsCompleteAndConfined(t *testing.T) {
	for overlay, rendered := range overlays(t) {
		t.Run(overlay, func(t *testing.T) {
			all := mustDecode(t, rendered)
			assert.Empty(t, all.complaints())
			assert.Len(t, all.workloads(), 1)
			assert.Len(t, all.index(), len(all), "no object occurs twice")
			assert.NotContains(t, string(rendered), "image: otelcol-vllm\n", "the overlay names the registry")
		})
	}
}

// A check that finds nothing would always pass. Each row breaks one thing.
func TestTheChecksNoticeWhatIsWrong(t *testing.T) {
	rendered := overlays(t)
	for _, row := range []struct{ overlay, old, new, complaint string }{
		{"agent", "runAsNonRoot: true", "runAsNonRoot: false", "may run as root"},
		{"agent", "runAsUser: 10001", "runAsUser: 10002", "does not run as the image's user"},
		{"agent", "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "may write to its image"},
		{"agent", "allowPrivilegeEscalation: false", "privileged: true", "is privileged"},
		{"agent", "            - ALL\n", "            - NET_RAW\n", "keeps capabilities"},
		{"agent", "type: RuntimeDefault", "type: Unconfined", "has no seccomp profile"},
		{"agent", "  - watch\n", "  - delete\n", "grants the verb delete"},
		{"agent", "  - pods\n", "  - '*'\n", "grants the resource *"},
		{"agent", "serviceAccountName: otelcol-vllm-agent", "serviceAccountName: other", "no ServiceAccount otelcol-vllm/other"},
		{"agent", "automountServiceAccountToken: false\nkind: ServiceAccount", "kind: ServiceAccount", "gives its token to any pod"},
		{"agent", "mountPath: /var/lib/otelcol-vllm", "mountPath: /var/lib/other", "cannot write the queue to"},
		{"agent", "sizeLimit: 1Gi", "sizeLimit: 500Mi", "does not fit into its volume"},
		{"agent", "    max_elapsed_time: 0\n", "    max_elapsed_time: 300\n", "gives up"},
		{"agent", "sending_queue:\n          storage: file_storage", "sending_queue:\n          storage: other", "has its queue in memory"},
		{"agent", "extensions: [health_check, storage_check, ", "extensions: [health_check, ", "a damaged queue ends the collector"},
		{"agent", "recreate: true", "recreate: false", "a damaged queue may not be set aside"},
		{"agent", "max_size_mib: 100", "max_size_mib: 1000", "a damaged queue and the new one do not fit into the volume"},
		{"agent", "        storage: file_storage\n        window: 1m", "        window: 1m", "processor vllm forgets what it has learned"},
		{"agent", "processors: [memory_limiter, vllm]", "processors: [memory_limiter, vllm, batch]", "other processors"},
		{"sidecar", "processors: [memory_limiter, vllm]", "processors: [memory_limiter]", "other processors"},
		{"agent", "name: K8S_NODE_NAME", "name: NODE_NAME", "reads K8S_NODE_NAME, which nothing sets"},
		{"agent", "containerPort: 13133", "containerPort: 13134", "do not ask where health_check listens"},
		{"agent", "port: health\n", "port: healthz\n", "asks a port that is not there"},
		{"agent", "value: 400MiB", "value: 600MiB", "GOMEMLIMIT"},
		{"agent", "    matchLabels:\n      app.kubernetes.io/component: agent", "    matchLabels:\n      app.kubernetes.io/component: other", "selector does not match"},
		{"agent", "  podSelector:\n    matchLabels:\n", "  podSelector:\n    matchLabels:\n      a: b\n", "selects no pod"},
		{"agent", "--config=/etc/otelcol-vllm/collector.yaml", "--config=/etc/otelcol-vllm/other.yaml", "no configuration"},
		{"agent", "\n  namespace: vllm\nrules", "\n  namespace: models\nrules", "no namespace models"},
		{"gateway", "claimName: otelcol-vllm-gateway", "claimName: other", "no PersistentVolumeClaim"},
		{"gateway", "path: token", "path: other", "no token at"},
		{"gateway", "  - /metrics\n", "  - /*\n", "grants the URL /*"},
		{"gateway", "name: otelcol-vllm-gateway-metrics\nsubjects", "name: other\nsubjects", "no ClusterRole /other"},
		{"sidecar", "name: otelcol-vllm-sidecar-settings", "name: other", "no ConfigMap"},
		{"sidecar", "mountPath: /var/lib/otelcol-vllm\n          name: otelcol-vllm-queue", "mountPath: /var/lib/otelcol-vllm\n          name: other", "volume otelcol-vllm-queue is not mounted"},
	} {
		t.Run(row.complaint, func(t *testing.T) {
			before := string(rendered[row.overlay])
			at := strings.Index(before, row.old)
			require.GreaterOrEqual(t, at, 0, "%q is no longer there", row.old)
			broken := mustDecode(t, []byte(before[:at]+row.new+before[at+len(row.old):]))
			assert.Contains(t, strings.Join(broken.complaints(), "\n"), row.complaint)
		})
	}
}

// Whoever copies the folder edits settings.env, and the manifests follow.
func TestTheSettingsReachTheManifests(t *testing.T) {
	files := filesys.MakeFsInMemory()
	require.NoError(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		inside, err := filepath.Rel(folder, path)
		require.NoError(t, err)
		return files.WriteFile("/k/"+filepath.ToSlash(inside), content)
	}))
	for overlay, settings := range map[string]string{
		"agent":   "VLLM_NAMESPACE=models\nVLLM_PORT=1234\n",
		"gateway": "VLLM_NAMESPACE=models\nLORA_PORT=1234\nPICKER_NAMESPACE=gateways\n",
	} {
		t.Run(overlay, func(t *testing.T) {
			require.NoError(t, files.WriteFile("/k/overlays/"+overlay+"/settings.env", []byte(settings)))
			all := mustDecode(t, build(t, files, "/k/overlays/"+overlay))
			index := all.index()
			assert.NotNil(t, index[key("Role", "models", "otelcol-vllm-"+overlay)])
			assert.NotNil(t, index[key("RoleBinding", "models", "otelcol-vllm-"+overlay)])
			policy, ok := index[key("NetworkPolicy", "otelcol-vllm", "otelcol-vllm-"+overlay)].(*networkingv1.NetworkPolicy)
			require.True(t, ok)
			const label = "kubernetes.io/metadata.name"
			assert.Equal(t, "models", policy.Spec.Egress[1].To[0].NamespaceSelector.MatchLabels[label])
			assert.Equal(t, 1234, policy.Spec.Egress[1].Ports[0].Port.IntValue())
			assert.Equal(t, 53, policy.Spec.Egress[0].Ports[0].Port.IntValue(), "DNS is left alone")
			if overlay == "gateway" {
				assert.Equal(t, "gateways", policy.Spec.Egress[2].To[0].NamespaceSelector.MatchLabels[label])
				assert.Equal(t, 9090, policy.Spec.Egress[2].Ports[0].Port.IntValue())
			}
		})
	}
}

func TestTheAgentIsOnEveryNodeAndReadsOnlyItsOwn(t *testing.T) {
	all := mustDecode(t, overlays(t)["agent"])
	w := all.workloads()[0]
	assert.IsType(t, &appsv1.DaemonSet{}, all.index()[w.name])
	container := w.ours()[0]
	text, ok := configText(all.index(), w, container)
	require.True(t, ok)
	assert.Contains(t, text, "node: ${env:K8S_NODE_NAME}")
	at := slices.IndexFunc(container.Env, func(e corev1.EnvVar) bool { return e.Name == "K8S_NODE_NAME" })
	require.GreaterOrEqual(t, at, 0)
	assert.Equal(t, "spec.nodeName", container.Env[at].ValueFrom.FieldRef.FieldPath)
}

func TestTheHostPathOverlayKeepsTheQueueOnTheNode(t *testing.T) {
	queue := func(overlay string) corev1.Volume {
		volumes := mustDecode(t, overlays(t)[overlay]).workloads()[0].template.Spec.Volumes
		return volumes[slices.IndexFunc(volumes, func(v corev1.Volume) bool { return v.Name == "queue" })]
	}
	assert.NotNil(t, queue("agent").EmptyDir)
	assert.Nil(t, queue("agent-hostpath").EmptyDir)
	require.NotNil(t, queue("agent-hostpath").HostPath)
	assert.Equal(t, "/var/lib/otelcol-vllm", queue("agent-hostpath").HostPath.Path)
}

// A namespace that demands more than a pod gives would refuse the pod, and one that
// demands less than it could protects nothing.
func TestTheNamespaceDemandsWhatThePodsGive(t *testing.T) {
	for overlay, rendered := range overlays(t) {
		if overlay == "sidecar" {
			continue
		}
		namespace, ok := mustDecode(t, rendered).index()[key("Namespace", "", "otelcol-vllm")].(*corev1.Namespace)
		require.True(t, ok, overlay)
		want := "restricted"
		if strings.Contains(string(rendered), "hostPath:") {
			want = "privileged"
		}
		assert.Equal(t, want, namespace.Labels["pod-security.kubernetes.io/enforce"], overlay)
	}
}

func TestTheSidecarLeavesTheServerAsItWas(t *testing.T) {
	content, err := os.ReadFile(folder + "/overlays/sidecar/vllm.yaml")
	require.NoError(t, err)
	before := mustDecode(t, content).workloads()[0].template
	after := mustDecode(t, overlays(t)["sidecar"]).workloads()[0].template
	require.Len(t, after.Spec.Containers, len(before.Spec.Containers)+1)
	assert.Contains(t, after.Spec.Containers, before.Spec.Containers[0])
	assert.Equal(t, before.Labels, after.Labels)
	assert.Equal(t, before.Spec.SecurityContext, after.Spec.SecurityContext)
	for _, c := range after.Spec.Containers {
		if c.Name == "collector" {
			assert.Nil(t, c.ReadinessProbe, "the collector must not take the model out of its Service")
		}
	}
}
