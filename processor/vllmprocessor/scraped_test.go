package vllmprocessor

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/processor/processortest"

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
