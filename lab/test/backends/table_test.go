//go:build e2e

package backends

import (
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pmetric"
)

// backend is one configuration, and what it must send.
type backend struct {
	// file is in examples/backends.
	file string
	// env points the file at the recorder, whose address replaces "URL".
	env map[string]string
	// path and headers are what every request must have.
	path    string
	headers map[string]string
	rules   []rule
}

const (
	gauges     = pmetric.MetricTypeGauge
	sums       = pmetric.MetricTypeSum
	histograms = pmetric.MetricTypeHistogram
	summaries  = pmetric.MetricTypeSummary
	delta      = pmetric.AggregationTemporalityDelta
	cumulative = pmetric.AggregationTemporalityCumulative

	cloudWatch  = "https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-OTLPEndpoint.html"
	googleNames = "https://docs.cloud.google.com/stackdriver/docs/otlp-metrics/overview"

	dottedName = `^[a-zA-Z][a-zA-Z0-9_.]*$`
	anyKey     = `^[a-zA-Z0-9_.:-]+$`
)

var (
	complete   = rule{"the whole catalogue arrives, with units and values", ours, arrives}
	deriving   = rule{"what the processor derives arrives, with the values that follow", ours, derived}
	starting   = rule{"starts are before ends, deltas follow one another", "https://opentelemetry.io/docs/specs/otel/metrics/data-model/#temporality", starts}
	buckets    = rule{"histograms keep their explicit buckets", ours, explicit}
	once       = rule{"a series has one point of one time", "https://opentelemetry.io/docs/specs/otel/metrics/data-model/#single-writer", onlyOnce}
	valuesOnly = rule{"no point says NaN, infinity or \"no value\"", ours, onlyValues}
)

var backends = []backend{
	{
		file: "datadog.yaml",
		env:  map[string]string{"DATADOG_OTLP_ENDPOINT": "URL", "DD_API_KEY": "secret"},
		path: "/v1/metrics",
		headers: map[string]string{
			"dd-api-key": "secret", "dd-otel-metric-config": `{"resource_attributes_as_tags": true}`,
		},
		rules: []rule{
			complete, deriving, starting, buckets, valuesOnly,
			{"deltas only", "https://docs.datadoghq.com/opentelemetry/setup/otlp_ingest/metrics/", temporalities(delta, delta)},
			{"nothing without a delta form", "https://docs.datadoghq.com/opentelemetry/setup/otlp_ingest/metrics/", kinds(gauges, sums, histograms)},
			{"names of ASCII letters, digits, _ and ., at most 200", "https://docs.datadoghq.com/metrics/custom_metrics/", names(dottedName, 200)},
			{"names that begin with system. or process. are renamed", "https://docs.datadoghq.com/opentelemetry/integrations/host_metrics/", noPrefix("system.", "process.")},
		},
	},
	{
		file:    "dynatrace.yaml",
		env:     map[string]string{"DYNATRACE_OTLP_ENDPOINT": "URL/api/v2/otlp", "DYNATRACE_API_TOKEN": "secret"},
		path:    "/api/v2/otlp/v1/metrics",
		headers: map[string]string{"Authorization": "Api-Token secret"},
		rules: []rule{
			complete, deriving, starting, buckets, valuesOnly,
			{"cumulative counters and histograms are refused", "https://docs.dynatrace.com/managed/shortlink/otel-getstarted-metrics-ingest", temporalities(delta, delta)},
			{"summaries are not mapped", "https://docs.dynatrace.com/managed/shortlink/otel-getstarted-metrics-ingest", kinds(gauges, sums, histograms)},
			{"keys of letters, digits, - and _ in sections, at most 255", "https://docs.dynatrace.com/docs/shortlink/metric-ingestion-protocol", names(`^[a-zA-Z_][a-zA-Z0-9_-]*(\.[a-zA-Z0-9_][a-zA-Z0-9_-]*)*$`, 255)},
			{"at most 50 dimensions", "https://docs.dynatrace.com/docs/shortlink/metric-ingestion-protocol", attributeCount(50)},
			{"dimension keys of lowercase letters, digits and -.:_, at most 100, values 250", "https://docs.dynatrace.com/docs/shortlink/metric-ingestion-protocol", attributeForm(`^[a-z0-9_.:-]+$`, 100, 250)},
			{"replicas stay apart whatever the allow list says", ours, each(func(p point) string {
				if id, _ := p.attributes.Get("service.instance.id"); id.AsString() != "vllm-1:8000" {
					return "no service.instance.id"
				}
				return ""
			})},
		},
	},
	{
		file: "grafana-cloud.yaml",
		env:  map[string]string{"GRAFANA_CLOUD_OTLP_ENDPOINT": "URL/otlp", "GRAFANA_CLOUD_BASIC": "MTIzOnNlY3JldA=="},
		path: "/otlp/v1/metrics",
		// The base64 of "123:secret".
		headers: map[string]string{"Authorization": "Basic MTIzOnNlY3JldA=="},
		rules: []rule{
			complete, deriving, starting, buckets,
			{"cumulative only, as Prometheus", "https://grafana.com/docs/grafana-cloud/send-data/otlp/otlp-format-considerations/", temporalities(cumulative, cumulative)},
			{"no exponential histograms", "https://grafana.com/docs/grafana-cloud/send-data/otlp/otlp-format-considerations/", kinds(gauges, sums, histograms, summaries)},
			{"names stay valid and apart after the translation", "https://grafana.com/docs/grafana-cloud/send-data/otlp/otlp-format-considerations/", prometheusNames},
			{"label names of at most 1024 characters, values of 2048", "https://grafana.com/docs/grafana-cloud/send-data/metrics/label-handling-and-limits", attributeForm(anyKey, 1024, 2048)},
			{"series end with a mark", "https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/", ends},
		},
	},
	{
		file: "google-managed-prometheus.yaml",
		env: map[string]string{
			"GOOGLE_OTLP_ENDPOINT": "URL", "GOOGLE_TOKEN_URL": "URL/token", "GOOGLE_CLIENT_EMAIL": "otelcol@p.iam.gserviceaccount.com",
			"GOOGLE_CLOUD_PROJECT": "my-project", "GOOGLE_CLOUD_LOCATION": "europe-west1", "GOOGLE_CLOUD_CLUSTER": "inference", "GOOGLE_CLOUD_NAMESPACE": "vllm",
		},
		path:    "/v1/metrics",
		headers: map[string]string{"Authorization": "Bearer " + accessToken, "x-goog-user-project": "my-project"},
		rules: []rule{
			{"the whole catalogue arrives, with units and values, under the names of Prometheus's translation", ours, arrivesAs(prometheusName)},
			{"what the processor derives arrives as well", ours, derivedAs(prometheusName)},
			starting, buckets, valuesOnly,
			{"names of letters, digits, _, :, . and /", googleNames, names(`^[a-zA-Z][a-zA-Z0-9_:./]*$`, 200)},
			{"attributes of letters, digits, _ and .", googleNames, attributeForm(`^[a-zA-Z_][a-zA-Z0-9_.]*$`, 512, 1024)},
			{"cumulative", "https://docs.cloud.google.com/stackdriver/docs/reference/telemetry/v1.metrics", temporalities(cumulative, cumulative)},
			{"labels of the monitored resource are reserved", "https://github.com/open-telemetry/opentelemetry-collector-contrib/tree/main/exporter/googlemanagedprometheusexporter", without(reservedAttributes...)},
			{"reserved labels are kept under another name", ours, func(got received) []string {
				var broken []string
				for _, name := range reservedAttributes {
					if !slices.ContainsFunc(got.points, func(p point) bool {
						value, found := p.attributes.Get("exported_" + name)
						return p.name == "vllm_test_reserved" && found && value.Str() == "own-"+name
					}) {
						broken = append(broken, "exported_"+name)
					}
				}
				return broken
			}},
			{"location and project on the resource", "https://docs.cloud.google.com/stackdriver/docs/reference/telemetry/v1.metrics", resource(map[string]string{
				"gcp.project_id": "my-project", "location": "europe-west1", "cluster": "inference", "namespace": "vllm",
				"service.name": "vllm", "service.instance.id": "vllm-1:8000",
			})},
		},
	},
	{
		file: "azure-monitor.yaml",
		env: map[string]string{
			"AZURE_METRICS_ENDPOINT": "URL/dcr/streams/metrics", "AZURE_LOGIN": "URL", "AZURE_TENANT_ID": "tenant",
			"AZURE_CLIENT_ID": "id", "AZURE_CLIENT_SECRET": "secret",
		},
		path:    "/dcr/streams/metrics",
		headers: map[string]string{"Authorization": "Bearer " + accessToken},
		rules: []rule{
			complete, deriving, starting, buckets, valuesOnly,
			{"at most 10 dimensions", "https://learn.microsoft.com/en-us/azure/azure-monitor/metrics/metrics-custom-overview", attributeCount(10)},
			{"the resource still distinguishes replicas", ours, resource(map[string]string{"service.instance.id": "vllm-1:8000", "k8s.pod.name": "vllm-1"})},
			{"cumulative, for PromQL", "https://learn.microsoft.com/en-us/azure/azure-monitor/metrics/prometheus-opentelemetry-best-practices", temporalities(cumulative, cumulative)},
			{"no summaries, as nothing is said of them", ours, kinds(gauges, sums, histograms)},
		},
	},
	{
		file:    "cloudwatch.yaml",
		env:     map[string]string{"CLOUDWATCH_METRICS_ENDPOINT": "URL/v1/metrics", "CLOUDWATCH_API_KEY": "secret"},
		path:    "/v1/metrics",
		headers: map[string]string{"Authorization": "Bearer secret", "Content-Encoding": "gzip"},
		rules: []rule{
			complete, deriving, starting, buckets, valuesOnly,
			{"at most 1000 data points and 1 MB in a request", cloudWatch, requests(1000, 1e6)},
			{"at most 150 labels", cloudWatch, attributeCount(150)},
			{"cumulative, for PromQL", "https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-PromQL.html", temporalities(cumulative, cumulative)},
			{"no summaries, as nothing is said of them", ours, kinds(gauges, sums, histograms)},
		},
	},
	{
		file:    "new-relic.yaml",
		env:     map[string]string{"NEW_RELIC_OTLP_ENDPOINT": "URL", "NEW_RELIC_LICENSE_KEY": "secret"},
		path:    "/v1/metrics",
		headers: map[string]string{"api-key": "secret"},
		rules: []rule{
			complete, deriving, starting, buckets, valuesOnly,
			{"deltas become counts", "https://docs.newrelic.com/docs/opentelemetry/best-practices/opentelemetry-best-practices-metrics/", temporalities(delta, delta)},
			{"no deltas that can fall", "https://docs.newrelic.com/docs/opentelemetry/best-practices/opentelemetry-best-practices-metrics/", each(func(p point) string {
				if p.kind == sums && !p.monotonic {
					return "is a delta that can fall"
				}
				return ""
			})},
			{"names of at most 255 characters", "https://docs.newrelic.com/docs/opentelemetry/best-practices/opentelemetry-best-practices-metrics/", names(dottedName, 255)},
			{"attribute names of at most 255 characters, values of 4095", "https://docs.newrelic.com/docs/more-integrations/open-source-telemetry-integrations/opentelemetry/best-practices/opentelemetry-best-practices-attributes/", attributeForm(anyKey, 255, 4095)},
			{"no summaries among deltas", ours, kinds(gauges, sums, histograms)},
		},
	},
	{
		file:    "splunk.yaml",
		env:     map[string]string{"SPLUNK_INGEST_URL": "URL", "SPLUNK_ACCESS_TOKEN": "secret"},
		path:    "/v2/datapoint/otlp",
		headers: map[string]string{"X-SF-Token": "secret"},
		rules: []rule{
			complete, starting, valuesOnly,
			{"histograms with explicit buckets", "https://help.splunk.com/splunk-observability-cloud/manage-data/metrics-metadata-and-events/metrics-in-splunk-observability-cloud/get-histogram-data-in", explicit},
			{"cumulative counters are a type of their own", "https://help.splunk.com/splunk-observability-cloud/manage-data/metrics-metadata-and-events/metrics-in-splunk-observability-cloud/get-started-with-metrics", temporalities(cumulative, cumulative)},
			{"names must not begin with sf_ or sf.", "https://github.com/open-telemetry/opentelemetry-collector-contrib/tree/main/exporter/signalfxexporter", noPrefix("sf_", "sf.")},
			{"dimension keys of letters, digits, _, . and -", "https://github.com/open-telemetry/opentelemetry-collector-contrib/tree/main/exporter/signalfxexporter", attributeForm(`^[A-Za-z0-9_.-]+$`, 128, 256)},
			{"no summaries, as nothing is said of them", ours, kinds(gauges, sums, histograms)},
		},
	},
	{
		file:    "honeycomb.yaml",
		env:     map[string]string{"HONEYCOMB_ENDPOINT": "URL", "HONEYCOMB_API_KEY": "secret"},
		path:    "/v1/metrics",
		headers: map[string]string{"x-honeycomb-team": "secret", "x-honeycomb-dataset": "vllm"},
		rules: []rule{
			complete, deriving, starting, buckets, valuesOnly,
			{"gauges, sums and histograms", "https://docs.honeycomb.io/getting-data-in/metrics/", kinds(gauges, sums, histograms)},
			{"cumulative or delta, but one of them", "https://docs.honeycomb.io/investigate/query/apply-temporal-aggregation", temporalities(cumulative, cumulative)},
		},
	},
	{
		file:    "elastic.yaml",
		env:     map[string]string{"ELASTIC_OTLP_ENDPOINT": "URL", "ELASTIC_API_KEY": "secret"},
		path:    "/v1/metrics",
		headers: map[string]string{"Authorization": "ApiKey secret"},
		rules: []rule{
			complete, deriving, starting, buckets, valuesOnly,
			{"histograms as deltas before 9.5.3, counters cumulative", "https://www.elastic.co/observability-labs/blog/opentelemetry-histograms-elastic-cloud-hosted", temporalities(cumulative, delta)},
			{"no name is a dotted prefix of another, because dots make objects", "https://www.elastic.co/docs/reference/elasticsearch/mapping-reference/object", func(got received) []string {
				var broken []string
				streams := byName(got)
				for name := range streams {
					for cut := strings.LastIndexByte(name, '.'); cut > 0; cut = strings.LastIndexByte(name[:cut], '.') {
						if _, taken := streams[name[:cut]]; taken {
							broken = append(broken, name[:cut]+" and "+name)
						}
					}
				}
				return broken
			}},
			{"no summaries", ours, kinds(gauges, sums, histograms)},
		},
	},
	{
		file: "prometheus-otlp.yaml",
		env:  map[string]string{"PROMETHEUS_URL": "URL"},
		path: "/api/v1/otlp/v1/metrics",
		rules: []rule{
			complete, deriving, starting, buckets,
			{"cumulative only", "https://prometheus.io/docs/guides/opentelemetry/", temporalities(cumulative, cumulative)},
			{"names stay valid and apart after the translation", "https://prometheus.io/docs/guides/opentelemetry/", prometheusNames},
			{"job and instance", "https://prometheus.io/docs/guides/opentelemetry/", resource(map[string]string{"service.name": "vllm", "service.instance.id": "vllm-1:8000"})},
			{"series end with a mark", "https://opentelemetry.io/docs/specs/otel/compatibility/prometheus_and_openmetrics/", ends},
		},
	},
	{
		file:    "prometheus-remote-write.yaml",
		env:     map[string]string{"REMOTE_WRITE_URL": "URL/api/v1/write", "REMOTE_WRITE_TENANT": "team-a"},
		path:    "/api/v1/write",
		headers: map[string]string{"X-Scope-OrgID": "team-a", "X-Prometheus-Remote-Write-Version": "0.1.0"},
		rules:   remoteWrite,
	},
	{
		file:    "amazon-managed-prometheus.yaml",
		env:     map[string]string{"REMOTE_WRITE_URL": "URL/workspaces/ws-1/api/v1/remote_write"},
		path:    "/workspaces/ws-1/api/v1/remote_write",
		headers: map[string]string{"Content-Encoding": "snappy", "X-Prometheus-Remote-Write-Version": "0.1.0"},
		rules:   remoteWrite,
	},
}

// remoteWrite are the rules of the protocol.
var remoteWrite = []rule{
	{"the whole catalogue arrives under translated names, with its values", ours, written},
	{"what the processor derives arrives, with the values that follow", ours, writtenDerived},
	{"valid names; sorted labels without doubles; job and instance", "https://prometheus.io/docs/specs/prw/remote_write_spec/#labels", labelForm},
	{"samples of a series in the order of time", "https://prometheus.io/docs/specs/prw/remote_write_spec/#ordering", inOrder},
	{"series end with a staleness marker", "https://prometheus.io/docs/specs/prw/remote_write_spec/#stale-markers", writtenEnds},
}
