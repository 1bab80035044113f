// Package ends checks that what the receiver emits where series end leaves nothing alive in the backends
// that take its points.
package ends

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/translator/prometheusremotewrite"
	"github.com/prometheus/prometheus/model/value"
	otlpingest "github.com/prometheus/prometheus/storage/remote/otlptranslator/prometheusremotewrite"
	"github.com/prometheus/prometheus/util/teststorage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/probe"
)

// backendSeries are the series of a batch in a Prometheus backend: those with a
// value and those that the batch marks as stale.
type backendSeries struct{ live, stale []string }

func (s *backendSeries) add(labels string, v float64) {
	if strings.Contains(labels, "target_info") {
		return // Of the resource, not of a series.
	}
	if value.IsStaleNaN(v) {
		s.stale = append(s.stale, labels)
	} else {
		s.live = append(s.live, labels)
	}
}

func (s *backendSeries) sorted() backendSeries {
	slices.Sort(s.live)
	slices.Sort(s.stale)
	return *s
}

// remoteWritten is what contrib's translator sends by remote write.
func remoteWritten(t *testing.T, metrics pmetric.Metrics) backendSeries {
	t.Helper()
	written, err := prometheusremotewrite.FromMetrics(metrics, prometheusremotewrite.Settings{AddMetricSuffixes: true})
	require.NoError(t, err)
	var out backendSeries
	for _, series := range written {
		labels := make([]string, 0, len(series.Labels))
		for _, l := range series.Labels {
			labels = append(labels, l.Name+"="+l.Value)
		}
		slices.Sort(labels)
		for _, sample := range series.Samples {
			out.add(strings.Join(labels, ","), sample.Value)
		}
	}
	return out.sorted()
}

// ingested is what Prometheus stores of OTLP.
func ingested(t *testing.T, metrics pmetric.Metrics) backendSeries {
	t.Helper()
	storage := teststorage.NewAppendable()
	appender := storage.AppenderV2(t.Context())
	converter := otlpingest.NewPrometheusConverter(appender)
	_, err := converter.FromMetrics(t.Context(), metrics, otlpingest.Settings{AddMetricSuffixes: true, PromoteScopeMetadata: true})
	require.NoError(t, err)
	require.NoError(t, appender.Commit())
	var out backendSeries
	for _, sample := range storage.ResultSamples() {
		out.add(sample.L.String(), sample.V)
	}
	return out.sorted()
}

var (
	at    = time.Date(2026, time.January, 5, 12, 0, 0, 0, time.UTC)
	later = at.Add(15 * time.Second)
)

// everyKind has histograms, with and without a sum, summaries with quantiles, counters and gauges.
func everyKind(t *testing.T) (body []byte) {
	t.Helper()
	for _, file := range []string{"v1-0.24.0/metrics.txt", "every-kind.txt"} {
		part, err := os.ReadFile("../../../testdata/" + file)
		require.NoError(t, err)
		body = append(body, part...)
	}
	return body
}

func replay(t *testing.T) *probe.Replay {
	t.Helper()
	config := vllmreceiver.NewFactory().CreateDefaultConfig().(*vllmreceiver.Config)
	config.GenAI.Enabled = true
	replays, err := probe.NewReplays(config)
	require.NoError(t, err)
	r, err := replays.Target("http://vllm-0:8000", nil)
	require.NoError(t, err)
	t.Cleanup(r.Close)
	return r
}

// After an end no series that a scrape has made in a Prometheus backend lives on,
// whichever way the points take: every bucket, sum, count and quantile is stale.
func TestEndsMarkEverySeriesStale(t *testing.T) {
	for path, translate := range map[string]func(*testing.T, pmetric.Metrics) backendSeries{
		"remote write": remoteWritten, "OTLP": ingested,
	} {
		for name, end := range map[string]func(*probe.Replay) pmetric.Metrics{
			"the target is down": func(r *probe.Replay) pmetric.Metrics { return r.Fail(later, "refused") },
			"the target leaves":  func(r *probe.Replay) pmetric.Metrics { return r.End(later) },
			"the series leave": func(r *probe.Replay) pmetric.Metrics {
				return r.Scrape(later, []byte("# TYPE something gauge\nsomething 1\n"), "0.24.0")
			},
		} {
			t.Run(path+"/"+name, func(t *testing.T) {
				r := replay(t)
				live := translate(t, r.Scrape(at, everyKind(t), "0.24.0"))
				require.Empty(t, live.stale)
				for _, part := range []string{
					"vllm_time_to_first_token_seconds_bucket", "vllm_time_to_first_token_seconds_sum", "gen_ai_server_time_to_first_token_seconds_bucket",
					"a_summary", "0.99",
				} {
					assert.True(t, slices.ContainsFunc(live.live, func(s string) bool { return strings.Contains(s, part) }), part)
				}
				ended := translate(t, end(r))
				// The metrics about the scrape continue while the target exists.
				lives := func(s string) bool { return slices.Contains(ended.live, s) }
				assert.Equal(t, slices.DeleteFunc(live.live, lives), ended.stale)
				for _, s := range ended.live {
					assert.True(t, strings.Contains(s, "vllm_up") || strings.Contains(s, "vllm_scrape_") || strings.Contains(s, "something"), s)
				}
			})
		}
	}
}
