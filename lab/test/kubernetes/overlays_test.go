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
	"go.yaml.in/yaml/v3"
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

// Each row breaks one thing, which the check must find.
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
		{"agent", "extensions: [health_check, health_check/ready, storage_check, ", "extensions: [health_check, health_check/ready, ", "a damaged queue ends the collector"},
		{"agent", "recreate: true", "recreate: false", "a damaged queue may not be set aside"},
		{"agent", "max_size_mib: 100", "max_size_mib: 1000", "a damaged queue and the new one do not fit into the volume"},
		{"agent", "over a restart.\n        storage: file_storage\n", "over a restart.\n", "processor vllm forgets what it has learned"},
		{"agent", "processors: [memory_limiter, vllm]", "processors: [memory_limiter, vllm, batch]", "other processors"},
		{"sidecar", "processors: [memory_limiter, vllm]", "processors: [memory_limiter]", "other processors"},
		{"agent", "name: K8S_NODE_NAME", "name: NODE_NAME", "reads K8S_NODE_NAME, which nothing sets"},
		{"agent", "containerPort: 13133", "containerPort: 13135", "liveness probe does not ask where health_check listens"},
		{"agent", "containerPort: 13134", "containerPort: 13135", "readiness probe does not ask where health_check/ready listens"},
		{"pool", "include_recoverable_errors: true", "include_recoverable_errors: false", "ready whatever its components report"},
		{"pool", "extensions: [health_check, health_check/ready, storage_check, file_storage, vllm_fleet, bearertokenauth]", "extensions: [health_check, storage_check, file_storage, vllm_fleet, bearertokenauth]", "health_check/ready is not started"},
		{"pool", "minReadySeconds: 90", "minReadySeconds: 30", "a rollout goes on before"},
		{"pool", "failureThreshold: 60", "failureThreshold: 6", "too long for the startup probe"},
		{"pool", "        - " + gate + "\n", "", "needs its feature gate"},
		{"pool", "containerPort: 8888", "containerPort: 8889", "no port is named for the collector's own metrics"},
		{"pool", "host: ${env:POD_IP}", "host: localhost", "not on the pod's address"},
		{"pool", "name: service.instance.id", "name: service.other", "each start makes new series"},
		{"pool", "- port: 8888\n      protocol: TCP\n  podSelector", "- port: 13133\n      protocol: TCP\n  podSelector", "lets others in"},
		{"pool", "clusterIP: None", "clusterIP: 10.0.0.1", "no headless Service"},
		{"pool", "maxUnavailable: 1", "maxUnavailable: 0", "does not let nodes be drained"},
		{"pool", "podManagementPolicy: Parallel", "podManagementPolicy: OrderedReady", "holds up the others"},
		{"pool", "  - metadata:\n      name: queue", "  - metadata:\n      name: other", "no volume queue"},
		{"pool", "name: ${env:POOL_${env:POOL_INDEX}_NAME}", "name: ${env:POOL_${env:POOL_INDEX}1_NAME}", "reads POOL_01_NAME, which nothing sets"},
		{"shards", "name: SHARD\n", "name: NUMBER\n", "reads SHARD, which nothing sets"},
		{"pool", "  - inferencepools\n", "  - services\n", "grants the resource services"},
		{"pool-label-prometheus-operator", "- interval: 15s\n    port: metrics", "- interval: 15s\n    port: http", "no container has the port http"},
		{"agent", "port: health\n", "port: healthz\n", "asks a port that is not there"},
		{"agent", "value: 400MiB", "value: 600MiB", "GOMEMLIMIT"},
		{"agent", "    matchLabels:\n      app.kubernetes.io/component: agent", "    matchLabels:\n      app.kubernetes.io/component: other", "selector does not match"},
		{"agent", "  podSelector:\n    matchLabels:\n", "  podSelector:\n    matchLabels:\n      a: b\n", "selects no pod"},
		{"agent", "--config=/etc/otelcol-vllm/own/receivers.yaml", "--config=/etc/otelcol-vllm/own/other.yaml", "no configuration"},
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

// copied is a copy of the folder, with the folder content where the pool looks for it.
func copied(t *testing.T) filesys.FileSystem {
	t.Helper()
	files := filesys.MakeFsInMemory()
	// The pool takes rules and dashboards from the folder content.
	for _, part := range []string{"examples/kubernetes", "content"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(root, part), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			inside, err := filepath.Rel(root, path)
			require.NoError(t, err)
			return files.WriteFile("/k/"+filepath.ToSlash(inside), content)
		}))
	}
	return files
}

// Whoever copies the folder edits settings.env, and the manifests follow.
func TestTheSettingsReachTheManifests(t *testing.T) {
	files := copied(t)
	for overlay, settings := range map[string]string{
		"agent":      "VLLM_NAMESPACE=models\nVLLM_PORT=1234\n",
		"gateway":    "VLLM_NAMESPACE=models\nLORA_PORT=1234\nPICKER_NAMESPACE=gateways\n",
		"pool":       "VLLM_NAMESPACE=models\nVLLM_PORT=1234\n",
		"pool-label": "VLLM_NAMESPACE=models\nVLLM_PORT=1234\n",
		"shards":     "VLLM_NAMESPACE=models\nVLLM_PORT=1234\nSHARDS=7\n",
	} {
		t.Run(overlay, func(t *testing.T) {
			in := "/k/examples/kubernetes/overlays/" + overlay
			require.NoError(t, files.WriteFile(in+"/settings.env", []byte(settings+"MONITORING_NAMESPACE=watchers\n")))
			all := mustDecode(t, build(t, files, in))
			index := all.index()
			named := "otelcol-vllm-" + overlay
			if overlay == "pool-label" || overlay == "shards" {
				named = "otelcol-vllm-pool"
			}
			assert.NotNil(t, index[key("Role", "models", named)])
			assert.NotNil(t, index[key("RoleBinding", "models", named)])
			policy, ok := index[key("NetworkPolicy", "otelcol-vllm", named)].(*networkingv1.NetworkPolicy)
			require.True(t, ok)
			const label = "kubernetes.io/metadata.name"
			assert.Equal(t, "models", policy.Spec.Egress[1].To[0].NamespaceSelector.MatchLabels[label])
			assert.Equal(t, 1234, policy.Spec.Egress[1].Ports[0].Port.IntValue())
			assert.Equal(t, 53, policy.Spec.Egress[0].Ports[0].Port.IntValue(), "DNS is left alone")
			assert.Equal(t, "watchers", policy.Spec.Ingress[0].From[0].NamespaceSelector.MatchLabels[label])
			if overlay == "pool" {
				assert.Equal(t, "models", policy.Spec.Egress[3].To[0].NamespaceSelector.MatchLabels[label])
				assert.Equal(t, 9090, policy.Spec.Egress[3].Ports[0].Port.IntValue())
			}
			if overlay == "shards" {
				collectors, ok := index[key("StatefulSet", "otelcol-vllm", named)].(*appsv1.StatefulSet)
				require.True(t, ok)
				assert.Equal(t, int32(7), *collectors.Spec.Replicas, "as many collectors as shards")
			}
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
	texts, ok := configTexts(all.index(), w, container)
	require.True(t, ok)
	assert.Contains(t, strings.Join(texts, "\n"), "node: ${env:K8S_NODE_NAME}")
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

// A namespace with a stricter policy than the pod meets would refuse the pod, and a laxer
// one would not protect it.
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

// The component for the Prometheus operator is in an overlay of the pool only, and can be added
// to the others.
func TestThePodMonitorFitsEveryDeployment(t *testing.T) {
	files := copied(t)
	for _, overlay := range []string{"agent", "agent-hostpath", "gateway", "pool-label", "shards"} {
		in := "/k/examples/kubernetes/overlays/watched-" + overlay
		require.NoError(t, files.WriteFile(in+"/kustomization.yaml",
			[]byte("resources: [../"+overlay+"]\ncomponents: [../../components/prometheus-operator]\n")))
		all := mustDecode(t, build(t, files, in))
		assert.Empty(t, all.complaints(), overlay)
		assert.NotNil(t, all.index()[key("PodMonitor", "otelcol-vllm", "otelcol-vllm")], overlay)
	}
}

// The pool brings the files of content as they are, in a namespace that exists.
func TestThePoolBringsRulesAndDashboards(t *testing.T) {
	for _, overlay := range []string{"pool", "pool-label", "shards"} {
		index := mustDecode(t, overlays(t)[overlay]).index()
		boards, err := filepath.Glob(filepath.Join(root, "content", "grafana", "suffixed", "*.json"))
		require.NoError(t, err)
		require.NotEmpty(t, boards)
		for _, file := range append(boards, filepath.Join(root, "content", "rules", "suffixed", "vllm.yaml")) {
			named, label := strings.TrimSuffix(filepath.Base(file), ".json"), "1"
			if named == "vllm.yaml" {
				named, label = "vllm-rules", ""
			}
			config, ok := index[key("ConfigMap", "otelcol-vllm", named)].(*corev1.ConfigMap)
			require.True(t, ok, named)
			want, err := os.ReadFile(file)
			require.NoError(t, err)
			assert.Equal(t, string(want), config.Data[filepath.Base(file)], named)
			assert.Equal(t, label, config.Labels["grafana_dashboard"], named)
		}
	}
	rules, ok := mustDecode(t, overlays(t)["pool-label-prometheus-operator"]).index()[key("PrometheusRule", "otelcol-vllm", "vllm")].(*prometheusRule)
	require.True(t, ok)
	assert.Greater(t, len(rules.Spec.Groups), 1)
}

// The overlay divides the servers by the rules of examples/shards.yaml, which collectors are run
// with in another test.
func TestTheShardsHaveTheRulesOfTheExample(t *testing.T) {
	rules := func(path string) []any {
		content, err := os.ReadFile(filepath.Join(root, path))
		require.NoError(t, err)
		var config struct {
			Receivers map[string]struct {
				Discovery struct {
					Rules []any `yaml:"relabel_configs"`
				}
			}
		}
		text := strings.ReplaceAll(string(content), "${env:POOL_LABEL}", "app_kubernetes_io_model")
		require.NoError(t, yaml.Unmarshal([]byte(text), &config))
		return config.Receivers["vllm"].Discovery.Rules
	}
	want := rules("examples/shards.yaml")
	assert.Len(t, want, 4)
	assert.Equal(t, want, rules("examples/kubernetes/components/shards/receivers.yaml"))
}
