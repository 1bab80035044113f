package vllmreceiver

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/fetch"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/metadata"
	"github.com/otelcol-vllm/otelcol-vllm/receiver/vllmreceiver/internal/metadatatest"
)

// Counts wait for at most a second while scrapes go on, and for nothing at the end. A clock that
// is set back must not make them wait until it has caught up.
func TestCountsReachTheirCountersWithinASecondAndAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		self, scrapes := countedScrapes(t)
		at := time.Unix(1e9, 0)
		for _, step := range []struct {
			after time.Duration
			want  int64
		}{{0, 1}, {time.Millisecond, 1}, {998 * time.Millisecond, 1}, {time.Millisecond, 4}, {999 * time.Millisecond, 4}, {-time.Hour, 6}} {
			at = at.Add(step.after)
			self.scraped(fetch.OutcomeOK)
			self.tally.flush(t.Context(), at)
			assert.Equal(t, step.want, scrapes(), at)
		}
		self.scraped(fetch.OutcomeOK)
		self.tally.close(t.Context())
		assert.EqualValues(t, 7, scrapes())
	})
}

// Targets are scraped in groups. The counts of all targets of a group reach their counters within a
// second, although the next scrape may be an hour away.
func TestCountsDoNotWaitForTheNextScrape(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		self, scrapes := countedScrapes(t)
		group := func() {
			for range 3 {
				self.scraped(fetch.OutcomeOK)
				self.tally.flush(t.Context(), time.Now())
				time.Sleep(time.Millisecond)
			}
			time.Sleep(time.Second)
		}
		group()
		assert.EqualValues(t, 3, scrapes())
		time.Sleep(time.Hour)
		group()
		assert.EqualValues(t, 6, scrapes())

		// After the end, nothing is added.
		self.scraped(fetch.OutcomeOK)
		self.tally.flush(t.Context(), time.Now())
		self.tally.close(t.Context())
		assert.EqualValues(t, 7, scrapes())
		self.scraped(fetch.OutcomeOK)
		time.Sleep(time.Hour)
		assert.EqualValues(t, 7, scrapes())
	})
}

// countedScrapes returns self-telemetry, and what its counter of scrapes has.
func countedScrapes(t *testing.T) (*telemetry, func() int64) {
	t.Helper()
	recorded := componenttest.NewTelemetry()
	t.Cleanup(func() { require.NoError(t, recorded.Shutdown(context.Background())) })
	builder, err := metadata.NewTelemetryBuilder(recorded.NewTelemetrySettings())
	require.NoError(t, err)
	t.Cleanup(builder.Shutdown)
	self, err := newTelemetry(builder, metadatatest.NewSettings(recorded))
	require.NoError(t, err)
	return self, func() int64 {
		m, err := recorded.GetMetric("otelcol_receiver_vllm_scrapes")
		if err != nil {
			return 0
		}
		return m.Data.(metricdata.Sum[int64]).DataPoints[0].Value
	}
}
