package history

import (
	"slices"
	"time"

	"github.com/otelcol-vllm/otelcol-vllm/lab/vllmsim/engine"
)

// Event is something that an objective is about, at the time at which the server counts it.
type Event struct {
	At time.Duration
	// Good and Bad are how many met the objective and how many missed it.
	Good, Bad float64
}

// FirstTokens are the events of an objective about the time to the first token, from what
// happened to the simulated requests. Nothing of the collector is used.
func FirstTokens(h *History, threshold time.Duration) []Event {
	return h.events(func(o engine.Outcome) (Event, bool) {
		e := Event{At: seconds(o.Arrived + o.FirstToken)}
		if o.FirstToken > threshold.Seconds() {
			e.Bad = 1
		} else {
			e.Good = 1
		}
		return e, o.FirstToken > 0
	})
}

// Gaps are the events of an objective about the interval between tokens. The threshold must
// be one of engine.GapBounds. The gaps of a request count when it ends.
func Gaps(h *History, threshold time.Duration) []Event {
	limit := slices.Index(engine.GapBounds[:], threshold.Seconds())
	return h.events(func(o engine.Outcome) (Event, bool) {
		e := Event{At: seconds(o.Ended)}
		for i, n := range o.Gaps {
			if i <= limit {
				e.Good += float64(n)
			} else {
				e.Bad += float64(n)
			}
		}
		return e, e.Good+e.Bad > 0
	})
}

// Latencies are the events of an objective about the whole latency of finished requests.
func Latencies(h *History, threshold time.Duration) []Event {
	return h.events(func(o engine.Outcome) (Event, bool) {
		e := Event{At: seconds(o.Ended)}
		if o.Ended-o.Arrived > threshold.Seconds() {
			e.Bad = 1
		} else {
			e.Good = 1
		}
		return e, o.End == engine.EndStop || o.End == engine.EndLength
	})
}

func (h *History) events(of func(engine.Outcome) (Event, bool)) (all []Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, outcomes := range h.Outcomes {
		for _, o := range outcomes {
			if e, counts := of(o); counts {
				all = append(all, e)
			}
		}
	}
	slices.SortFunc(all, func(a, b Event) int { return int(a.At - b.At) })
	return all
}

// Missed is the share of bad events within a window that ends at a time, and their number.
func Missed(events []Event, at, window time.Duration) (share, n float64) {
	first, _ := slices.BinarySearchFunc(events, at-window, func(e Event, t time.Duration) int { return int(e.At - t) })
	var bad float64
	for _, e := range events[first:] {
		if e.At > at {
			break
		}
		bad += e.Bad
		n += e.Good + e.Bad
	}
	if n == 0 {
		return 0, 0
	}
	return bad / n, n
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
