package diagnose

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/collect"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/learn"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

// queueing is a reading of a server whose clients always keep some requests
// waiting, as a benchmark or a batch job does: the wait is a part of each time to
// the first token.
func queueing(at int64) reading {
	r := healthyReading(at)
	r.waitingNow = 4
	s := &r.Signals
	s[signal.TimeToFirstToken], s[signal.Waiting], s[signal.QueueWait], s[signal.QueueTime] = 1, 0.9, 0.9, 0.9
	return r
}

// A queue that was always there is in the usual time to the first token already,
// and does not count twice.
func TestAQueueThatIsUsualIsNoHarm(t *testing.T) {
	t.Parallel()
	b := learn.NewBaseline()
	for n := range 10 {
		r := queueing(int64(n+1) * int64(time.Minute))
		b.Learn(&r.Window, time.Minute, &signal.Set{})
	}
	require.True(t, b.Ready())
	r := queueing(int64(time.Hour))
	found := newSymptoms(&r, b, [collect.NumInputs]bool{}, false)
	assert.False(t, found.any(), "%+v", found)
	r.Signals[signal.QueueWait] = 3
	found = newSymptoms(&r, b, [collect.NumInputs]bool{}, false)
	assert.True(t, found.firstToken, "a longer one does")
}
