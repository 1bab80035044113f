package agree

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-vllm/otelcol-vllm/lab/judge"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/run"
	"github.com/otelcol-vllm/otelcol-vllm/lab/vllm/said"
)

// The clients of a real vLLM know which of them left: the processor counts as many. It counts fewer only in an
// overload, where some leave before the API server has taken their request up.
func TestCancelledRequestsOfARealServerAreCounted(t *testing.T) {
	const metric, aborts, overload = "vllm.request.cancelled_estimate", "aborts/aborts", "retries/retries"
	r, err := run.Read("../../../testdata/vllm/hang-core+long-prompts+burst+hang-api+retries+aborts+grammar+closed-loop+lone-prompts-0.32.0.tar.zst")
	require.NoError(t, err)
	left := func(from, to float64) (n float64) {
		for i := range r.Sent {
			if s := &r.Sent[i]; (s.How == judge.Left || s.How == judge.TimedOut) && s.At+s.End > from && s.At+s.End <= to {
				n++
			}
		}
		return n
	}
	begin := map[string]float64{}
	for i, span := range r.Spans {
		begin[r.Play.Phases[i].Name] = span.From
	}
	require.Contains(t, begin, aborts)
	require.Contains(t, begin, overload)
	compared := 0
	settings := map[string]any{"metrics": map[string]any{metric: map[string]any{"enabled": true}}}
	require.NoError(t, said.Feed(t.Context(), r, 15*time.Second, settings, func(s *run.Scrape, emitted pmetric.Metrics) error {
		rate, has := total(emitted, metric)
		if !has || s.At < 330 {
			return nil
		}
		// Five minutes are 20 scrapes, or one more, as they are on time or late.
		off := math.Inf(1)
		for _, window := range []float64{300, 315} {
			off = min(off, math.Abs(rate*window-left(s.At-window, s.At)))
		}
		assert.LessOrEqual(t, rate*300, left(s.At-316, s.At)+1, "at %.0f s", s.At)
		if s.At < begin[overload] || s.At > begin[aborts]+150 && s.At < begin[aborts]+300 {
			assert.LessOrEqual(t, off, 1.0, "at %.0f s", s.At)
			compared++
		}
		return nil
	}))
	assert.Greater(t, compared, 50)
	assert.InDelta(t, 100, left(begin[aborts], begin[aborts]+200), 10, "the story has some")
}
