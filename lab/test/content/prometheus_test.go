//go:build e2e

package content

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/content"
	"github.com/otelcol-vllm/otelcol-vllm/cmd/vllmctl/spelling"
	"github.com/otelcol-vllm/otelcol-vllm/lab/content/shipped"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
	"github.com/otelcol-vllm/otelcol-vllm/lab/test/history"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim"
)

// seen is the real time of the test: some minutes, as scrapes come every 15 s.
const seen = 330 * time.Second

// With the shipped configuration of Prometheus, the built collector, and what Grafana fills in by
// default, each panel has data, or it is known why not. The servers of the showcase are simulated in
// real time, and its incident begins in the second minute.
func TestPanelsBehindTheShippedPrometheus(t *testing.T) {
	t.Parallel()
	example, err := os.ReadFile(filepath.Join(root, "examples", "prometheus", "prometheus.yml"))
	require.NoError(t, err)
	settings := simulatedTargets(t)
	began := time.Now()
	asked := map[spelling.Spelling]prometheus{}
	for to, naming := range map[spelling.Spelling]string{spelling.Suffixed: "canonical", spelling.Wire: "wire"} {
		exporter, own := collector.FreeAddr(t), collector.FreeAddr(t)
		_, addr := collector.Prometheus(t, strings.NewReplacer("127.0.0.1:9464", exporter, "127.0.0.1:8888", own,
			"../../content", filepath.Join(root, "content")).Replace(string(example)))
		host, port, _ := strings.Cut(own, ":")
		collector.Start(t, map[string]string{"PROMETHEUS_ADDR": exporter}, collector.Binary(t),
			"--config", filepath.Join(root, "examples", "quickstart.yaml"), "--config", "yaml:"+settings,
			"--config", "yaml:receivers::vllm::naming: "+naming,
			"--config", "yaml:service::telemetry::metrics::readers: [{pull: {exporter: {prometheus: {host: "+host+", port: "+port+"}}}}]")
		asked[to] = connect(t, addr)
	}
	time.Sleep(time.Until(began.Add(seen)))
	for to, from := range asked {
		filledBy(t, string(to), to, from)
	}
}

// filledBy checks which panels have data in a server.
func filledBy(t *testing.T, name string, to spelling.Spelling, from prometheus) {
	t.Helper()
	now := time.Now()
	got := filledPanels(t, to, data{from, now.Add(-5 * time.Minute), now})
	for _, panel := range slices.Sorted(maps.Keys(got)) {
		assert.Equal(t, withoutData[panel] == "", got[panel], "%s, %s has data: %t; reason to have none: %q", name, panel, got[panel], withoutData[panel])
	}
}

// The newest Prometheus with each way to write names, and VictoriaMetrics, get the same by OTLP and remote write. Each
// panel has data there too, and each shipped rule can be evaluated.
func TestRealServersFillTheBoards(t *testing.T) {
	t.Parallel()
	dir, own := t.TempDir(), collector.FreeAddr(t)
	require.NoError(t, shipped.WriteIn(dir, spelling.All()...))
	itself := fmt.Sprintf("scrape_configs: [{job_name: otelcol-vllm-itself, scrape_interval: 15s, static_configs: [{targets: [%q]}]}]\n", own)
	scraped := filepath.Join(dir, "scrape.yml")
	require.NoError(t, os.WriteFile(scraped, []byte(itself), 0o600))
	const write = `prometheus_remote_write/%s: {endpoint: "http://%s/api/v1/write", max_batch_request_parallelism: 1, resource_constant_labels: {included: ["*"]}%s}`
	const otlp = `otlp_http/%s: {endpoint: "http://%s/api/v1/otlp", sending_queue: {enabled: false}%s}`
	type server struct {
		to           spelling.Spelling
		asked, rules prometheus
	}
	servers, names, exporters := map[string]server{}, []string{}, []string{}
	add := func(name string, to spelling.Spelling, exporter, more, addr, rules string) {
		servers[name] = server{to, connect(t, addr), connect(t, rules)}
		exporters = append(exporters, fmt.Sprintf(exporter, name, addr, more))
		kind, _, _ := strings.Cut(exporter, "/")
		names = append(names, kind+"/"+name)
	}
	ruleFile := func(to spelling.Spelling) string { return filepath.Join(dir, "rules", string(to), "vllm.yaml") }
	for to, strategy := range map[spelling.Spelling]string{
		spelling.Suffixed: "UnderscoreEscapingWithSuffixes", spelling.Unsuffixed: "UnderscoreEscapingWithoutSuffixes", spelling.Dotted: "NoTranslation",
	} {
		_, addr := collector.Newest(t, itself+fmt.Sprintf("rule_files: [%q]\notlp: {translation_strategy: %s, promote_resource_attributes: [%s]}\n",
			ruleFile(to), strategy, strings.Join(content.PromotedAttributes(), ", ")))
		add(string(to), to, otlp, "", addr, addr)
	}
	_, addr := collector.Newest(t, itself+fmt.Sprintf("rule_files: [%q]\n", ruleFile(spelling.Suffixed)))
	add("write", spelling.Suffixed, write, ", protobuf_message: io.prometheus.write.v2.Request", addr, addr)
	_, addr = collector.VictoriaMetrics(t, "-promscrape.config="+scraped)
	add("victoria", spelling.Suffixed, write, "", addr, collector.VMAlert(t, addr, ruleFile(spelling.Suffixed), "-notifier.blackhole"))

	began := time.Now()
	host, port, _ := strings.Cut(own, ":")
	collector.Start(t, map[string]string{"PROMETHEUS_ADDR": collector.FreeAddr(t)}, collector.Binary(t),
		"--config", filepath.Join(root, "examples", "quickstart.yaml"), "--config", "yaml:"+simulatedTargets(t),
		"--config", "yaml:exporters: {"+strings.Join(exporters, ", ")+"}",
		"--config", "yaml:service::pipelines::metrics::exporters: [otlp_http, vllm_diagnosis, "+strings.Join(names, ", ")+"]",
		"--config", "yaml:service::telemetry::metrics::readers: [{pull: {exporter: {prometheus: {host: "+host+", port: "+port+"}}}}]",
		"--feature-gates=exporter.prometheusremotewritexporter.enableSendingRW2")
	time.Sleep(time.Until(began.Add(seen)))
	for name, s := range servers {
		filledBy(t, name, s.to, s.asked)
		all, err := s.rules.api.Rules(t.Context(), nil)
		require.NoError(t, err)
		assert.NotEmpty(t, all.Groups, name)
		for _, group := range all.Groups {
			for _, rule := range group.Rules {
				switch r := rule.(type) {
				case v1.AlertingRule:
					assert.Empty(t, r.LastError, "%s: %s", name, r.Name)
				case v1.RecordingRule:
					assert.Empty(t, r.LastError, "%s: %s", name, r.Name)
				}
			}
		}
	}
}

// connect asks a server at an address.
func connect(t *testing.T, addr string) prometheus {
	t.Helper()
	client, err := api.NewClient(api.Config{Address: "http://" + addr})
	require.NoError(t, err)
	return prometheus{v1.NewAPI(client)}
}

// simulatedTargets starts the servers of the showcase with their exporters, gateway and syncers, and
// returns the configuration of a collector that reads them, as JSON. Its second exporter has a queue
// and no receiver.
func simulatedTargets(t *testing.T) string {
	t.Helper()
	story := history.Showcase(true)
	begin := time.Now().Add(time.Minute - history.IncidentFrom)
	// The collector has a minute to learn what is usual, so the memory is slower than in the story.
	story.Servers[0].Config.Changes[0].Value = 0.05
	target := func(handler http.Handler, attributes map[string]any) map[string]any {
		server := httptest.NewServer(handler)
		t.Cleanup(server.Close)
		return map[string]any{"endpoint": server.URL, "resource_attributes": attributes}
	}
	var servers, exporters, others []any
	for i := range story.Servers {
		s := &story.Servers[i]
		s.Config.Clock, s.Config.Start = time.Now, begin
		gpus := *s.Config.GPUs
		gpus.Name, gpus.Namespace = s.Name, s.Namespace
		s.Config.GPUs = &gpus
		simulated, err := vllmsim.New(s.Config)
		require.NoError(t, err)
		servers = append(servers, target(simulated.Targets()[0], s.Attributes(0)))
		exporters = append(exporters, target(simulated.Exporters()[0], nil))
	}
	namespace := map[string]any{"k8s.cluster.name": "prod", "k8s.namespace.name": "chat"}
	others = append(others, target(story.Gateway.Handler(begin), namespace))
	for i := range story.Syncers {
		others = append(others, target(story.Syncers[i].Handler(begin), namespace))
	}
	story.Processor["pool"] = map[string]any{}
	settings, err := json.Marshal(map[string]any{
		"receivers": map[string]any{
			"vllm":         map[string]any{"endpoint": "", "targets": servers},
			"vllm/gpus":    map[string]any{"source": "dcgm", "targets": exporters},
			"vllm/gateway": map[string]any{"targets": others},
		},
		"processors": map[string]any{"vllm": story.Processor},
		"connectors": map[string]any{"vllm_diagnosis": map[string]any{}},
		"exporters": map[string]any{
			"prometheus": map[string]any{"resource_constant_labels": map[string]any{"included": []string{"*"}}},
			"otlp_http":  map[string]any{"endpoint": "http://127.0.0.1:1", "retry_on_failure": map[string]any{"enabled": false}},
		},
		"service": map[string]any{"pipelines": map[string]any{
			"metrics": map[string]any{
				"receivers": []string{"vllm", "vllm/gpus", "vllm/gateway"}, "exporters": []string{"prometheus", "otlp_http", "vllm_diagnosis"},
			},
			"logs": map[string]any{"receivers": []string{"vllm_diagnosis"}, "exporters": []string{"otlp_http"}},
		}},
	})
	require.NoError(t, err)
	return string(settings)
}

// prometheus is a real server.
type prometheus struct{ api v1.API }

// Instant evaluates a query at a time.
func (p prometheus) Instant(ctx context.Context, query string, at time.Time) (out promql.Vector, err error) {
	value, _, err := p.api.Query(ctx, query, at)
	vector, _ := value.(model.Vector)
	for _, s := range vector {
		out = append(out, promql.Sample{F: float64(s.Value)})
	}
	return out, err
}

// Range evaluates a query between two times.
func (p prometheus) Range(ctx context.Context, query string, from, to time.Time, step time.Duration) (out promql.Matrix, err error) {
	value, _, err := p.api.QueryRange(ctx, query, v1.Range{Start: from, End: to, Step: step})
	matrix, _ := value.(model.Matrix)
	for _, s := range matrix {
		var one promql.Series
		for _, v := range s.Values {
			one.Floats = append(one.Floats, promql.FPoint{F: float64(v.Value)})
		}
		out = append(out, one)
	}
	return out, err
}
