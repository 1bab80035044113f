package kubernetes

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// changes are a change of each value, in a mode that reads it, and what it adds to the rendering.
var changes = map[string]struct{ overlay, change, adds string }{
	"mode":                       {"pool-label-scrape", "mode: agent", "kind: DaemonSet"},
	"clusterName":                {"pool-label-scrape", "clusterName: east", `set(resource.attributes["k8s.cluster.name"], "east")`},
	"fullnameOverride":           {"agent", "fullnameOverride: fleet", "name: fleet-agent"},
	"image.repository":           {"agent", "image: {repository: registry.site/c}", "image: registry.site/c:0.2.0"},
	"image.tag":                  {"agent", "image: {tag: main}", "otelcol-vllm:main"},
	"image.digest":               {"agent", "image: {digest: \"sha256:" + strings.Repeat("0", 64) + "\"}", "otelcol-vllm@sha256:000"},
	"image.pullPolicy":           {"agent", "image: {pullPolicy: Always}", "imagePullPolicy: Always"},
	"image.pullSecrets":          {"agent", "image: {pullSecrets: [mine]}", "imagePullSecrets:\n        - name: mine"},
	"backend.endpoint":           {"pool-label-scrape", "backend: {endpoint: \"https://a.site\"}", "OTLP_ENDPOINT: \"https://a.site\""},
	"backend.preset":             {"pool-label-scrape", "env: [{name: DD_API_KEY, value: a}]\nbackend: {preset: datadog}", "dd-otel-metric-config"},
	"networkPolicy.to":           {"agent", "networkPolicy: {to: [{ipBlock: {cidr: 10.0.0.0/8}}]}", "cidr: 10.0.0.0/8"},
	"backend.authorization":      {"agent", "backend: {authorization: Other}", "OTLP_AUTHORIZATION: T3RoZXI="},
	"backend.headers":            {"agent", "backend: {headers: [{name: X-Key, secret: s, key: k}]}", "X-Key: ${env:BACKEND_HEADER_0}"},
	"models.namespaces":          {"agent", "models: {namespaces: [a, b]}", "- a\n            - b\n"},
	"models.selector":            {"agent", "models: {selector: app=vllm}", "VLLM_SELECTOR: \"app=vllm\""},
	"models.port":                {"agent", "models: {port: 8080}", "VLLM_PORT: \"8080\""},
	"pools":                      {"pool", "pools: [{name: a, picker: \"http://a\"}, {name: b, picker: \"http://b\"}]", "POOL_1_NAME: \"b\""},
	"picker.endpoint":            {"gateway", "picker: {endpoint: \"http://a:1\"}", "PICKER_ENDPOINT: \"http://a:1\""},
	"picker.namespace":           {"gateway", "picker: {namespace: pickers}", "metadata.name: pickers"},
	"lora.port":                  {"gateway", "lora: {port: 8888}", "LORA_PORT: \"8888\""},
	"shards.count":               {"shards", "shards: {count: 5}", "replicas: 5"},
	"shards.poolLabel":           {"shards", "shards: {poolLabel: a.b/c}", "POOL_LABEL: \"a_b_c\""},
	"objectives":                 {"agent", "objectives: [{name: own, metric: any, target: 0.9}]", "- metric: any\n            name: own"},
	"budgetWindow":               {"pool", "budgetWindow: 7d\nobjectives: [{name: own, metric: any, target: 0.9}]", "budget_window: 7d"},
	"queue.size":                 {"pool", "queue: {size: 9Gi}", "storage: 9Gi"},
	"queue.storageClass":         {"pool", "queue: {storageClass: fast}", "storageClassName: fast"},
	"queue.hostPath":             {"agent", "queue: {hostPath: /data}", "path: /data"},
	"prometheus.scrape":          {"agent", "prometheus: {scrape: true}", "exporters:\n          - otlp_http\n          - prometheus"},
	"prometheus.namespace":       {"agent", "prometheus: {namespace: watchers}", "metadata.name: watchers"},
	"prometheus.podMonitor":      {"agent", "prometheus: {podMonitor: true}", "kind: PodMonitor"},
	"prometheus.rules":           {"agent", "prometheus: {rules: true}", "kind: PrometheusRule"},
	"prometheus.interval":        {"agent", "prometheus: {podMonitor: true, interval: 30s}", "interval: 30s"},
	"prometheus.labels":          {"agent", "prometheus: {podMonitor: true, labels: {release: stack}}", "release: stack"},
	"rules.configMap":            {"agent", "rules: {configMap: true}", "name: vllm-rules"},
	"rules.runbookBase":          {"pool", "rules: {runbookBase: \"https://wiki/\"}", "runbook_url: https://wiki/VLLMServerVanished.md"},
	"rules.grafanaURL":           {"pool", "rules: {grafanaURL: \"https://boards\"}", `$grafana := "https://boards"`},
	"dashboards.configMaps":      {"agent", "dashboards: {configMaps: true}", "name: vllm-overview"},
	"dashboards.labels":          {"pool", "dashboards: {labels: {board: \"yes\"}}", "board: \"yes\""},
	"dashboards.folder":          {"pool", "dashboards: {folder: Models}", "grafana_folder: \"Models\""},
	"engines":                    {"pool-label", "engines: 3000", "memory: 2560Mi"},
	"resources":                  {"agent", "resources: {limits: {cpu: \"7\"}}", "cpu: \"7\""},
	"probes":                     {"pool-label", "probes: true", "containerPort: 55690"},
	"networkPolicy.enabled":      {"agent", "networkPolicy: {enabled: false}", ""},
	"config":                     {"agent", "config: {exporters: {debug: {}}}", "exporters:\n      debug: {}"},
	"env":                        {"agent", "env: [{name: HTTPS_PROXY, value: \"http://proxy\"}]", "name: HTTPS_PROXY"},
	"volumes":                    {"agent", "volumes: [{name: ca, configMap: {name: ca}}]", "configMap:\n            name: ca"},
	"volumeMounts":               {"agent", "volumeMounts: [{name: ca, mountPath: /ca}]", "mountPath: /ca"},
	"nodeSelector":               {"agent", "nodeSelector: {disk: ssd}", "disk: ssd"},
	"tolerations":                {"agent", "tolerations: [{key: spot}]", "key: spot"},
	"affinity":                   {"agent", "affinity: {podAffinity: {}}", "podAffinity: {}"},
	"topologySpreadConstraints":  {"agent", "topologySpreadConstraints: [{topologyKey: zone}]", "topologyKey: zone"},
	"priorityClassName":          {"agent", "priorityClassName: high", "priorityClassName: high"},
	"updateStrategy":             {"shards", "updateStrategy: {type: OnDelete}", "type: OnDelete"},
	"serviceAccount.annotations": {"agent", "serviceAccount: {annotations: {eks.amazonaws.com/role-arn: a}}", "eks.amazonaws.com/role-arn: a"},
	"podSecurityContext":         {"agent", "podSecurityContext: {supplementalGroups: [5]}", "supplementalGroups:\n        - 5"},
	"securityContext":            {"agent", "securityContext: {runAsUser: 7}", "runAsUser: 7"},
	"podLabels":                  {"agent", "podLabels: {team: a}", "team: a"},
	"podAnnotations":             {"agent", "podAnnotations: {note: a}", "note: a"},
}

// Each value does something, and what it does can be decoded strictly.
func TestEachValueOfTheChartIsUsed(t *testing.T) {
	names := map[string]bool{}
	for _, name := range keys("", values(t, charts+"/otelcol-vllm/values.yaml")) {
		for _, whole := range []string{"dashboards.labels", "nodeSelector", "prometheus.labels", "podSecurityContext", "securityContext"} {
			if strings.HasPrefix(name, whole+".") {
				name = whole
			}
		}
		names[name] = true
	}
	assert.Equal(t, slices.Sorted(maps.Keys(names)), slices.Sorted(maps.Keys(changes)), "each value has a row")
	for name, row := range changes {
		before, after := string(thin(t, row.overlay)), thin(t, row.overlay, row.change)
		mustDecode(t, after)
		assert.NotEqual(t, before, string(after), name)
		if row.adds != "" {
			assert.Contains(t, string(after), row.adds, name)
			assert.NotContains(t, before, row.adds, "%s is there without the value", name)
		}
	}
	assert.NotContains(t, string(thin(t, "agent", changes["networkPolicy.enabled"].change)), "kind: NetworkPolicy")
}

// OpenShift gives each namespace users of its own, and refuses others.
func TestThePodsNeedNoUserOfTheirOwn(t *testing.T) {
	all := mustDecode(t, thin(t, "pool-label", "podSecurityContext: {runAsUser: null, runAsGroup: null, fsGroup: null}"))
	context := all.workloads()[0].template.Spec.SecurityContext
	assert.Nil(t, context.RunAsUser)
	assert.Nil(t, context.RunAsGroup)
	assert.Nil(t, context.FSGroup)
	assert.True(t, *context.RunAsNonRoot)
}

// Every namespace of models has the rights and the policy.
func TestSeveralNamespacesAreReadByOneRelease(t *testing.T) {
	all := mustDecode(t, thin(t, "pool-label", "models: {namespaces: [a, b]}", "probes: true"))
	index := all.index()
	for _, namespace := range []string{"a", "b"} {
		assert.NotNil(t, index[key("Role", namespace, "otelcol-vllm-pool")])
		assert.NotNil(t, index[key("RoleBinding", namespace, "otelcol-vllm-pool")])
	}
	assert.Nil(t, index[key("Role", "vllm", "otelcol-vllm-pool")])
	policy := asJSON(index[key("NetworkPolicy", "otelcol-vllm", "otelcol-vllm-pool")])
	assert.Equal(t, 2, strings.Count(policy, `"kubernetes.io/metadata.name":"a"`), "vLLM may be read, and may ask")
	assert.Equal(t, 2, strings.Count(policy, `"kubernetes.io/metadata.name":"b"`))
}

// A backend may need no Authorization, or headers of other names, whose values are in Secrets of the user.
func TestHeadersOfABackendComeFromSecrets(t *testing.T) {
	const change = `backend: {authorization: "", headers: [{name: DD-API-KEY, secret: mine, key: key}, {name: X-Tenant, secret: other, key: name}]}`
	all := mustDecode(t, thin(t, "pool-label", change))
	w := all.workloads()[0]
	container := w.ours()[0]
	texts, ok := configTexts(all.index(), w, container)
	require.True(t, ok)
	text := strings.Join(texts, "\n")
	assert.NotContains(t, text, "Authorization")
	assert.Contains(t, text, "DD-API-KEY: ${env:BACKEND_HEADER_0}")
	assert.Contains(t, text, "X-Tenant: ${env:BACKEND_HEADER_1}")
	from := map[string]string{}
	for _, e := range container.Env {
		if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
			from[e.Name] = e.ValueFrom.SecretKeyRef.Name + "/" + e.ValueFrom.SecretKeyRef.Key
		}
	}
	assert.Equal(t, map[string]string{"BACKEND_HEADER_0": "mine/key", "BACKEND_HEADER_1": "other/name"}, from)
	assert.Len(t, container.EnvFrom, 1, "no Secret of the release")
}

// The limits follow the number of engines; so do those of the receiver and of the processor.
func TestTheSizeOfTheFleetSetsTheLimits(t *testing.T) {
	for _, row := range []struct{ overlay, change, memory, config string }{
		{"agent", "{}", "512Mi", ""},
		{"pool-label", "{}", "1Gi", ""},
		{"pool-label", "engines: 50", "512Mi", ""},
		{"pool-label", "engines: 3000", "2560Mi", "processors:\n  vllm:\n    max_series: 300000\nreceivers:\n  vllm:\n    limits:\n      targets: 3000\n"},
	} {
		all := mustDecode(t, thin(t, row.overlay, row.change))
		w := all.workloads()[0]
		limit := w.ours()[0].Resources.Limits.Memory()
		assert.Equal(t, row.memory, limit.String(), row.change)
		texts, ok := configTexts(all.index(), w, w.ours()[0])
		require.True(t, ok)
		if row.config != "" {
			assert.Equal(t, row.config, texts[len(texts)-1], row.change)
		} else {
			assert.NotContains(t, strings.Join(texts, "\n"), "max_series", row.change)
		}
	}
}

// A request is never above its limit, which the API server would refuse.
func TestRequestsFollowLimits(t *testing.T) {
	for change, want := range map[string][4]string{
		"{}":                                         {"100m", "2", "512Mi", "1Gi"},
		"resources: {limits: {memory: 256Mi}}":       {"100m", "2", "256Mi", "256Mi"},
		"resources: {limits: {cpu: 50m}}":            {"50m", "50m", "512Mi", "1Gi"},
		"resources: {requests: {memory: 2Gi}}":       {"100m", "2", "2Gi", "2Gi"},
		"resources: {requests: {cpu: 3}}":            {"3", "3", "512Mi", "1Gi"},
		"resources: {limits: {cpu: 4, memory: 6Gi}}": {"100m", "4", "512Mi", "6Gi"},
	} {
		got := mustDecode(t, thin(t, "pool-label", change)).workloads()[0].ours()[0].Resources
		assert.Equal(t, want, [4]string{got.Requests.Cpu().String(), got.Limits.Cpu().String(), got.Requests.Memory().String(), got.Limits.Memory().String()}, change)
	}
}

// What a preset does for its vendor, such as taking staleness markers away, does not reach the Prometheus beside it.
func TestAPrometheusBesideAVendorGetsTheMetricsAsTheyAre(t *testing.T) {
	all := mustDecode(t, thin(t, "pool-label-scrape", "prometheus: {podMonitor: true}", "env: [{name: ANY, value: a}]", "backend: {preset: dynatrace}"))
	w := all.workloads()[0]
	texts, ok := configTexts(all.index(), w, w.ours()[0])
	require.True(t, ok)
	config := mergedConfig(t, texts)
	metrics := at(config, "service", "pipelines", "metrics")
	assert.Equal(t, []any{"memory_limiter", "vllm"}, metrics["processors"])
	assert.ElementsMatch(t, []any{"prometheus", "forward"}, metrics["exporters"])
	vendor := at(config, "service", "pipelines", "metrics/backend")
	assert.Equal(t, []any{"filter/values", "transform/summaries", "filter/summaries", "transform/dimensions", "cumulative_to_delta"}, vendor["processors"])
	assert.Equal(t, []any{"otlp_http"}, vendor["exporters"])
	monitor, ok := all.index()[key("PodMonitor", "otelcol-vllm", "otelcol-vllm")].(*podMonitor)
	require.True(t, ok)
	assert.Equal(t, "vllm", monitor.Spec.PodMetricsEndpoints[0].Port, "a PodMonitor opens the page")
}
