//go:build e2e

package backends

import (
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/collector"
	"github.com/otelcol-vllm/otelcol-vllm/internal/test/history"
	"github.com/otelcol-vllm/otelcol-vllm/internal/vllmsim"
)

// The built collector reads two servers, a Prometheus server reads the collector and
// evaluates the shipped rules. One server dies: the shipped alert fires for it alone, and
// ends when it is back.
func TestTheShippedAlertNamesTheServerThatDied(t *testing.T) {
	t.Parallel()
	serve := func() *httptest.Server {
		simulated, err := vllmsim.New(vllmsim.Config{Engines: 1, Rate: 5, KVCacheTokens: 24000})
		require.NoError(t, err)
		server := httptest.NewServer(&moving{simulated: simulated})
		t.Cleanup(server.Close)
		return server
	}
	healthy, dying := serve(), serve()
	exporter := collector.FreeAddr(t)
	example, err := os.ReadFile(filepath.Join(root, "examples", "prometheus", "prometheus.yml"))
	require.NoError(t, err)
	rules := filepath.Join(t.TempDir(), "vllm.yaml")
	require.NoError(t, os.WriteFile(rules, []byte(quickRules(t)), 0o600))
	scrapes := regexp.MustCompile(`(?s)scrape_configs:.*`).FindString(string(example))
	require.NotEmpty(t, scrapes)
	config := fmt.Sprintf("global: {evaluation_interval: 200ms}\nrule_files: [%q]\n", rules) + strings.NewReplacer(
		`"127.0.0.1:9464"`, fmt.Sprintf("%q", exporter), "scrape_interval: 15s", "scrape_interval: 500ms",
	).Replace(scrapes)
	prometheus, addr := startPrometheus(t, config)

	c := collector.Collector(t, map[string]string{"PROMETHEUS_ADDR": exporter},
		filepath.Join(root, "examples", "quickstart.yaml"),
		`yaml:receivers::vllm::endpoint: ""`,
		fmt.Sprintf("yaml:receivers::vllm::targets: [{endpoint: %q}, {endpoint: %q}]", healthy.URL, dying.URL),
		"yaml:receivers::vllm::collection_interval: 500ms", "yaml:receivers::vllm::timeout: 400ms",
		"yaml:processors::vllm::window: 1600ms")
	c.WaitFor(t, "both servers in Prometheus", func() bool {
		now := time.Now()
		return len(ask(t, addr, "vllm_diagnosis_severity < 3", now, now)) == 2
	})
	const alert = "VLLMServerNotServing"
	assert.Empty(t, firing(t, addr, alert))

	listening := dying.Listener.Addr().String()
	dying.CloseClientConnections()
	dying.Close()
	c.WaitFor(t, "the alert", func() bool { return len(firing(t, addr, alert)) > 0 })
	for range 20 {
		assert.Equal(t, []string{listening}, firing(t, addr, alert))
	}
	assert.Empty(t, broken(t, addr), "every shipped rule can be evaluated")

	// It comes back at the same address.
	simulated, err := vllmsim.New(vllmsim.Config{Engines: 1, Rate: 5, KVCacheTokens: 24000})
	require.NoError(t, err)
	again := httptest.NewUnstartedServer(&moving{simulated: simulated})
	require.NoError(t, again.Listener.Close())
	again.Listener, err = net.Listen("tcp", listening)
	require.NoError(t, err)
	again.Start()
	t.Cleanup(again.Close)
	c.WaitFor(t, "the end of the alert", func() bool { return len(firing(t, addr, alert)) == 0 })
	c.Stop(t)
	prometheus.Stop(t)
}

// The names that stories use for the collector's own telemetry are those of the built
// collector, with the same labels.
func TestStoriesUseTheCollectorsOwnNames(t *testing.T) {
	t.Parallel()
	simulated, err := vllmsim.New(vllmsim.Config{Engines: 1, Rate: 5})
	require.NoError(t, err)
	server := httptest.NewServer(&moving{simulated: simulated})
	t.Cleanup(server.Close)
	refuses := collector.FreeAddr(t)
	own := collector.FreeAddr(t)
	host, port, err := net.SplitHostPort(own)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `
receivers: {vllm: {endpoint: %q, collection_interval: 500ms, timeout: 400ms}}
processors: {vllm: {window: 2s}}
exporters:
  otlp_http:
    endpoint: "http://%s"
    timeout: 500ms
    retry_on_failure: {enabled: false}
service:
  pipelines: {metrics: {receivers: [vllm], processors: [vllm], exporters: [otlp_http]}}
  telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: %q, port: %s, without_scope_info: true, without_type_suffix: true, without_units: true}}}}]}}
`, server.URL, refuses, host, port), 0o600))
	c := collector.Start(t, nil, collector.Binary(t), "--config", file)
	var page string
	c.WaitFor(t, "failed deliveries", func() bool {
		if !c.Ready() {
			return false
		}
		page = string(collector.Get(t, "http://"+own+"/metrics"))
		return strings.Contains(page, "\notelcol_exporter_send_failed_metric_points{")
	})
	for _, sample := range history.Exporters(nil, nil)(time.Minute) {
		name, labels, _ := strings.Cut(strings.TrimSuffix(sample.Series, "}"), "{")
		if name == "otelcol_exporter_sent_metric_points" || name == "otelcol_exporter_enqueue_failed_metric_points" {
			// Its series begins with the first batch that was sent, or was refused by the queue.
			continue
		}
		line := regexp.MustCompile(`(?m)^` + name + `(\{.*\})? `).FindString(page)
		if !assert.NotEmpty(t, line, "%s\n%s", name, page) {
			continue
		}
		for _, label := range strings.Split(labels, ",") {
			key, _, _ := strings.Cut(label, "=")
			if key != "job" && key != "instance" {
				assert.Contains(t, line, key+"=", name)
			}
		}
	}
	c.Stop(t)
}
