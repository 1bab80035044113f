package diagnose

import (
	"fmt"
	"math"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/processor/vllmprocessor/internal/signal"
)

const (
	// cancelling is the share of cancelled requests that is worth a word, and timesCancelling how many times the
	// usual share it is at least: of some applications most requests are cancelled. leastCancelled is the least
	// number of them.
	cancelling, timesCancelling, leastCancelled = 0.2, 2.0, 5.0
)

// givenUp is whether clients give up, before their answers are complete, in a share that is large and unusual.
// Latencies have only those who stayed.
type givenUp struct {
	// Since is since when a window shows it, in Unix nanoseconds; 0 where it does not. On is true once it has for
	// as long as a window.
	Since int64 `json:",omitzero"`
	On    bool  `json:",omitzero"`
	// Queued is when requests waited last while On was true.
	Queued int64 `json:",omitzero"`
}

// observe takes a reading. After a gap it shows nothing, and then a part of a window.
func (g *givenUp) observe(r *reading, b *signal.Baseline, window time.Duration) {
	if r.elapsed == 0 {
		return
	}
	bar := max(cancelling, timesCancelling*signal.OrZero(b.Usual(signal.CancelledRatio)))
	if g.On {
		bar *= StillHarm
	}
	now := r.Signals[signal.CancelledRatio] >= bar && r.cancelled >= leastCancelled*min(r.elapsed/window.Seconds(), 1)
	since(&g.Since, now, r.At)
	g.On = now && (g.On || lasts(g.Since, r.At, window))
	if g.On && r.Signals[signal.Waiting]-signal.OrZero(r.Signals[signal.Deferred]) > 1 && !r.doubtful {
		g.Queued = r.At
	}
}

// fromQueue reports whether they leave a queue, which may come and go.
func (g *givenUp) fromQueue(at int64) bool {
	return g.On && g.Queued > 0 && at-g.Queued < int64(fallsAfter)
}

// sentence says how many have given up in the window; empty where few did, or nothing is counted yet.
func (g *givenUp) sentence(r *reading) string {
	if g.Since == 0 || r.cancelled == 0 {
		return ""
	}
	return fmt.Sprintf("At least %.0f of %.0f clients gave up before their answer was complete.", r.cancelled, r.ended)
}

// again is the growth of the arrivals, as a logarithm, that may be the same clients again: who gives up may send
// the request once more, and so a server that is slow gets more requests although nobody wants more of it.
func again(r *reading, b *signal.Baseline) float64 {
	share := r.Signals[signal.CancelledRatio]
	if !(share >= cancelling) || r.cancelled < leastCancelled {
		return 0
	}
	return -math.Log1p(-min(max(share-signal.OrZero(b.Usual(signal.CancelledRatio)), 0), 0.9))
}
