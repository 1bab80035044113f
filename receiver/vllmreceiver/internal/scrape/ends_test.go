package scrape

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/open-telemetry/opentelemetry-collector-contrib/pkg/translator/prometheusremotewrite"
	"github.com/prometheus/prometheus/model/value"
	otlpingest "github.com/prometheus/prometheus/storage/remote/otlptranslator/prometheusremotewrite"
	"github.com/prometheus/prometheus/util/teststorage"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/scrapetest"
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

// After an end no series that a scrape has made in a Prometheus backend lives on,
// whichever way the points take: every bucket, sum, count and quantile is stale.
func TestEndsMarkEverySeriesStale(t *testing.T) {
	for path, translate := range map[string]func(*testing.T, pmetric.Metrics) backendSeries{
		"remote write": remoteWritten, "OTLP": ingested,
	} {
		for name, end := range map[string]func(*rig) pmetric.Metrics{
			"the target is down": func(r *rig) pmetric.Metrics { return r.fail(500) },
			"the target leaves": func(r *rig) pmetric.Metrics {
				out := pmetric.NewMetrics()
				r.scraper.emitter.End(r.now, out)
				return out
			},
			"the series leave": func(r *rig) pmetric.Metrics {
				return r.scrape("# TYPE something gauge\nsomething 1\n")
			},
		} {
			t.Run(path+"/"+name, func(t *testing.T) {
				r := newRig(t, func(cfg *Config) { cfg.GenAI.Enabled = true })
				live := translate(t, r.scrape(scrapetest.BodyWithEveryKind(t, "../../../..")))
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

// The points of an end have the shape of those before and no value, and their
// metrics no description: one of a megabyte would be sent with each of thousands.
func TestEndsKeepTheirShape(t *testing.T) {
	r := newRig(t)
	shape := func(m pmetric.Metric) (string, []float64) {
		switch m.Type() {
		case pmetric.MetricTypeHistogram:
			p := m.Histogram().DataPoints().At(0)
			require.Equal(t, p.ExplicitBounds().Len()+1, p.BucketCounts().Len())
			return m.Name(), p.ExplicitBounds().AsRaw()
		case pmetric.MetricTypeSummary:
			var quantiles []float64
			for _, q := range m.Summary().DataPoints().At(0).QuantileValues().All() {
				quantiles = append(quantiles, q.Quantile())
			}
			return m.Name(), quantiles
		}
		return m.Name(), nil
	}
	before := map[string][]float64{}
	for _, m := range r.scrape(scrapetest.BodyWithEveryKind(t, "../../../..")).ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		name, bounds := shape(m)
		before[name] = bounds
	}
	ends := 0
	for _, m := range r.fail(500).ResourceMetrics().At(0).ScopeMetrics().At(0).Metrics().All() {
		name, bounds := shape(m)
		if strings.HasPrefix(name, "vllm.up") || strings.HasPrefix(name, "vllm.scrape.") {
			continue
		}
		ends++
		assert.Empty(t, m.Description(), name)
		assert.Equal(t, before[name], bounds, name)
		if m.Type() == pmetric.MetricTypeHistogram {
			p := m.Histogram().DataPoints().At(0)
			assert.True(t, p.Flags().NoRecordedValue())
			assert.Zero(t, p.Count())
			assert.False(t, math.IsNaN(p.Sum()))
		}
	}
	assert.Greater(t, ends, 50)
}
