//go:build e2e

package backends

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/kubeapi"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/fleet"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

const scaledConfig = `
receivers:
  vllm:
    collection_interval: 500ms
    timeout: 400ms
    discovery: {kubernetes: {namespaces: [poolside-models], selector: app.kubernetes.io/component=inference, port: %d, api_server: %q}}
processors:
  vllm: {pool: {group_by: [model_name, k8s.namespace.name]}}
exporters:
  prometheus: {endpoint: %q, resource_constant_labels: {included: ["*"]}}
service:
  telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: %s, port: %s}}}}]}}
  pipelines:
    metrics: {receivers: [vllm], processors: [vllm], exporters: [prometheus]}
`

// The only pod of the only model is deleted, as by a scale to 0 right after an install: the alert about the model
// fires, a page where it has users, and not the one about the collector. That one fires once the collector has ended,
// and the other is resolved. A restart of the collector and a server that cannot be read have neither before.
func TestAModelScaledToZeroHasAnAlert(t *testing.T) {
	t.Parallel()
	t.Run("with users", func(t *testing.T) { scaledToZero(t, 5, `alertname="VLLMModelDown",severity="page"`) })
	t.Run("without", func(t *testing.T) { scaledToZero(t, 0, `alertname="VLLMModelWithoutServers",severity="ticket"`) })
}

func scaledToZero(t *testing.T, rate float64, alert string) {
	t.Helper()
	t.Parallel()
	workload := engine.Chat(rate)
	simulated, err := vllmsim.New(vllmsim.Config{Engines: 1, Workload: &workload, KVCacheTokens: 24000, ServedModel: "laguna"})
	require.NoError(t, err)
	var down atomic.Bool
	server := &collector.Moving{Simulated: simulated, Step: betweenScrapes}
	hosts, err := fleet.NewHosts(t.Context(), func(string) http.Handler {
		if down.Load() {
			return nil
		}
		return server
	})
	require.NoError(t, err)
	t.Cleanup(hosts.Close)
	api := kubeapi.New(t)
	pod := kubeapi.Pod{
		Namespace: "poolside-models", Name: "inference-laguna-0", Node: "n", IP: fleet.IP(9, 1),
		Labels:     map[string]string{"app.kubernetes.io/component": "inference"},
		Containers: []kubeapi.Container{{Name: "server", Port: hosts.Port}},
	}
	api.Apply(kubeapi.Pods, pod.Object())

	exporter, own := collector.FreeAddr(t), collector.FreeAddr(t)
	shipped, err := os.ReadFile(filepath.Join(root, "content", "rules", "suffixed", "vllm.yaml"))
	require.NoError(t, err)
	// Longer than the scrapes of the two pages are apart.
	rules := filepath.Join(t.TempDir(), "rules.yml")
	require.NoError(t, os.WriteFile(rules, waits.ReplaceAll(shipped, []byte("${1}${2}: 4s")), 0o600))
	prometheus, addr := collector.Prometheus(t, fmt.Sprintf(`
global: {scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 500ms}
rule_files: [%q]
scrape_configs:
  - {job_name: otelcol-vllm, honor_labels: true, static_configs: [{targets: [%q]}]}
  - {job_name: otelcol-vllm-itself, static_configs: [{targets: [%q]}]}
`, rules, exporter, own))
	host, port, _ := strings.Cut(own, ":")
	config := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, scaledConfig, hosts.Port, api.URL, exporter, host, port), 0o600))
	start := func() *collector.Process { return collector.Start(t, nil, collector.Binary(t), "--config", config) }
	c := start()

	has := func(query string) bool { return len(ask(t, addr, query, time.Now(), time.Now())) > 0 }
	since := func(from time.Time, series string) bool {
		return has(fmt.Sprintf("last_over_time(%s[%dms])", series, time.Since(from).Milliseconds()))
	}
	const empty = `ALERTS{alertname=~"VLLMModelDown|VLLMModelWithoutServers"}`
	fires := `ALERTS{alertstate="firing",k8s_namespace_name="poolside-models",namespace="poolside-models",pod="",model_name="laguna",` + alert + "}"
	const silent = `ALERTS{alertname="VLLMCollectorSilent",alertstate="firing"}`
	reads := func() bool {
		return has(`vllm_diagnosis_severity{model_name="laguna"}`) && has(`vllm_arrival_rate_per_second`) && has(`otelcol_receiver_vllm_discovered_targets{stage="kept"} == 1`) && !has(silent)
	}
	c.WaitFor(t, "the server", reads)
	c.Stop(t)
	prometheus.WaitFor(t, "the end of its series", func() bool { return !has("vllm_up") })
	c = start()
	c.WaitFor(t, "the server after a restart", reads)
	assert.False(t, has(fires), "a restart")
	began := time.Now()
	down.Store(true)
	c.WaitFor(t, "the alert on the server", func() bool {
		return has(`ALERTS{alertname=~"VLLMServerNotServing|VLLMReplicaNotServing",alertstate="firing",namespace="poolside-models",pod="inference-laguna-0"}`)
	})
	assert.False(t, since(began, empty), "a server that cannot be read still counts")

	api.Delete(kubeapi.Pods, pod.Namespace, pod.Name)
	c.WaitFor(t, "the alert on the model", func() bool { return has(fires) })
	assert.Len(t, ask(t, addr, empty+` and on () `+fires, time.Now(), time.Now()), 1, "only one of the two")
	assert.False(t, has("vllm_up"), "nothing of the server is left")
	settled := time.Now().Add(8 * time.Second)
	c.WaitFor(t, "twice the wait of the alert on the collector", func() bool { return time.Now().After(settled) })
	assert.False(t, since(began, silent), "the collector works")
	c.Stop(t)
	prometheus.WaitFor(t, "the alert on the collector", func() bool { return has(silent) && !has(empty) })
	prometheus.Stop(t)
}
