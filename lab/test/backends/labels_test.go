//go:build e2e

package backends

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/config"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage/remote/otlptranslator/prometheusremotewrite"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

// placed is a resource of a server on Kubernetes.
var placed = map[string]string{
	"service.name": "vllm", "service.instance.id": "10.1.2.3:8000", "service.version": "0.20.0",
	"k8s.cluster.name": "east", "k8s.namespace.name": "models", "k8s.pod.name": "llama-0", "vllm.server.kind": "simulator",
	"k8s.node.name": "node-7",
}

// chosenBy are the labels by which the dashboards choose, and their values for that server.
var chosenBy = map[string]string{
	"k8s_cluster_name": "east", "k8s_namespace_name": "models", "k8s_pod_name": "llama-0",
	"service_version": "0.20.0", "vllm_server_kind": "simulator", "job": "vllm", "instance": "10.1.2.3:8000",
}

// oneServer is a scrape of that server: a gauge of the server and a counter of its model.
func oneServer(now time.Time) pmetric.Metrics {
	metrics := pmetric.NewMetrics()
	resource := metrics.ResourceMetrics().AppendEmpty()
	for name, value := range placed {
		resource.Resource().Attributes().PutStr(name, value)
	}
	scope := resource.ScopeMetrics().AppendEmpty()
	up := scope.Metrics().AppendEmpty()
	up.SetName("vllm.up")
	up.SetUnit("{state}")
	point := up.SetEmptyGauge().DataPoints().AppendEmpty()
	point.SetTimestamp(pcommon.NewTimestampFromTime(now))
	point.SetDoubleValue(1)
	tokens := scope.Metrics().AppendEmpty()
	tokens.SetName("vllm.prompt_tokens")
	tokens.SetUnit("{token}")
	sum := tokens.SetEmptySum()
	sum.SetIsMonotonic(true)
	sum.SetAggregationTemporality(cumulative)
	point = sum.DataPoints().AppendEmpty()
	point.SetStartTimestamp(pcommon.NewTimestampFromTime(now.Add(-time.Minute)))
	point.SetTimestamp(pcommon.NewTimestampFromTime(now))
	point.SetDoubleValue(100)
	point.Attributes().PutStr("model_name", "llama")
	return metrics
}

func hasLabels(t *testing.T, found map[string]string, where string) {
	t.Helper()
	for name, value := range chosenBy {
		assert.Equal(t, value, found[name], "%s: %s", where, name)
	}
	assert.NotContains(t, found, "k8s_node_name", "%s: only these become labels", where)
}

func backendOf(t *testing.T, file string) backend {
	t.Helper()
	for _, b := range backends {
		if b.file == file {
			return b
		}
	}
	t.Fatal("no backend", file)
	return backend{}
}

// Each way of export to a Prometheus gives series the labels by which the dashboards choose.
func TestSeriesHaveTheLabelsOfTheDashboards(t *testing.T) {
	for _, file := range []string{"prometheus-remote-write.yaml", "amazon-managed-prometheus.yaml"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			b := backendOf(t, file)
			got := b.sendOne(t, func(got received) bool {
				return seriesOf(got, "vllm_prompt_tokens_total") != nil && seriesOf(got, "vllm_up") != nil
			})
			hasLabels(t, seriesOf(got, "vllm_up"), "vllm_up")
			hasLabels(t, seriesOf(got, "vllm_prompt_tokens_total"), "vllm_prompt_tokens_total")
		})
	}
	// The backend translates points with dots; Google gets the names as they shall be.
	for file, promoted := range map[string][]string{"grafana-cloud.yaml": nil, "google-managed-prometheus.yaml": nil, "prometheus-otlp.yaml": promotedInComment(t)} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			b := backendOf(t, file)
			got := b.sendOne(t, func(got received) bool { return len(got.points) >= 2 })
			checked := 0
			for _, p := range got.points {
				if p.name != "vllm.up" && p.name != "vllm_up" && p.name != "vllm.prompt_tokens" && p.name != "vllm_prompt_tokens_total" {
					continue
				}
				checked++
				hasLabels(t, translatedLabels(t, p, promoted), p.name)
			}
			assert.GreaterOrEqual(t, checked, 2)
		})
	}
}

// sendOne runs the file with one scrape and returns what arrived.
func (b backend) sendOne(t *testing.T, arrived func(received) bool) received {
	t.Helper()
	backend, addr := newRecorder(t), collector.FreeAddr(t)
	c := collector.Collector(t, environment(t, b, backend.url), b.config(), b.feed(addr))
	c.WaitFor(t, "the start of all components", c.Ready)
	send(t, addr, oneServer(time.Now()))
	c.WaitFor(t, "the points", func() bool { return arrived(backend.received()) })
	c.Stop(t)
	return backend.received()
}

func seriesOf(got received, name string) map[string]string {
	for _, s := range got.series {
		found := map[string]string{}
		for _, l := range s.Labels {
			found[l.Name] = l.Value
		}
		if found["__name__"] == name {
			return found
		}
	}
	return nil
}

// translatedLabels are the labels that Prometheus itself gives a point.
func translatedLabels(t *testing.T, p point, promoted []string) map[string]string {
	t.Helper()
	metrics := pmetric.NewMetrics()
	resource := metrics.ResourceMetrics().AppendEmpty()
	p.resource.CopyTo(resource.Resource().Attributes())
	gauge := resource.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty()
	gauge.SetName("number")
	to := gauge.SetEmptyGauge().DataPoints().AppendEmpty()
	p.attributes.CopyTo(to.Attributes())
	to.SetTimestamp(p.at)
	db := startOTLP(t).db
	appender := db.AppenderV2(t.Context())
	_, err := prometheusremotewrite.NewPrometheusConverter(appender).FromMetrics(t.Context(), metrics, prometheusremotewrite.Settings{
		AddMetricSuffixes: true, DisableTargetInfo: true, LookbackDelta: 5 * time.Minute,
		PromoteResourceAttributes: prometheusremotewrite.NewPromoteResourceAttributes(config.OTLPConfig{PromoteResourceAttributes: promoted}),
	})
	require.NoError(t, err)
	require.NoError(t, appender.Commit())
	querier, err := db.Querier(0, time.Now().Add(time.Hour).UnixMilli())
	require.NoError(t, err)
	defer querier.Close()
	set := querier.Select(t.Context(), false, nil, labels.MustNewMatcher(labels.MatchEqual, "__name__", "number"))
	require.True(t, set.Next())
	return set.At().Labels().Map()
}

var otlpSettings = regexp.MustCompile(`(?m)^# {3}(otlp: \{promote_resource_attributes: .*\})$`)

// promotedInComment is what the header of the file says to put into prometheus.yml.
func promotedInComment(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "examples", "backends", "prometheus-otlp.yaml"))
	require.NoError(t, err)
	match := otlpSettings.FindSubmatch(text)
	require.NotNil(t, match)
	var settings struct {
		OTLP struct {
			Promote []string `yaml:"promote_resource_attributes"`
		}
	}
	require.NoError(t, yaml.Unmarshal(match[1], &settings))
	return settings.OTLP.Promote
}

// The page of the Prometheus exporter has all attributes as labels.
func TestThePageHasTheLabelsOfTheDashboards(t *testing.T) {
	for _, file := range []string{"discovery-kubernetes.yaml", "shards.yaml", "target-allocator.yaml", "gpu.yaml", "many-targets-tls.yaml"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			addr, page := collector.FreeAddr(t), collector.FreeAddr(t)
			text, err := os.ReadFile(filepath.Join(root, "examples", file))
			require.NoError(t, err)
			var whole map[string]any
			require.NoError(t, yaml.Unmarshal(text, &whole))
			// Its exporter as it is, with points from here.
			own, err := yaml.Marshal(map[string]any{
				"receivers": map[string]any{"otlp": map[string]any{"protocols": map[string]any{"http": map[string]any{"endpoint": addr}}}},
				"exporters": map[string]any{"prometheus": whole["exporters"].(map[string]any)["prometheus"]},
				"service":   map[string]any{"pipelines": map[string]any{"metrics": map[string]any{"receivers": []string{"otlp"}, "exporters": []string{"prometheus"}}}},
			})
			require.NoError(t, err)
			c := collector.Collector(t, map[string]string{"PROMETHEUS_ADDR": page}, "yaml:"+string(own))
			c.WaitFor(t, "the start of all components", c.Ready)
			send(t, addr, oneServer(time.Now()))
			var line string
			c.WaitFor(t, "the page", func() bool {
				line = lineOf(t, page, "vllm_up{")
				return line != ""
			})
			c.Stop(t)
			for name, value := range chosenBy {
				assert.Contains(t, line, name+`="`+value+`"`)
			}
		})
	}
}

func lineOf(t *testing.T, addr, prefix string) string {
	t.Helper()
	response, err := http.Get("http://" + addr + "/metrics")
	if err != nil {
		return ""
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, prefix) {
			return line
		}
	}
	return ""
}
