package vllmprocessor

import (
	"testing"
	"time"

	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/internal/test/recorded"
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
