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

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/history"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
)

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
