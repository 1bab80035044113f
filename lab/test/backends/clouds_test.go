//go:build e2e

package backends

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/lab/test/collector"
)

var (
	// The table of the page has a file by the name of a backend. Names stand before a block of queries, one a line.
	cloudFile    = regexp.MustCompile(`(?m)^\| \[([^]]+)\]\([./]*examples/backends/([a-z-]+\.yaml)\)`)
	cloudQueries = regexp.MustCompile(`(?s)\n\n([A-Z][^\n]*):\n\n` + "```(promql|sql|text)\n(.*?)```")
	// What a query in another language than PromQL asks: names of metrics, groups, and conditions.
	asksFor = regexp.MustCompile(`vllm\.[a-z_.]+[a-z]`)
	groups  = regexp.MustCompile(`(?:FACET |by: \{)([a-z.]+)`)
	equals  = regexp.MustCompile(`([a-z]+) ==? ["']([^"']+)["']`)
)

// series returns the labels of a point as the backend makes them for PromQL.
//
// CloudWatch: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-PromQL-Querying.html
// Azure: https://learn.microsoft.com/en-us/azure/azure-monitor/metrics/prometheus-opentelemetry-best-practices
// Google: https://docs.cloud.google.com/stackdriver/docs/reference/telemetry/v1.metrics
func (b backend) series(p point) labels.Labels {
	builder := labels.NewBuilder(labels.FromStrings(model.MetricNameLabel, p.name))
	for key, value := range p.resource.All() {
		switch b.file {
		case "cloudwatch.yaml":
			key = "@resource." + key
		case "google-managed-prometheus.yaml":
			key = map[string]string{"service.name": "job", "service.instance.id": "instance", "location": "location", "cluster": "cluster", "namespace": "namespace"}[key]
		}
		if key != "" {
			builder.Set(key, value.AsString())
		}
	}
	for key, value := range p.attributes.All() {
		builder.Set(key, value.AsString())
	}
	return builder.Labels()
}

// keep stores what arrived, for queries.
func (b backend) keep(t *testing.T, got received) *otlpPrometheus {
	t.Helper()
	stored := startOTLP(t)
	appender := stored.db.Appender(t.Context())
	for _, p := range got.points {
		if p.kind == gauges {
			_, err := appender.Append(0, b.series(p), p.at.AsTime().UnixMilli(), p.value)
			require.NoError(t, err)
		}
	}
	for _, written := range got.series {
		builder := labels.NewBuilder(labels.EmptyLabels())
		for _, l := range written.Labels {
			builder.Set(l.Name, l.Value)
		}
		for _, sample := range written.Samples {
			_, err := appender.Append(0, builder.Labels(), sample.Timestamp, sample.Value)
			require.NoError(t, err)
		}
	}
	require.NoError(t, appender.Commit())
	return stored
}

// unfound returns what a query in New Relic's or Dynatrace's language asks for and was not sent.
func unfound(query string, sent map[string][]point) (why []string) {
	for _, name := range asksFor.FindAllString(query, -1) {
		has := func(key, value string) bool {
			return slices.ContainsFunc(sent[name], func(p point) bool { return p.tagged()[key] != "" && (value == "" || p.tagged()[key] == value) })
		}
		if len(sent[name]) == 0 {
			why = append(why, name)
		}
		for _, group := range groups.FindAllStringSubmatch(query, -1) {
			if !has(group[1], "") {
				why = append(why, name+" by "+group[1])
			}
		}
		for _, condition := range equals.FindAllStringSubmatch(query, -1) {
			if !has(condition[1], condition[2]) {
				why = append(why, name+" with "+condition[0])
			}
		}
	}
	return why
}

// The queries of the page about managed backends have an answer in what the example of the backend sends.
func TestTheQueriesForCloudsFindWhatTheExamplesSend(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs", "start", "clouds.md"))
	require.NoError(t, err)
	files := map[string]string{}
	for _, row := range cloudFile.FindAllStringSubmatch(string(page), -1) {
		files[row[1]] = row[2]
	}
	require.Len(t, files, 8)
	queries, languages := map[string][]string{}, map[string]string{}
	for _, block := range cloudQueries.FindAllStringSubmatch(string(page), -1) {
		for _, name := range strings.Split(block[1], ", ") {
			queries[files[name]], languages[files[name]] = strings.Split(strings.TrimSpace(block[3]), "\n"), block[2]
		}
	}
	require.ElementsMatch(t, slices.Collect(maps.Values(files)), slices.Collect(maps.Keys(queries)))
	for file, queries := range queries {
		language := languages[file]
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			require.Len(t, queries, 2)
			b := backends[slices.IndexFunc(backends, func(b backend) bool { return b.file == file })]
			vllm := collector.Busy(t, 2, betweenScrapes)
			backend, translated := newRecorder(t), startOTLP(t)
			env := environment(t, b, backend.url)
			if file == "grafana-cloud.yaml" {
				// Its gateway translates as Prometheus does.
				env["GRAFANA_CLOUD_OTLP_ENDPOINT"] = translated.url
			}
			env["VLLM_ENDPOINT"] = vllm
			c := collector.Collector(t, env, b.config(), "yaml:receivers::vllm::collection_interval: 1s", "yaml:receivers::vllm::timeout: 900ms",
				"yaml:processors::vllm::window: 4s", fmt.Sprintf("yaml:exporters::%s::sending_queue::batch::flush_timeout: 500ms", b.queued()))
			missing := func() (why []string) {
				got := backend.received()
				stored := translated
				if language == "promql" && file != "grafana-cloud.yaml" {
					stored = b.keep(t, got)
				}
				for _, query := range queries {
					switch {
					case language == "promql":
						// Nothing is wrong with the server.
						query = strings.Replace(query, " > 1", " >= 0", 1)
						if len(stored.ask(t, query, time.Now())) == 0 {
							why = append(why, query)
						}
					case file == "datadog.yaml":
						why = append(why, unanswered(query, sentByName(got.points))...)
					default:
						why = append(why, unfound(query, sentByName(got.points))...)
					}
				}
				return why
			}
			deadline := time.Now().Add(2 * time.Minute)
			for len(missing()) > 0 && time.Now().Before(deadline) {
				time.Sleep(time.Second)
			}
			assert.Empty(t, missing())
			c.Stop(t)
		})
	}
}
