package diagnose

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/window"
)

// ward is an engine whose readings the test chooses, one each 15 s from an hour on.
type ward struct {
	*engine
	t        *testing.T
	settings *Settings
	state    *State
	view     *window.View
	at       int64
}

func newWard(t *testing.T, b *signal.Baseline) *ward {
	t.Helper()
	r := newRig(t)
	r.scrape(serves("0"))
	return &ward{&engine{baseline: b}, t, settings(2), &State{}, &r.state.views[0], int64(time.Hour)}
}

// takes gives the engine one reading, as State does after it has read it, and returns what was found.
func (w *ward) takes(change func(r *reading)) symptoms {
	w.t.Helper()
	w.at += scrape
	r := healthyReading(w.at)
	change(&r)
	return w.observes(r)
}

func (w *ward) observes(r reading) symptoms {
	w.t.Helper()
	windows := 0.0
	if w.last.At > 0 && r.elapsed > 0 {
		windows = min(float64(r.At-w.last.At)/float64(w.settings.Window), 1)
	}
	w.engine.at = r.At
	w.baseline.Compare(&r.Window)
	w.Progress.observe(&r)
	w.Restarts.observe(w.settings, &r)
	found := w.observeHarm(w.settings, w.view, &r, windows)
	w.last = r
	raw := w.judge(w.settings, &r, &found)
	w.explain(w.settings, &r, &found, raw)
	w.report(w.settings, w.state, raw, r.At, &found)
	w.learn(w.settings, w.state, &r, &found, raw)
	return found
}

// minutes gives it the same again and again.
func (w *ward) minutes(n int, change func(r *reading)) (found symptoms) {
	w.t.Helper()
	for range 4 * n {
		found = w.takes(change)
	}
	return found
}

// queueing is a reading of a server whose clients always keep some requests
// waiting, as a benchmark or a batch job does: the wait is a part of each time to
// the first token.
func queueing(r *reading) {
	r.waitingNow = 4
	s := &r.Signals
	s[signal.TimeToFirstToken], s[signal.Waiting], s[signal.QueueWait], s[signal.QueueTime] = 1, 0.9, 0.9, 0.9
}

// A queue that was always there is usual, and no harm. It is one when it grows.
func TestAQueueThatIsUsualIsNoHarm(t *testing.T) {
	t.Parallel()
	b := signal.NewBaseline()
	for n := range 10 {
		r := healthyReading(int64(n+1) * int64(time.Minute))
		queueing(&r)
		b.Learn(&r.Window, time.Minute, &signal.Set{})
	}
	require.True(t, b.Ready())
	w := newWard(t, b)
	for range 40 {
		found := w.takes(queueing)
		require.False(t, found.any(), "%+v", found)
	}
	longer := 0
	for n := range 12 {
		if found := w.takes(func(r *reading) {
			queueing(r)
			r.waitingNow, r.Signals[signal.Waiting] = float64(10+5*n), float64(10+5*n)
			r.Signals[signal.TimeToFirstToken], r.Signals[signal.QueueWait], r.Signals[signal.QueueTime] = 4, 4, 4
			r.Signals[signal.ArrivalRate] = 1.33
		}); found.firstToken {
			longer++
		}
	}
	assert.Positive(t, longer, "a longer one is")
}
