package kubernetes

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"helm.sh/helm/v4/pkg/chart/common"
	"sigs.k8s.io/yaml"
)

// A wrong value ends with a sentence that names it and says what is right.
func TestWrongValuesAreRefusedWithASentence(t *testing.T) {
	c := load(t, charts+"/otelcol-vllm")
	refused := func(overlay, change string, apply ...func(*common.Capabilities)) error {
		_, _, err := helm(c, values(t, charts+"/otelcol-vllm/ci/"+overlay+"-values.yaml", change), "otelcol-vllm", apply...)
		return err
	}
	for _, row := range []struct{ overlay, change, sentence string }{
		// What values.schema.json says: names and types.
		{"agent", "mod: agent", "at '': additional properties 'mod' not allowed"},
		{"agent", "models: {port: \"8000\"}", "at '/models/port': got string, want integer"},
		{"agent", "models: {namespace: a}", "at '/models': additional properties 'namespace' not allowed"},
		{"agent", "resources: {limits: {gpu: 1}}", "at '/resources/limits': additional properties 'gpu' not allowed"},
		{"agent", "config: {service: {extensions: [sigv4auth]}}", "config.service.extensions replaces the list of the mode, and lacks health_check"},
		{"agent", "config: {service: [a]}", "at '/config/service': got array, want object"},
		{"agent", "config: {receiver: {}}", "at '/config': additional properties 'receiver' not allowed"},
		{"agent", "objectives: [{name: a, metric: b}]", "at '/objectives/0': missing property 'target'"},
		{"agent", "podLabels: {a: 1}", "at '/podLabels/a': got number, want string"},
		{"agent", "rules: {configMap: \"yes\"}", "at '/rules/configMap': got string, want boolean"},
		{"agent", "backend: {headers: [{name: a, secret: b}]}", "at '/backend/headers/0': missing property 'key'"},
		{"pool", "pools: [{name: a}]", "at '/pools/0': missing property 'picker'"},
		// What the templates say: values.
		{"agent", "mode: daemonset", "mode is \"daemonset\". Write pool-label, agent, pool, shards, gateway or content"},
		{"agent", "fullnameOverride: Fleet", "fullnameOverride is \"Fleet\". Write at most 40 small letters"},
		{"agent", "fullnameOverride: a12345678901234567890123456789012345678901", "Write at most 40 small letters"},
		{"agent", "image: {repository: \"\"}", "image.repository is \"\". Write the name of the image"},
		{"agent", "image: {tag: \"a b\"}", "image.tag is \"a b\". Write a tag of the image"},
		{"agent", "image: {digest: latest}", "image.digest is \"latest\". Write sha256: and 64 hexadecimal digits"},
		{"agent", "image: {pullPolicy: Sometimes}", "image.pullPolicy is \"Sometimes\". Write Always, IfNotPresent or Never"},
		{"agent", "backend: {endpoint: otlp.example.com}", "backend.endpoint is \"otlp.example.com\". Write the base address of the OTLP backend"},
		{"agent", "backend: {endpoint: \"\"}", "backend.authorization or backend.headers is set, and backend.endpoint is not"},
		{"agent", "backend: {headers: [{name: \"X Key\", secret: b, key: c}]}", "backend.headers: name is \"X Key\". Write the name of an HTTP header"},
		{"agent", "backend: {headers: [{name: X-Key, secret: B, key: c}]}", "backend.headers: secret is \"B\". Write the name of a Secret"},
		{"agent", "models: {port: 80000}", "models.port is 80000. Write a number from 1 to 65535"},
		{"agent", "models: {namespaces: [\"\"]}", "models.namespaces is \"\". Write the namespaces of the vLLM pods"},
		{"agent", "models: {namespaces: []}", "models.namespaces is empty, or has a name twice"},
		{"agent", "image: {repository: \"registry:5000/a:0.2.0\"}", "image.repository is \"registry:5000/a:0.2.0\". Write the name of the image, such as registry.example.com/otelcol-vllm, and its version into image.tag"},
		{"agent", "models: {selector: \"app: vllm\"}", "models.selector is \"app: vllm\". Write the labels of the vLLM pods, such as app=vllm,tier=chat"},
		{"agent", "models: {namespaces: [a, a]}", "models.namespaces is empty, or has a name twice"},
		{"agent", "backend: {endpoint: \"https://a/v1/metrics\"}", "backend.endpoint ends with /v1/metrics, which the collector adds"},
		{"pool-label-scrape", "backend: {preset: dogs}", "backend.preset is \"dogs\". Write datadog, dynatrace,"},
		{"pool-label-scrape", "backend: {preset: datadog}", "backend.preset datadog reads variables, and env is empty. Set those of examples/backends/datadog.yaml"},
		{"agent", "podLabels: {app.kubernetes.io/name: a}", "podLabels has app.kubernetes.io/name, which the chart sets"},
		{"agent", "backend: {endpoint: \"https://user:word@a\"}", "Write the base address of the OTLP backend"},
		{"agent", "resources: {requests: {memory: 2Gi}, limits: {memory: 1Gi}}", "resources.requests.memory is above resources.limits.memory"},
		{"agent", "resources: {requests: {cpu: 2}, limits: {cpu: 500m}}", "resources.requests.cpu is above resources.limits.cpu"},
		{"agent", "budgetWindow: 1.5d", "budgetWindow is \"1.5d\". Write hours, days or weeks"},
		{"pool-label", "backend: {preset: datadog, authorization: \"\"}", "backend.endpoint and backend.preset are both set"},
		{"agent", "config: {processors: {vllm: {pool: {interval: 10s}}}}", "config has pool, and the mode agent sees parts of pools"},
		{"agent", "models: {selector: \"\"}", "models.selector is \"\". Write the labels of the vLLM pods"},
		{"agent", "prometheus: {namespace: Watchers}", "prometheus.namespace is \"Watchers\". Write the namespace of the Prometheus"},
		{"agent", "prometheus: {interval: 5m}", "prometheus.interval is \"5m\". Write at most 120s"},
		{"agent", "resources: {limits: {memory: 512M}}", "resources.limits.memory is \"512M\". Write a whole number with Mi or Gi"},
		{"agent", "resources: {requests: {memory: \"1.5Gi\"}}", "resources.requests.memory is \"1.5Gi\""},
		{"agent", "engines: 20000", "engines is 20000. Write a number from 0 to 10000"},
		{"agent", "objectives: [{name: a, metric: b, target: 95}]", "objectives: the target of \"a\" is 95. Write a share between 0 and 1"},
		{"agent", "objectives: [{name: a, metric: b, target: 0.9, threshold: 2}]", "at '/objectives/0/threshold': got number, want string"},
		{"agent", "objectives: [{name: a, metric: b, target: 0.9, threshold: \"2\"}]", "objectives: threshold is \"2\". Write a duration, such as 2.5s"},
		{"agent", "budgetWindow: month", "budgetWindow is \"month\". Write hours, days or weeks, such as 30d"},
		{"agent", "queue: {hostPath: data}", "queue.hostPath is \"data\". Write the path of a folder of the node"},
		{"agent", "rules: {runbookBase: \"https://wiki/vllm\"}", "rules.runbookBase is \"https://wiki/vllm\". Write the address of the folder of the runbooks, with / at the end"},
		{"agent", "rules: {grafanaURL: \"https://a'b\"}", "rules.grafanaURL is \"https://a'b\". Write Grafana's address"},
		{"pool", "queue: {size: 1Gi}", "queue.size is \"1Gi\". Write 2Gi or more"},
		{"pool", "queue: {storageClass: Fast}", "queue.storageClass is \"Fast\". Write the name of a storage class"},
		{"pool", "pools: [{name: A, picker: \"http://a\"}]", "pools: name is \"A\". Write the name of the InferencePool"},
		{"pool", "pools: [{name: a, picker: epp}]", "pools: picker is \"epp\". Write the address of its endpoint picker"},
		{"pool", "pools: []", "the mode pool needs pools: a list of InferencePools"},
		{"pool", "models: {namespaces: [a, b]}", "models.namespaces has several names, and the mode pool reads one"},
		{"pool", "queue: {hostPath: /var/lib/otelcol-vllm}", "queue.hostPath is set, and only the mode agent reads it"},
		{"shards", "shards: {count: 1}", "shards.count is 1. Write a number from 2 to 1000"},
		{"shards", "shards: {poolLabel: \"\"}", "shards.poolLabel is \"\". Write a label of the vLLM pods"},
		{"shards", "probes: true", "probes is true, and only the modes pool and pool-label read it; the mode is shards"},
		{"agent", "pools: [{name: a, picker: \"http://a\"}]", "pools is set, and only the mode pool reads it; the mode is agent"},
		{"agent", "picker: {endpoint: \"http://a\"}", "picker.endpoint is set, and only the mode gateway reads it"},
		{"gateway", "picker: {endpoint: \"\"}", "the mode gateway needs picker.endpoint"},
		{"gateway", "picker: {endpoint: epp}", "picker.endpoint is \"epp\". Write the address of the endpoint picker"},
		{"gateway", "picker: {namespace: Vllm}", "picker.namespace is \"Vllm\". Write the name of a namespace"},
		{"gateway", "lora: {port: 0}", "lora.port is 0. Write a number from 1 to 65535"},
		{"gateway", "objectives: [{name: a, metric: b, target: 0.9}]", "objectives is set, and the mode gateway has no engines to judge"},
		{"agent", "mode: content", "the mode content has nothing to install. Set rules.configMap"},
		{"agent", "mode: content\nrules: {configMap: true}\nprometheus: {podMonitor: true}", "the mode content has no collectors to scrape"},
	} {
		assert.ErrorContains(t, refused(row.overlay, row.change), row.sentence, row.change)
	}
	assert.ErrorContains(t, refused("shards", "{}", func(c *common.Capabilities) { c.KubeVersion.Version = "v1.27.4" }),
		"the mode shards needs Kubernetes 1.28 or newer, which numbers the pods of a StatefulSet; this is v1.27.4")
	require.NoError(t, refused("pool-label", "{}", func(c *common.Capabilities) { c.KubeVersion.Version = "v1.27.4" }))
}

func TestWrongValuesOfTheSidecarAreRefused(t *testing.T) {
	for change, sentence := range map[string]string{
		"image: {repository: \"\"}":       "otelcol-vllm-sidecar.image.repository is empty",
		"backend: {endpoint: \"\"}":       "otelcol-vllm-sidecar.backend.endpoint is not set",
		"backend: {authorization: \"\"}":  "set one of otelcol-vllm-sidecar.backend.authorization and",
		"backend: {existingSecret: mine}": "set one of otelcol-vllm-sidecar.backend.authorization and",
		"port: http":                      "at '/port': got string, want integer",
		"ports: 1":                        "additional properties 'ports' not allowed",
	} {
		var wrong map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(change), &wrong))
		_, _, err := helm(withSidecar(t), map[string]any{"otelcol-vllm-sidecar": wrong}, "vllm")
		assert.ErrorContains(t, err, sentence, change)
	}
	alone := load(t, charts+"/vllm-with-sidecar")
	_, _, err := helm(alone, map[string]any{}, "vllm")
	assert.ErrorContains(t, err, "no template \"otelcol-vllm-sidecar.", "without helm dependency build")
}

// Values of the sidecar that its overlay does not have.
func TestTheSidecarFollowsItsValues(t *testing.T) {
	rendered, _, err := helm(withSidecar(t), map[string]any{"otelcol-vllm-sidecar": map[string]any{
		"fullnameOverride": "", "port": 9000, "backend": map[string]any{"authorization": "", "existingSecret": "mine"},
		"resources": map[string]any{"limits": map[string]any{"memory": "512Mi"}},
		"config":    map[string]any{"processors": map[string]any{"vllm": map[string]any{"window": "30s"}}},
	}}, "vllm")
	require.NoError(t, err)
	all := mustDecode(t, append([]byte("apiVersion: v1\nkind: Secret\nmetadata: {name: mine, namespace: vllm}\nstringData: {}\ndata: {OTLP_AUTHORIZATION: YQ==}\n"), rendered...))
	assert.Empty(t, all.complaints())
	w := all.workloads()[0]
	texts, ok := configTexts(all.index(), w, w.ours()[0])
	require.True(t, ok)
	assert.Len(t, texts, 2)
	assert.Contains(t, texts[0], "endpoint: http://127.0.0.1:9000\n")
	assert.Equal(t, "400MiB", variables(all.index(), w, w.ours()[0])["GOMEMLIMIT"])
	assert.NotNil(t, all.index()[key("ConfigMap", "vllm", release+"-otelcol-vllm-sidecar")])
}

// keys are the paths of all values.
func keys(prefix string, values map[string]any) []string {
	var all []string
	for name, value := range values {
		if inside, ok := value.(map[string]any); ok && len(inside) > 0 {
			all = append(all, keys(prefix+name+".", inside)...)
			continue
		}
		all = append(all, prefix+name)
	}
	return all
}

// described are the paths of all values that a schema names.
func described(t *testing.T, prefix string, schema map[string]any) []string {
	t.Helper()
	properties, ok := schema["properties"].(map[string]any)
	if !ok {
		return []string{strings.TrimSuffix(prefix, ".")}
	}
	assert.Equal(t, false, schema["additionalProperties"], "%s lets any key in", prefix)
	var all []string
	for name, property := range properties {
		all = append(all, described(t, prefix+name+".", property.(map[string]any))...)
	}
	return all
}

// values.yaml names every value there is, except inside of maps that are empty by default.
func TestEachValueHasADefaultAndAType(t *testing.T) {
	for folder, others := range map[string][]string{
		"otelcol-vllm":         {"config.", "resources.", "dashboards.labels", "nodeSelector", "prometheus.labels", "podSecurityContext", "securityContext"},
		"otelcol-vllm-sidecar": {"config."},
	} {
		content, err := os.ReadFile(charts + "/" + folder + "/values.schema.json")
		require.NoError(t, err)
		var schema map[string]any
		require.NoError(t, json.Unmarshal(content, &schema))
		// Both JSON schema libraries that versions of Helm have know this draft.
		assert.Equal(t, "http://json-schema.org/draft-07/schema#", schema["$schema"])
		typed, defaults := map[string]bool{}, map[string]bool{}
		known := func(name string) bool {
			return name == "global" || slices.ContainsFunc(others, func(prefix string) bool { return strings.HasPrefix(name+".", prefix) })
		}
		for _, name := range described(t, "", schema) {
			typed[name] = !known(name)
		}
		for _, name := range keys("", values(t, charts+"/"+folder+"/values.yaml")) {
			defaults[name] = !known(name)
		}
		maps.DeleteFunc(typed, func(_ string, counts bool) bool { return !counts })
		maps.DeleteFunc(defaults, func(_ string, counts bool) bool { return !counts })
		assert.Equal(t, slices.Sorted(maps.Keys(typed)), slices.Sorted(maps.Keys(defaults)), folder)
	}
}

// The notes name what is there.
func TestTheNotesNameTheCollectors(t *testing.T) {
	c := load(t, charts+"/otelcol-vllm")
	for overlay, want := range map[string]string{
		"agent": "rollout status daemonset/otelcol-vllm-agent", "gateway": "rollout status deployment/otelcol-vllm-gateway",
		"shards": "rollout status statefulset/otelcol-vllm-pool",
	} {
		_, notes, err := helm(c, values(t, charts+"/otelcol-vllm/ci/"+overlay+"-values.yaml"), "otelcol-vllm")
		require.NoError(t, err)
		assert.Contains(t, notes, want)
		assert.Contains(t, notes, "https://otlp.example.com")
	}
	rendered, notes, err := helm(c, map[string]any{"mode": "content", "rules": map[string]any{"configMap": true}}, "monitoring")
	require.NoError(t, err)
	assert.Contains(t, notes, "in the namespace monitoring")
	all := mustDecode(t, rendered)
	assert.Len(t, all, 1, "rules alone")
	assert.NotNil(t, all.index()[key("ConfigMap", "monitoring", "vllm-rules")])
}

// A site without a way to the internet has pages of its own.
func TestTheAddressesInAlertsAreValues(t *testing.T) {
	c := load(t, charts+"/otelcol-vllm")
	rules := map[string]any{"configMap": true, "runbookBase": "https://wiki/vllm/", "grafanaURL": "https://boards.site"}
	written, _, err := helm(c, map[string]any{"mode": "content", "rules": rules, "prometheus": map[string]any{"rules": true}, "dashboards": map[string]any{"configMaps": true}}, "monitoring")
	require.NoError(t, err)
	mustDecode(t, written)
	rendered := string(written)
	assert.NotContains(t, rendered, "blob/main/docs/runbooks")
	assert.Contains(t, rendered, "runbook_url: https://wiki/vllm/VLLMServerDegraded.md")
	assert.Contains(t, rendered, `{{ $runbooks := "https://wiki/vllm/" }}{{ $grafana := "https://boards.site" -}}`)
	assert.NotContains(t, rendered, `$grafana := ""`)
	assert.Contains(t, rendered, `"https://wiki/vllm/$`, "boards link to the runbook of a cause")
}
