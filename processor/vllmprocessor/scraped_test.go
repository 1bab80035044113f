package vllmprocessor

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
	"github.com/otelcol-vllm/otelcol-vllm/internal/test/recorded"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadata"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver"
)

// scraped is what the receiver makes of the answers of a server, with times 15 s apart as the
// server's load has them.
func scraped(tb testing.TB, server string) []pmetric.Metrics {
	tb.Helper()
	all := recorded.Answers(tb, server)
	var next atomic.Int32
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/version" {
			fmt.Fprintf(w, `{"version":%q}`, all[0].Version)
			return
		}
		answer := all[min(int(next.Add(1)), len(all))-1]
		w.Header().Set("Content-Type", answer.ContentType)
		_, _ = io.WriteString(w, answer.Body)
	}))
	defer web.Close()
	factory := vllmreceiver.NewFactory()
	cfg := factory.CreateDefaultConfig()
	require.NoError(tb, confmap.NewFromStringMap(map[string]any{
		"endpoint": web.URL, "collection_interval": "100ms", "timeout": "20s", "initial_delay": "0s",
	}).Unmarshal(cfg))
	sink := new(consumertest.MetricsSink)
	receiver, err := factory.CreateMetrics(tb.Context(), receivertest.NewNopSettings(factory.Type()), cfg, sink)
	require.NoError(tb, err)
	require.NoError(tb, receiver.Start(tb.Context(), componenttest.NewNopHost()))
	var batches []pmetric.Metrics
	require.Eventually(tb, func() bool {
		batches = slices.DeleteFunc(slices.Clone(sink.AllMetrics()), func(m pmetric.Metrics) bool {
			return m.MetricCount() < 20 // a scrape that took longer than the interval
		})
		return len(batches) >= len(all)
	}, 2*time.Minute, 5*time.Millisecond)
	require.NoError(tb, receiver.Shutdown(tb.Context()))
	batches = batches[:len(all)]
	for _, batch := range batches {
		// A scrape may come with the failure of the one before.
		batch.ResourceMetrics().RemoveIf(func(rm pmetric.ResourceMetrics) bool {
			return rm.ScopeMetrics().At(0).Metrics().Len() < 20
		})
	}
	for i := range batches {
		setTime(batches[i], storyBegin.Add(time.Duration(i)*15*time.Second))
	}
	return batches
}

// setTime gives all points a time.
func setTime(metrics pmetric.Metrics, at time.Time) {
	stamp := pcommon.NewTimestampFromTime(at)
	for _, rm := range metrics.ResourceMetrics().All() {
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				switch m.Type() {
				case pmetric.MetricTypeGauge:
					for _, p := range m.Gauge().DataPoints().All() {
						p.SetTimestamp(stamp)
					}
				case pmetric.MetricTypeSum:
					for _, p := range m.Sum().DataPoints().All() {
						p.SetTimestamp(stamp)
					}
				case pmetric.MetricTypeHistogram:
					for _, p := range m.Histogram().DataPoints().All() {
						p.SetTimestamp(stamp)
					}
				default:
				}
			}
		}
	}
}

// derivedSeries is the number of series that are derived in the course of some
// scrapes of a server.
func derivedSeries(t *testing.T, server, config string) map[string]bool {
	t.Helper()
	p := create(t, configured(t, config), processortest.NewNopSettings(metadata.Type))
	series := map[string]bool{}
	for i, batch := range scraped(t, server) {
		p.now = func() time.Time { return storyBegin.Add(time.Duration(i) * 15 * time.Second) }
		batch, err := p.process(t.Context(), batch)
		require.NoError(t, err)
		for key := range points(t, takeAdded(batch)) {
			_, key, _ = strings.Cut(key, " ") // the server
			_, key, _ = strings.Cut(key, " ") // the time
			series[key] = true
		}
	}
	return series
}

// What one server costs a backend, as the README states it.
func TestTheCostInSeries(t *testing.T) {
	race.SkipSequential(t)
	const (
		peaks    = "hardware: [{gpu: H100-SXM}]"
		promises = `objectives:
- {name: ttft, metric: vllm.time_to_first_token, threshold: 2.5s, target: 0.95}
- {name: itl, metric: vllm.inter_token_latency, threshold: 100ms, target: 0.99}`
	)
	readme := readReadme(t)
	for _, c := range []struct {
		name, server, config string
		want                 int
	}{
		{"one engine", "plain", "", 40},
		{"one engine, with two objectives", "plain", promises, 40 + 2*16},
		{"one engine, with speculation (three drafted tokens) and `hardware`", "plain with all", peaks, 49},
		{"eight engines", "eight engines", "", 260},
		{"eight engines, with speculation and `hardware`", "eight engines with all", peaks, 341},
		{"eight engines, with `percentiles::per_engine`", "eight engines", "percentiles: {per_engine: true}", 332},
		{"one engine, with `percentiles::detailed`", "plain", "percentiles: {detailed: true}", 52},
		{"eight engines, with `percentiles::detailed`", "eight engines", "percentiles: {detailed: true}", 272},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel() // the time goes by between scrapes
			series := slices.Sorted(maps.Keys(derivedSeries(t, c.server, c.config)))
			// Abandoned prefill, two series, is emitted until the first prompt lies beyond
			// the last bound, which is a matter of chance here.
			series = slices.DeleteFunc(series, func(s string) bool { return strings.Contains(s, "abandoned_prefill") })
			// The stand-in's engines are overloaded now and then. One that were not would
			// be healthy.
			series = slices.DeleteFunc(series, func(s string) bool { return strings.HasPrefix(s, "vllm.diagnosis.cause{") })
			for i := range series {
				series[i] = strings.Replace(series[i], "condition=degraded", "condition=healthy", 1)
			}
			slices.Sort(series)
			series = slices.Compact(series)
			assert.Len(t, series, c.want)
			assert.Contains(t, readme, fmt.Sprintf("| %s | %d |", c.name, c.want))
		})
	}
	assert.Contains(t, readme, "Each objective adds 16 for each server and model with the default windows")
	assert.Contains(t, readme, "That is 32 series for two objectives with the default windows")
}
