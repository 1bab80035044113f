package vllmprocessor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/race"
	"github.com/otelcol-vllm/otelcol-vllm/internal/test/recorded"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/metadata"
)

// scraped is what the receiver makes of the answers of a server.
func scraped(tb testing.TB, server string) (batches []pmetric.Metrics) {
	tb.Helper()
	all := recorded.Answers(tb, server)
	read := receiving(tb, all[0].Version)
	for i, a := range all {
		batches = append(batches, read(answer{storyBegin.Add(time.Duration(i) * betweenAnswers), []byte(a.Body), a.ContentType}))
	}
	return batches
}

// derivedSeries are the series that are derived in the course of some scrapes of a server.
func derivedSeries(t *testing.T, scrapes []pmetric.Metrics, config string) map[string]bool {
	t.Helper()
	p := create(t, configured(t, config), processortest.NewNopSettings(metadata.Type))
	series := map[string]bool{}
	for i, scrape := range scrapes {
		batch := pmetric.NewMetrics()
		scrape.CopyTo(batch)
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
	plain, all, many, manyAll := scraped(t, "plain"), scraped(t, "plain with all"), scraped(t, "eight engines"), scraped(t, "eight engines with all")
	readme := readReadme(t)
	for _, c := range []struct {
		name   string
		sim    []pmetric.Metrics
		config string
		want   int
	}{
		{"one engine", plain, "", 36},
		{"one engine, with two objectives", plain, promises, 36 + 2*16},
		{"one engine, with speculation (three drafted tokens) and `hardware`", all, peaks, 45},
		{"eight engines", many, "", 224},
		{"eight engines, with speculation and `hardware`", manyAll, peaks, 305},
		{"eight engines, with `percentiles::per_engine`", many, "percentiles: {per_engine: true}", 296},
		{"one engine, with `percentiles::detailed`", plain, "percentiles: {detailed: true}", 48},
		{"eight engines, with `percentiles::detailed`", many, "percentiles: {detailed: true}", 236},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			series := slices.Sorted(maps.Keys(derivedSeries(t, c.sim, c.config)))
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
}
