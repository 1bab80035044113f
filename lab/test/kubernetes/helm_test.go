package kubernetes

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	templates "helm.sh/helm/v4/pkg/engine"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

const (
	charts = root + "/examples/helm"
	// release is the name of all releases in these tests, with which objects have the same
	// names as in the overlays.
	release = "otelcol-vllm"
)

func load(t *testing.T, dir string) *chart.Chart {
	t.Helper()
	loaded, err := loader.Load(dir)
	require.NoError(t, err)
	require.NoError(t, loaded.Validate())
	return loaded
}

// values reads a file of values; changes are merged over it.
func values(t *testing.T, file string, changes ...string) map[string]any {
	t.Helper()
	var all map[string]any
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(content, &all), file)
	for _, change := range changes {
		var next map[string]any
		require.NoError(t, yaml.UnmarshalStrict([]byte(change), &next))
		merge(all, next)
	}
	return all
}

// helm renders a chart as "helm template --namespace" does, and returns the manifests and the
// notes.
func helm(c *chart.Chart, values map[string]any, namespace string, change ...func(*common.Capabilities)) ([]byte, string, error) {
	capabilities := common.DefaultCapabilities.Copy()
	// The default is what Helm's program was built for, which a test does not have.
	capabilities.KubeVersion = common.KubeVersion{Version: "v1.35.0", Major: "1", Minor: "35"}
	for _, apply := range change {
		apply(capabilities)
	}
	options := common.ReleaseOptions{Name: release, Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := util.ToRenderValues(c, values, options, capabilities)
	if err != nil {
		return nil, "", err
	}
	files, err := templates.Render(c, all)
	if err != nil {
		return nil, "", err
	}
	var manifests, notes strings.Builder
	for _, name := range slices.Sorted(maps.Keys(files)) {
		switch {
		case strings.HasSuffix(name, "NOTES.txt"):
			notes.WriteString(files[name])
		default:
			// Helm drops what is empty.
			for part := range strings.SplitSeq("\n"+files[name], "\n---") {
				if strings.TrimSpace(part) != "" {
					manifests.WriteString("---\n" + strings.TrimLeft(part, "\n") + "\n")
				}
			}
		}
	}
	return []byte(manifests.String()), notes.String(), nil
}

// thin renders this project's chart with the values that stand for an overlay.
func thin(t *testing.T, overlay string, changes ...string) []byte {
	t.Helper()
	manifests, _, err := helm(load(t, charts+"/otelcol-vllm"),
		values(t, charts+"/otelcol-vllm/ci/"+overlay+"-values.yaml", changes...), "otelcol-vllm")
	require.NoError(t, err)
	return manifests
}

// withSidecar is the example of a chart with the templates of the sidecar among its
// dependencies, as "helm dependency build" puts them there.
func withSidecar(t *testing.T) *chart.Chart {
	t.Helper()
	example := load(t, charts+"/vllm-with-sidecar")
	library := load(t, charts+"/otelcol-vllm-sidecar")
	require.Len(t, example.Metadata.Dependencies, 1)
	wanted := example.Metadata.Dependencies[0]
	assert.Equal(t, wanted.Name, library.Name())
	assert.Equal(t, wanted.Version, library.Metadata.Version)
	assert.Equal(t, "file://../otelcol-vllm-sidecar", wanted.Repository)
	example.AddDependency(library)
	return example
}

// helmed are the renderings of the charts by the overlay that each stands for.
func helmed(t *testing.T) map[string][]byte {
	t.Helper()
	rendered := map[string][]byte{}
	files, err := filepath.Glob(charts + "/otelcol-vllm/ci/*-values.yaml")
	require.NoError(t, err)
	for _, file := range files {
		overlay := strings.TrimSuffix(filepath.Base(file), "-values.yaml")
		rendered[overlay] = thin(t, overlay)
	}
	sidecar, _, err := helm(withSidecar(t), map[string]any{}, "vllm")
	require.NoError(t, err)
	rendered["sidecar"] = sidecar
	return rendered
}

// namespaced adds the namespace that whoever installs a chart has made before.
func namespaced(manifests []byte) []byte {
	return append([]byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: otelcol-vllm}\n---\n"), manifests...)
}

func TestEveryRenderingIsCompleteAndConfined(t *testing.T) {
	for overlay, rendered := range helmed(t) {
		t.Run(overlay, func(t *testing.T) {
			all := mustDecode(t, namespaced(rendered))
			assert.Empty(t, all.complaints())
			assert.Len(t, all.workloads(), 1)
			assert.Len(t, all.index(), len(all), "no object occurs twice")
		})
	}
}

// Releases with other names, in other namespaces, with everything that can be chosen.
func TestARenderingWithEverythingIsCompleteAndConfined(t *testing.T) {
	const everything = `
fullnameOverride: fleet
clusterName: east
image: {digest: "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", pullPolicy: Always, pullSecrets: [registry]}
backend: {endpoint: "https://otlp.example.com:8443/otlp", headers: [{name: X-Tenant, secret: fleet-COMPONENT-backend, key: OTLP_AUTHORIZATION}]}
models: {port: 9000}
queue: {size: 10Gi, storageClass: fast}
prometheus: {scrape: true, namespace: watchers, podMonitor: true, rules: true, interval: 30s, labels: {release: stack}}
rules: {configMap: true}
dashboards: {configMaps: true, folder: Models}
engines: 3000
resources: {limits: {memory: 2Gi}}
config: {processors: {vllm: {window: 30s}}}
tolerations: [{key: spot, operator: Exists}]
affinity: {nodeAffinity: {}}
topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {team: models}}}]
priorityClassName: high
serviceAccount: {annotations: {role: reader}}
podLabels: {team: models}
podAnnotations: {note: here}
`
	for _, overlay := range []string{"agent", "gateway", "pool", "pool-label", "shards"} {
		t.Run(overlay, func(t *testing.T) {
			component := cmp.Or(map[string]string{"pool-label": "pool", "shards": "pool"}[overlay], overlay)
			all := mustDecode(t, namespaced(thin(t, overlay, strings.Replace(everything, "COMPONENT", component, 1))))
			assert.Empty(t, all.complaints())
			w := all.workloads()[0]
			assert.Equal(t, "fleet-"+component, w.name[strings.LastIndex(w.name, "/")+1:])
			container := w.ours()[0]
			assert.Equal(t, "ghcr.io/otelcol-vllm/otelcol-vllm@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", container.Image)
			assert.Equal(t, "1600MiB", variables(all.index(), w, container)["GOMEMLIMIT"], "it follows the limit")
			texts, ok := configTexts(all.index(), w, container)
			require.True(t, ok)
			assert.Contains(t, texts[len(texts)-1], "window: 30s\n", "the user's configuration is the last one")
			assert.Equal(t, "here", w.template.Annotations["note"])
			assert.Equal(t, "models", w.template.Labels["team"])
			assert.NotNil(t, all.index()[key("PodMonitor", "otelcol-vllm", "fleet")])
			policy, ok := all.index()[key("NetworkPolicy", "otelcol-vllm", "fleet-"+component)].(*networkingv1.NetworkPolicy)
			require.True(t, ok)
			assert.Contains(t, ports(policy), 8443, "the port of the backend is let out")
		})
	}
}

// ports are those that a policy lets out.
func ports(policy *networkingv1.NetworkPolicy) []int {
	var all []int
	for _, rule := range policy.Spec.Egress {
		for _, port := range rule.Ports {
			all = append(all, port.Port.IntValue())
		}
	}
	return all
}

func TestTheirPortsAreLetOutAsTheAddressesSay(t *testing.T) {
	for change, want := range map[string][]int{
		"pools: [{name: a, picker: \"https://a.vllm.svc\"}, {name: b, picker: \"http://b.vllm.svc\"}]": {53, 53, 5353, 5353, 8000, 443, 80, 443, 6443, 4318},
		"backend: {endpoint: \"http://collector.otel.svc:4318\"}":                                      {53, 53, 5353, 5353, 8000, 9090, 443, 6443, 4318},
		"backend: {endpoint: \"http://[fd00::1]:14318/otlp\"}":                                         {53, 53, 5353, 5353, 8000, 9090, 443, 6443, 4318, 14318},
	} {
		policy, ok := mustDecode(t, thin(t, "pool", change)).index()[key("NetworkPolicy", "otelcol-vllm", "otelcol-vllm-pool")].(*networkingv1.NetworkPolicy)
		require.True(t, ok)
		assert.Equal(t, want, ports(policy), change)
	}
}

// An upgrade to another version of the chart must not change what Kubernetes does not let
// change: selectors, and what a StatefulSet was made with.
func TestAnotherVersionOfTheChartCanBeInstalledOver(t *testing.T) {
	for _, overlay := range []string{"agent", "gateway", "pool", "shards"} {
		c := load(t, charts+"/otelcol-vllm")
		set := values(t, charts+"/otelcol-vllm/ci/"+overlay+"-values.yaml")
		var fixed, all [2]string
		for i, version := range []string{"0.1.0", "1.0.0"} {
			c.Metadata.Version, c.Metadata.AppVersion = version, version
			rendered, _, err := helm(c, set, "otelcol-vllm")
			require.NoError(t, err)
			for _, object := range mustDecode(t, rendered) {
				spec := at(asMap(t, object), "spec")
				for _, field := range []string{"selector", "serviceName", "podManagementPolicy", "volumeClaimTemplates", "accessModes", "storageClassName"} {
					fixed[i] += name(object) + " " + field + " " + asJSON(spec[field]) + "\n"
				}
			}
			all[i] = string(rendered)
		}
		assert.Equal(t, fixed[0], fixed[1], overlay)
		assert.NotEqual(t, all[0], all[1], "the version is in labels and the image")
	}
}

// The collectors read their configuration only when they start.
func TestAChangeOfTheConfigurationRollsThePods(t *testing.T) {
	checksum := func(manifests []byte) string {
		return mustDecode(t, manifests).workloads()[0].template.Annotations["checksum/configuration"]
	}
	before := checksum(thin(t, "agent"))
	assert.NotEmpty(t, before)
	assert.Equal(t, before, checksum(thin(t, "agent", "podLabels: {a: b}")))
	for _, change := range []string{"models: {port: 8001}", "backend: {authorization: other}", "config: {receivers: {vllm: {timeout: 1s}}}", "budgetWindow: 7d\nobjectives: [{name: a, metric: b, target: 0.9}]"} {
		assert.NotEqual(t, before, checksum(thin(t, "agent", change)), change)
	}
}

// Helm keeps a release with its chart in a Secret: JSON, compressed, and as base64 in base64.
// The API server accepts at most 1 MiB.
func TestTheReleaseFitsIntoASecret(t *testing.T) {
	c := load(t, charts+"/otelcol-vllm")
	text, err := json.Marshal(map[string]any{"manifest": string(thin(t, "pool-label-prometheus-operator")), "chart": c, "files": c.Raw})
	require.NoError(t, err)
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	_, err = writer.Write(text)
	require.NoError(t, err)
	require.NoError(t, writer.Close())
	assert.Less(t, base64.StdEncoding.EncodedLen(packed.Len()), 512<<10, "half of it is for the values of users")
}

// "helm lint" with each set of values. It renders what it can where values are missing, too.
func TestHelmFindsNothingToCorrect(t *testing.T) {
	files, err := filepath.Glob(charts + "/otelcol-vllm/ci/*-values.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		for _, message := range lint.RunAll(charts+"/otelcol-vllm", values(t, file), "otelcol-vllm").Messages {
			assert.LessOrEqual(t, message.Severity, support.InfoSev, "%s: %s", file, message)
		}
	}
	for _, message := range lint.RunAll(charts+"/otelcol-vllm-sidecar", nil, "vllm").Messages {
		assert.LessOrEqual(t, message.Severity, support.InfoSev, "%s", message)
	}
}
